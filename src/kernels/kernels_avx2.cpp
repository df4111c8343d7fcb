// AVX2 with FMA and F16C: two registers a panel.
#include <immintrin.h>
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

#if defined(__GNUC__) && !defined(__clang__)
// GCC's intrinsics start from registers of undefined value on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define PI_MEMORY_SANITIZER
#endif
#endif

namespace proofinfer {
namespace {

using Reg = __m256;
using Wide = __m256d;
using Count = __m256i;

constexpr size_t kLanes = 8;
constexpr size_t kAccumulators = 12;  // of 16 registers, with 2 of weights, an activation and a product
constexpr size_t kMaxRows = 4;

// All bits set in the first n of 8 lanes.
PI_INLINE __m256i first_lanes(size_t n) {
  alignas(32) static const int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(kMasks + kLanes - n));
}

PI_INLINE Reg zero() { return _mm256_setzero_ps(); }
PI_INLINE Reg set1(float x) { return _mm256_set1_ps(x); }
PI_INLINE Reg load(const float *p) { return _mm256_loadu_ps(p); }
PI_INLINE Reg load_panel(const float *p) { return _mm256_load_ps(p); }
PI_INLINE void store(float *p, Reg x) { _mm256_storeu_ps(p, x); }
PI_INLINE Reg load_part(const float *p, size_t n) { return _mm256_maskload_ps(p, first_lanes(n)); }
PI_INLINE void store_part(float *p, Reg x, size_t n) {
#ifdef PI_MEMORY_SANITIZER
  for (size_t i = 0; i < n; i++) p[i] = x[i];  // MemorySanitizer does not know that the instruction below writes
#else
  _mm256_maskstore_ps(p, first_lanes(n), x);
#endif
}

PI_INLINE Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
PI_INLINE Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
PI_INLINE Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
PI_INLINE Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
PI_INLINE Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
PI_INLINE Reg negate(Reg x) { return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f)); }
PI_INLINE Reg absolute(Reg x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
PI_INLINE Reg select_less(Reg a, Reg b, Reg x, Reg y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
PI_INLINE bool all_less(Reg a, Reg b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ)) == 0xff; }
PI_INLINE Reg replace_nan(Reg x, Reg y) { return _mm256_blendv_ps(x, y, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }

PI_INLINE Reg pairs_of(__m128 x) { return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(x), _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)); }
PI_INLINE Reg load_pairs(const float *p) { return pairs_of(_mm_loadu_ps(p)); }
PI_INLINE Reg load_pairs_part(const float *p, size_t n) { return pairs_of(_mm_maskload_ps(p, _mm256_castsi256_si128(first_lanes(n)))); }
PI_INLINE Reg swap_pairs(Reg x) { return _mm256_permute_ps(x, 0xb1); }
PI_INLINE Reg negate_even(Reg x) { return _mm256_xor_ps(x, _mm256_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f)); }

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

PI_INLINE Wide widen_low(Reg x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
PI_INLINE Wide widen_high(Reg x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }
PI_INLINE Reg narrow(Wide low, Wide high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
}
PI_INLINE Wide wide_set1(double x) { return _mm256_set1_pd(x); }
PI_INLINE Wide wide_add(Wide a, Wide b) { return _mm256_add_pd(a, b); }
PI_INLINE Wide wide_sub(Wide a, Wide b) { return _mm256_sub_pd(a, b); }
PI_INLINE Wide wide_mul(Wide a, Wide b) { return _mm256_mul_pd(a, b); }
PI_INLINE Wide wide_fma(Wide a, Wide b, Wide c) { return _mm256_fmadd_pd(a, b, c); }
PI_INLINE Wide wide_fms(Wide a, Wide b, Wide c) { return _mm256_fmsub_pd(a, b, c); }
PI_INLINE Wide wide_fnma(Wide a, Wide b, Wide c) { return _mm256_fnmadd_pd(a, b, c); }

// Four loads: a gather is no faster, and much slower where microcode makes it safe.
PI_INLINE Wide exp2_scale(Wide shifted) {
  Count k = _mm256_castpd_si256(shifted);
  alignas(32) uint64_t index[4];
  _mm256_store_si256(reinterpret_cast<__m256i *>(index), _mm256_and_si256(k, _mm256_set1_epi64x(31)));
  Count entry = _mm256_setr_epi64x(static_cast<int64_t>(pi_exp2_table[index[0]]), static_cast<int64_t>(pi_exp2_table[index[1]]),
                                   static_cast<int64_t>(pi_exp2_table[index[2]]), static_cast<int64_t>(pi_exp2_table[index[3]]));
  return _mm256_castsi256_pd(_mm256_add_epi64(entry, _mm256_slli_epi64(k, 47)));
}

PI_INLINE Wide quarter_turns(Wide turns, Count *n) {
  __m128i count = _mm_srai_epi32(_mm_add_epi32(_mm256_cvttpd_epi32(turns), _mm_set1_epi32(0x800000)), 24);
  *n = _mm256_cvtepi32_epi64(count);
  return _mm256_cvtepi32_pd(count);
}
PI_INLINE Count next(Count n) { return _mm256_add_epi64(n, _mm256_set1_epi64x(1)); }
PI_INLINE Wide negate_bit1(Wide x, Count n) {
  Count sign = _mm256_slli_epi64(_mm256_and_si256(n, _mm256_set1_epi64x(2)), 62);
  return _mm256_xor_pd(x, _mm256_castsi256_pd(sign));
}
// The sign bit of a lane chooses.
PI_INLINE Wide select_odd(Count n, Wide x, Wide y) { return _mm256_blendv_pd(y, x, _mm256_castsi256_pd(_mm256_slli_epi64(n, 63))); }

#include "kernels/elementary_body.h"

using Quads = __m256i;
using Weights = __m256i;
using Inputs = __m256i;

constexpr size_t kMaxRowsQ8 = 2;

PI_INLINE Quads quads_zero() { return _mm256_setzero_si256(); }
PI_INLINE Quads quads_add(Quads a, Quads b) { return _mm256_add_epi32(a, b); }
PI_INLINE void store_quads(int32_t *p, Quads x) { _mm256_store_si256(reinterpret_cast<__m256i *>(p), x); }
PI_INLINE Inputs load_inputs(const int8_t *p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return _mm256_set1_epi32(dword);
}
PI_INLINE Weights load_weights(const int8_t *p) { return _mm256_load_si256(reinterpret_cast<const __m256i *>(p)); }
// |w| times x with the sign of w: two products are at most 2 * 128 * 127, which int16 holds, so nothing saturates.
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) {
  __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
PI_INLINE Quads dots_start(int32_t) { return _mm256_setzero_si256(); }
PI_INLINE Reg to_float(Quads x) { return _mm256_cvtepi32_ps(x); }
PI_INLINE Quads round_away(Reg x) {
  Quads whole = _mm256_cvttps_epi32(x);
  Reg rest = _mm256_sub_ps(x, _mm256_cvtepi32_ps(whole));  // exact
  whole = _mm256_sub_epi32(whole, _mm256_castps_si256(_mm256_cmp_ps(rest, _mm256_set1_ps(0.5f), _CMP_GE_OQ)));
  return _mm256_add_epi32(whole, _mm256_castps_si256(_mm256_cmp_ps(rest, _mm256_set1_ps(-0.5f), _CMP_LE_OQ)));
}
PI_INLINE void store_bytes(int8_t *p, Quads x) {
  __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i *>(p), _mm_packs_epi16(words, words));
}

#include "kernels/kernels_body.h"
#include "kernels/kernels_q8_body.h"

PI_INLINE __m128i load_16_bytes(const unsigned char *p) { return _mm_load_si128(reinterpret_cast<const __m128i *>(p)); }
PI_INLINE __m128i load_8_bytes(const unsigned char *p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p)); }
PI_INLINE Reg load_f16(const unsigned char *p) { return _mm256_cvtph_ps(load_16_bytes(p)); }
PI_INLINE Reg load_bf16(const unsigned char *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_16_bytes(p)), 16));
}
PI_INLINE Reg load_u8(const unsigned char *p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_8_bytes(p))); }
PI_INLINE Reg load_s8(const unsigned char *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_8_bytes(p))); }

using Codes = __m256i;
using Products = __m256i;

constexpr size_t kPanelsAtOnce = 4;
constexpr size_t kMaxRowsBlocks = 4;

PI_INLINE Quads quads_set1(int32_t x) { return _mm256_set1_epi32(x); }
PI_INLINE Quads quads_sub(Quads a, Quads b) { return _mm256_sub_epi32(a, b); }
PI_INLINE Quads quads_times_256(Quads x) { return _mm256_slli_epi32(x, 8); }
PI_INLINE Codes load_codes(const unsigned char *p) { return _mm256_load_si256(reinterpret_cast<const __m256i *>(p)); }
PI_INLINE Codes codes_and(Codes a, Codes b) { return _mm256_and_si256(a, b); }
PI_INLINE Codes codes_or(Codes a, Codes b) { return _mm256_or_si256(a, b); }
PI_INLINE Codes codes_set1(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
template <int kUp>
PI_INLINE Codes codes_shift(Codes x) {
  if constexpr (kUp > 0) return _mm256_slli_epi16(x, kUp);
  return _mm256_srli_epi16(x, -kUp);
}
PI_INLINE Products products_zero() { return _mm256_setzero_si256(); }
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) { return _mm256_add_epi16(acc, _mm256_maddubs_epi16(w, x)); }
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(p, _mm256_set1_epi16(kTimes)));
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fff / (2 * 127 * most)); }

#include "kernels/kernels_blocks_body.h"

}  // namespace

const Kernels kAvx2Kernels = {
    "avx2",      matvec_f32,  matmul_f32,       rmsnorm_f32,       rope_angles_f32, rope_f32,      scores_f32, softmax_f32, mix_f32,
    swiglu_f32,  add_f32,     divide_f32,       canonical_nan_f32, pack_f32,        quantize_q8,   matvec_q8,  matmul_q8,   pack_q8,
    matvec_half, matmul_half, pack_half_scalar, quantize_blocks,   matvec_blocks,   matmul_blocks, pack_blocks};

const ElementaryForms kAvx2Elementary = {exp_f32, sin_f32, cos_f32};

}  // namespace proofinfer
