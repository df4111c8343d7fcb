// The elementary functions over arrays, one table an ISA: what the kernels use, given a name so that tests can run over every float.
// Each equals its scalar function of proved/elementary.h bit for bit, NaN payloads apart. Immutable, any thread.
#ifndef PROOFINFER_KERNELS_ELEMENTARY_VECTOR_H
#define PROOFINFER_KERNELS_ELEMENTARY_VECTOR_H

#include <stddef.h>

namespace proofinfer {

// x, y: [n]; y may be x.
struct ElementaryForms {
  void (*exp_f32)(const float *x, float *y, size_t n);
  void (*sin_f32)(const float *x, float *y, size_t n);
  void (*cos_f32)(const float *x, float *y, size_t n);
};

// The forms that the table kernels_at(index) uses.
const ElementaryForms *elementary_forms_at(size_t index);

extern const ElementaryForms kScalarElementary;
extern const ElementaryForms kSse2Elementary;
extern const ElementaryForms kAvx2Elementary;
extern const ElementaryForms kAvx512Elementary;
extern const ElementaryForms kAvx512VnniElementary;
extern const ElementaryForms kNeonElementary;
extern const ElementaryForms kNeonDotElementary;

}  // namespace proofinfer

#endif
