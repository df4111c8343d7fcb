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
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("PROOFINFER_MODELS") or ROOT.parent / "shared" / "models")
SMALL_FIGURES = "All/Golden.*/f32_head_size_2:All/Golden.*/q80_gs16"


@dataclass(frozen=True)
class Test:
    """A test program. golden: it compares with recorded figures. files: the mutants that it is run on, where it is slow and asks others nothing."""

    target: str
    arguments: tuple[str, ...] = ()
    golden: bool = False
    files: str = "^src/(?!cli/)"
    environment: tuple[tuple[str, str], ...] = ()
    script: str = ""  # of Python, which runs the program
    each_isa: bool = False  # its cases are named for instruction sets

    @property
    def name(self) -> str:
        return f"{Path(self.script).stem}_{self.arguments[-1].lower()}" if self.script else self.target

    def digest(self, tree: Path) -> str:
        """Of its own source; of a script, with what lies beside it."""
        kind, _, subject = self.target.partition("_")
        sources = sorted((tree / self.script).parent.glob("*.py")) if self.script else [tree / f"tests/{kind}/test_{subject}.cpp"]
        return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]

    def ran(self, output: str) -> bool:
        """Whether what a passed test printed shows that it has run its cases."""
        return re.search(r"^Ran [1-9]\d* tests?[^\0]*^OK$" if self.script else r"^\[  PASSED  \] [1-9]", output, re.M) is not None


def drawn(count: int) -> tuple[tuple[str, str], ...]:
    """Fewer drawn cases than usual, and always the same."""
    return ("PROOFINFER_PROPERTY_COUNT", str(count)), ("PROOFINFER_PROPERTY_SEED", "1")


CLI_SCRIPT = "tests/cli/test_cli.py"


def of_the_program(golden: bool) -> list[Test]:
    """The classes of the script that compare with recorded figures, or the others, each by itself: a mutant meets first those that are named like its file.
    Without the one that needs a model of 100 MB."""
    classes = [name for name in re.findall(r"^class (\w+)\(Case", (ROOT / CLI_SCRIPT).read_text(), re.M) if name != "RealTalk"]
    return [Test("proofinfer_program", ("-f", name), golden, "^src/cli/", script=CLI_SCRIPT) for name in classes if (name == "Golden") == golden]


# From fast to slow; those with recorded figures come last, so that what is left for them alone to kill is known.
TESTS = (
    Test("unit_sampling"),
    Test("unit_failure"),
    Test("unit_checked", files="proved/"),
    Test("unit_checksum"),
    Test("unit_api_names"),
    Test("unit_api_arguments"),
    Test("unit_logits"),
    Test("unit_options"),
    Test("unit_state"),
    Test("unit_generation"),
    Test("unit_stream"),
    Test("unit_tokenizer_bin"),
    Test("unit_piece_table", files="piece_table|tokenizer|vocabulary"),
    Test("unit_clone"),
    Test("unit_stop_strings"),
    Test("unit_fp_environment"),
    Test("unit_checkpoint_faults"),
    Test("unit_exhaustive_headers"),
    Test("unit_generation_stops"),
    Test("unit_must_still_load"),
    Test("unit_sampler_limits"),
    Test("fault_paths"),
    Test("differential_session_trees", environment=drawn(300)),
    Test("differential_isas", environment=drawn(20)),
    Test("unit_scheduler", files="src/(base|api|model)/"),
    Test("differential_scheduler", files="scheduler|batch", environment=(("PROOFINFER_SCHEDULER_ROUNDS", "1"),)),
    Test("unit_chat"),
    Test("unit_gguf", files="src/(base|format)/|api/(model|tokenizer)|weights"),
    Test("unit_gguf_model"),
    Test("unit_tokenizer_gguf", files="src/(base|format)/|tokenizer|unicode"),
    Test("unit_tokenizer_words", files="tokenizer|unicode"),
    Test("unit_stack"),
    Test("unit_tokenizer", files="src/(base|format|proved)/|tokenizer|api/(boundary|errors|model)|model/settings"),
    Test("unit_life_cycle"),
    Test("unit_packed", files="src/(base|format|proved)/|packed|weights|kernels/[a-l]|model/(model|settings)|api/(model|options)"),
    Test("fault_injection"),
    Test("unit_sampler_chain", files="sampl|options|penalt|ranking|logits"),
    Test("unit_sampler", files="sampl|options"),
    Test("unit_block_kernels", files="src/(kernels|proved)/", environment=(("PROOFINFER_KERNEL_CASES", "500"),), each_isa=True),
    Test("unit_kernels", files="src/(kernels|proved)/", environment=(("PROOFINFER_KERNEL_CASES", "500"),), each_isa=True),
    Test("unit_score", files="score|logits|kv_cache|proved/sampling"),
    Test("unit_elementary", files="elementary|kernels_(sse2|avx|scalar)", each_isa=True),
    *of_the_program(golden=False),
    Test("conformance_golden_chat", files="chat", golden=True),
    Test("conformance_golden_sampler", golden=True),
    Test("conformance_golden_tokenizer", golden=True),
    Test("conformance_convert", golden=True),
    *of_the_program(golden=True),
    Test("conformance_golden_logits", (f"--gtest_filter={SMALL_FIGURES}",), golden=True),
)


class Broken(Exception):
    """What must work does not: the unchanged tree, or a tool."""


def asleep(session: int) -> bool:
    """Whether all threads of a session's processes wait for something; one that is stopped or has no core to run on does not."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(status.read_text().rsplit(")", 1)[1].split()[3]) == session:
                for thread in status.parent.glob("task/*/stat"):
                    if thread.read_text().rsplit(")", 1)[1].split()[0] in "RTD":
                        return False
        except OSError:
            continue  # it has ended
    return True


def run(
    command: list[str], cwd: Path, seconds: float | None = None, environment: dict[str, str] | None = None, addresses: int = 64 << 30
) -> tuple[str, str]:
    """("ok", "failed" or "time-out", what it printed). seconds: of CPU; deadlocks end when as many seconds and 20 more have gone by in sleep.
    addresses: bytes that the process may map, so that a mutant's wild allocation does not take the machine; 0: any."""

    def limit() -> None:
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
        if addresses:
            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell runs in the background

    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})},
        preexec_fn=limit, start_new_session=True,
    )
    began = time.monotonic()
    while True:
        try:
            output, _ = process.communicate(timeout=5)
            break
        except subprocess.TimeoutExpired:
            if seconds is not None and time.monotonic() - began > 20 + seconds and asleep(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                return "time-out", output.decode(errors="replace")
    text = output.decode(errors="replace")
    if process.returncode in (-9, -24):  # SIGKILL and SIGXCPU: the limit of CPU time
        return "time-out", text
    return ("ok" if process.returncode == 0 else "failed"), text


TEST_FOLDERS = tuple(f"tests/{name}" for name in ("unit", "conformance", "differential", "fault", "support", "data", "cli"))
SOURCE_SUFFIXES = (".c", ".cpp", ".h", ".json", ".py", ".txt")


def digest_of(tree: Path, *folders: str) -> str:
    found = hashlib.sha256()
    for folder in folders:
        for file in sorted(p for p in (tree / folder).rglob("*") if p.suffix in SOURCE_SUFFIXES):
            found.update(str(file.relative_to(tree)).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


@dataclass
class Outcome:
    verdict: str  # killed, time-out, survived, not compiled, same code; waits: not all tests were run
    by: str = ""
    golden_only: bool = False
    tests_run: list[str] = field(default_factory=list)
    seconds: float = 0.0


UNOPTIMISED = re.compile(r"/kernels_(sse2|avx|neon)")


def sanitizer_preset(kind: str, what: str) -> dict[str, str]:
    """A part of the preset that CI's tests with AddressSanitizer and UndefinedBehaviorSanitizer are built or run with."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())[f"{kind}Presets"]
    return next(preset for preset in presets if preset["name"] == "asan-ubsan")[what]


class Bench:
    """The tree, copied and built once, and what is needed to build a mutant of it."""

    def __init__(self, folder: Path, jobs: int, build: Path | None = None, tests: str = "", sanitized: bool = False, machine: str = "") -> None:
        """build: a build folder of this very tree to use; without it a copy, brought up to date, is built with -O1. tests: those with such names alone.
        sanitized: built with AddressSanitizer and UndefinedBehaviorSanitizer. machine: cross-compiled for it and run under qemu-user."""
        self.machine, self.runner = machine, [f"qemu-{machine}", "-L", f"/usr/{machine}-linux-gnu"] if machine else []
        self.binutils = f"{machine}-linux-gnu-" if machine else ""
        self.tests, self.sanitized = [test for test in TESTS if re.search(tests, test.name)], sanitized
        if sanitized:  # which makes frames larger: those tests skip themselves
            self.tests = [test for test in self.tests if test.target != "unit_stack"]
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.lock = threading.Lock()
        if build is not None:
            self.tree, self.build = ROOT, build.resolve()
        else:
            self._copy()
            self._configure()
        targets = sorted({test.target for test in self.tests})
        self._must_work(["cmake", "--build", str(self.build), "-j", str(jobs), "--target", *targets])
        self._read_commands()
        self.built = hashlib.sha256(f"{self.build}\0{digest_of(self.tree, 'src', 'include')}".encode()).hexdigest()[:12]

    def _copy(self) -> None:
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        wanted = {name for name in names if name and (ROOT / name).is_file()}
        for path in [p for p in self.tree.rglob("*") if p.is_file()]:
            if str(path.relative_to(self.tree)) not in wanted:
                path.unlink()
        for name in wanted:
            source, copy = ROOT / name, self.tree / name
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)

    def _configure(self) -> None:
        flags = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DPROOFINFER_BUILD_TESTS=ON"]
        if self.sanitized:
            flags += [f"-D{name}={value}" for name, value in sanitizer_preset("configure", "cacheVariables").items() if name != "CMAKE_BUILD_TYPE"]
        if self.machine:
            flags += [f"-DCMAKE_TOOLCHAIN_FILE={self.tree}/tests/tools/cross/{self.machine}.cmake", "-DPROOFINFER_BUILD_PROGRAM=OFF"]
        elif shutil.which("ld.lld"):  # some forty links a mutant
            flags.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld")
        flags.append(f"-DPROOFINFER_DEFAULT_MODELS={MODELS}")
        self._must_work(["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja", *flags])

    def _must_work(self, command: list[str]) -> None:
        verdict, output = run(command, self.folder)
        if verdict != "ok":
            raise Broken(output[-3000:])

    def _read_commands(self) -> None:
        self.compiles: dict[str, list[str]] = {}
        self.outputs: dict[str, str] = {}
        source_folder = str(self.tree / "src") + "/"
        # Warnings of mutants are of no interest; -O3 takes long and tells the tests nothing more.
        entries = json.loads((self.build / "compile_commands.json").read_text())
        all_words = [[word for word in shlex.split(entry["command"]) if not word.startswith("-W")] for entry in entries]
        for words in all_words:
            if words[-1].startswith(source_folder):
                name = words[-1][len(str(self.tree)) + 1 :]
                # The kernels of an instruction set take three times as long to compile with -O1.
                level = "-O0" if UNOPTIMISED.search(name) else "-O1"
                self.compiles[name] = [level if re.fullmatch(r"-O[123]", word) else word for word in words]
                self.outputs[name] = words[words.index("-o") + 1]
        self.links: dict[str, list[str]] = {}
        for test in self.tests:
            done = subprocess.run(["ninja", "-t", "commands", test.target], cwd=self.build, capture_output=True, check=True)
            line = done.stdout.decode().splitlines()[-1]
            words = shlex.split(line.split("&&")[1])
            if "-o" not in words or not test.script and words.count("src/libproofinfer.a") < 1:
                raise Broken(f"{test.target} is not linked with the static library: {line}")
            self.links[test.target] = words
        self.includers: dict[str, list[str]] = {}
        self.test_includers: dict[str, set[str]] = {}  # of a header: objects of tests
        commands = {words[words.index("-o") + 1]: words for words in all_words}
        self.test_compiles = {out: words for out, words in commands.items() if out.startswith("tests/")}
        by_output = {out: name for name, out in self.outputs.items()}
        deps = subprocess.run(["ninja", "-t", "deps"], cwd=self.build, capture_output=True, check=True).stdout.decode()
        out = ""
        for line in deps.splitlines():
            path = os.path.normpath(self.build / line.strip())
            if line and not line.startswith(" "):
                out = line.split(":")[0]
            elif path.startswith(source_folder):
                name = path[len(str(self.tree)) + 1 :]
                if out in by_output and by_output[out] != name:
                    self.includers.setdefault(name, []).append(by_output[out])
                elif out in self.test_compiles:
                    self.test_includers.setdefault(name, set()).add(out)

    def _base_seconds(self, test: Test) -> float:
        """CPU seconds of the unchanged test, which must pass: the base of the time limit."""
        with self.lock:
            program = Path(self.links[test.target][self.links[test.target].index("-o") + 1])
            digest = hashlib.sha256((self.build / program).read_bytes() + test.digest(self.tree).encode()).hexdigest()[:12]
            file = self.folder / "base_seconds" / f"{test.name} {digest}"
            if file.exists():
                return float(file.read_text())
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            verdict, output = self._run_test(test, program, 300)
            if verdict != "ok" or not test.ran(output):
                raise Broken(f"{test.name} fails on the unchanged sources:\n{output[-3000:]}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            # Other threads' children may be in it: a limit too high is no harm.
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{seconds:.3f}")
            return seconds

    def _run_test(self, test: Test, program: Path, seconds: float) -> tuple[str, str]:
        path = str(self.build / program)
        environment = {"GTEST_FAIL_FAST": "1", "PROOFINFER_QUICK_FIGURES": "1", "PROOFINFER_PROGRAM": path, "PROOFINFER_MODELS": str(MODELS)}
        environment.update(test.environment)
        if os.access("/dev/shm", os.W_OK):
            environment["TMPDIR"] = "/dev/shm"  # the disk's fsync is most of what some tests wait for
        command = ["python3", "-B", str(self.tree / test.script)] if test.script else [*self.runner, path]
        if self.sanitized:  # whose shadow takes most addresses
            environment.update(sanitizer_preset("test", "environment"))
            environment["ASAN_OPTIONS"] += ":hard_rss_limit_mb=8192"
            return run([*command, *test.arguments], self.build, seconds, environment, addresses=0)
        return run([*command, *test.arguments], self.build, seconds, environment)

    # --- mutants

    def _sources_with(self, file: str) -> list[str]:
        return [file] * (file in self.compiles) + self.includers.get(file, [])

    def _compile_one(self, command: list[str], out: Path, worker: Path) -> Path | None:
        words = list(command)
        words[words.index("-o") + 1] = str(out)
        words[1:1] = [f"-I{worker / 'overlay' / 'src'}"]
        verdict, _ = run(words, self.build, 120)
        return out if verdict == "ok" else None

    def _compile(self, file: str, text: str, worker: Path) -> list[Path] | None:
        """The objects that the mutant changes; None: one does not compile."""
        overlay = worker / "overlay"
        shutil.rmtree(overlay, ignore_errors=True)
        folder = (overlay / file).parent
        folder.mkdir(parents=True)
        # What lies beside it includes it by its bare name.
        for beside in (self.tree / file).parent.iterdir():
            if beside.is_file():
                (folder / beside.name).symlink_to(beside)
        (overlay / file).unlink()
        (overlay / file).write_text(text)
        objects = []
        for number, source in enumerate(self._sources_with(file)):
            words = list(self.compiles[source])
            if Path(source).parent == Path(file).parent:
                words[-1] = str(overlay / source)
            out = self._compile_one(words, worker / f"{number}.o", worker)
            if out is None:
                return None
            objects.append(out)
        if not objects:
            raise Broken(f"no object is made of {file}")
        return objects

    def _base_folder(self, file: str) -> Path:
        commands = [self.compiles[source] for source in self._sources_with(file)]
        return self.folder / "base" / self.built / hashlib.sha256(f"{file} {commands}".encode()).hexdigest()[:16]

    def _base_objects(self, file: str, worker: Path) -> list[bytes]:
        """The unchanged objects, compiled in the same way, so that machine code can be compared."""
        kept = self._base_folder(file)
        if not kept.exists():
            objects = self._compile(file, (self.tree / file).read_text(), worker)
            if objects is None:
                raise Broken(f"{file} does not compile unchanged")
            partial = kept.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            partial.mkdir(parents=True)
            for path in objects:
                self._strip(path)
                shutil.copy(path, partial / path.name)
            try:
                partial.rename(kept)
            except OSError:  # another has made it meanwhile
                shutil.rmtree(partial)
        return [path.read_bytes() for path in sorted(kept.iterdir(), key=lambda p: int(p.stem))]

    def _defined(self, path: Path) -> set[str]:
        """The symbols that no other object may define."""
        done = subprocess.run([f"{self.binutils}nm", "-g", "--defined-only", "--format=posix", str(path)], capture_output=True, check=True)
        rows = [line.split() for line in done.stdout.decode().splitlines()]
        return {row[0] for row in rows if row[1] in "TDBR"}

    def _strip(self, path: Path) -> None:
        """Without line numbers and file names."""
        subprocess.run([f"{self.binutils}objcopy", "--strip-debug", "--remove-section=.comment", str(path)], check=True)

    def judge(self, file: str, text: str, worker: Path, first: list[str], passed: list[str], patience: float) -> Outcome:
        """Builds the mutant and runs the tests until one fails: those of `first` before the others of their kind, then those near to the file.
        `passed` are known to pass; from `patience` seconds on no other is begun."""
        begin = time.monotonic()
        worker.mkdir(parents=True, exist_ok=True)
        base = self._base_objects(file, worker)
        objects = self._compile(file, text, worker)
        if objects is None:
            return Outcome("not compiled")
        for path in objects:
            self._strip(path)
        rows = zip(objects, base, self._sources_with(file), strict=True)
        changed = [(path, self.outputs[source]) for path, bytes_before, source in rows if path.read_bytes() != bytes_before]
        if not changed:
            return Outcome("same code")
        # A function that is gone would be taken from the unchanged object in the library.
        for path, _ in changed:
            gone = self._defined(self._base_folder(file) / path.name) - self._defined(path)
            if gone:
                return Outcome("not compiled", by=f"without {min(gone)}")
        outcome = Outcome("survived", tests_run=list(passed))
        # Unoptimised objects may take as much longer than those that the base was measured with.
        limit_factor = 40 if any(UNOPTIMISED.search(source) for source in self._sources_with(file)) else 5
        own_objects = {test.target: self.test_includers.get(file, set()).intersection(self.links[test.target]) for test in self.tests}

        def place(test: Test) -> tuple[bool, bool, int, bool]:
            near = any(word in test.name for word in Path(file).stem.split("_") if len(word) > 3) or "src/" not in test.files
            return test.golden, bool(own_objects[test.target]), first.index(test.name) if test.name in first else len(first), not near

        of_program = file.startswith("src/cli/")  # which the scripts run; the test programs have the library alone
        order = sorted((t for t in self.tests if bool(t.script) == of_program and re.search(t.files, file)), key=place)
        for test in order:
            if test.name in passed:
                continue
            if time.monotonic() - begin > patience:
                outcome.verdict = "waits"
                break
            words = list(self.links[test.target])
            program = worker / "program"
            words[words.index("-o") + 1] = str(program)
            if test.script:
                for path, unchanged in changed:
                    words[words.index(unchanged)] = str(path)
            else:
                at = words.index("src/libproofinfer.a")
                words[at:at] = [str(path) for path, _ in changed]
                # A test that includes the header must see it as the library does.
                for number, unchanged in enumerate(sorted(own_objects[test.target])):
                    compiled = self._compile_one(self.test_compiles[unchanged], worker / f"test{number}.o", worker)
                    if compiled is None:
                        return Outcome("not compiled", by=unchanged)
                    words[words.index(unchanged)] = str(compiled)
            verdict, output = run(words, self.build, 120)
            if verdict != "ok":
                return Outcome("not compiled", by=output[-300:])
            # Of tests of one instruction set after another, those of the mutant's.
            isa = re.search(r"/kernels_(sse2|avx2|avx512|neon)", file) if test.each_isa else None
            chosen = replace(test, arguments=(f"--gtest_filter=*/{isa[1]}*",)) if isa else test
            verdict, output = self._run_test(chosen, program, max(4.0, limit_factor * self._base_seconds(test)))
            outcome.tests_run.append(test.name)
            if verdict == "ok" and not test.ran(output) and isa and "[  SKIPPED ]" in output:
                raise Broken(f"{file} cannot be judged on this CPU: {test.name} skips its instruction set")
            if verdict == "ok" and not test.ran(output):
                verdict = "failed"  # it ended well without having run its tests
            if verdict != "ok":
                outcome.verdict = "killed" if verdict == "failed" else "time-out"
                outcome.by, outcome.golden_only = test.name, test.golden
                break
        if outcome.verdict == "survived" and len(self.tests) < len(TESTS) and not self.sanitized:
            outcome.verdict = "waits"
        outcome.seconds = time.monotonic() - begin
        return outcome
