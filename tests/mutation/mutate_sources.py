#!/usr/bin/env python3
"""Shows what the tests notice: mutants of the sources, each to be killed by one of the quick tests.

    tests/mutation/mutate_sources.py --count 340 --seed 1          # all: drawn mutants, then those written by hand
    tests/mutation/mutate_sources.py --sample 12 --seed 7          # so many of both together
    tests/mutation/mutate_sources.py --machine aarch64 --files kernels_neon --tests 'kernels|isas'    # cross-compiled, under qemu-user

Mutants come from PyPI's universalmutator (tried: 1.14.1), for every file of src/ that is of no one instruction set, drawn at random with the printed
seed, more of a longer file; and from by_hand.py, for the instruction sets and the interface. One that gives the same machine code as the unchanged
file is no mutant and is drawn again, as is one that does not compile; one written by hand must do both. What survives meets the same tests once more,
built with AddressSanitizer and UndefinedBehaviorSanitizer, as CI does. Results are kept in build/mutation/results: a run that was ended goes on where it
was. survivors.txt says for each known survivor why no test can kill it.
Exit code 0: every limit holds; 1: not; 2: something that must work does not; 3: not finished.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import by_hand
from bench_tree import ROOT, TEST_FOLDERS, TESTS, Bench, Broken, Outcome, digest_of

HERE = Path(__file__).resolve().parent
SURVIVORS = HERE / "survivors.txt"
ALL_PERCENT, FILE_PERCENT = 95.0, 90.0
# A dozen drawn mutants tell that the tests notice most of them, not how many.
SAMPLE_PERCENT = 75.0
# Of one instruction set, or tables and constants that another file includes.
BY_HAND_ONLY = re.compile(r"kernels_(sse2|avx2|avx512|avx512vnni|neon|neondot)\.cpp$|kernels_(q8_|blocks_)?body\.h$|elementary_(body|vector)\.h$|isa\.h$")
LEFT_OUT = re.compile(r"^src/cmake/|CMakeLists|\.txt$")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    before: str
    after: str
    text: str  # the whole file
    by_hand: bool = False

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.file}\0{self.text}".encode()).hexdigest()[:12]

    @property
    def key(self) -> tuple[str, int, str, str]:
        """The file, the number of the line among those of the same text, and the change."""
        lines = [line.strip() for line in self.text.splitlines()[: self.line - 1]]
        return self.file, lines.count(self.before.strip()) + 1, self.before.strip(), self.after.strip()

    def shown(self) -> str:
        return f"{self.file}:{self.line}: {self.before.strip()}  =>  {self.after.strip()}"


COMMENT = r'("(?:\\.|[^"\\])*")|(\'(?:\\.|[^\'\\])*\')|//[^\n]*|/\*.*?\*/'


def without_comments(text: str) -> str:
    """Code alone, in single blanks: mutants of comments and of annotations for the proof change nothing."""
    code = re.sub(COMMENT, lambda m: m[1] or m[2] or " ", text, flags=re.S)
    return re.sub(r"\s+", " ", code)


def can_compile(line: str, changed: str) -> bool:
    """Whether it may: binary operators have blanks around them; pointers, references, templates and arrows have not."""
    at = next((i for i, (a, b) in enumerate(zip(line, changed)) if a != b), None)
    if at is not None and line[at].isdigit() and (line[at - 1].isalnum() or line[at - 1] == "_"):
        return False  # of a name
    if at is None or line[at] not in "*&<>/+-%" or changed[at : at + 2] in ("++", "--") or re.match(r"-\d", line[at:]):
        return True
    begin, end = at, at
    while line[begin - 1] in "*&<>/+-%=":
        begin -= 1
    while line[end] in "*&<>/+-%=":
        end += 1
    return line[begin - 1] == " " and line[end] == " "


def open_blocks(lines: list[str]) -> list[str]:
    """The beginnings of the blocks that are open behind these lines."""
    blocks: list[str] = []
    for line in lines:
        code = without_comments(line)
        for at, character in enumerate(code):
            if character == "{":
                blocks.append(code[:at])
            elif character == "}" and blocks:
                blocks.pop()
    return blocks


def cannot_compile(mutant: Mutant) -> bool:
    """Whether it certainly does not, told without the compiler."""
    changed = mutant.after.strip().splitlines()
    if changed[-1].strip() in ("break;", "continue;"):
        leaves = r"\b(for|while)\b|^\s*do\b" + r"|\bswitch\b" * (changed[-1].strip() == "break;")
        return not any(re.search(leaves, block) for block in open_blocks(mutant.text.splitlines()[: mutant.line]))
    if mutant.after.strip().startswith("/*"):
        return re.search(r"[{},:(&|]$|^(template|class|struct|namespace|extern)\b", without_comments(mutant.before).strip()) is not None
    if any(mutant.before.count(a) - mutant.before.count(b) != mutant.after.count(a) - mutant.after.count(b) for a, b in ("()", "{}", "[]")):
        return True
    wrong = r"[<>]=[\w(]|[<>]==|\bbegin\b"
    return re.search(wrong, mutant.after) is not None and re.search(wrong, mutant.before) is None


def generate(file: str, text: str, kept: Path) -> list[Mutant]:
    """All mutants of a file that change its code; `kept` has them from an earlier call."""
    lines = text.splitlines(keepends=True)
    found = kept / f"{hashlib.sha256(f'{file} {text}'.encode()).hexdigest()[:16]}.json"
    if not found.exists():
        found.parent.mkdir(exist_ok=True)
        found.write_text(json.dumps(all_edits(lines)))
    blank = re.sub(COMMENT, lambda m: m[1] or m[2] or re.sub(r"[^\n]", " ", m[0]), text, flags=re.S).splitlines()
    mutants, seen = [], set()
    for number, changed in json.loads(found.read_text()):
        line = lines[number - 1]
        code = number, without_comments(changed).strip()
        if blank[number - 1].strip() and code[1] != without_comments(line).strip() and code not in seen and can_compile(line, changed):
            seen.add(code)
            whole = "".join(lines[: number - 1]) + changed + "".join(lines[number:])
            mutants.append(Mutant(file, number, line, changed, whole))
    return mutants


def all_edits(lines: list[str]) -> list[tuple[int, str]]:
    """universalmutator's: the number of a line and what to put there."""
    from universalmutator import mutator

    mutator.print = lambda *_, **__: None  # it tells what it does
    rules = ["universal.rules", "c_like.rules", "cpp.rules"]
    found = mutator.mutants_regexp(lines, ruleFiles=rules, ignorePatterns=[r"static_assert", r"^\s*#"], ignoreStringOnly=True)
    return [(number, changed) for number, changed, *_ in found]


class OutOfTime(Exception):
    """The time that was given is over."""


class Study:
    """Mutants and what became of them."""

    def __init__(self, folder: Path, seed: int, jobs: int, build: Path | None, tests: str, machine: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed, self.jobs = folder, seed, jobs
        self.bench = Bench(folder, jobs, build, tests, machine=machine)
        self.sanitized: Bench | None = None
        self.sanitized_lock = threading.Lock()
        self.results_folder = folder / "results"
        self.results_folder.mkdir(exist_ok=True)
        self.sources = digest_of(self.bench.tree, "src", "include")
        self.tests = digest_of(self.bench.tree, *TEST_FOLDERS)
        shared = digest_of(self.bench.tree, "tests/support", "tests/data")
        self.test_digests = {test.name: f"{shared} {test.digest(self.bench.tree)}" for test in TESTS}
        self.killers: dict[str, Counter[str]] = defaultdict(Counter)
        self.lock = threading.Lock()
        self.deadline, self.patience, self.finished, self.sanitize = float("inf"), float("inf"), True, True
        self.survivors = read_survivors()
        self.wanted = re.compile("")

    def result(self, mutant: Mutant) -> Outcome:
        """What became of it: from an earlier run on the same sources (and, of a survivor without a reason, the same tests), or now."""
        file = self.results_folder / f"{mutant.id}.json"
        passed: list[str] = []
        if file.exists() and (kept := json.loads(file.read_text()))["sources"] == self.sources:
            outcome = Outcome(**kept["outcome"])
            lives = outcome.verdict == "survived" and mutant.key not in self.survivors or outcome.verdict == "waits"
            waits = outcome.verdict == "waits" and self.patience == float("inf")
            if lives and (kept["tests"] != self.tests or self.sanitize and not kept.get("sanitized")) or waits:
                passed = [name for name, digest in kept["passed"].items() if digest == self.test_digests.get(name)]
            else:
                self.finished = self.finished and outcome.verdict != "waits"
                with self.lock:
                    self.killers[mutant.file][outcome.by] += 1
                return outcome
        if time.monotonic() > self.deadline:
            self.finished = False
            raise OutOfTime
        with self.lock:
            first = [name for name, _ in self.killers[mutant.file].most_common() if name]
        worker = Path("workers") / threading.current_thread().name
        outcome = self.bench.judge(mutant.file, mutant.text, self.folder / worker, first, passed, self.patience)
        if outcome.verdict == "survived" and mutant.key not in self.survivors and self.sanitize:
            outcome = self.judge_sanitized(mutant, worker, outcome)
        if outcome.verdict == "waits":
            self.finished = False
        with self.lock:
            self.killers[mutant.file][outcome.by] += 1
        file.write_text(json.dumps({"sources": self.sources, "tests": self.tests, "sanitized": self.sanitize, "mutant": {**asdict(mutant), "text": ""},
                                    "outcome": asdict(outcome), "passed": {name: self.test_digests[name] for name in outcome.tests_run}}, indent=1))
        return outcome

    def judge_sanitized(self, mutant: Mutant, worker: Path, survived: Outcome) -> Outcome:
        """Whether the sanitizers stop what no test has told."""
        with self.sanitized_lock:
            if self.sanitized is None:
                self.sanitized = Bench(self.folder / "sanitized", self.jobs, sanitized=True)
        outcome = self.sanitized.judge(mutant.file, mutant.text, self.folder / "sanitized" / worker, [], [], float("inf"))
        if outcome.verdict not in ("killed", "time-out"):
            return survived
        return replace(survived, verdict=outcome.verdict, by=f"{outcome.by} (sanitized)", golden_only=outcome.golden_only)

    def files(self) -> list[str]:
        """The sources that mutants are drawn from."""
        tree = self.bench.tree
        names = sorted(str(p.relative_to(tree)) for p in (tree / "src").rglob("*") if p.suffix in (".c", ".cpp", ".h"))
        usable = [n for n in names if not LEFT_OUT.search(n) and not BY_HAND_ONLY.search(n)]
        built = [n for n in usable if n in self.bench.compiles or n in self.bench.includers]
        # A header without a `return` has declarations alone.
        return [n for n in built if not n.endswith(".h") or "return" in without_comments((tree / n).read_text())]

    def shares(self, count: int) -> dict[str, int]:
        """How many mutants of each file: by lines of code, three at least."""
        sizes = {name: len(without_comments((self.bench.tree / name).read_text())) for name in self.files()}
        total = sum(sizes.values())
        return {name: max(3, round(count * size / total)) for name, size in sizes.items() if self.wanted.search(name)}

    def draw_from(self, file: str, count: int) -> list[tuple[Mutant, Outcome]]:
        """`count` mutants of a file that compile, in the seed's order; fewer where there are no more."""
        mutants = generate(file, (self.bench.tree / file).read_text(), self.folder / "edits")
        random.Random(f"{self.seed} {file}").shuffle(mutants)
        found: list[tuple[Mutant, Outcome]] = []
        for mutant in mutants:
            if len(found) == count:
                break
            if cannot_compile(mutant):
                continue
            try:
                outcome = self.result(mutant)
            except OutOfTime:
                break
            if outcome.verdict not in ("not compiled", "same code"):
                found.append((mutant, outcome))
                self.tell(mutant, outcome)
        return found

    def runs_here(self, file: str) -> bool:
        """Whether this CPU has the file's instruction set; under qemu-user it has all."""
        isa = re.search(r"/kernels_(avx2|avx512|avx512vnni)\.cpp$", file)
        flag = {"avx2": "avx2", "avx512": "avx512f", "avx512vnni": "avx512_vnni"}[isa[1]] if isa else ""
        return not flag or bool(self.bench.machine) or re.search(rf"^flags\b.*\b{flag}\b", Path("/proc/cpuinfo").read_text(), re.M) is not None

    def by_hand(self) -> list[Mutant]:
        rows = [row for row in by_hand.MUTANTS if self.wanted.search(row[0])]
        absent = sorted({row[0] for row in rows if not self.runs_here(row[0])})
        if absent:
            print(f"not judged, for this CPU has not their instruction sets: {', '.join(absent)}")
        rows = [row for row in rows if row[0] not in absent]
        return [planted(self.bench.tree, *row) for row in rows if row[0] in self.bench.compiles or self.bench.includers.get(row[0])]

    def judge_by_hand(self, mutant: Mutant) -> list[tuple[Mutant, Outcome]]:
        try:
            outcome = self.result(mutant)
        except OutOfTime:
            return []
        if outcome.verdict in ("not compiled", "same code"):
            raise Broken(f"written by hand, but {outcome.verdict}: {mutant.shown()} {outcome.by}")
        self.tell(mutant, outcome)
        return [(mutant, outcome)]

    def tell(self, mutant: Mutant, outcome: Outcome) -> None:
        by = f" by {outcome.by}" if outcome.by else ""
        print(f"{outcome.verdict}{by} ({outcome.seconds:.0f} s) {mutant.id} {mutant.shown()}", flush=True)


def planted(tree: Path, file: str, old: str, new: str) -> Mutant:
    text = (tree / file).read_text()
    if text.count(old) != 1:
        raise Broken(f"{file} has the text to change {text.count(old)} times: {old}")
    line = text[: text.index(old)].count("\n") + 1
    return Mutant(file, line, old, new, text.replace(old, new), by_hand=True)


def read_survivors() -> dict[tuple[str, int, str, str], str]:
    """Keys of mutants -> why nothing can tell them apart. Blocks of a file's name and lines that begin with -, + and =."""
    found = {}
    text = "\n".join(line for line in SURVIVORS.read_text().splitlines() if not line.startswith("#"))
    for block in filter(None, (block.strip() for block in text.split("\n\n"))):
        first, before, *after, reason = block.splitlines()
        file, _, number = first.partition(" #")
        if before[:2] != "- " or after[0][:2] != "+ " or reason[:2] != "= " or not (ROOT / file).is_file():
            raise Broken(f"{SURVIVORS.name}: not a file's name, -, + and = lines: {block}")
        if (file, int(number or 1), before[2:], "\n".join(after)[2:]) in found:
            raise Broken(f"{SURVIVORS.name} has this twice: {block}")
        found[file, int(number or 1), before[2:], "\n".join(after)[2:]] = reason[2:]
    return found


def percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


def report(study: Study, results: list[tuple[Mutant, Outcome]], sample: bool) -> int:
    """The table, the survivors without a reason, and whether the limits hold."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    unexplained = []
    for mutant, outcome in results:
        if outcome.verdict == "waits":
            continue
        row = rows[mutant.file]
        row["all"] += 1
        if outcome.verdict == "survived" and mutant.key in study.survivors:
            row["equivalent"] += 1
            continue
        row[outcome.verdict] += 1
        row["golden only"] += outcome.golden_only
        if outcome.verdict == "survived":
            unexplained.append(mutant)
    print("\n| file | mutants | equivalent | killed | time-outs | survived | score | without recorded figures |\n|---|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    bad = []
    for name, row in [*sorted(rows.items()), ("all", total)]:
        if name != "all":
            total.update(row)
        real = row["all"] - row["equivalent"]
        score = percent(row["killed"] + row["time-out"], real)
        second = percent(row["killed"] + row["time-out"] - row["golden only"], real)
        if score < (SAMPLE_PERCENT if sample else ALL_PERCENT) if name == "all" else score < FILE_PERCENT and not sample:
            bad.append(f"{name}: {score:.1f} %")
        print(f"| {name} | {row['all']} | {row['equivalent']} | {row['killed']} | {row['time-out']} | {row['survived']} | {score:.1f} % | {second:.1f} % |")
    for mutant in unexplained:
        print(f"SURVIVED, without a reason in {SURVIVORS.name}: {mutant.id} {mutant.shown()}")
    print(f"killed by: {', '.join(f'{k} {v}' for k, v in Counter(o.by for _, o in results if o.by).most_common())}")
    if bad:
        print(f"below the limits ({SAMPLE_PERCENT:g} % of a sample; {ALL_PERCENT:g} % of all, {FILE_PERCENT:g} % of each file): {'; '.join(bad)}")
    print(f"{len(results) - len(unexplained)} passed, {len(unexplained) if bad else 0} failed, 0 skipped")
    return 1 if bad or not results else 0


def run(arguments: argparse.Namespace) -> int:
    folder = arguments.folder.resolve() / arguments.machine
    study = Study(folder, arguments.seed, arguments.jobs, arguments.use_build, arguments.tests, arguments.machine)
    begin = time.monotonic()
    study.deadline, study.patience = begin + arguments.seconds, arguments.patience
    study.wanted = re.compile(arguments.files)
    # A sample's limit does without what takes minutes to build.
    study.sanitize = not arguments.sample and not arguments.machine
    print(f"seed {arguments.seed}; {len(study.bench.tests)} of {len(TESTS)} test programs; sources {study.sources}, tests {study.tests}", flush=True)
    results: list[tuple[Mutant, Outcome]] = []
    with ThreadPoolExecutor(arguments.jobs, thread_name_prefix=f"worker{arguments.seed}") as pool:
        if arguments.sample:
            chosen = random.Random(arguments.seed)
            # Those that one object is made of: a file that every instruction set includes takes minutes; nor of the program, whose tests take seconds each.
            cheap = {name for name in study.bench.compiles if not study.bench.includers.get(name) and not name.startswith("src/cli/")}
            files = chosen.choices([name for name in study.files() if name in cheap], k=(arguments.sample + 1) // 2)
            by_hand_ones = chosen.sample([m for m in study.by_hand() if m.file in cheap], arguments.sample // 2)
            waiting = [pool.submit(study.draw_from, name, count) for name, count in Counter(files).items()]
            waiting += [pool.submit(study.judge_by_hand, m) for m in by_hand_ones]
        else:
            waiting = [pool.submit(study.judge_by_hand, m) for m in study.by_hand()]
            waiting += [pool.submit(study.draw_from, name, count) for name, count in study.shares(arguments.count).items()]
        for one in waiting:
            results += one.result()
    missing = arguments.sample and len(results) < arguments.sample
    waiting_count = sum(outcome.verdict == "waits" for _, outcome in results)
    print(f"{len(results) - waiting_count} judged in {time.monotonic() - begin:.0f} s, {waiting_count} begun")
    code = report(study, results, sample=bool(arguments.sample))
    if not study.finished:
        print("not finished: the time that was given is over, or a mutant's")
        return 3
    return 2 if missing else code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=340, help="mutants to draw (a file has three at least)")
    parser.add_argument("--sample", type=int, default=0, help="only so many, half of them written by hand, of files that one object is made of")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", default="", help="only files whose names this regular expression finds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long; the next run goes on from there")
    parser.add_argument("--tests", default="", help="only test programs whose names this finds; what they do not kill is left to a run without this")
    parser.add_argument("--patience", type=float, default=float("inf"), help="leave a mutant that lives longer to a run without this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--machine", default="", help="judge on another machine: aarch64, riscv64 or s390x, cross-compiled, under qemu-user")
    parser.add_argument("--use-build", type=Path, help="a build of this tree with tests to use, instead of one made for this with -O1")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    try:
        return run(parser.parse_args())
    except Broken as problem:
        print(f"ERROR: {problem}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
