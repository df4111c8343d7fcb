"""Checks the whole package against a built library, in one command:

    python tests/run.py [--library LIBRARY] [--work FOLDER] [--long] [--only STEP,...]

Tools come from PyPI by name, into an environment under the work folder (default: a temporary one). Every skipped test says
why, and the last line is `N passed, N failed, N skipped`. The exit code is 0 if nothing failed.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import Callable, Dict, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
REPOSITORY = os.environ.get("PROOFINFER_REPOSITORY") or os.path.dirname(os.path.dirname(PACKAGE))
TOOLS = ("mypy==1.18.2", "ruff==0.14.5", "build==1.3.0", "hatchling==1.27.0", "auditwheel==6.4.2")
NUMPY = "numpy==2.2.6"
# The newest C library that a wheel may ask for.
GLIBC_MINOR_MOST = 36
LARGER_LIMIT = 5 if os.environ.get("CI") else 1


class Failed(Exception):
    """A step failed; the message is all there is to say."""


class Skipped(Exception):
    """A step cannot run here, and why."""


class Run:
    """The steps of one run, and what they counted."""

    def __init__(self, library: str, work: str, long: bool) -> None:
        self.work = os.path.abspath(work)
        # A copy, so that it can be out of sight while the packages are tested.
        self.library = os.path.join(self.work, "library", "libproofinfer.so")
        os.makedirs(os.path.dirname(self.library), exist_ok=True)
        shutil.copy(library, self.library)
        self.long = long
        self.passed = self.failed = self.skipped = 0
        self.pythons = pythons()
        self.wheel: Optional[str] = None
        self.sdist: Optional[str] = None

    # -- helpers ------------------------------------------------------------------------------------------------------------

    def environment(self, **changes: Optional[str]) -> Dict[str, str]:
        """The process's environment with changes; None takes a variable out."""
        values = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PROOFINFER_REPOSITORY": REPOSITORY}
        for name in ("PYTHONPATH", "PROOFINFER_LIBRARY", "LD_LIBRARY_PATH"):
            values.pop(name, None)
        for name, value in changes.items():
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        return values

    def source_environment(self, **changes: str) -> Dict[str, str]:
        return self.environment(PYTHONPATH=os.path.join(PACKAGE, "src"), PROOFINFER_LIBRARY=self.library, **changes)

    def command(self, arguments: List[str], environment: Optional[Dict[str, str]] = None, folder: str = PACKAGE) -> str:
        """Runs a command to its end; Failed with its output if it fails."""
        done = subprocess.run(
            arguments,
            cwd=folder,
            env=environment or self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"{' '.join(arguments[:6])} ... ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    def tool(self, name: str) -> str:
        return os.path.join(self.tools(), "bin", name)

    def tools(self) -> str:
        """The environment with the pinned tools, made when first asked for."""
        folder = os.path.join(self.work, "tools")
        wanted = "-".join([*TOOLS, NUMPY])
        stamp = os.path.join(folder, "made-of-" + wanted)
        if not os.path.exists(stamp):
            shutil.rmtree(folder, ignore_errors=True)
            python = self.fresh_environment(folder, sys.executable)
            self.command([python, "-m", "pip", "install", "--quiet", *TOOLS, NUMPY])
            with open(stamp, "w", encoding="ascii"):
                pass
        return folder

    def fresh_environment(self, folder: str, python: str) -> str:
        """An empty virtual environment's Python."""
        self.command([python, "-m", "venv", "--clear", folder])
        return os.path.join(folder, "bin", "python")

    def unittest(self, python: str, environment: Dict[str, str], folder: str, modules: List[str]) -> None:
        """Runs test modules and counts each of their tests."""
        done = subprocess.run(
            [python, "-X", "dev", "-m", "unittest", "-v", *modules],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ran = re.search(r"^Ran (\d+) tests?", done.stdout, flags=re.M)
        if not ran:
            raise Failed(f"the tests did not run:\n{done.stdout[-6000:]}")
        last = done.stdout.rstrip().splitlines()[-1]
        bad, skipped = (
            sum(int(number) for number in re.findall(rf"(?:{words})=(\d+)", last)) for words in ("failures|errors", "skipped")
        )
        for reason in re.findall(r"skipped ['\"](.*)['\"]$", done.stdout, flags=re.M):
            print(f"  {reason}")
        for line in re.findall(r"  (test_\w+: \d+ ms)$", done.stdout, flags=re.M):
            print(f"  noticed Ctrl-C: {line}")
        print(f"  {ran[1]} tests: {last}", flush=True)
        if bad or done.returncode != 0:
            print(done.stdout[-8000:])
        self.passed += int(ran[1]) - bad - skipped
        self.failed += max(bad, int(done.returncode != 0))
        self.skipped += skipped

    # -- steps: each is a test by itself, or counts the tests that it runs -----------------------------------------------------

    def step_lint(self) -> None:
        """ruff and mypy --strict."""
        self.command([self.tool("ruff"), "check", "--no-cache", "."])
        self.command([self.tool("ruff"), "format", "--no-cache", "--check", "."])
        cache = os.path.join(self.work, "mypy")
        print("  " + self.command([self.tool("mypy"), "--strict", "--cache-dir", cache]).strip())

    def step_source(self) -> None:
        """The tests on the source tree."""
        self.unittest(self.tool("python"), self.source_environment(), HERE, all_modules())

    def step_packages(self) -> None:
        """sdist and wheel with the standard front end; what they hold, and the wheel's tag."""
        out = os.path.join(self.work, "dist")
        shutil.rmtree(out, ignore_errors=True)
        self.command([self.tool("python"), "-m", "build", "--outdir", out], self.build_environment(PROOFINFER_LIBRARY=self.library))
        (self.sdist,) = glob.glob(os.path.join(out, "*.tar.gz"))
        (self.wheel,) = glob.glob(os.path.join(out, "*.whl"))
        name = os.path.basename(self.wheel)
        tag = re.fullmatch(r"proofinfer-[\d.]+-py3-none-manylinux_2_(\d+)_\w+\.whl", name)
        if not tag or int(tag[1]) > GLIBC_MINOR_MOST:
            raise Failed(f"{name}: expected py3-none-manylinux_2_N with N at most {GLIBC_MINOR_MOST}")
        held = zipfile.ZipFile(self.wheel).namelist()
        for wanted in ("proofinfer/_lib/libproofinfer.so.1", "proofinfer/py.typed", "dist-info/licenses/LICENSE"):
            if not any(each.endswith(wanted) for each in held):
                raise Failed(f"{name} lacks {wanted}: {held}")
        print(f"  {name}, {os.path.basename(self.sdist)}")

    def step_auditwheel(self) -> None:
        """auditwheel finds the wheel's tag right."""
        wheel = self.need_packages()[0]
        told = " ".join(self.command([self.tool("auditwheel"), "show", wheel]).split())
        tag = re.search(r"(manylinux_2_\d+)_\w+\.whl", wheel)
        consistent = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_', told)
        if not tag or not consistent or int(consistent[1]) > int(tag[1].rsplit("_", 1)[1]):
            raise Failed(told)
        print(f"  {consistent[0]}")

    def step_wheel(self) -> None:
        """The wheel in a fresh environment of the oldest Python that is found: the tests, with no other library in sight."""
        self.installed("wheel", self.need_packages()[0], self.pythons[0], all_modules())

    def step_sdist(self) -> None:
        """The sdist in a fresh environment of the newest Python that is found, where it compiles the library: the same."""
        self.installed("sdist", self.need_packages()[1], self.pythons[-1], all_modules())

    def step_stress(self) -> None:
        """Threads that open, generate, cancel and close in random order."""
        seconds = "60" if self.long else "10"
        arguments = [self.tool("python"), os.path.join(HERE, "stress.py"), "--seconds", seconds]
        print(indented(self.command(arguments, self.source_environment())))

    def step_valgrind(self) -> None:
        """The stress test under Valgrind: no error and no leak with the library in its stack."""
        if not shutil.which("valgrind"):
            raise Skipped("SKIPPED[valgrind]: it is not installed")
        log = os.path.join(self.work, "valgrind.log")
        arguments = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=30", f"--log-file={log}"]
        arguments += [self.tool("python"), os.path.join(HERE, "stress.py"), "--threads", "4", "--any-memory"]
        arguments += ["--seconds", "60" if self.long else "10"]
        print(indented(self.command(arguments, self.source_environment(PYTHONMALLOC="malloc"))))
        with open(log, encoding="utf-8", errors="replace") as file:
            blocks = re.split(r"\n==\d+== ?\n", file.read())
        ours = [block for block in blocks if "libproofinfer" in block and re.search(r"==\d+==\s+(at|by) 0x", block)]
        if ours:
            raise Failed("\n\n".join(ours[:5]))
        print(f"  {len(blocks)} reports, none with the library")

    def step_overhead(self) -> None:
        """What a token costs over the same loop in C."""
        if not shutil.which(os.environ.get("CC", "cc")):
            raise Skipped("SKIPPED[compiler]: no C compiler to compare with")
        arguments = [self.tool("python"), os.path.join(PACKAGE, "bench", "overhead.py"), "--limit", str(10 * LARGER_LIMIT)]
        print(indented(self.command(arguments, self.source_environment())))

    # -- packages --------------------------------------------------------------------------------------------------------------

    def build_environment(self, **changes: str) -> Dict[str, str]:
        """The front ends make environments of their own: their tools are pinned too."""
        constraints = os.path.join(self.work, "constraints.txt")
        with open(constraints, "w", encoding="ascii") as file:
            file.write("\n".join(TOOLS) + "\n")
        return self.environment(PIP_CONSTRAINT=constraints, **changes)

    def need_packages(self) -> Tuple[str, str]:
        if self.wheel is None or self.sdist is None:
            raise Failed("the packages were not built")
        return self.wheel, self.sdist

    def installed(self, name: str, package: str, version: Tuple[str, str], modules: List[str]) -> None:
        """Installs a package into a fresh environment and runs a copy of the tests there."""
        print(f"  Python {version[0]}")
        if len(self.pythons) == 1:
            print("  SKIPPED[other-pythons]: there is only this one")
            self.skipped += 1
        folder = os.path.join(self.work, name)
        shutil.rmtree(folder, ignore_errors=True)
        python = self.fresh_environment(os.path.join(folder, "environment"), version[1])
        self.command([python, "-m", "pip", "install", "--quiet", package], self.build_environment(), folder)
        shutil.copytree(HERE, os.path.join(folder, "tests"), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(os.path.join(PACKAGE, "README.md"), folder)
        away = self.library + ".away"
        os.rename(self.library, away)
        try:
            loaded = self.command([python, "-c", "import proofinfer; print(proofinfer.load())"], folder=folder).strip()
            if not loaded.startswith(os.path.join(folder, "environment") + os.sep):
                raise Failed(f"the installed package loads {loaded}")
            self.unittest(python, self.environment(), os.path.join(folder, "tests"), modules)
        finally:
            os.rename(away, self.library)

    # -- all -------------------------------------------------------------------------------------------------------------------

    def all(self, only: Optional[List[str]]) -> bool:
        for name in STEPS:
            if only and name not in only:
                continue
            step: Callable[[], None] = getattr(self, "step_" + name)
            print(f"{name}: {step.__doc__}", flush=True)
            before, begin = self.passed + self.failed + self.skipped, time.monotonic()
            try:
                step()
                if self.passed + self.failed + self.skipped == before:
                    self.passed += 1
            except Skipped as why:
                print(f"  {why}")
                self.skipped += 1
            except Failed as why:
                print(f"  FAILED: {why}", flush=True)
                self.failed += 1
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return self.failed == 0 and self.passed > 0


STEPS = ("lint", "source", "packages", "auditwheel", "wheel", "sdist", "stress", "valgrind", "overhead")


def indented(text: str) -> str:
    return "\n".join("  " + line for line in text.strip().splitlines())


def all_modules() -> List[str]:
    return sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "test_*.py")))


def pythons() -> List[Tuple[str, str]]:
    """(version, executable) of every CPython from 3.9 on, oldest first: this one, on the PATH, or in pyenv's folder."""
    places = [sys.executable]
    places += [os.path.join(folder, f"python3.{minor}") for folder in os.get_exec_path() for minor in range(9, 20)]
    places += glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))
    question = "import sys, ensurepip, venv; print(sys.implementation.name, *sys.version_info[:3])"
    found: Dict[Tuple[int, int], str] = {}
    for place in places:
        if not os.path.exists(place):
            continue
        done = subprocess.run([place, "-c", question], capture_output=True, text=True, check=False)
        words = done.stdout.split()
        if done.returncode == 0 and words[:1] == ["cpython"]:
            version = int(words[1]), int(words[2])
            if version >= (3, 9):
                found.setdefault(version, place)
    return [(f"{version[0]}.{version[1]}", place) for version, place in sorted(found.items())]


def find_library(given: Optional[str]) -> str:
    library = given or os.environ.get("PROOFINFER_LIBRARY")
    if not library and os.environ.get("PREFIX"):
        found = glob.glob(os.path.join(os.environ["PREFIX"], "lib*", "**", "libproofinfer.so"), recursive=True)
        library = found[0] if found else os.path.join(os.environ["PREFIX"], "lib", "libproofinfer.so")
    if not library or not os.path.exists(library):
        sys.exit(f"no library at {library}: name it with --library or PROOFINFER_LIBRARY, or where it is installed with PREFIX")
    return library


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the whole package against a built library.")
    parser.add_argument("--library", help="default: PROOFINFER_LIBRARY, or what is installed in PREFIX")
    parser.add_argument("--work", help="a folder to work in, kept afterwards; default: a temporary one")
    parser.add_argument("--long", action="store_true", help="stress tests of 60 s instead of 10 s")
    parser.add_argument("--only", help=f"some steps only, with commas between them: {', '.join(STEPS)}")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else None
    if only and not set(only) <= set(STEPS):
        parser.error(f"--only knows {', '.join(STEPS)}")
    library = find_library(arguments.library)
    work = arguments.work or tempfile.mkdtemp(prefix="proofinfer-python-")
    os.makedirs(work, exist_ok=True)
    try:
        return 0 if Run(library, work, arguments.long).all(only) else 1
    finally:
        if not arguments.work:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
