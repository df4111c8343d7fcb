"""Shows that diff_test.py notices: semantic mistakes planted in a copy of the engine, each of which it must flag without the recorded figures.

    python3 reference/engine_mutants.py                 # all
    python3 reference/engine_mutants.py --sample 8 --seed 3

A mistake in a kernel is planted in the scalar kernels and in the vector ones alike, so that comparing kernel sets does not find it. The unchanged
engine must pass in the same run; a mistake that cannot be planted or does not compile is an error. Exit code 0: all flagged; 1: one is not; 2: an error.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CONFIGURATIONS = "gqa4,untied,head_size_2,odd_dims,large_scores,q:gqa_recorded,q:mqa_untied_recorded"

FORWARD, WEIGHTS, SESSION = "src/model/forward.cpp", "src/model/weights.cpp", "src/model/session.cpp"
KV, KV_CACHE, KV_HEADER = "src/proved/kv_index.h", "src/model/kv_cache.cpp", "src/model/kv_cache.h"
SCALAR, BODY = "src/proved/kernels_scalar.c", "src/kernels/kernels_body.h"


class Broken(Exception):
    """A mistake that cannot be planted or built."""


@dataclass(frozen=True)
class Mutant:
    name: str
    edits: tuple[tuple[str, str, str], ...]  # file, text that stands there once, its replacement


ROPE_CALL = "kernels_.rope_f32(q, n_heads + n_kv_heads, head_size, cosines(row), sines(row));"
HALVES = """for (size_t h = 0, hs = head_size; h < n_heads + n_kv_heads; h++)
      for (size_t i = 0; i < hs / 2; i++) {
        float *p = q + h * hs + i, a = p[0], b = p[hs / 2], c = cosines(row)[i], s = sines(row)[i];
        p[0] = a * c - b * s;
        p[hs / 2] = a * s + b * c;
      }"""
NORM_EDITS = ((SCALAR, "return weight * (factor * x); }", "return factor * x + 0.0f * weight; }"), (BODY, "return mul(w, mul(factor, v)); });", "(void)w; return mul(factor, v); });"))
STORE_KEYS = "keys[pi_kv_key_element(&shape_, in_page, e)] = key[h * n + e];"
EMBED = "if (matrix.type != ElementType::kQ8Groups) return dequantize_row(matrix.type, panel, row, dim_, x);"

MUTANTS = (
    Mutant("rope_pairs_are_halves", ((FORWARD, ROPE_CALL, HALVES),)),
    Mutant("rope_base", ((WEIGHTS, "1.0f / pi_powf(base,", "1.0f / pi_powf(50.0f * base,"),)),
    Mutant("rope_angle_sign", ((FORWARD, "static_cast<float>(rows_[row].position), cosines(row),", "-static_cast<float>(rows_[row].position), cosines(row),"),)),
    Mutant("rope_on_values_too", ((FORWARD, "n_heads + n_kv_heads, head_size", "n_heads + 2 * n_kv_heads, head_size"),)),
    Mutant("gqa_modulo", ((KV, "return h / s->kv_mul; }", "return h % s->n_kv_heads; }"),)),
    Mutant("norm_epsilon", ((SCALAR, "ss += epsilon;", "ss += epsilon * 0.1f;"), (BODY, "ss += epsilon;", "ss += epsilon * 0.1f;"))),
    Mutant("norm_weight_ignored", NORM_EDITS),
    Mutant("norm_of_the_other_part", ((FORWARD, "normalize(weights.ffn_norm);", "normalize(weights.attention_norm);"),)),
    Mutant("final_norm_of_layer_0", ((FORWARD, "model_.final_norm()", "model_.layer(0).attention_norm"),)),
    Mutant("scores_not_divided", ((FORWARD, "float root = pi_sqrtf(static_cast<float>(head_size));", "float root = 1.0f;"),)),
    Mutant("scores_divided_by_sqrt_dim", ((FORWARD, "pi_sqrtf(static_cast<float>(head_size));", "pi_sqrtf(static_cast<float>(model_.dim()));"),)),
    Mutant("softmax_without_maximum", ((SCALAR, "x[i] = pi_expf(x[i] - max);", "x[i] = pi_expf(x[i]);"), (BODY, "return exp_reg(sub(a, most)); });", "(void)most; return exp_reg(a); });"))),
    Mutant("own_position_not_attended", ((FORWARD, "size_t n = rows_[row].position + 1;  // positions attended", "size_t n = rows_[row].position ? rows_[row].position : 1;"),)),
    Mutant("silu_is_relu", ((FORWARD, "p->kernels_.swiglu_f32(h1, h1 + h3_at, p->model_.hidden_dim());", "for (size_t i = 0; i < p->model_.hidden_dim(); i++) h1[i] = (h1[i] > 0 ? h1[i] : 0) * h1[h3_at + i];"),)),
    Mutant("w1_and_w3_swapped", ((WEIGHTS, "{{PI_W1, PI_W3}, 2}", "{{PI_W3, PI_W1}, 2}"),)),
    Mutant("residual_dropped", ((FORWARD, "kernels_.add_f32(x(0), w_.projected_.data(), row_count_ * w_.dim_stride_); }", "memcpy(x(0), w_.projected_.data(), row_count_ * w_.dim_stride_ * sizeof(float)); }"),)),
    Mutant("key_cache_off_by_one", ((KV_CACHE, STORE_KEYS, "keys[pi_kv_key_element(&shape_, (in_page + 1) % PI_PAGE_POSITIONS, e)] = key[h * n + e];"),)),
    Mutant("keys_in_half_precision", ((KV_CACHE, STORE_KEYS, """{
        uint32_t bits;
        memcpy(&bits, &key[h * n + e], 4);
        bits &= 0xffffe000u;
        memcpy(&keys[pi_kv_key_element(&shape_, in_page, e)], &bits, 4);
      }"""),)),
    Mutant("wrong_position_after_rewind", ((SESSION, "position_.store(position, std::memory_order_release);\n}", "position_.store(position ? position - 1 : 0, std::memory_order_release);\n}"),)),
    # Bookkeeping is right, rotation is not.
    Mutant("wrong_angles_after_rewind", (
        (KV_HEADER, "class KvCache {\n public:\n", "class KvCache {\n public:\n  size_t rewound = 0;\n"),
        (SESSION, "position_.store(position, std::memory_order_release);\n}", "position_.store(position, std::memory_order_release);\n  kv_.rewound = 1;\n}"),
        (FORWARD, "static_cast<float>(rows_[row].position), cosines(row),", "static_cast<float>(rows_[row].position + rows_[row].kv->rewound), cosines(row),"),
    )),
    Mutant("tied_embedding_transposed", ((WEIGHTS, EMBED, """if (matrix.type == ElementType::kF32) {
    for (size_t j = 0, at = token; j < dim_; j++, at += vocab_size_)
      x[j] = reinterpret_cast<const float *>(matrix.panels)[pi_packed_index(dim_, at / dim_, at % dim_)];
    return;
  }
  """ + EMBED),)),
    Mutant("q8_scale_of_the_next_group", ((FORWARD, "  if (count == 1) return &rows;", """  for (size_t row = 0; row < count; row++)
    for (size_t g = 0; g + 1 < groups; g++) rows.scales[row * groups + g] = rows.scales[row * groups + g + 1];
  if (count == 1) return &rows;"""),)),
    Mutant("last_position_only", ((FORWARD, "memcpy(logits, out + i * stride, stride * sizeof(float));", "memcpy(logits, out + (count - 1) * stride, stride * sizeof(float));"),)),
)


def plant(tree: Path, mutant: Mutant) -> dict[Path, str]:
    """Edits the copy; the texts that were there."""
    before: dict[Path, str] = {}
    for file, old, new in mutant.edits:
        path = tree / file
        text = path.read_text()
        if text.count(old) != 1:
            raise Broken(f"{mutant.name}: the text to change stands in {file} {text.count(old)} times: {old}")
        before.setdefault(path, text)
        path.write_text(text.replace(old, new))
    return before


def build(folder: Path, what: str) -> Path:
    done = subprocess.run(["cmake", "--build", str(folder), "--target", "proofinfer"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"{what} does not compile:\n{done.stdout[-3000:]}")
    return next(folder.glob("src/libproofinfer.so.1"))


def compare(library: Path, cache: Path, only: str, early: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(HERE / "diff_test.py"), "--library", str(library), "--cache", str(cache), "--only", only, "--without-golden"]
    return subprocess.run(command + ["--stop-early"] * early, capture_output=True, text=True, check=False, timeout=600)


def how_flagged(done: subprocess.CompletedProcess[str]) -> str | None:
    """What the harness said; None: it passed. A harness that did not come to its end has flagged nothing, unless the engine crashed."""
    counts = re.search(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
    if counts is None:
        if done.returncode in (-11, -6, -8, -4):
            return f"the engine crashed (signal {-done.returncode})"
        raise Broken(f"diff_test.py did not come to its end:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    if int(counts[1]) + int(counts[2]) == 0:
        raise Broken("diff_test.py compared nothing")
    failures = re.findall(r"^FAILED (.*)", done.stdout, re.M)
    if bool(failures) != bool(int(counts[2])) or (done.returncode != 0) != bool(failures):
        raise Broken("diff_test.py contradicts itself")
    return failures[0] if failures else None


def copy_sources(tree: Path) -> None:
    """The sources as they are; files that a run that was ended left changed become newer than what was built of them."""
    names = subprocess.run(["git", "ls-files", "-z", "CMakeLists.txt", "src", "include", "docs", "proofinfer.pc.in", "LICENSE", "README.md"],
                           cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        text, to = (ROOT / name).read_bytes(), tree / name
        if not to.exists() or to.read_bytes() != text:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(text)


def run(arguments: argparse.Namespace) -> int:
    begin = time.monotonic()
    top = arguments.folder.resolve()
    tree, folder, cache = top / "tree", top / "build", top / "cache"
    copy_sources(tree)
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DPROOFINFER_BUILD_PROGRAM=OFF", "-DPROOFINFER_BUILD_STATIC=OFF"]
    configured = subprocess.run(["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja", *options], capture_output=True, text=True, check=False)
    if configured.returncode != 0:
        raise Broken(configured.stdout[-2000:] + configured.stderr[-2000:])
    unchanged = how_flagged(compare(build(folder, "the unchanged engine"), cache, CONFIGURATIONS, early=False))
    if unchanged is not None:
        raise Broken(f"the unchanged engine is flagged: {unchanged}")
    print(f"unchanged: passes with {CONFIGURATIONS}", flush=True)
    mutants = [mutant for mutant in MUTANTS if not arguments.only or mutant.name in arguments.only.split(",")]
    if arguments.sample:
        print(f"seed {arguments.seed}")
        mutants = random.Random(arguments.seed).sample(mutants, arguments.sample)
    missed = []
    for mutant in mutants:
        before = plant(tree, mutant)
        try:
            said = how_flagged(compare(build(folder, mutant.name), cache, CONFIGURATIONS, early=True))
        finally:
            for path, text in before.items():
                path.write_text(text)
        print(f"{mutant.name}: {said or 'NOT FLAGGED'}", flush=True)
        if said is None:
            missed.append(mutant.name)
    if not mutants:
        raise Broken("no mutant has such a name")
    print(f"{time.monotonic() - begin:.0f} s")
    print(f"{len(mutants) - len(missed)} passed, {len(missed)} failed, 0 skipped")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=0, help="only so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "engine_mutants")
    try:
        return run(parser.parse_args())
    except Broken as problem:
        print(f"ERROR: {problem}")
        return 2


if __name__ == "__main__":
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "2")
    sys.exit(main())
