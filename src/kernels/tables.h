// The kernel tables that dispatch.cpp chooses from, one a file. Immutable, any thread.
#ifndef PROOFINFER_KERNELS_TABLES_H
#define PROOFINFER_KERNELS_TABLES_H

#include "kernels/kernels.h"

namespace proofinfer {

extern const Kernels kScalarKernels;
extern const Kernels kSse2Kernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
extern const Kernels kNeonKernels;
extern const Kernels kNeonDotKernels;

}  // namespace proofinfer

#endif
