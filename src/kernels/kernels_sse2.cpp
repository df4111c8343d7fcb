// SSE2, the x86-64 base: four registers a panel. It has no fused multiply-add, so the elementary functions go lane by lane.
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/block_layout.h"
#include "kernels/blocks_scalar.h"
#include "kernels/elementary_vector.h"
#include "kernels/isa.h"
#include "kernels/tables.h"
#include "proved/elementary.h"
#include "proved/kernels_q8_scalar.h"
#include "proved/kv_index.h"
#include "proved/pack_index.h"

#if defined(__GNUC__) && !defined(__clang__)
// GCC's intrinsics start from registers of undefined value on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace proofinfer {
namespace {

using Reg = __m128;

constexpr size_t kLanes = 4;
constexpr size_t kAccumulators = 8;  // of 16 registers, with 4 of weights, an activation and a product
constexpr size_t kMaxRows = 2;

PI_INLINE Reg zero() { return _mm_setzero_ps(); }
PI_INLINE Reg set1(float x) { return _mm_set1_ps(x); }
PI_INLINE Reg load(const float *p) { return _mm_loadu_ps(p); }
PI_INLINE Reg load_panel(const float *p) { return _mm_load_ps(p); }
PI_INLINE void store(float *p, Reg x) { _mm_storeu_ps(p, x); }
PI_INLINE Reg load_part(const float *p, size_t n) { return _mm_setr_ps(p[0], n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, 0.0f); }
PI_INLINE void store_part(float *p, Reg x, size_t n) {
  float lanes[kLanes];
  store(lanes, x);
  for (size_t i = 0; i < n; i++) p[i] = lanes[i];
}

PI_INLINE Reg add(Reg a, Reg b) { return _mm_add_ps(a, b); }
PI_INLINE Reg sub(Reg a, Reg b) { return _mm_sub_ps(a, b); }
PI_INLINE Reg mul(Reg a, Reg b) { return _mm_mul_ps(a, b); }
PI_INLINE Reg div(Reg a, Reg b) { return _mm_div_ps(a, b); }
PI_INLINE Reg max(Reg a, Reg b) { return _mm_max_ps(a, b); }
PI_INLINE Reg negate(Reg x) { return _mm_xor_ps(x, _mm_set1_ps(-0.0f)); }
PI_INLINE Reg replace_nan(Reg x, Reg y) {
  Reg nan = _mm_cmpunord_ps(x, x);
  return _mm_or_ps(_mm_and_ps(nan, y), _mm_andnot_ps(nan, x));
}

PI_INLINE Reg load_pairs(const float *p) { return _mm_setr_ps(p[0], p[0], p[1], p[1]); }
PI_INLINE Reg load_pairs_part(const float *p, size_t) { return _mm_setr_ps(p[0], p[0], 0.0f, 0.0f); }
PI_INLINE Reg swap_pairs(Reg x) { return _mm_shuffle_ps(x, x, 0xb1); }
PI_INLINE Reg negate_even(Reg x) { return _mm_xor_ps(x, _mm_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f)); }

PI_INLINE void transpose_4x4(const float *from, size_t from_step, float *to, size_t to_step) {
  __m128 a = _mm_loadu_ps(from);
  __m128 b = _mm_loadu_ps(from + from_step);
  __m128 c = _mm_loadu_ps(from + 2 * from_step);
  __m128 d = _mm_loadu_ps(from + 3 * from_step);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + to_step, b);
  _mm_storeu_ps(to + 2 * to_step, c);
  _mm_storeu_ps(to + 3 * to_step, d);
}

template <float (*kFunction)(float)>
PI_INLINE Reg each_lane(Reg x) {
  float lanes[kLanes];
  store(lanes, x);
  return _mm_setr_ps(kFunction(lanes[0]), kFunction(lanes[1]), kFunction(lanes[2]), kFunction(lanes[3]));
}

PI_INLINE Reg exp_reg(Reg x) { return each_lane<pi_expf>(x); }
PI_INLINE Reg sin_reg(Reg x) { return each_lane<pi_sinf>(x); }
PI_INLINE Reg cos_reg(Reg x) { return each_lane<pi_cosf>(x); }

PI_INLINE Reg absolute(Reg x) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), x); }

using Quads = __m128i;
using Weights = __m128i;
using Inputs = __m128i;  // the four activations as int16, twice

constexpr size_t kMaxRowsQ8 = 1;

PI_INLINE Quads quads_zero() { return _mm_setzero_si128(); }
PI_INLINE Quads quads_add(Quads a, Quads b) { return _mm_add_epi32(a, b); }
PI_INLINE void store_quads(int32_t *p, Quads x) { _mm_store_si128(reinterpret_cast<__m128i *>(p), x); }
// Bytes to int16 with their sign: the byte in the upper half, shifted down.
PI_INLINE __m128i widen_low_bytes(__m128i x) { return _mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), x), 8); }
PI_INLINE __m128i widen_high_bytes(__m128i x) { return _mm_srai_epi16(_mm_unpackhi_epi8(_mm_setzero_si128(), x), 8); }
PI_INLINE Inputs load_inputs(const int8_t *p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return widen_low_bytes(_mm_set1_epi32(dword));
}
PI_INLINE Weights load_weights(const int8_t *p) { return _mm_load_si128(reinterpret_cast<const __m128i *>(p)); }
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) {
  __m128 low = _mm_castsi128_ps(_mm_madd_epi16(widen_low_bytes(w), x));    // two sums of two products for each of two rows
  __m128 high = _mm_castsi128_ps(_mm_madd_epi16(widen_high_bytes(w), x));  // and of the other two
  __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)), odd = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd));
  return _mm_add_epi32(acc, _mm_add_epi32(even, odd));
}
PI_INLINE Quads dots_start(int32_t) { return _mm_setzero_si128(); }
PI_INLINE Reg to_float(Quads x) { return _mm_cvtepi32_ps(x); }
PI_INLINE Quads round_away(Reg x) {
  Quads whole = _mm_cvttps_epi32(x);
  Reg rest = _mm_sub_ps(x, _mm_cvtepi32_ps(whole));  // exact
  whole = _mm_sub_epi32(whole, _mm_castps_si128(_mm_cmpge_ps(rest, _mm_set1_ps(0.5f))));
  return _mm_add_epi32(whole, _mm_castps_si128(_mm_cmple_ps(rest, _mm_set1_ps(-0.5f))));
}
PI_INLINE void store_bytes(int8_t *p, Quads x) {
  __m128i words = _mm_packs_epi32(x, x);
  int32_t bytes = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
  __builtin_memcpy(p, &bytes, sizeof(bytes));
}

#include "kernels/kernels_body.h"
#include "kernels/kernels_q8_body.h"

PI_INLINE __m128i load_8_bytes(const unsigned char *p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p)); }
// The exponent is counted from another place: a product with 2^112 sets it right, subnormal numbers included. Of infinities and NaNs all exponent
// bits are set.
PI_INLINE Reg load_f16(const unsigned char *p) {
  __m128i wide = _mm_unpacklo_epi16(load_8_bytes(p), _mm_setzero_si128());
  __m128i sign = _mm_slli_epi32(_mm_and_si128(wide, _mm_set1_epi32(0x8000)), 16), magnitude = _mm_and_si128(wide, _mm_set1_epi32(0x7fff));
  __m128i special = _mm_and_si128(_mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7bff)), _mm_set1_epi32(0x7f800000));
  __m128i scaled = _mm_castps_si128(_mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(magnitude, 13)), _mm_set1_ps(0x1p112f)));
  return _mm_castsi128_ps(_mm_or_si128(_mm_or_si128(scaled, special), sign));
}
PI_INLINE Reg load_bf16(const unsigned char *p) { return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), load_8_bytes(p))); }
PI_INLINE __m128i load_4_bytes(const unsigned char *p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return _mm_cvtsi32_si128(dword);
}
PI_INLINE Reg load_u8(const unsigned char *p) {
  __m128i words = _mm_unpacklo_epi8(load_4_bytes(p), _mm_setzero_si128());
  return _mm_cvtepi32_ps(_mm_unpacklo_epi16(words, _mm_setzero_si128()));
}
PI_INLINE Reg load_s8(const unsigned char *p) {
  __m128i words = _mm_unpacklo_epi8(_mm_setzero_si128(), load_4_bytes(p));
  return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(_mm_setzero_si128(), words), 24));
}

using Codes = __m128i;
// Sums of two products: of two rows, and of the other two.
struct Products {
  __m128i low, high;
};

constexpr size_t kPanelsAtOnce = 4;
constexpr size_t kMaxRowsBlocks = 4;

PI_INLINE Quads quads_set1(int32_t x) { return _mm_set1_epi32(x); }
PI_INLINE Quads quads_sub(Quads a, Quads b) { return _mm_sub_epi32(a, b); }
PI_INLINE Quads quads_times_256(Quads x) { return _mm_slli_epi32(x, 8); }
PI_INLINE Codes load_codes(const unsigned char *p) { return _mm_load_si128(reinterpret_cast<const __m128i *>(p)); }
PI_INLINE Codes codes_and(Codes a, Codes b) { return _mm_and_si128(a, b); }
PI_INLINE Codes codes_or(Codes a, Codes b) { return _mm_or_si128(a, b); }
PI_INLINE Codes codes_set1(int x) { return _mm_set1_epi8(static_cast<char>(x)); }
template <int kUp>
PI_INLINE Codes codes_shift(Codes x) {
  if constexpr (kUp > 0) return _mm_slli_epi16(x, kUp);
  return _mm_srli_epi16(x, -kUp);
}
PI_INLINE Products products_zero() { return Products{_mm_setzero_si128(), _mm_setzero_si128()}; }
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) {
  acc.low = _mm_add_epi32(acc.low, _mm_madd_epi16(_mm_unpacklo_epi8(w, _mm_setzero_si128()), x));
  acc.high = _mm_add_epi32(acc.high, _mm_madd_epi16(_mm_unpackhi_epi8(w, _mm_setzero_si128()), x));
  return acc;
}
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  __m128 low = _mm_castsi128_ps(p.low), high = _mm_castsi128_ps(p.high);
  __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)), odd = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd));
  Quads sums = _mm_add_epi32(even, odd);
  return _mm_add_epi32(acc, kTimes == 1 ? sums : quads_sub(quads_times_256(sums), sums));
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fffffff / (2 * 127 * most)); }

#include "kernels/kernels_blocks_body.h"

}  // namespace

const Kernels kSse2Kernels = {
    "sse2",      matvec_f32,  matmul_f32,       rmsnorm_f32,       rope_angles_f32, rope_f32,      scores_f32, softmax_f32, mix_f32,
    swiglu_f32,  add_f32,     divide_f32,       canonical_nan_f32, pack_f32,        quantize_q8,   matvec_q8,  matmul_q8,   pack_q8,
    matvec_half, matmul_half, pack_half_scalar, quantize_blocks,   matvec_blocks,   matmul_blocks, pack_blocks};

const ElementaryForms kSse2Elementary = {exp_f32, sin_f32, cos_f32};

}  // namespace proofinfer
