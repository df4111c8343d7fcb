// NEON, the aarch64 base: four registers a panel.
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/block_layout.h"
#include "kernels/blocks_scalar.h"
#include "kernels/elementary_tables.h"
#include "kernels/elementary_vector.h"
#include "kernels/isa.h"
#include "kernels/tables.h"
#include "proved/elementary.h"
#include "proved/kernels_q8_scalar.h"
#include "proved/kv_index.h"
#include "proved/pack_index.h"

// kernels_neondot.cpp compiles this file again with the dot-product instructions.
#if defined(__ARM_FEATURE_DOTPROD)
#define PI_NAME "neondot"
#define PI_KERNELS kNeonDotKernels
#define PI_FORMS kNeonDotElementary
#else
#define PI_NAME "neon"
#define PI_KERNELS kNeonKernels
#define PI_FORMS kNeonElementary
#endif

namespace proofinfer {
namespace {

using Reg = float32x4_t;
using Wide = float64x2_t;
using Count = int64x2_t;

constexpr size_t kLanes = 4;
constexpr size_t kAccumulators = 24;  // of 32 registers, with 4 of weights, an activation and a product
constexpr size_t kMaxRows = 4;

PI_INLINE Reg zero() { return vdupq_n_f32(0.0f); }
PI_INLINE Reg set1(float x) { return vdupq_n_f32(x); }
PI_INLINE Reg load(const float *p) { return vld1q_f32(p); }
PI_INLINE Reg load_panel(const float *p) { return vld1q_f32(p); }
PI_INLINE void store(float *p, Reg x) { vst1q_f32(p, x); }
PI_INLINE Reg load_part(const float *p, size_t n) {
  float lanes[kLanes] = {p[0], n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, 0.0f};
  return load(lanes);
}
PI_INLINE void store_part(float *p, Reg x, size_t n) {
  float lanes[kLanes];
  store(lanes, x);
  for (size_t i = 0; i < n; i++) p[i] = lanes[i];
}

PI_INLINE Reg add(Reg a, Reg b) { return vaddq_f32(a, b); }
PI_INLINE Reg sub(Reg a, Reg b) { return vsubq_f32(a, b); }
PI_INLINE Reg mul(Reg a, Reg b) { return vmulq_f32(a, b); }
PI_INLINE Reg div(Reg a, Reg b) { return vdivq_f32(a, b); }
PI_INLINE Reg max(Reg a, Reg b) { return vmaxq_f32(a, b); }
PI_INLINE Reg negate(Reg x) { return vnegq_f32(x); }
PI_INLINE Reg absolute(Reg x) { return vabsq_f32(x); }
PI_INLINE Reg select_less(Reg a, Reg b, Reg x, Reg y) { return vbslq_f32(vcltq_f32(a, b), x, y); }
PI_INLINE bool all_less(Reg a, Reg b) { return vminvq_u32(vcltq_f32(a, b)) != 0; }
PI_INLINE Reg replace_nan(Reg x, Reg y) { return vbslq_f32(vceqq_f32(x, x), x, y); }

PI_INLINE Reg load_pairs(const float *p) {
  float32x2_t x = vld1_f32(p);
  return vcombine_f32(vdup_lane_f32(x, 0), vdup_lane_f32(x, 1));
}
PI_INLINE Reg load_pairs_part(const float *p, size_t) { return vcombine_f32(vdup_n_f32(p[0]), vdup_n_f32(0.0f)); }
PI_INLINE Reg swap_pairs(Reg x) { return vrev64q_f32(x); }
PI_INLINE Reg negate_even(Reg x) {
  uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
  return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(x), sign));
}

PI_INLINE void transpose_4x4(const float *from, size_t from_step, float *to, size_t to_step) {
  float32x4x2_t ab = vtrnq_f32(vld1q_f32(from), vld1q_f32(from + from_step));
  float32x4x2_t cd = vtrnq_f32(vld1q_f32(from + 2 * from_step), vld1q_f32(from + 3 * from_step));
  vst1q_f32(to, vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0])));
  vst1q_f32(to + to_step, vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1])));
  vst1q_f32(to + 2 * to_step, vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0])));
  vst1q_f32(to + 3 * to_step, vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1])));
}

PI_INLINE Wide widen_low(Reg x) { return vcvt_f64_f32(vget_low_f32(x)); }
PI_INLINE Wide widen_high(Reg x) { return vcvt_high_f64_f32(x); }
PI_INLINE Reg narrow(Wide low, Wide high) { return vcvt_high_f32_f64(vcvt_f32_f64(low), high); }
PI_INLINE Wide wide_set1(double x) { return vdupq_n_f64(x); }
PI_INLINE Wide wide_add(Wide a, Wide b) { return vaddq_f64(a, b); }
PI_INLINE Wide wide_sub(Wide a, Wide b) { return vsubq_f64(a, b); }
PI_INLINE Wide wide_mul(Wide a, Wide b) { return vmulq_f64(a, b); }
PI_INLINE Wide wide_fma(Wide a, Wide b, Wide c) { return vfmaq_f64(c, a, b); }
PI_INLINE Wide wide_fms(Wide a, Wide b, Wide c) { return vfmaq_f64(vnegq_f64(c), a, b); }
PI_INLINE Wide wide_fnma(Wide a, Wide b, Wide c) { return vfmsq_f64(c, a, b); }

PI_INLINE Wide exp2_scale(Wide shifted) {
  uint64x2_t k = vreinterpretq_u64_f64(shifted);
  uint64_t entries[2] = {pi_exp2_table[vgetq_lane_u64(k, 0) % 32], pi_exp2_table[vgetq_lane_u64(k, 1) % 32]};
  return vreinterpretq_f64_u64(vaddq_u64(vld1q_u64(entries), vshlq_n_u64(k, 47)));
}

PI_INLINE Wide quarter_turns(Wide turns, Count *n) {
  *n = vshrq_n_s64(vaddq_s64(vcvtq_s64_f64(turns), vdupq_n_s64(0x800000)), 24);
  return vcvtq_f64_s64(*n);
}
PI_INLINE Count next(Count n) { return vaddq_s64(n, vdupq_n_s64(1)); }
PI_INLINE Wide negate_bit1(Wide x, Count n) {
  uint64x2_t sign = vshlq_n_u64(vandq_u64(vreinterpretq_u64_s64(n), vdupq_n_u64(2)), 62);
  return vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(x), sign));
}
PI_INLINE Wide select_odd(Count n, Wide x, Wide y) { return vbslq_f64(vtstq_s64(n, vdupq_n_s64(1)), x, y); }

#include "kernels/elementary_body.h"

using Quads = int32x4_t;
using Weights = int8x16_t;
using Inputs = int8x16_t;  // the four activations, four times

constexpr size_t kMaxRowsQ8 = 2;

PI_INLINE Quads quads_zero() { return vdupq_n_s32(0); }
PI_INLINE Quads quads_add(Quads a, Quads b) { return vaddq_s32(a, b); }
PI_INLINE void store_quads(int32_t *p, Quads x) { vst1q_s32(p, x); }
PI_INLINE Inputs load_inputs(const int8_t *p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return vreinterpretq_s8_s32(vdupq_n_s32(dword));
}
PI_INLINE Weights load_weights(const int8_t *p) { return vld1q_s8(p); }
#if defined(__ARM_FEATURE_DOTPROD)
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) { return vdotq_s32(acc, w, x); }
#else
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) {
  int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));     // two sums of two products for each of two rows
  int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(x)));  // and of the other two
  return vaddq_s32(acc, vpaddq_s32(low, high));
}
#endif
PI_INLINE Quads dots_start(int32_t) { return vdupq_n_s32(0); }
PI_INLINE Reg to_float(Quads x) { return vcvtq_f32_s32(x); }
PI_INLINE Quads round_away(Reg x) { return vcvtaq_s32_f32(x); }
PI_INLINE void store_bytes(int8_t *p, Quads x) {
  int16x4_t words = vmovn_s32(x);
  int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
  int32_t dword = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
  __builtin_memcpy(p, &dword, sizeof(dword));
}

#include "kernels/kernels_body.h"
#include "kernels/kernels_q8_body.h"

PI_INLINE uint16x4_t load_words(const unsigned char *p) { return vreinterpret_u16_u8(vld1_u8(p)); }
PI_INLINE Reg load_f16(const unsigned char *p) { return vcvt_f32_f16(vreinterpret_f16_u16(load_words(p))); }
PI_INLINE Reg load_bf16(const unsigned char *p) { return vreinterpretq_f32_u32(vshll_n_u16(load_words(p), 16)); }
PI_INLINE uint8x8_t load_4_bytes(const unsigned char *p) {
  uint32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return vreinterpret_u8_u32(vdup_n_u32(dword));
}
PI_INLINE Reg load_u8(const unsigned char *p) { return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(load_4_bytes(p))))); }
PI_INLINE Reg load_s8(const unsigned char *p) {
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_4_bytes(p))))));
}

using Codes = uint8x16_t;

constexpr size_t kPanelsAtOnce = 4;
constexpr size_t kMaxRowsBlocks = 4;

PI_INLINE Quads quads_set1(int32_t x) { return vdupq_n_s32(x); }
PI_INLINE Quads quads_sub(Quads a, Quads b) { return vsubq_s32(a, b); }
PI_INLINE Quads quads_times_256(Quads x) { return vshlq_n_s32(x, 8); }
PI_INLINE Codes load_codes(const unsigned char *p) { return vld1q_u8(p); }
PI_INLINE Codes codes_and(Codes a, Codes b) { return vandq_u8(a, b); }
PI_INLINE Codes codes_or(Codes a, Codes b) { return vorrq_u8(a, b); }
PI_INLINE Codes codes_set1(int x) { return vdupq_n_u8(static_cast<uint8_t>(x)); }
template <int kUp>
PI_INLINE Codes codes_shift(Codes x) {
  if constexpr (kUp > 0) {
    return vshlq_n_u8(x, kUp);
  } else {
    return vshrq_n_u8(x, -kUp);
  }
}
#if defined(__ARM_FEATURE_DOTPROD)
using Products = int32x4_t;
PI_INLINE Products products_zero() { return vdupq_n_s32(0); }
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) { return vdotq_s32(acc, vreinterpretq_s8_u8(w), x); }
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  return vmlaq_n_s32(acc, p, kTimes);
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fffffff / (4 * 127 * most)); }
#else
// Products of two rows, and of the other two.
struct Products {
  int16x8_t low, high;
};
PI_INLINE Products products_zero() { return Products{vdupq_n_s16(0), vdupq_n_s16(0)}; }
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) {
  int8x16_t codes = vreinterpretq_s8_u8(w);
  acc.low = vmlal_s8(acc.low, vget_low_s8(codes), vget_low_s8(x));
  acc.high = vmlal_s8(acc.high, vget_high_s8(codes), vget_high_s8(x));
  return acc;
}
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  return vmlaq_n_s32(acc, vpaddq_s32(vpaddlq_s16(p.low), vpaddlq_s16(p.high)), kTimes);
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fff / (127 * most)); }
#endif

#include "kernels/kernels_blocks_body.h"

}  // namespace

const Kernels PI_KERNELS = {
    PI_NAME,     matvec_f32,  matmul_f32,       rmsnorm_f32,       rope_angles_f32, rope_f32,      scores_f32, softmax_f32, mix_f32,
    swiglu_f32,  add_f32,     divide_f32,       canonical_nan_f32, pack_f32,        quantize_q8,   matvec_q8,  matmul_q8,   pack_q8,
    matvec_half, matmul_half, pack_half_scalar, quantize_blocks,   matvec_blocks,   matmul_blocks, pack_blocks};

const ElementaryForms PI_FORMS = {exp_f32, sin_f32, cos_f32};

}  // namespace proofinfer
