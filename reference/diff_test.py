"""The engine against independent oracles: every logit at every position, on every kernel set, in float32 and Q8_0.

    python3 reference/diff_test.py --library build/release/src/libproofinfer.so.1
    python3 reference/diff_test.py --library ... --oracles transformers,llama.cpp --node-folder build/oracles/node
    python3 reference/diff_test.py --library ... --oracles model.py,run,runq --llama2c FOLDER_WITH_THEM
    python3 reference/diff_test.py --library ... --checkpoint stories15M=stories15M.bin --tokenizer stories15M=tokenizer.bin

Always there: the equations in PyTorch, float32 and float64 (equations.py), and the recorded figures of tests/data/golden. The other oracles are named;
one that is named and missing is an error. What the columns mean and why the limits are these: docs/testing.md. Needs numpy and torch (Debian's
python3-torch does). Exit code 0: all within the limits; 1: not; 2: an oracle is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import checkpoint
import equations
import oracles

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GOLDEN = ROOT / "tests" / "data" / "golden"
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))

import proofinfer  # noqa: E402  # the library that the binding loads is named on the command line

# Draws of rounding errors whose largest effect is the bound.
NOISE_SEEDS = (1, 2, 3)
# The engine adds up in order, PyTorch in blocks: docs/testing.md.
MOST_RATIO = 6.0


@dataclass
class Configuration:
    """A checkpoint to compare: drawn from a seed, or a file."""

    name: str
    shape: checkpoint.Shape | None = None
    seed: int | None = None
    file: Path | None = None
    group_size: int = 0
    tokens: list[int] = field(default_factory=list)
    golden: dict[str, Any] | None = None
    tokenizer: Path | None = None
    absent: str = ""  # why the file is not there
    query_key_scale: float = 1.0


# What the recorded figures do not have: name, shape, seed, positions.
OWN_SHAPES = (
    ("wide", checkpoint.Shape(512, 1376, 2, 8, 8, 1000, 64, True), 301, 40),
    ("long_context", checkpoint.Shape(48, 128, 2, 4, 2, 130, 1024, True), 302, 1000),
    ("mqa_untied_odd", checkpoint.Shape(60, 90, 3, 6, 1, 77, 70, False), 303, 70),
    ("one_head_one_layer", checkpoint.Shape(64, 96, 1, 1, 1, 200, 130, True), 304, 130),
    # Scores beyond what exp can take without the maximum subtracted.
    ("large_scores", checkpoint.Shape(48, 64, 1, 3, 3, 150, 64, True), 305, 60),
)
LARGE_SCORES_SCALE = 16.0


def shape_of(numbers: dict[str, int]) -> checkpoint.Shape:
    values = dict(numbers)
    vocab = values.pop("vocab_size")
    return checkpoint.Shape(**values, vocab_size=abs(vocab), shared=vocab > 0)


def drawn_tokens(count: int, vocab_size: int) -> list[int]:
    return [1 + i * 251 % (vocab_size - 1) for i in range(count)]


def largest_group(shape: checkpoint.Shape) -> int:
    return min(64, math.gcd(64, math.gcd(shape.dim, shape.hidden_dim)))


def configurations(arguments: argparse.Namespace) -> list[Configuration]:
    """The recorded float32 and Q8_0 cases, shapes of our own, files; each float32 one again as Q8_0."""
    models = Path(os.environ.get("PROOFINFER_MODELS", ROOT.parent / "shared" / "models"))
    table = []
    for case in json.loads((GOLDEN / "run_c_f32.json").read_text())["cases"]:
        row = Configuration(case["name"], shape_of(case["shape"]), case["seed"], tokens=case["tokens"], golden=case)
        if row.seed is None:
            row.file, row.tokenizer = models / f"{row.name}.bin", models / "tok512.bin"
            row.absent = "" if row.file.is_file() else f"SKIPPED[real-models]: {row.file} is absent (set PROOFINFER_MODELS)"
        table.append(row)
    for name, shape, seed, count in OWN_SHAPES:
        scale = LARGE_SCORES_SCALE if name == "large_scores" else 1.0
        table.append(Configuration(name, shape, seed, tokens=drawn_tokens(count, shape.vocab_size), query_key_scale=scale))
    demo = ROOT / "reference" / "demo"
    table.append(Configuration("demo", file=demo / "demo.bin", tokenizer=demo / "demo_tokenizer.bin"))
    for name, path in arguments.checkpoint:
        table.append(Configuration(name, file=path, tokenizer=dict(arguments.tokenizer).get(name)))
    quantized_cases = json.loads((GOLDEN / "runq_c_q80.json").read_text())["cases"]
    for row in table:
        if not row.tokens and row.file is not None:
            row.shape = checkpoint.read_tensors(row.file)[0]
            row.tokens = story_tokens(row)
    quantized = [
        replace(row, group_size=largest_group(row.shape), golden=None)
        for row in table
        if row.name not in ("stories15M_shape",)
    ]
    for case in quantized_cases:
        name = case["name"] if case["name"] == "stories15M_shape" else f"{case['name']}_recorded"
        quantized.append(
            Configuration(name, shape_of(case["shape"]), case["seed"], None, case["group_size"], case["tokens"], case)
        )
    rows = table + quantized
    return [replace(row, golden=None) for row in rows] if arguments.without_golden else rows


def story_tokens(row: Configuration) -> list[int]:
    """200 positions of a story model: what it writes itself."""
    with proofinfer.Model(row.file) as model, proofinfer.Tokenizer(row.tokenizer, model) as tokenizer, model.session() as session:
        count = min(200, model.seq_len)
        ids = tokenizer.encode("Once upon a time")
        generation = session.generate(ids, tokenizer, temperature=0.0, max_tokens=count - len(ids), stop_tokens=[])
        return ids + [piece.token for piece in generation]


def write_files(row: Configuration, folder: Path) -> Path:
    """The row's checkpoint on disk."""
    path = row.file
    if path is None:
        path = folder / f"{row.name}.{row.seed}.bin"
        if not path.exists():
            checkpoint.write_synthetic(path, row.shape, row.seed, row.query_key_scale)
    if row.group_size:
        legacy, path = path, folder / f"{row.name}.{row.seed}.q{row.group_size}.bin"
        if not path.exists():
            checkpoint.write_version2(path, legacy, row.group_size)
    return path


# --- the oracles of every run, kept in a folder by what they were computed from


@dataclass
class Truth:
    """What float64 says, and how far float32 may be from it."""

    logits: np.ndarray  # [positions, vocab_size] float64
    bound: float
    pytorch_errors: np.ndarray  # [positions], the largest of the same equations in float32
    # Q8_0: the same with activations that are not quantized, its bound, and how far quantizing them may move a logit.
    exact: np.ndarray | None = None
    exact_bound: float = 0.0
    step_bound: float = 0.0


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """NaN anywhere counts as infinitely far."""
    worst = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
    return float(worst) if np.isfinite(worst) else math.inf


def errors_of(logits: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """[positions], the largest difference at each."""
    errors = np.abs(logits.astype(np.float64) - truth).max(-1)
    return np.where(np.isfinite(errors), errors, math.inf)


def moved_by(model: equations.Model, tokens: list[int], truth: np.ndarray, *, activation_steps: bool = False) -> float:
    return max(largest_difference(model.logits(tokens, seed, activation_steps), truth) for seed in NOISE_SEEDS)


def compute_truth(case: oracles.Case) -> Truth:
    model = equations.Model(case.shape, case.tensors, torch.float64)
    logits = model.logits(case.tokens)
    single = equations.Model(case.shape, case.tensors, torch.float32).logits(case.tokens)
    truth = Truth(logits, moved_by(model, case.tokens, logits), errors_of(single, logits))
    if case.group_size:
        model = equations.Model(case.shape, case.tensors, torch.float64, exact_activations=True)
        truth.exact = model.logits(case.tokens)
        truth.exact_bound = moved_by(model, case.tokens, truth.exact)
        truth.step_bound = moved_by(model, case.tokens, truth.exact, activation_steps=True)
        # Rounding may take an activation to the next step: one here and there, where the drawn errors move all by half of it.
        truth.bound = max(truth.bound, truth.step_bound)
    return truth


def kept(cache: Path | None, name: str, case: oracles.Case, sources: list[Path], compute: Any) -> Any:
    """compute(), or what an earlier run of the same sources on the same file and tokens gave."""
    if cache is None:
        return compute()
    digest = hashlib.sha256(json.dumps([case.tokens, NOISE_SEEDS, torch.__version__]).encode())
    for path in [*sources, HERE / "checkpoint.py", case.path]:
        digest.update(path.read_bytes())
    file = cache / f"{name}.{digest.hexdigest()[:32]}.pickle"
    if file.exists():
        return pickle.loads(file.read_bytes())
    value = compute()
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_bytes(pickle.dumps(value))
    partial.replace(file)
    return value


# --- the engine


def engine_walks(model: proofinfer.Model, tokens: list[int], isa: str) -> list[np.ndarray]:
    """The logits of every position: appended at once; and in parts, with detours that are rewound."""

    def rows(session: proofinfer.Session, begin: int, end: int) -> list[np.ndarray]:
        return [np.array(session.logits(position)) for position in range(begin, end)]

    with model.session(isa=isa) as session:
        session.append(tokens, logits="all")
        at_once = np.stack(rows(session, 0, len(tokens)))
    parts: list[np.ndarray] = []
    with model.session(isa=isa) as session:
        sizes = [1, 2, 17, 3, 1, 60]
        while session.position < len(tokens):
            begin = session.position
            end = min(begin + sizes[begin % len(sizes)], len(tokens))
            detour = tokens[begin : min(begin + 5, len(tokens))][::-1]
            session.append(detour, logits="none")
            session.rewind(begin)
            session.append(tokens[begin:end], logits="all")
            parts += rows(session, begin, end)
    return [at_once, np.stack(parts)]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


class Report:
    """One configuration's figures and what is wrong with them."""

    def __init__(self, row: Configuration, case: oracles.Case) -> None:
        self.row, self.case = row, case
        self.label = f"{row.name} {'q8_0/' + str(row.group_size) if row.group_size else 'f32'}"
        self.problems: list[str] = []
        self.figures: dict[str, Any] = {}
        self.others: dict[str, float] = {}

    def demand(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)

    def compare_with_truth(self, logits: np.ndarray, truth: Truth) -> None:
        errors = errors_of(logits, truth.logits)
        error, pytorch_error = float(errors.max()), float(truth.pytorch_errors.max())
        # An activation of Q8_0 that lies between two steps is rounded by chance, and its position and all that attend to it are off by that step's
        # effect: there the ratio is that of the tenth of the positions that is least off, and no limit.
        share = 0.1 if self.case.group_size else 1.0
        ratio = float(np.quantile(errors, share) / np.quantile(truth.pytorch_errors, share))
        self.figures.update(error=error, pytorch_error=pytorch_error, ratio=ratio, bound=truth.bound)
        self.demand(error <= truth.bound, f"an error of {error:.3g} against float64; the bound is {truth.bound:.3g}")
        self.demand(ratio <= MOST_RATIO or self.case.group_size > 0, f"{ratio:.3g} times the error of PyTorch in float32; at most {MOST_RATIO:g}")
        ordered = np.sort(truth.logits, axis=-1)
        clear = ordered[:, -1] - ordered[:, -2] > 2 * truth.bound
        agree = logits.argmax(-1) == truth.logits.argmax(-1)
        self.figures.update(top1=int(agree.sum()), positions=len(agree), vocab_size=logits.shape[1])
        self.demand(bool(agree[clear].all()), f"another largest logit than float64 at {int((~agree & clear).sum())} positions where it leads clearly")

    def compare_with_golden(self, logits: np.ndarray) -> None:
        golden = self.row.golden
        if golden is None:
            return
        digest = hashlib.sha256(logits.astype("<f4").tobytes()).hexdigest()
        self.figures["golden"] = digest == golden["logits_sha256"]
        self.demand(digest == golden["logits_sha256"], "other logits than the recorded ones")
        self.demand(logits.argmax(-1).tolist() == golden["argmax"], "other largest logits than the recorded ones")

    def compare_with_oracle(self, oracle: oracles.LogitsOracle, theirs: np.ndarray, logits: np.ndarray, truth: Truth) -> None:
        exact, bound = (truth.logits, truth.bound) if truth.exact is None else (truth.exact, truth.exact_bound)
        ours, far = logits, bound if truth.exact is None else truth.step_bound
        if oracle.log_probabilities:
            exact, ours = log_softmax(exact), log_softmax(logits)
            seen = theirs > -60.0  # below, a float32 probability has lost its bits
            self.demand(bool(seen.mean() > 0.5), f"{oracle.name}: fewer than half of the probabilities can be told from 0")
            theirs, exact, ours = theirs[seen], exact[seen], ours[seen]
            bound, far = 2 * bound, 2 * far  # the sum over the vocabulary moves with the logits
        error, difference = largest_difference(theirs, exact), largest_difference(theirs, ours)
        self.others[oracle.name] = difference
        self.demand(error <= oracle.slack * bound, f"{oracle.name}: an error of {error:.3g} against float64; the bound is {oracle.slack * bound:.3g}")
        limit = far + oracle.slack * bound
        self.demand(difference <= limit, f"{oracle.name}: {difference:.3g} apart from the engine; at most {limit:.3g}")


def golden_ids(report: Report, model: proofinfer.Model, isa: str) -> None:
    """Greedy and sampled ids from token 1 on, as recorded."""
    golden = report.row.golden
    if golden is None:
        return
    runs = [({"temperature": 0.0}, golden["greedy_from_1"])]
    runs += [({key: s[key] for key in ("temperature", "top_p", "seed")}, s["ids"]) for s in golden["sampled"]]
    with proofinfer.Tokenizer.from_bytes(made_up_tokenizer(model.vocab_size), model) as tokenizer:
        for sampling, expected in runs:
            with model.session(isa=isa) as session:
                pieces = list(session.generate([1], tokenizer, max_tokens=len(expected), stop_tokens=[], **sampling))
            report.demand([piece.token for piece in pieces] == expected, f"other ids than recorded with {sampling} on {isa}")


def made_up_tokenizer(vocab_size: int) -> bytes:
    """A tokenizer.bin in which every id has a piece that can be told from the others."""
    pieces = [f"t{i}.".encode() for i in range(vocab_size)]
    entries = [np.float32(0).tobytes() + len(piece).to_bytes(4, "little") + piece for piece in pieces]
    return max(map(len, pieces)).to_bytes(4, "little") + b"".join(entries)


def printed_by_reference(pieces: list[bytes]) -> bytes:
    """Pieces as llama2.c's program prints them: one that is a single byte is left out where it can be neither printed nor is white space."""
    return b"".join(p for p in pieces if len(p) != 1 or 32 <= p[0] <= 126 or 9 <= p[0] <= 13) + b"\n"


def our_text(model: proofinfer.Model, tokenizer: proofinfer.Tokenizer, isa: str, steps: int, prompt: str, sampling: dict[str, Any]) -> bytes:
    """What llama2.c's program prints for these arguments, by this library."""
    ids = tokenizer.encode(prompt)
    steps = model.seq_len if steps <= 0 or steps > model.seq_len else steps
    with model.session(isa=isa) as session:
        generated = session.generate(ids, tokenizer, max_tokens=max(steps - len(ids) + 1, 1), **sampling)
        all_ids = ids + [piece.token for piece in generated]
    all_ids = all_ids[: steps + 1]
    if 1 in all_ids[1:]:
        all_ids = all_ids[: all_ids.index(1, 1)]
    return printed_by_reference([tokenizer.decode_bytes(b, previous=a) for a, b in zip(all_ids, all_ids[1:])])


def golden_texts(report: Report, model: proofinfer.Model, isa: str) -> None:
    """The recorded outputs of the reference program, byte for byte."""
    if report.row.name != "stories260K" or report.row.golden is None:
        return
    cases = json.loads((GOLDEN / "cli_stories260K.json").read_text())["cases"]
    with proofinfer.Tokenizer(report.row.tokenizer, model) as tokenizer:
        for case in cases:
            given = dict(zip(case["args"][::2], case["args"][1::2]))
            sampling = {"temperature": float(given.get("-t", 1)), "top_p": float(given.get("-p", 0.9)), "seed": int(given.get("-s", 1))}
            text = our_text(model, tokenizer, isa, int(given.get("-n", 256)), given.get("-i", ""), sampling)
            report.demand(text == bytes.fromhex(case["stdout_hex"]), f"other text than recorded with {case['args']} on {isa}")
    report.figures["texts"] = len(cases)


def compare_texts(report: Report, oracle: oracles.TextOracle, model: proofinfer.Model, arguments: argparse.Namespace) -> None:
    """Greedy and sampled text of a program that was given, byte for byte."""
    with tempfile.NamedTemporaryFile() as file:
        tokenizer_path = report.row.tokenizer
        if tokenizer_path is None:
            file.write(made_up_tokenizer(model.vocab_size))
            file.flush()
            tokenizer_path = Path(file.name)
        with proofinfer.Tokenizer(tokenizer_path, model) as tokenizer:
            for sampling in ({"temperature": 0.0}, {"temperature": 1.0, "top_p": 0.9, "seed": 42}, {"temperature": 0.7, "top_p": 1.0, "seed": 7}):
                steps = min(len(report.case.tokens), 100)
                options = ["-t", str(sampling["temperature"]), "-p", str(sampling.get("top_p", 0.9)), "-s", str(sampling.get("seed", 1))]
                theirs = oracles.printed_text(oracle, report.case, tokenizer_path, [*options, "-n", str(steps)], arguments.places)
                ours = our_text(model, tokenizer, "auto", steps, "", sampling)
                report.demand(ours == theirs, f"{oracle.name}: other text with {sampling}")
    report.others[oracle.name] = 0.0


# --- one configuration, and all


def check(row: Configuration, arguments: argparse.Namespace) -> Report:
    path = write_files(row, arguments.work)
    shape, tensors = checkpoint.read_tensors(path)
    case = oracles.Case(path, shape, tensors, row.tokens, row.group_size)
    report = Report(row, case)
    if row.golden and "file_sha256" in row.golden:
        report.demand(hashlib.sha256(path.read_bytes()).hexdigest() == row.golden["file_sha256"], "the file made here is not the recorded one")
    truth = kept(arguments.cache, "truth", case, [HERE / "equations.py", HERE / "diff_test.py"], lambda: compute_truth(case))
    try:
        compare_engine(report, truth, arguments)
    except proofinfer.ProofinferError as problem:
        report.demand(False, f"the engine failed: {problem}")
    return report


def compare_engine(report: Report, truth: Truth, arguments: argparse.Namespace) -> None:
    row, case, path = report.row, report.case, report.case.path
    first: np.ndarray | None = None
    # Every kernel set on one thread, the best one on three.
    for threads, isas in ((1, arguments.isas), (3, arguments.isas[-1:])):
        with proofinfer.Model(path, threads=threads) as model:
            for isa in isas:
                for how, logits in zip(("at once", "in parts with rewinding"), engine_walks(model, row.tokens, isa)):
                    if first is None:
                        first = logits
                        report.compare_with_truth(logits, truth)
                        report.compare_with_golden(logits)
                    same = logits.tobytes() == first.tobytes()
                    report.demand(same, f"other bits on {isa}, {threads} threads, {how}: {largest_difference(logits, first):.3g} apart")
                if threads == 1:
                    golden_ids(report, model, isa)
                    golden_texts(report, model, isa)
            if threads == 1:
                for oracle in oracles.TEXT_ORACLES:
                    if oracle.name in arguments.oracles and oracle.quantized == bool(row.group_size):
                        compare_texts(report, oracle, model, arguments)
    for oracle in oracles.LOGITS_ORACLES:
        if oracle.name in arguments.oracles:
            sources = [HERE / name for name in ("oracles.py", "export_gguf.py", "llama_cpp.mjs", "llama_cpp_logits.mjs")]
            theirs = kept(arguments.cache, oracle.name, case, sources, lambda oracle=oracle: oracle.logits(case, arguments.places))
            report.demand(theirs.shape == first.shape, f"{oracle.name} gave {theirs.shape} instead of {first.shape} logits")
            report.compare_with_oracle(oracle, theirs, first, truth)


def header(names: list[str]) -> str:
    columns = ["configuration", "positions x logits", "max error", "PyTorch float32", "ratio", "bound", "top-1", "recorded", *names]
    return "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns)


def line(report: Report, names: list[str]) -> str:
    f = report.figures
    if "error" not in f:
        return f"| {report.label} | the engine failed |"
    recorded = {True: "equal", False: "OTHER", None: ""}[f.get("golden")]
    cells = [report.label, f"{f['positions']} x {f['vocab_size']}", f"{f['error']:.2g}", f"{f['pytorch_error']:.2g}", f"{f['ratio']:.2g}",
             f"{f['bound']:.2g}", f"{f['top1']}/{f['positions']}", recorded]
    cells += [("same text" if name in TEXT_NAMES else f"{report.others[name]:.2g}") if name in report.others else "" for name in names]
    return "| " + " | ".join(cells) + " |"


TEXT_NAMES = [oracle.name for oracle in oracles.TEXT_ORACLES]
ORACLE_NAMES = [oracle.name for oracle in oracles.LOGITS_ORACLES] + TEXT_NAMES


def named_path(text: str) -> tuple[str, Path]:
    name, path = text.split("=", 1)
    return name, Path(path)


def parse(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="libproofinfer.so.1")
    parser.add_argument("--oracles", default="", help=f"more oracles, with commas between: {','.join(ORACLE_NAMES)}")
    parser.add_argument("--node-folder", type=Path, help="where node-llama-cpp is installed")
    parser.add_argument("--llama2c", type=Path, help="a folder of llama2.c, run and runq built in it")
    parser.add_argument("--checkpoint", type=named_path, action="append", default=[], metavar="NAME=PATH", help="one more story model")
    parser.add_argument("--tokenizer", type=named_path, action="append", default=[], metavar="NAME=PATH", help="its tokenizer.bin")
    parser.add_argument("--only", default="", help="configurations, with commas between; q: before a name means its Q8_0 form")
    parser.add_argument("--cache", type=Path, help="a folder that keeps what the oracles computed")
    parser.add_argument("--without-golden", action="store_true", help="leave the recorded figures out: what the oracles alone notice")
    parser.add_argument("--stop-early", action="store_true", help="end at the first configuration with a problem")
    parser.add_argument("--json", type=Path, help="write all figures there")
    arguments = parser.parse_args(given)
    arguments.oracles = [name for name in arguments.oracles.split(",") if name]
    if unknown := [name for name in arguments.oracles if name not in ORACLE_NAMES]:
        parser.error(f"no such oracle: {', '.join(unknown)}")
    if lost := [name for name, _ in arguments.checkpoint if name not in dict(arguments.tokenizer)]:
        parser.error(f"--checkpoint {lost[0]} needs --tokenizer {lost[0]}=PATH")
    arguments.places = oracles.Places(arguments.node_folder, arguments.llama2c)
    return arguments


def selected(rows: list[Configuration], only: str) -> list[Configuration]:
    wanted = [name for name in only.split(",") if name]
    names = {("q:" if row.group_size else "") + row.name for row in rows}
    if unknown := set(wanted) - names:
        sys.exit(f"no such configuration: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    return [row for row in rows if not wanted or ("q:" if row.group_size else "") + row.name in wanted]


def main() -> int:
    arguments = parse()
    torch.set_num_threads(1)
    begin = time.monotonic()
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
    print(f"library: {proofinfer.load(arguments.library)}; {proofinfer.build()}")
    arguments.isas = [isa.name for isa in proofinfer.isas() if isa.available]
    print(f"kernel sets: {', '.join(arguments.isas)}; PyTorch {torch.__version__}; more oracles: {', '.join(arguments.oracles) or 'none'}")
    for name in ORACLE_NAMES:
        if name not in arguments.oracles:
            print(f"not asked for: {name}")
    if not arguments.checkpoint:
        print("not given: another story model (--checkpoint stories15M=PATH: 200 positions, as the model continues a story)")
    reports, skipped = [], 0
    with tempfile.TemporaryDirectory() as folder:
        arguments.work = Path(folder)
        print(header(arguments.oracles))
        for row in selected(configurations(arguments), arguments.only):
            if row.absent:
                print(row.absent)
                skipped += 1
                continue
            report = check(row, arguments)
            reports.append(report)
            print(line(report, arguments.oracles), flush=True)
            for problem in report.problems:
                print(f"FAILED {report.label}: {problem}", flush=True)
            if report.problems and arguments.stop_early:
                break
    if arguments.json:
        arguments.json.write_text(json.dumps([{"name": r.label, **r.figures, "others": r.others, "problems": r.problems} for r in reports], indent=1))
    failed = sum(bool(report.problems) for report in reports)
    print(f"{time.monotonic() - begin:.0f} s")
    print(f"{len(reports) - failed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not reports else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except oracles.Missing as problem:
        print(f"ERROR: an oracle that was asked for is missing: {problem}")
        sys.exit(2)
