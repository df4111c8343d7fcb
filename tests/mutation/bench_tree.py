"""A build of the tests in which one source file at a time is exchanged for a mutant: one object (or, of a header, those that include it) is compiled,
each test program is linked with it in front of the library, and run until one fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL_FIGURES = "All/Golden.*/f32_head_size_2:All/Golden.*/q80_gs16"


@dataclass(frozen=True)
class Test:
    """A test program. golden: it compares with recorded figures. files: the mutants that it is run on, where it is slow and asks others nothing."""

    target: str
    arguments: tuple[str, ...] = ()
    golden: bool = False
    files: str = ""
    environment: tuple[tuple[str, str], ...] = ()


# From fast to slow; those with recorded figures come last, so that what is left for them alone to kill is known.
TESTS = (
    Test("unit_sampling"),
    Test("unit_api_names"),
    Test("unit_api_arguments"),
    Test("unit_options"),
    Test("unit_generation"),
    Test("unit_stream"),
    Test("unit_tokenizer_bin"),
    Test("unit_fp_environment"),
    Test("unit_checkpoint_faults"),
    Test("unit_must_still_load"),
    Test("unit_exhaustive_headers"),
    Test("differential_isas", environment=(("PROOFINFER_PROPERTY_COUNT", "20"), ("PROOFINFER_PROPERTY_SEED", "1"))),
    Test("fault_paths"),
    Test("fault_injection"),
    Test("unit_stack"),
    Test("unit_tokenizer"),
    Test("unit_life_cycle"),
    Test("unit_sampler", files="sampl|options"),
    Test("unit_kernels", files="src/(kernels|proved)/"),
    Test("unit_elementary", files="src/kernels/|elementary"),
    Test("conformance_golden_sampler", golden=True),
    Test("conformance_golden_tokenizer", golden=True),
    Test("conformance_convert", golden=True),
    Test("conformance_golden_logits", (f"--gtest_filter={SMALL_FIGURES}",), golden=True),
)


class Broken(Exception):
    """What must work does not: the unchanged tree, or a tool."""


def run(command: list[str], cwd: Path, seconds: float | None = None, environment: dict[str, str] | None = None) -> tuple[str, str]:
    """("ok", "failed" or "time-out", what it printed). seconds: of CPU; six times as much by the clock and a minute, for deadlocks."""

    def limit() -> None:
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
        # A mutant's wild allocation must not take the machine.
        resource.setrlimit(resource.RLIMIT_AS, (64 << 30, 64 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})},
        preexec_fn=limit, start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=None if seconds is None else 60 + 6 * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        return "time-out", output.decode(errors="replace")
    text = output.decode(errors="replace")
    if process.returncode in (-9, -24):  # SIGKILL and SIGXCPU: the limit of CPU time
        return "time-out", text
    return ("ok" if process.returncode == 0 else "failed"), text


SOURCE_SUFFIXES = (".c", ".cpp", ".h", ".json")


def digest_of(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        for file in sorted(p for p in path.rglob("*") if p.suffix in SOURCE_SUFFIXES) if path.is_dir() else [path]:
            found.update(str(file).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


@dataclass
class Outcome:
    verdict: str  # killed, time-out, survived, not compiled, same code
    by: str = ""
    golden_only: bool = False
    tests_run: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Bench:
    """The tree, copied and built once, and what is needed to build a mutant of it."""

    def __init__(self, folder: Path, jobs: int, build: Path | None = None) -> None:
        """build: a build folder of this very tree to use; without it a copy is built with -O1."""
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.lock = threading.Lock()
        if build is not None:
            self.tree, self.build = ROOT, build.resolve()
        else:
            if not self.tree.exists():
                self._copy()
            self._configure()
        targets = [test.target for test in TESTS]
        self._must_work(["cmake", "--build", str(self.build), "-j", str(jobs), "--target", *targets])
        self._read_commands()
        self.built = hashlib.sha256(f"{self.build}\0{digest_of(self.tree / 'src', self.tree / 'tests')}".encode()).hexdigest()[:12]

    def _copy(self) -> None:
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        partial = self.folder / "tree.partial"
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, partial / name)
        partial.rename(self.tree)

    def _configure(self) -> None:
        flags = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DPROOFINFER_BUILD_TESTS=ON"]
        models = Path(os.environ.get("PROOFINFER_MODELS", ROOT.parent / "shared" / "models"))
        flags.append(f"-DPROOFINFER_DEFAULT_MODELS={models}")
        self._must_work(["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja", *flags])

    def _must_work(self, command: list[str]) -> None:
        verdict, output = run(command, self.folder)
        if verdict != "ok":
            raise Broken(output[-3000:])

    def _read_commands(self) -> None:
        self.compiles: dict[str, list[str]] = {}
        source_folder = str(self.tree / "src") + "/"
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            if words[-1].startswith(source_folder) and "/cli/" not in words[-1]:
                # Warnings of mutants are of no interest; -O3 takes long and tells the tests nothing more.
                words = [word for word in words if not word.startswith("-W")]
                self.compiles[words[-1][len(str(self.tree)) + 1 :]] = ["-O1" if word in ("-O2", "-O3") else word for word in words]
        self.links: dict[str, list[str]] = {}
        for test in TESTS:
            done = subprocess.run(["ninja", "-t", "commands", test.target], cwd=self.build, capture_output=True, check=True)
            line = done.stdout.decode().splitlines()[-1]
            words = shlex.split(line.split("&&")[1])
            if words.count("src/libproofinfer.a") < 1 or "-o" not in words:
                raise Broken(f"{test.target} is not linked with the static library: {line}")
            self.links[test.target] = words
        deps = subprocess.run(["ninja", "-t", "deps"], cwd=self.build, capture_output=True, check=True).stdout.decode()
        self.includers: dict[str, list[str]] = {}
        source = ""
        for text in deps.splitlines():
            name = text.strip()
            if text.startswith("src/CMakeFiles/"):
                source = ""
            elif name.startswith(source_folder):
                name = name[len(str(self.tree)) + 1 :]
                if not source:
                    source = name  # the first dependency is the source itself
                elif source in self.compiles:
                    self.includers.setdefault(name, []).append(source)
            elif text and not text.startswith(" "):
                source = "another"

    def _base_seconds(self, test: Test) -> float:
        """CPU seconds of the unchanged test, which must pass: the base of the time limit."""
        with self.lock:
            file = self.folder / "base_seconds" / self.built / test.target
            if file.exists():
                return float(file.read_text())
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            verdict, output = self._run_test(test, Path(self.links[test.target][self.links[test.target].index("-o") + 1]), 300)
            if verdict != "ok" or "[  PASSED  ]" not in output:
                raise Broken(f"{test.target} fails on the unchanged sources:\n{output[-3000:]}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            # Other threads' children may be in it: a limit too high is no harm.
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{seconds:.3f}")
            return seconds

    def _run_test(self, test: Test, program: Path, seconds: float) -> tuple[str, str]:
        environment = {"GTEST_FAIL_FAST": "1", "PROOFINFER_QUICK_FIGURES": "1", **dict(test.environment)}
        return run([str(self.build / program), *test.arguments], self.build, seconds, environment)

    # --- mutants

    def _compile(self, file: str, text: str, worker: Path) -> list[Path] | None:
        """The objects that the mutant changes; None: one does not compile."""
        overlay = worker / "overlay"
        shutil.rmtree(overlay, ignore_errors=True)
        (overlay / file).parent.mkdir(parents=True)
        (overlay / file).write_text(text)
        objects = []
        for number, source in enumerate([file] * (file in self.compiles) + self.includers.get(file, [])):
            words = list(self.compiles[source])
            out = worker / f"{number}.o"
            words[words.index("-o") + 1] = str(out)
            if source == file:
                words[-1] = str(overlay / file)
            words[1:1] = [f"-I{overlay / 'src'}"]
            verdict, _ = run(words, self.build, 120)
            if verdict != "ok":
                return None
            objects.append(out)
        if not objects:
            raise Broken(f"no object is made of {file}")
        return objects

    def _base_objects(self, file: str, worker: Path) -> list[bytes]:
        """The unchanged objects, compiled in the same way, so that machine code can be compared."""
        kept = self.folder / "base" / self.built / hashlib.sha256(file.encode()).hexdigest()[:16]
        if not kept.exists():
            objects = self._compile(file, (self.tree / file).read_text(), worker)
            if objects is None:
                raise Broken(f"{file} does not compile unchanged")
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.mkdir(parents=True)
            for path in objects:
                self._strip(path)
                shutil.copy(path, partial / path.name)
            if not kept.exists():
                partial.rename(kept)
        return [path.read_bytes() for path in sorted(kept.iterdir(), key=lambda p: int(p.stem))]

    @staticmethod
    def _strip(path: Path) -> None:
        """Without line numbers and file names."""
        subprocess.run(["objcopy", "--strip-debug", "--remove-section=.comment", str(path)], check=True)

    def judge(self, file: str, text: str, worker: Path, first: list[str]) -> Outcome:
        """Builds the mutant and runs the tests, those named in `first` before the others of their kind, until one fails."""
        begin = time.monotonic()
        worker.mkdir(parents=True, exist_ok=True)
        base = self._base_objects(file, worker)
        objects = self._compile(file, text, worker)
        if objects is None:
            return Outcome("not compiled")
        for path in objects:
            self._strip(path)
        changed = [path for path, bytes_before in zip(objects, base, strict=True) if path.read_bytes() != bytes_before]
        if not changed:
            return Outcome("same code")
        outcome = Outcome("survived")
        order = sorted((t for t in TESTS if re.search(t.files, file)), key=lambda t: (t.golden, first.index(t.target) if t.target in first else len(first)))
        for test in order:
            words = list(self.links[test.target])
            program = worker / "program"
            words[words.index("-o") + 1] = str(program)
            at = words.index("src/libproofinfer.a")
            words[at:at] = [str(path) for path in changed]
            verdict, output = run(words, self.build, 120)
            if verdict != "ok":
                return Outcome("not compiled", by=output[-300:])
            verdict, output = self._run_test(test, program, max(4.0, 5 * self._base_seconds(test)))
            outcome.tests_run.append(test.target)
            if verdict == "ok" and "[  PASSED  ]" not in output:
                verdict = "failed"  # it ended well without having run its tests
            if verdict != "ok":
                outcome.verdict = "killed" if verdict == "failed" else "time-out"
                outcome.by, outcome.golden_only = test.target, test.golden
                break
        outcome.seconds = time.monotonic() - begin
        return outcome
