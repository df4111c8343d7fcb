"""What the tests share: where golden figures and models are, small objects to try things on, and scripts run apart."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from typing import Any, Dict, List, Optional, Tuple

import checkpoints

import proofinfer

# Shells start what runs in the background deaf to Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = os.path.dirname(os.path.abspath(__file__))
# The tests may run from a copy; then this variable names the repository.
REPOSITORY = os.environ.get("PROOFINFER_REPOSITORY") or os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
# What a time limit is multiplied by on a machine that others use too.
SLACK = 5 if os.environ.get("CI") else 1

MODELS = os.environ.get("PROOFINFER_MODELS") or os.path.join(os.path.dirname(REPOSITORY), "shared", "models")
LARGE_SHAPE = {
    "dim": 512,
    "hidden_dim": 1376,
    "n_layers": 8,
    "n_heads": 8,
    "n_kv_heads": 8,
    "vocab_size": 512,
    "seq_len": 4096,
}


def golden(name: str) -> Any:
    path = os.path.join(REPOSITORY, "tests", "data", "golden", name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"SKIPPED[golden-figures]: {path} is absent")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def real_model(name: str) -> str:
    path = os.path.join(MODELS, name)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"SKIPPED[real-models]: {path} is absent")
    return path


def smollm2() -> str:
    path = os.environ.get("PROOFINFER_SMOLLM2")
    if not path:
        raise unittest.SkipTest("SKIPPED[smollm2]: PROOFINFER_SMOLLM2 names no file")
    return path


@functools.cache
def small_bytes() -> bytes:
    return checkpoints.legacy_checkpoint(checkpoints.SMALL, 11)


@functools.cache
def vocabulary(count: int = checkpoints.SMALL["vocab_size"]) -> bytes:
    return checkpoints.byte_vocabulary(count)


@functools.cache
def folder() -> str:
    path = tempfile.mkdtemp(prefix="proofinfer-tests-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def large_path() -> str:
    """About 100 MB; a prompt that fills its context takes seconds."""
    path = os.path.join(folder(), "large.bin")
    checkpoints.large_checkpoint(path, LARGE_SHAPE)
    with open(os.path.join(folder(), "large_tokenizer.bin"), "wb") as file:
        file.write(vocabulary(512))
    return path


@functools.cache
def small_path() -> str:
    path = os.path.join(folder(), "small.bin")
    with open(path, "wb") as file:
        file.write(small_bytes())
    with open(os.path.join(folder(), "small_tokenizer.bin"), "wb") as file:
        file.write(vocabulary())
    return path


def open_small(**options: Any) -> Tuple[proofinfer.Model, proofinfer.Tokenizer]:
    model = proofinfer.Model.from_bytes(small_bytes(), **options)
    return model, proofinfer.Tokenizer.from_bytes(vocabulary(), model)


class SmallTest(unittest.TestCase):
    """A test on the small model."""

    def setUp(self) -> None:
        self.model, self.tokenizer = open_small()
        self.addCleanup(self.tokenizer.close)
        self.addCleanup(self.model.close)

    def generate(self, session: proofinfer.Session, **options: Any) -> proofinfer.Generation:
        options.setdefault("stop_tokens", [])
        return session.generate([1], self.tokenizer, **options)

    @functools.cache  # noqa: B019  # a test case lives as long as its run
    def expected(self, count: int) -> List[int]:
        """The first greedy tokens from token 1, taken without a Generation."""
        with self.model.session() as session:
            tokens: List[int] = []
            token = 1
            for _ in range(count):
                session.append([token])
                logits = session.logits().tolist()
                token = logits.index(max(logits))
                tokens.append(token)
            return tokens


def script(text: str, *arguments: str, preamble: bool = True) -> List[str]:
    """The command line of a Python script that can import what the tests can. Warnings are errors."""
    lead = f"import sys; sys.path.insert(0, {HERE!r})\n" if preamble else ""
    return [sys.executable, "-X", "dev", "-W", "error", "-c", lead + textwrap.dedent(text), *arguments]


def run_script(text: str, *arguments: str, environment: Optional[Dict[str, str]] = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        script(text, *arguments),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=None if environment is None else {**os.environ, **environment},
    )
