#!/usr/bin/env python3
"""Shows that the proof can fail: each mutant changes one formula, bound, check or loop of a copy of the proved files, and the goal named for it
must then be unproved.

A mutant counts as caught only if its file still parses, the same goals of the unchanged file are proved in the same run and with the same limits,
and a goal whose name contains the mutant's property is not. --sample N --seed S takes N of them. Exit code 0: all caught; 1: one survives; 77: a
tool is missing.
"""

import argparse
import functools
import os
import random
import shutil
import sys
import tempfile
import time

import wp

KV, PACK, CHECKED = "src/proved/kv_index.h", "src/proved/pack_index.h", "src/proved/checked.h"
SAMPLING, LAYOUT = "src/proved/sampling.c", wp.LAYOUT
F32, Q8 = "src/proved/kernels_scalar.c", "src/proved/kernels_q8_scalar.c"

# (name, file, text, its replacement, function, property whose goal must fail)
MUTANTS = [
    ("gqa_modulo", KV, "return h / s->kv_mul;", "return h % s->n_kv_heads;", "pi_kv_head", "gqa_formula"),
    ("gqa_wrong_divisor", KV, "return h / s->kv_mul;", "return h / s->n_kv_heads;", "pi_kv_head", "gqa_formula"),
    ("page_without_values", KV, "return s->n_layers * s->n_kv_heads * (2 * PI_PAGE_POSITIONS) * s->head_size;",
     "return s->n_layers * s->n_kv_heads * PI_PAGE_POSITIONS * s->head_size;", "pi_kv_page_count", "page_formula"),
    ("keys_swapped_strides", KV, "return (layer * s->n_kv_heads + kv_head) * (2", "return (kv_head * s->n_layers + layer) * (2",
     "pi_kv_keys", "keys_formula"),
    ("values_on_keys", KV, "return pi_kv_keys(s, layer, kv_head) + PI_PAGE_POSITIONS * s->head_size;",
     "return pi_kv_keys(s, layer, kv_head);", "pi_kv_values", "values_formula"),
    ("key_swapped_strides", KV, "return (position / PI_KEY_BLOCK * s->head_size + e) * PI_KEY_BLOCK + position % PI_KEY_BLOCK;",
     "return (e * (PI_PAGE_POSITIONS / PI_KEY_BLOCK) + position / PI_KEY_BLOCK) * PI_KEY_BLOCK + position % PI_KEY_BLOCK;",
     "pi_kv_key_element", "key_formula"),
    ("value_swapped_strides", KV, "return position * s->head_size + e;", "return e * PI_PAGE_POSITIONS + position;",
     "pi_kv_value_element", "value_formula"),
    ("value_dropped_position_check", KV, "requires position < PI_PAGE_POSITIONS && e < s->head_size;\n    terminates \\true;\n    assigns "
     "\\nothing;\n    ensures value_formula", "requires e < s->head_size;\n    terminates \\true;\n    assigns \\nothing;\n    ensures "
     "value_formula", "pi_kv_value_element", "pi_product_le_requires"),
    ("add_dropped_overflow_check", CHECKED, "if (a > PI_SIZE_MAX || b > PI_SIZE_MAX - a) return 0;", "if (a > PI_SIZE_MAX) return 0;",
     "pi_add_checked", "add_exact"),
    ("mul_dropped_overflow_check", CHECKED, "if (a != 0 && b > PI_SIZE_MAX / a) return 0;", "if (a != 0 && b == 0) return 0;",
     "pi_mul_checked", "unsigned_overflow"),
    ("mul_refuses_too_much", CHECKED, "b > PI_SIZE_MAX / a", "b >= PI_SIZE_MAX / a", "pi_mul_checked", "mul_refused"),
    ("panels_too_few", PACK, "return rows / PI_PANEL_ROWS + (rows % PI_PANEL_ROWS != 0);", "return rows / PI_PANEL_ROWS;",
     "pi_panel_count", "panels_hold_rows"),
    ("panels_too_many", PACK, "return rows / PI_PANEL_ROWS + (rows % PI_PANEL_ROWS != 0);", "return rows / PI_PANEL_ROWS + 1;",
     "pi_panel_count", "panels_least"),
    ("pack_wrong_lane", PACK, "column) * PI_PANEL_ROWS + row % PI_PANEL_ROWS;\n}", "column) * PI_PANEL_ROWS + row % 8;\n}",
     "pi_packed_index", "pack_formula"),
    ("q8_padding_down", PACK, "return (group_size + 3) / 4 * 4;", "return group_size / 4 * 4;", "pi_q8_padded", "padded_holds"),
    ("q8_swapped_strides", PACK, "return (c / 4 * PI_PANEL_ROWS + row) * 4 + c % 4;", "return c * PI_PANEL_ROWS + row;",
     "pi_q8_weight", "weight_formula"),
    ("q8_scale_bytes", PACK, "PI_PANEL_ROWS + 4 * row; }", "PI_PANEL_ROWS + row; }", "pi_q8_scale", "scale_formula"),

    ("argmax_last_of_equals", SAMPLING, "if (x[i] > largest)", "if (x[i] >= largest)", "pi_argmax_f32", "argmax_block_lowest"),
    ("argmax_smallest", SAMPLING, "if (x[i] > largest)", "if (x[i] < largest)", "pi_argmax_f32", "argmax_block_largest"),
    ("argmax_skips_one", SAMPLING, "for (size_t i = first; i < end; i++) {", "for (size_t i = first + 1; i < end; i++) {", "pi_argmax_f32",
     "argmax_block_largest"),
    ("argmax_one_too_far", SAMPLING, "for (size_t i = first; i < end; i++) {", "for (size_t i = first; i <= end; i++) {", "pi_argmax_f32",
     "mem_access"),
    ("argmax_skips_blocks", SAMPLING, "x[i] > bound ? 1 : any", "x[i] < bound ? 1 : any", "any_greater", "greater_none"),
    ("walk_falls_off", SAMPLING, "return n - 1;", "return n;", "pi_walk_f32", "walk_in_range"),
    ("walk_one_too_far", SAMPLING, "    cumulative += probabilities[i];\n    if (coin", "    cumulative += probabilities[i + 1];\n    if (coin",
     "pi_walk_f32", "mem_access"),
    ("nucleus_empty", SAMPLING, "return i + 1;", "return i;", "pi_nucleus_count_f32", "nucleus_in_range"),

    ("header_without_heads", LAYOUT, "  if (h->n_heads < 1) return PI_LAYOUT_N_HEADS;\n", "", "check_shape", "division_by_zero"),
    ("header_heads_divide_dim", LAYOUT, "  if (h->dim % h->n_heads != 0) return PI_LAYOUT_HEADS_DIVIDE_DIM;\n", "", "check_shape",
     "checked_shape"),
    ("header_kv_heads_divide", LAYOUT, "  if (h->n_heads % h->n_kv_heads != 0) return PI_LAYOUT_KV_HEADS_DIVIDE;\n", "", "check_shape",
     "checked_shape"),
    ("header_int_min", LAYOUT, "h->vocab_size == 0 || h->vocab_size == INT32_MIN", "h->vocab_size == 0", "check_shape", "checked_shape"),
    ("header_group_divides", LAYOUT, "  if (h->dim % h->group_size != 0) return PI_LAYOUT_GROUP_DIVIDES_DIM;\n", "", "check_version_fields",
     "checked_version"),
    ("tensor_half_its_bytes", LAYOUT, "pi_mul_checked(weights, 4, tensor_bytes)", "pi_mul_checked(weights, 2, tensor_bytes)", "measure", "measured_bytes"),
    ("tensors_overlap", LAYOUT, "pi_mul_checked(tensor_bytes, tensors, &all)", "pi_mul_checked(tensor_bytes, 1, &all)", "place", "placed_end"),
    ("end_unchecked", LAYOUT, "return pi_mul_checked(tensor_bytes, tensors, &all) && pi_add_checked(begin, all, end);",
     "return pi_mul_checked(tensor_bytes, tensors, &all) && (pi_add_checked(begin, all, end), 1);", "place", "placed_end"),
    ("kv_rows_of_dim", LAYOUT, "span.rows = l.kv_dim; break;", "span.rows = l.dim; break;", "kind_shape", "kind_shape"),
    ("file_order_swapped", LAYOUT, "PI_ATTENTION_NORM, PI_FFN_NORM, ", "PI_FFN_NORM, PI_ATTENTION_NORM, ", "pi_checkpoint_kind_at", "kind_order"),

    ("matrix_wrong_row", F32, "pi_packed_index(n, row, j)", "pi_packed_index(n, row / 16 * 16 + 15 - row % 16, j)", "multiply", "columns_sum"),
    ("matrix_row_too_far", F32, "for (size_t row = 0; row < panel_count * PI_PANEL_ROWS; row++)",
     "for (size_t row = 0; row <= panel_count * PI_PANEL_ROWS; row++)", "multiply", "pi_panel_below_requires"),
    ("matrix_column_too_far", F32, "    for (size_t j = 0; j < n; j++) {\n      //@ ghost pi_product_le(j, n",
     "    for (size_t j = 0; j <= n; j++) {\n      //@ ghost pi_product_le(j, n", "multiply", "pi_product_le_requires"),
    ("matmul_wrong_lane", F32, "i % PI_ROW_BLOCK;\n    multiply", "i;\n    multiply", "pi_matmul_f32_scalar", "multiply_requires"),
    ("squares_of_neighbours", F32, "ss += x[j] * x[j];", "ss += x[j] * x[0];", "rms_factor", "squares_sum"),
    ("rms_other_epsilon", F32, "ss += epsilon;", "ss += epsilon * 0.1f;", "rms_factor", "rms_factor"),
    ("rope_other_sign", F32, "pair[1] = v0 * s + v1 * c;", "pair[1] = v0 * s - v1 * c;", "rotate", "rope_second"),
    ("rope_pair_too_far", F32, "i < head_size / 2; i++)", "i <= head_size / 2; i++)", "pi_rope_f32_scalar", "rope_pairs"),
    ("key_swapped_index", F32, "block[i * PI_KEY_BLOCK + t]", "block[t * head_size + i]", "key_sum", "key_sum_so_far"),
    ("scores_lane_too_far", F32, "t < PI_KEY_BLOCK; t++)", "t <= PI_KEY_BLOCK; t++)", "pi_scores_f32_scalar", "key_sum_requires"),
    ("max_is_min", F32, "if (x[i] > max) max = x[i];", "if (x[i] < max) max = x[i];", "row_max", "max_largest"),
    ("exp_without_max", F32, "pi_expf(x[i] - max)", "pi_expf(x[i])", "exponentials", "exp_here"),
    ("exp_sum_skips", F32, "    sum += x[i];\n  }\n  return sum;", "    sum = x[i];\n  }\n  return sum;", "exponentials", "exp_sum_so_far"),
    ("mix_value_too_far", F32, "values + t * head_size, head_size", "values + (t + 1) * head_size, head_size", "pi_mix_f32_scalar",
     "add_weighted_requires"),
    ("swiglu_without_gate", F32, "  v *= h3;\n", "", "gated", "gated"),
    ("add_one_too_far", F32, "for (size_t i = 0; i < n; i++) x[i] += y[i];", "for (size_t i = 0; i <= n; i++) x[i] += y[i];",
     "pi_add_f32_scalar", "mem_access"),
    ("nan_left", F32, "if (x[i] != x[i]) x[i] = nan;", "if (x[i] != x[i] && i > 0) x[i] = nan;", "pi_canonical_nan_f32_scalar",
     "nan_replaced"),
    ("pack_swapped_strides", F32, "lanes[r] = rows[r * n + j];", "lanes[r] = rows[(row_count - 1 - r) * n + j];", "pack_column", "pack_here"),

    ("dot_wrong_byte", Q8, "(int32_t)w[3] * (int32_t)x[3]", "(int32_t)w[3] * (int32_t)x[2]", "dot4", "dot4"),
    ("dot_dword_too_far", Q8, "for (size_t d = 0; d < count; d++) {", "for (size_t d = 0; d <= count; d++) {", "group_dot",
     "pi_product_le_requires"),
    ("q8_sum_one_group", Q8, "q + g * dwords * q_step, q_step)", "q, q_step)", "row_sum_q8", "row_sum_so_far"),
    ("quantize_without_clamp", Q8, "  if (quotient >= 127.0f) return 127;\n", "", "quantize_one", "quotient_bounds"),
    ("pack_q8_padding", Q8, "c < group_size ? weights[c] : 0", "c < group_size ? weights[c] : 1", "pack_group", "packed_padding"),
    ("plan_not_checked", LAYOUT, "  if (result == PI_LAYOUT_OK) result = check_version_fields(header);\n", "", "pi_checkpoint_plan",
     "take_shape_requires"),
    ("plan_one_kind_short", LAYOUT, "for (int i = 0; i < PI_TENSOR_KINDS; i++) {\n    int kind =", "for (int i = 0; i < PI_TENSOR_KINDS - 1; i++) {\n    int kind =",
     "place_all", "placed_inside"),
    ("missing_one_too_far", LAYOUT, "for (int i = 0; i < PI_TENSOR_KINDS; i++) {\n    int k =", "for (int i = 0; i <= PI_TENSOR_KINDS; i++) {\n    int k =",
     "pi_checkpoint_first_missing", "pi_checkpoint_kind_at_requires"),
    ("missing_exact_size", LAYOUT, "if (span_end(span) > file_size) return k;", "if (span_end(span) >= file_size) return k;",
     "pi_checkpoint_first_missing", "missing_kind"),
    ("rmsnorm_row_too_far", F32, "normalize_row(from, weight, rms_factor(from, n, epsilon), n, out + i * out_stride)",
     "normalize_row(from, weight, rms_factor(from, n, epsilon), n, out + (i + 1) * out_stride)", "pi_rmsnorm_f32_scalar", "normalize_row_requires"),
    ("softmax_row_too_far", F32, "for (size_t i = 0; i < row_count; i++) {\n    //@ ghost pi_product_le(i + 1, row_count, stride);",
     "for (size_t i = 0; i <= row_count; i++) {\n    //@ ghost pi_product_le(i + 1, row_count, stride);", "pi_softmax_f32_scalar", "pi_product_le_requires"),
    ("quantize_group_too_far", Q8, "quantize_group(from, group_size, padded, scale, to);", "quantize_group(from, group_size, padded, scale, to + padded);",
     "pi_quantize_q8_scalar", "quantize_group_requires"),
]


def copy_tree(root, folder):
    for part in ("src/proved", "tests/proof"):
        shutil.copytree(os.path.join(root, part), os.path.join(folder, part))


def unit_of(path):
    if path == CHECKED:
        return LAYOUT
    return path if path.endswith(".c") else wp.THEOREMS


def selection(function, word):
    """Options for the goals of one function that a mutant is named for."""
    if word.endswith("_requires"):
        return ["-wp-fct", function, "-wp-prop=@requires"]
    return ["-wp-fct", function, f"-wp-prop={word}"]


class Harness:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.setup = wp.Setup(folder, options, {} if options.no_hints else wp.read_hints())

    @functools.lru_cache(maxsize=None)
    def original(self, unit, select):
        """The goals of the unchanged file."""
        return wp.run(wp.ROOT, self.setup, unit, self.options, select)

    def mutate(self, mutant, copy):
        """Writes the mutant's text; what is wrong with it, or None."""
        _, path, old, new, _, _ = mutant
        with open(os.path.join(copy, path), encoding="utf-8") as file:
            text = file.read()
        if text.count(old) != 1:
            return f"its text occurs {text.count(old)} times in {path}"
        with open(os.path.join(copy, path), "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        return None

    def judge(self, mutant):
        """(caught, by which goal or why not)."""
        name, path, _, _, function, word = mutant
        unit, select = unit_of(path), tuple(selection(function, word))
        original = self.original(unit, select)
        if not original.parsed or original.unproved or not any(word in goal for goal in original.goals):
            return False, f"the original does not pass: {original.unproved or 'no such goal'}"
        copy = os.path.join(self.folder, name)
        copy_tree(wp.ROOT, copy)
        problem = self.mutate(mutant, copy)
        if problem:
            return False, problem
        result = wp.run(copy, self.setup, unit, self.options, select)
        shutil.rmtree(copy)
        failed = [goal for goal in result.unproved if word in goal]
        if not result.parsed:
            return False, "it does not parse\n" + result.output[-1500:]
        return (True, failed[0]) if failed else (False, "it survives")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="so many of the mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="mutants of this name")
    parser.add_argument("--list", action="store_true")
    wp.add_options(parser)
    parser.set_defaults(cpu=20)  # for goals that no prover decides; the unchanged goals must do with it too
    options = parser.parse_args()

    chosen = [mutant for mutant in MUTANTS if not options.only or mutant[0] in options.only]
    if options.sample:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    if options.list:
        for name, path, _, _, function, goal in chosen:
            print(f"{name:30} {path:34} {function:28} {goal}")
        return 0
    missing = [tool for tool in wp.TOOLS if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED[frama-c]: not found: {', '.join(missing)} (tests/tools/install_dependencies.sh proof)")
        return 77

    caught, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(folder, options)
        for mutant, (good, by) in zip(chosen, wp.side_by_side(options, harness.judge, chosen)):
            caught += good
            print(f"{mutant[0]:30} {'CAUGHT by' if good else 'NOT CAUGHT:'} {by}")
            sys.stdout.flush()
    print(f"{caught} of {len(chosen)} mutants caught, {time.monotonic() - began:.0f} s")
    return 0 if caught == len(chosen) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
