"""What a token costs in Python over the same loop in C.

    python overhead.py [MODEL TOKENIZER] [--library LIBRARY] [--include DIRECTORY] [--limit MICROSECONDS]

The C loop is compiled with cc against the same library. Rounds alternate, and of every single token the fastest round
counts, so that other work on the machine weighs little. Without a model it is stories260K, or else the demo model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from typing import List, Optional, Tuple

import proofinfer

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.environ.get("PROOFINFER_REPOSITORY") or os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
MODELS = os.environ.get("PROOFINFER_MODELS") or os.path.join(os.path.dirname(REPOSITORY), "shared", "models")
DEMO = os.path.join(REPOSITORY, "reference", "demo")
TOKENS, ROUNDS, AT_A_TIME = 200, 60, 10


def find_model() -> Tuple[str, str]:
    for model, tokenizer in (
        (os.path.join(MODELS, "stories260K.bin"), os.path.join(MODELS, "tok512.bin")),
        (os.path.join(DEMO, "demo.bin"), os.path.join(DEMO, "demo_tokenizer.bin")),
    ):
        if os.path.exists(model) and os.path.exists(tokenizer):
            return model, tokenizer
    sys.exit("no model: name one, and its tokenizer")


def compile_loop(library: str, include: str, folder: str) -> str:
    program = os.path.join(folder, "loop")
    here = os.path.dirname(os.path.abspath(library))
    command = [os.environ.get("CC", "cc"), "-O2", "-I", include, os.path.join(HERE, "loop.c"), os.path.abspath(library)]
    # The soname's link may be absent beside the file, so the loader gets it in a folder of its own.
    link = os.path.join(folder, "libproofinfer.so.1")
    os.symlink(os.path.realpath(library), link)
    subprocess.run([*command, "-o", program, f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{here}"], check=True)
    return program


Seconds = List[float]


def steps(stamps: Seconds) -> Seconds:
    return [after - before for before, after in zip(stamps, stamps[1:])]


def python_round(model: proofinfer.Model, tokenizer: proofinfer.Tokenizer) -> Seconds:
    clock = time.perf_counter
    with model.session() as session, session.generate([1], tokenizer, max_tokens=TOKENS, stop_tokens=[]) as generation:
        return steps([clock() for _ in generation])


async def async_round(model: proofinfer.Model, tokenizer: proofinfer.Tokenizer) -> Seconds:
    clock = time.perf_counter
    with model.session() as session, session.generate([1], tokenizer, max_tokens=TOKENS, stop_tokens=[]) as generation:
        return steps([clock() async for _ in generation])


def fastest(rounds: List[Seconds]) -> float:
    """Microseconds a token, each token's taken from its fastest round."""
    return sum(map(min, zip(*rounds))) / len(rounds[0]) * 1e6


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="*", help="a checkpoint and its tokenizer")
    parser.add_argument("--library", default=os.environ.get("PROOFINFER_LIBRARY"))
    parser.add_argument("--include", default=os.path.join(REPOSITORY, "include"))
    parser.add_argument("--limit", type=float, help="fail above so many microseconds a token")
    arguments = parser.parse_args()
    model_path, tokenizer_path = arguments.model or find_model()
    library = arguments.library or proofinfer.load()
    model = proofinfer.Model(model_path)
    tokenizer = proofinfer.Tokenizer(tokenizer_path, model)
    inside: List[Seconds] = []
    outside: List[Seconds] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [compile_loop(library, arguments.include, folder), model_path, tokenizer_path, str(TOKENS), str(AT_A_TIME)]
        for _ in range(ROUNDS // AT_A_TIME):
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            outside.append([float(line) for line in done.stdout.split()])
            inside += [python_round(model, tokenizer) for _ in range(AT_A_TIME)]
    awaited = [asyncio.run(async_round(model, tokenizer)) for _ in range(AT_A_TIME)]
    return report(os.path.basename(model_path), fastest(outside), fastest(inside), fastest(awaited), arguments.limit)


def report(name: str, c: float, python: float, awaited: float, limit: Optional[float]) -> int:
    overhead = python - c
    print(f"{name}: C {c:.1f} us a token, Python {python:.1f} us, asyncio {awaited:.1f} us (fastest of {ROUNDS})")
    print(f"overhead of Python a token: {overhead:.1f} us (target on an idle machine: 10 us)")
    if limit is not None and overhead > limit:
        print(f"more than the limit of {limit:.1f} us")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
