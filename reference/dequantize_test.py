#!/usr/bin/env python3
"""Rows of every GGUF element type, packed and read back by the library, against the dequantization of the PyPI package gguf, bit for bit (a NaN
equals any NaN): random blocks, and blocks whose scales are NaN, infinite, subnormal, the largest and -0; whole panels and cut ones.

    build/oracles/bin/python -B reference/dequantize_test.py --program build/release/tests/conformance/dequantize_rows

reference/install.sh makes that environment.
"""
import argparse
import subprocess
import sys

import gguf
import numpy as np

# Where each type keeps its float16 numbers in a block.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
TYPES = ["F32", "F16", "BF16", *HALVES]
# float16: zeros, the smallest and largest subnormal and normal numbers, infinities, quiet and signalling NaNs with payloads.
HOSTILE = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0xfdff],
                   np.uint16)
ROW_COUNTS = [1, 4, 5, 6, 15, 16, 17, 20, 33]


def blocks_of(name, rng, row_count, block_count):
    """Random bytes; every third block has an ordinary scale, a hostile one, whatever comes."""
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (row_count * block_count, size), np.uint8)
    for place in HALVES.get(name, []):
        halves = blocks[:, place:place + 2].copy().view(np.uint16)[:, 0]
        which = np.arange(len(halves)) % 3
        ordinary = rng.uniform(-0.1, 0.1, len(halves)).astype(np.float16).view(np.uint16)
        halves = np.where(which == 0, ordinary, np.where(which == 1, rng.choice(HOSTILE, len(halves)), halves)).astype(np.uint16)
        blocks[:, place:place + 2] = halves[:, None].view(np.uint8)
    return blocks.reshape(row_count, block_count * size)


def all_halves():
    """Every 16-bit pattern once."""
    return np.arange(65536, dtype=np.uint16).reshape(256, 256).view(np.uint8)


def same(got, expected):
    both_nan = np.isnan(got) & np.isnan(expected)
    return bool(np.all((got.view(np.uint32) == expected.view(np.uint32)) | both_nan))


def compare(program, name, rows):
    """The number of kernel sets whose rows are the reference's; an error text."""
    kind = gguf.GGMLQuantizationType[name]
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(rows, kind).reshape(rows.shape[0], -1)
    columns = expected.shape[1]
    done = subprocess.run([program, name, str(rows.shape[0]), str(columns)], input=rows.tobytes(), capture_output=True, check=False)
    sets, rest = divmod(len(done.stdout), expected.nbytes)
    if done.returncode != 0 or sets == 0 or rest != 0:
        return f"the program ended with {done.returncode} and {len(done.stdout)} bytes"
    got = np.frombuffer(done.stdout, np.float32).reshape(sets, *expected.shape)
    for index in range(sets):
        if not same(got[index], np.ascontiguousarray(expected)):
            return f"kernel set {index} differs"
    return None


def must_notice():
    """A comparison that cannot fail shows nothing."""
    a = np.array([1.0, -0.0, np.nan], np.float32)
    assert same(a, a.copy()) and not same(a, np.array([1.0, 0.0, np.nan], np.float32)) and not same(a, np.array([1.0, -0.0, 0.0], np.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    must_notice()
    rng = np.random.default_rng(options.seed)
    passed = failed = 0
    for name in TYPES:
        columns, _ = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
        unit = 1 if columns > 1 else 32
        cases = [blocks_of(name, rng, rows, unit * blocks) for rows in ROW_COUNTS for blocks in (1, 2, 3, 9)]
        if name in ("F16", "BF16"):
            cases.append(all_halves())
        problems = [problem for problem in (compare(options.program, name, rows) for rows in cases) if problem]
        print(f"{name}: {len(cases)} matrices, {problems[0] if problems else 'equal'}")
        passed += not problems
        failed += bool(problems)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
