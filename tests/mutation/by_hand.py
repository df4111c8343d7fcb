"""Mutants written by hand: of the instruction sets, whose intrinsics no general tool knows, and of the interface.

Rows: file, text that stands in it once, its replacement. kernels_avx512vnni.cpp is kernels_avx512.cpp compiled again, so mutants of that are mutants
of both. NEON's file is compiled on aarch64 only; its rows apply there. As a script: whether each has its place (structure.mutants).
"""

from __future__ import annotations

import sys
from pathlib import Path

SSE2, AVX2, AVX512 = "src/kernels/kernels_sse2.cpp", "src/kernels/kernels_avx2.cpp", "src/kernels/kernels_avx512.cpp"
NEON = "src/kernels/kernels_neon.cpp"
BODY, Q8, WAVES = "src/kernels/kernels_body.h", "src/kernels/kernels_q8_body.h", "src/kernels/elementary_body.h"
BLOCKS = "src/kernels/kernels_blocks_body.h"
SESSION, GENERATION, SAMPLER, MODEL = "src/api/session.cpp", "src/api/generation.cpp", "src/api/sampler.cpp", "src/api/model.cpp"

MUTANTS = [
    (SSE2, "n > 2 ? p[2] : 0.0f, 0.0f); }", "n > 2 ? p[1] : 0.0f, 0.0f); }"),
    (SSE2, "for (size_t i = 0; i < n; i++) p[i] = lanes[i];", "for (size_t i = 0; i < kLanes; i++) p[i] = lanes[i];"),
    (SSE2, "return _mm_or_ps(_mm_and_ps(nan, y), _mm_andnot_ps(nan, x));", "return _mm_or_ps(_mm_and_ps(nan, x), _mm_andnot_ps(nan, x));"),
    (SSE2, "return _mm_setr_ps(p[0], p[0], p[1], p[1]); }", "return _mm_setr_ps(p[0], p[1], p[0], p[1]); }"),
    (SSE2, "_mm_setr_ps(-0.0f, 0.0f, -0.0f, 0.0f)); }", "_mm_setr_ps(0.0f, -0.0f, 0.0f, -0.0f)); }"),
    (SSE2, "return _mm_shuffle_ps(x, x, 0xb1); }", "return x; }"),
    (SSE2, "_mm_storeu_ps(to + 3 * to_step, d);", "_mm_storeu_ps(to + 3 * to_step, c);"),
    (SSE2, "kFunction(lanes[2]), kFunction(lanes[3])", "kFunction(lanes[3]), kFunction(lanes[2])"),
    (SSE2, "_mm_srai_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), x), 8); }", "_mm_srli_epi16(_mm_unpacklo_epi8(_mm_setzero_si128(), x), 8); }"),
    (SSE2, "high = _mm_castsi128_ps(_mm_madd_epi16(widen_high_bytes(w), x));", "high = _mm_castsi128_ps(_mm_madd_epi16(widen_low_bytes(w), x));"),
    (SSE2, "__m128 low = _mm_castsi128_ps(p.low), high = _mm_castsi128_ps(p.high);", "__m128 low = _mm_castsi128_ps(p.low), high = low;"),
    (SSE2, "_mm_cmpge_ps(rest, _mm_set1_ps(0.5f))", "_mm_cmpgt_ps(rest, _mm_set1_ps(0.5f))"),
    (SSE2, "_mm_cmple_ps(rest, _mm_set1_ps(-0.5f))", "_mm_cmplt_ps(rest, _mm_set1_ps(-0.5f))"),
    (AVX2, "kMasks + kLanes - n)", "kMasks + kLanes - n + 1)"),
    (AVX2, "_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }", "_mm256_and_ps(_mm256_set1_ps(-0.0f), x); }"),
    (AVX2, "_mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }", "_mm256_blendv_ps(x, y, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }"),
    (AVX2, "== 0xff; }", "!= 0; }"),
    (AVX2, "_mm256_blendv_ps(x, y, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); }", "x; }"),
    (AVX2, "_mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)", "_mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 2)"),
    (AVX2, "_mm256_permute_ps(x, 0xb1)", "_mm256_permute_ps(x, 0xb0)"),
    (AVX2, "_mm256_extractf128_ps(x, 1)); }", "_mm256_extractf128_ps(x, 0)); }"),
    (AVX2, "return _mm256_fmsub_pd(a, b, c); }", "return _mm256_fmadd_pd(a, b, c); }"),
    (AVX2, "return _mm256_fnmadd_pd(a, b, c); }", "return _mm256_sub_pd(c, _mm256_mul_pd(a, b)); }"),
    (AVX2, "return _mm256_fmadd_pd(a, b, c); }", "return _mm256_add_pd(_mm256_mul_pd(a, b), c); }"),
    (AVX2, "_mm256_set1_epi64x(31)", "_mm256_set1_epi64x(15)"),
    (AVX2, "_mm256_slli_epi64(k, 47)", "_mm256_slli_epi64(k, 48)"),
    (AVX2, "_mm_set1_epi32(0x800000)", "_mm_set1_epi32(0x400000)"),
    (AVX2, "_mm256_slli_epi64(n, 63)", "_mm256_slli_epi64(n, 62)"),
    (AVX2, "_mm256_sign_epi8(x, w)", "x"),
    (AVX2, "_CMP_GE_OQ", "_CMP_GT_OQ"),
    (AVX2, "_CMP_LE_OQ", "_CMP_LT_OQ"),
    (AVX2, "_mm256_extracti128_si256(x, 1)", "_mm256_extracti128_si256(x, 0)"),
    (AVX512, "(1u << n) - 1); }", "(1u << n)); }"),
    (AVX512, "_mm512_maskz_loadu_ps(first_lanes(n), p); }", "_mm512_maskz_loadu_ps(first_lanes(n - 1), p); }"),
    (AVX512, "_mm512_mask_storeu_ps(p, first_lanes(n), x); }", "_mm512_mask_storeu_ps(p, first_lanes(n - 1), x); }"),
    (AVX512, "_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }", "_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), y, x); }"),
    (AVX512, "== 0xffff; }", "!= 0; }"),
    (AVX512, "_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, y); }", "x; }"),
    (AVX512, "_mm512_mask_xor_ps(x, 0x5555, x,", "_mm512_mask_xor_ps(x, 0xaaaa, x,"),
    (AVX512, "_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)", "_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 6, 7)"),
    (AVX512, "_mm512_permute_ps(x, 0xb1)", "_mm512_permute_ps(x, 0xe4)"),
    (AVX512, "_mm512_extractf32x8_ps(x, 1)", "_mm512_extractf32x8_ps(x, 0)"),
    (AVX512, "_mm512_set1_epi64(16)), first, second)", "_mm512_set1_epi64(16)), second, first)"),
    (AVX512, "_mm512_slli_epi64(k, 47)", "_mm512_slli_epi64(k, 46)"),
    (AVX512, "_mm256_set1_epi32(0x800000)", "_mm256_set1_epi32(0x800001)"),
    (AVX512, "_mm512_test_epi64_mask(n, _mm512_set1_epi64(1)), y, x); }", "_mm512_test_epi64_mask(n, _mm512_set1_epi64(1)), x, y); }"),
    (AVX512, "(0u - 128u * static_cast<uint32_t>(sum))", "(0u - 127u * static_cast<uint32_t>(sum))"),
    (AVX512, "_mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128)); }", "_mm512_loadu_si512(p); }"),
    (AVX512, "_mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);", "x;"),
    (AVX512, "_CMP_GE_OQ", "_CMP_GT_OQ"),
    (AVX512, "_CMP_LE_OQ", "_CMP_LT_OQ"),
    (AVX512, "return _mm512_mask_sub_epi32(whole, down, whole, _mm512_set1_epi32(1));", "return whole;"),
    (NEON, "vdotq_s32(acc, w, x); }", "vdotq_s32(acc, x, x); }"),
    (NEON, "vcvtaq_s32_f32(x); }", "vcvtnq_s32_f32(x); }"),
    (NEON, "return vrev64q_f32(x); }", "return x; }"),
    (NEON, "n > 2 ? p[2] : 0.0f, 0.0f};", "n > 2 ? p[1] : 0.0f, 0.0f};"),
    (BODY, "part.x = x_blocks + (row - lane) * n + lane;", "part.x = x_blocks + (row - lane) * n;"),
    (BODY, "part.out = b.out + row * b.out_stride;", "part.out = b.out + lane * b.out_stride;"),
    (BODY, "out_stride, column > 0};", "out_stride, false};"),
    (BODY, "transpose_4x4(rows + r * n + c, n, panel + c * kPanelRows + r, kPanelRows);", "transpose_4x4(rows + r * n + c, n, panel + c * kPanelRows, kPanelRows);"),
    (BODY, "for (; j < b.columns; j++) add_column<P, R, kStep>(b, j, to_next, sums);", "for (; j + 1 < b.columns; j++) add_column<P, R, kStep>(b, j, to_next, sums);"),
    (BODY, "f(load_part(x + i, n - i), load_part(y + i, n - i)), n - i);", "f(load_part(x + i, n - i), load_part(y, n - i)), n - i);"),
    (BODY, "ss += epsilon;", "ss += epsilon * 0.1f;"),
    (BODY, "return mul(mul(v, gate), up);", "return mul(v, mul(gate, up));"),
    (BODY, "load(x + n - kLanes);", "load(x);"),
    (BODY, "return exp_reg(sub(a, most)); });", "(void)most; return exp_reg(a); });"),
    (BODY, "out + (row + r) * out_stride);", "out + r * out_stride);"),
    (BODY, "add(acc, mul(set1(weights[t]), load_part(values + t * head_size + i, left)))", "add(acc, mul(set1(weights[0]), load_part(values + t * head_size + i, left)))"),
    (BODY, "set1(1.0f / pi_sqrtf(ss));", "set1(1.0f / ss);"),
    (BODY, "rotate(load_part(v, left), c, s), left);", "load_part(v, left), left);"),
    (Q8, "set1(b.scales[g * kStep + r])", "set1(b.scales[r])"),
    (Q8, "weight_scale), set1(b.scales[g * kStep + r]));", "set1(b.scales[g * kStep + r])), weight_scale);"),
    (Q8, "dots_start(b.sums[g * kStep + r])", "dots_start(b.sums[r])"),
    (Q8, "for (; g < b.groups; g++) add_group", "for (; g + 1 < b.groups; g++) add_group"),
    (Q8, "b.scales = scales_blocks + block * group_count * kRowBlock + lane;", "b.scales = scales_blocks + block * group_count * kRowBlock;"),
    (Q8, "b.sums = sums_blocks + block * group_count * kRowBlock + lane;", "b.sums = sums_blocks + block * group_count * kRowBlock;"),
    (Q8, "most = max(most, absolute(v));", "most = max(most, v);"),
    (Q8, "if (probes[i] != probes[i]) return probes[i];", ""),
    (Q8, "round_away(max(negate(max(negate(div(load(x), divisor)), lowest)), lowest))", "round_away(max(div(load(x), divisor), lowest))"),
    (Q8, "for (size_t i = 0; i < kLanes; i++) total += lanes[i];", "for (size_t i = 1; i < kLanes; i++) total += lanes[i];"),
    (Q8, "if (group_size % 4 != 0) {", "if (group_size % 4 == 1) {"),
    (Q8, "pi_q8_scale(group_size, lane + r)", "pi_q8_scale(group_size, r)"),
    (BLOCKS, "case 5: upper = codes_shift<-1>(upper); break;", "case 5: upper = codes_shift<-2>(upper); break;"),
    (BLOCKS, "codes_and(upper, codes_set1(0x30))", "codes_and(upper, codes_set1(0x10))"),
    (BLOCKS, "T::kKind == BlockKind::kMinimaK ? sub(product, lowest) : add(product, lowest);", "add(product, lowest);"),
    (BLOCKS, "load_s8(block + PI_Q6K_SCALES + (2 * group + 1) * PI_BYTES + lane)", "load_s8(block + PI_Q6K_SCALES + 2 * group * PI_BYTES + lane)"),
    (BLOCKS, "part.sums = b.sums + block * b.groups * 2 * kRowBlock + lane;", "part.sums = b.sums + block * b.groups * 2 * kRowBlock;"),
    (BLOCKS, "sums[1] = quantize_half(x + kHalf, ", "sums[1] = quantize_half(x, "),
    (WAVES, "Wide low = wide_fma(wide_set1(PI_EXP_C2), r, wide_set1(1.0));", "Wide low = wide_add(wide_mul(wide_set1(PI_EXP_C2), r), wide_set1(1.0));"),
    (WAVES, "y = select_less(set1(PI_EXP_MAX), x, set1(__builtin_inff()), y);", ""),
    (WAVES, "return select_less(x, set1(PI_EXP_MIN), zero(), y);", "return y;"),
    (WAVES, "negate_bit1(r, next(n))", "negate_bit1(r, n)"),
    (WAVES, "return kCosine ? select_odd(n, sine, cosine) : select_odd(n, cosine, sine);", "return kCosine ? select_odd(n, cosine, sine) : select_odd(n, sine, cosine);"),
    (WAVES, "if (from[i] > -120.0f && from[i] < 120.0f) continue;", "continue;"),
    (WAVES, "kCosine ? set1(1.0f) : x, y);", "y, y);"),
    (SESSION, "if (position > s->position())", "if (position > s->position() + 1)"),
    (SESSION, "if (position >= session.position())", "if (position > session.position())"),
    (SESSION, "object_->busy()->leave();", ""),
    (SESSION, "object->retain();\n", ""),
    (SESSION, "logits < PROOFINFER_LOGITS_NONE || ", ""),
    (SESSION, "if (wants_logits != 0 && wants_logits != 1)", "if (wants_logits < 0)"),
    (SESSION, ": logits == PROOFINFER_LOGITS_LAST ? LogitsMode::kLast", ": logits == PROOFINFER_LOGITS_LAST ? LogitsMode::kAll"),
    (GENERATION, "if (token) *token = -1;", ""),
    (GENERATION, "*stop_reason = static_cast<int32_t>(step.reason);", ""),
    (GENERATION, "if (needed) *needed = step.needed;", ""),
    (GENERATION, "*generation = nullptr;", ""),
    (SAMPLER, "if (vocab_size < 1)", "if (vocab_size < 0)"),
    (SAMPLER, "if (count != s->vocab_size())", "if (count < s->vocab_size())"),
    (SAMPLER, "s->reseed(seed);", ""),
    (MODEL, "m.file().tensor_count();\n  if (index < count) return kOk;", "m.file().tensor_count();\n  if (index <= count) return kOk;"),
    (MODEL, "metadata().count();\n  if (index < count) return kOk;", "metadata().count();\n  if (index <= count) return kOk;"),
    (MODEL, "case PROOFINFER_TENSOR_ROWS: *value = static_cast<int64_t>(tensor.rows);", "case PROOFINFER_TENSOR_ROWS: *value = static_cast<int64_t>(tensor.columns);"),
    (MODEL, "case PROOFINFER_MODEL_GROUP_SIZE: *value = static_cast<int64_t>(m.group_size());", "case PROOFINFER_MODEL_GROUP_SIZE: *value = 0;"),
    (MODEL, "&account, cancel, failure);\n  return status == kOk ? sink.commit(failure) : status;", "&account, cancel, failure);\n  return sink.commit(failure);"),
    (MODEL, "(&sink, cancel, failure);\n  return status == kOk ? sink.commit(failure) : status;", "(&sink, cancel, failure);\n  return sink.commit(failure);"),
]


def misplaced(root: Path) -> list[str]:
    """Rows whose text does not stand in its file exactly once."""
    return [f"{file} has this {(root / file).read_text().count(old)} times: {old}" for file, old, _ in MUTANTS if (root / file).read_text().count(old) != 1]


if __name__ == "__main__":
    wrong = misplaced(Path(__file__).resolve().parents[2])
    print("\n".join(wrong + [f"{len(MUTANTS)} mutants written by hand, {len(wrong)} of them without a place"]))
    sys.exit(1 if wrong else 0)
