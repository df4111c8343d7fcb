// AVX-512 (F, BW, DQ, VL): one register a panel.
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

// kernels_avx512vnni.cpp compiles this file again with the VNNI instructions.
#if defined(__AVX512VNNI__)
#define PI_NAME "avx512vnni"
#define PI_KERNELS kAvx512VnniKernels
#define PI_FORMS kAvx512VnniElementary
#else
#define PI_NAME "avx512"
#define PI_KERNELS kAvx512Kernels
#define PI_FORMS kAvx512Elementary
#endif

namespace proofinfer {
namespace {

using Reg = __m512;
using Wide = __m512d;
using Count = __m512i;

constexpr size_t kLanes = 16;
constexpr size_t kAccumulators = 24;  // of 32 registers, with 3 of weights, an activation and a product
constexpr size_t kMaxRows = 8;

PI_INLINE __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }

PI_INLINE Reg zero() { return _mm512_setzero_ps(); }
PI_INLINE Reg set1(float x) { return _mm512_set1_ps(x); }
PI_INLINE Reg load(const float *p) { return _mm512_loadu_ps(p); }
PI_INLINE Reg load_panel(const float *p) { return _mm512_load_ps(p); }
PI_INLINE void store(float *p, Reg x) { _mm512_storeu_ps(p, x); }
PI_INLINE Reg load_part(const float *p, size_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
PI_INLINE void store_part(float *p, Reg x, size_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), x); }

PI_INLINE Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
PI_INLINE Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
PI_INLINE Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
PI_INLINE Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
PI_INLINE Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
PI_INLINE Reg negate(Reg x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f)); }
PI_INLINE Reg absolute(Reg x) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x); }
PI_INLINE Reg select_less(Reg a, Reg b, Reg x, Reg y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }
PI_INLINE bool all_less(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) == 0xffff; }
PI_INLINE Reg replace_nan(Reg x, Reg y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, y); }

PI_INLINE Reg pairs_of(__m256 x) {
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), _mm512_castps256_ps512(x));
}
PI_INLINE Reg load_pairs(const float *p) { return pairs_of(_mm256_loadu_ps(p)); }
PI_INLINE Reg load_pairs_part(const float *p, size_t n) {
  return pairs_of(_mm256_maskz_loadu_ps(static_cast<__mmask8>(first_lanes(n)), p));
}
PI_INLINE Reg swap_pairs(Reg x) { return _mm512_permute_ps(x, 0xb1); }
PI_INLINE Reg negate_even(Reg x) { return _mm512_mask_xor_ps(x, 0x5555, x, _mm512_set1_ps(-0.0f)); }

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

PI_INLINE Wide widen_low(Reg x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
PI_INLINE Wide widen_high(Reg x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }
PI_INLINE Reg narrow(Wide low, Wide high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}
PI_INLINE Wide wide_set1(double x) { return _mm512_set1_pd(x); }
PI_INLINE Wide wide_add(Wide a, Wide b) { return _mm512_add_pd(a, b); }
PI_INLINE Wide wide_sub(Wide a, Wide b) { return _mm512_sub_pd(a, b); }
PI_INLINE Wide wide_mul(Wide a, Wide b) { return _mm512_mul_pd(a, b); }
PI_INLINE Wide wide_fma(Wide a, Wide b, Wide c) { return _mm512_fmadd_pd(a, b, c); }
PI_INLINE Wide wide_fms(Wide a, Wide b, Wide c) { return _mm512_fmsub_pd(a, b, c); }
PI_INLINE Wide wide_fnma(Wide a, Wide b, Wide c) { return _mm512_fnmadd_pd(a, b, c); }

// The table lies in four registers; a permutation looks up sixteen entries by the low four bits of the index.
PI_INLINE Wide exp2_scale(Wide shifted) {
  Count k = _mm512_castpd_si512(shifted);
  Count first = _mm512_permutex2var_epi64(_mm512_loadu_si512(pi_exp2_table), k, _mm512_loadu_si512(pi_exp2_table + 8));
  Count second = _mm512_permutex2var_epi64(_mm512_loadu_si512(pi_exp2_table + 16), k, _mm512_loadu_si512(pi_exp2_table + 24));
  Count entry = _mm512_mask_blend_epi64(_mm512_test_epi64_mask(k, _mm512_set1_epi64(16)), first, second);
  return _mm512_castsi512_pd(_mm512_add_epi64(entry, _mm512_slli_epi64(k, 47)));
}

PI_INLINE Wide quarter_turns(Wide turns, Count *n) {
  __m256i count = _mm256_srai_epi32(_mm256_add_epi32(_mm512_cvttpd_epi32(turns), _mm256_set1_epi32(0x800000)), 24);
  *n = _mm512_cvtepi32_epi64(count);
  return _mm512_cvtepi32_pd(count);
}
PI_INLINE Count next(Count n) { return _mm512_add_epi64(n, _mm512_set1_epi64(1)); }
PI_INLINE Wide negate_bit1(Wide x, Count n) {
  Count sign = _mm512_slli_epi64(_mm512_and_si512(n, _mm512_set1_epi64(2)), 62);
  return _mm512_xor_pd(x, _mm512_castsi512_pd(sign));
}
PI_INLINE Wide select_odd(Count n, Wide x, Wide y) { return _mm512_mask_blend_pd(_mm512_test_epi64_mask(n, _mm512_set1_epi64(1)), y, x); }

#include "kernels/elementary_body.h"

using Quads = __m512i;
using Weights = __m512i;
using Inputs = __m512i;

constexpr size_t kMaxRowsQ8 = 4;

PI_INLINE Quads quads_zero() { return _mm512_setzero_si512(); }
PI_INLINE Quads quads_add(Quads a, Quads b) { return _mm512_add_epi32(a, b); }
PI_INLINE void store_quads(int32_t *p, Quads x) { _mm512_store_si512(p, x); }
PI_INLINE Inputs load_inputs(const int8_t *p) {
  int32_t dword;
  __builtin_memcpy(&dword, p, sizeof(dword));
  return _mm512_set1_epi32(dword);
}
#if defined(__AVX512VNNI__)
// The instruction multiplies unsigned by signed: flipping the sign bit adds 128 to each weight.
PI_INLINE Weights load_weights(const int8_t *p) { return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128)); }
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) { return _mm512_dpbusd_epi32(acc, w, x); }
PI_INLINE Quads dots_start(int32_t sum) { return _mm512_set1_epi32(static_cast<int32_t>(0u - 128u * static_cast<uint32_t>(sum))); }
#else
// |w| times x with the sign of w: two products are at most 2 * 128 * 127, which int16 holds, so nothing saturates.
PI_INLINE Weights load_weights(const int8_t *p) { return _mm512_loadu_si512(p); }
PI_INLINE Quads dot4(Quads acc, Weights w, Inputs x) {
  __m512i signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
  __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
PI_INLINE Quads dots_start(int32_t) { return _mm512_setzero_si512(); }
#endif
PI_INLINE Reg to_float(Quads x) { return _mm512_cvtepi32_ps(x); }
PI_INLINE Quads round_away(Reg x) {
  Quads whole = _mm512_cvttps_epi32(x);
  Reg rest = _mm512_sub_ps(x, _mm512_cvtepi32_ps(whole));  // exact
  __mmask16 up = _mm512_cmp_ps_mask(rest, _mm512_set1_ps(0.5f), _CMP_GE_OQ),
            down = _mm512_cmp_ps_mask(rest, _mm512_set1_ps(-0.5f), _CMP_LE_OQ);
  whole = _mm512_mask_add_epi32(whole, up, whole, _mm512_set1_epi32(1));
  return _mm512_mask_sub_epi32(whole, down, whole, _mm512_set1_epi32(1));
}
PI_INLINE void store_bytes(int8_t *p, Quads x) { _mm_storeu_si128(reinterpret_cast<__m128i *>(p), _mm512_cvtepi32_epi8(x)); }

#include "kernels/kernels_body.h"
#include "kernels/kernels_q8_body.h"

// All memory below is aligned to 32 bytes at least, mostly not to 64.
PI_INLINE Reg load_f16(const unsigned char *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p))); }
PI_INLINE Reg load_bf16(const unsigned char *p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
PI_INLINE Reg load_u8(const unsigned char *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))));
}
PI_INLINE Reg load_s8(const unsigned char *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))));
}

using Codes = __m512i;
using Products = __m512i;

constexpr size_t kPanelsAtOnce = 4;
constexpr size_t kMaxRowsBlocks = 8;

PI_INLINE Quads quads_set1(int32_t x) { return _mm512_set1_epi32(x); }
PI_INLINE Quads quads_sub(Quads a, Quads b) { return _mm512_sub_epi32(a, b); }
PI_INLINE Quads quads_times_256(Quads x) { return _mm512_slli_epi32(x, 8); }
PI_INLINE Codes load_codes(const unsigned char *p) { return _mm512_loadu_si512(p); }
PI_INLINE Codes codes_and(Codes a, Codes b) { return _mm512_and_si512(a, b); }
PI_INLINE Codes codes_or(Codes a, Codes b) { return _mm512_or_si512(a, b); }
PI_INLINE Codes codes_set1(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
template <int kUp>
PI_INLINE Codes codes_shift(Codes x) {
  if constexpr (kUp > 0) return _mm512_slli_epi16(x, kUp);
  return _mm512_srli_epi16(x, static_cast<unsigned>(kUp > 0 ? 0 : -kUp));
}
PI_INLINE Products products_zero() { return _mm512_setzero_si512(); }
#if defined(__AVX512VNNI__)
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) { return _mm512_dpbusd_epi32(acc, w, x); }
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  return quads_add(acc, kTimes == 1 ? p : quads_sub(quads_times_256(p), p));
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fffffff / (4 * 127 * most)); }
#else
PI_INLINE Products products_add(Products acc, Codes w, Inputs x) { return _mm512_add_epi16(acc, _mm512_maddubs_epi16(w, x)); }
template <int kTimes>
PI_INLINE Quads products_fold(Quads acc, Products p) {
  return _mm512_add_epi32(acc, _mm512_madd_epi16(p, _mm512_set1_epi16(kTimes)));
}
constexpr size_t products_that_fit(int most) { return static_cast<size_t>(0x7fff / (2 * 127 * most)); }
#endif

#include "kernels/kernels_blocks_body.h"

}  // namespace

const Kernels PI_KERNELS = {
    PI_NAME,     matvec_f32,  matmul_f32,       rmsnorm_f32,       rope_angles_f32, rope_f32,      scores_f32, softmax_f32, mix_f32,
    swiglu_f32,  add_f32,     divide_f32,       canonical_nan_f32, pack_f32,        quantize_q8,   matvec_q8,  matmul_q8,   pack_q8,
    matvec_half, matmul_half, pack_half_scalar, quantize_blocks,   matvec_blocks,   matmul_blocks, pack_blocks};

const ElementaryForms PI_FORMS = {exp_f32, sin_f32, cos_f32};

}  // namespace proofinfer
