#include "kernels/blocks_scalar.h"
#include "kernels/elementary_vector.h"
#include "kernels/tables.h"
#include "proved/elementary.h"
#include "proved/kernels_q8_scalar.h"
#include "proved/kernels_scalar.h"

namespace proofinfer {
namespace {

void exp_scalar(const float *x, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = pi_expf(x[i]);
}

void sin_scalar(const float *x, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = pi_sinf(x[i]);
}

void cos_scalar(const float *x, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = pi_cosf(x[i]);
}

}  // namespace

const Kernels kScalarKernels = {
    "scalar",
    pi_matvec_f32_scalar,
    pi_matmul_f32_scalar,
    pi_rmsnorm_f32_scalar,
    pi_rope_angles_f32_scalar,
    pi_rope_f32_scalar,
    pi_scores_f32_scalar,
    pi_softmax_f32_scalar,
    pi_mix_f32_scalar,
    pi_swiglu_f32_scalar,
    pi_add_f32_scalar,
    pi_divide_f32_scalar,
    pi_canonical_nan_f32_scalar,
    pi_pack_f32_scalar,
    pi_quantize_q8_scalar,
    pi_matvec_q8_scalar,
    pi_matmul_q8_scalar,
    pi_pack_q8_scalar,
    matvec_half_scalar,
    matmul_half_scalar,
    pack_half_scalar,
    quantize_blocks_scalar,
    matvec_blocks_scalar,
    matmul_blocks_scalar,
    pack_blocks,
};

const ElementaryForms kScalarElementary = {exp_scalar, sin_scalar, cos_scalar};

}  // namespace proofinfer
