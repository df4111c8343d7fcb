"""Running Frama-C WP on the proved files: provers, limits, and the reading of verdicts."""

import argparse
import concurrent.futures
import functools
import json
import os
import re
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ["frama-c", "why3", "z3", "cvc4", "cvc5"]
# cvc5a: cvc5 with floating-point numbers as why3 axiomatizes them by their real values, instead of the solver's own theory.
PROVERS = "z3,cvc5,cvc4,cvc5a"
# The limit that decides. The seconds, of the processor and of the clock, only end a prover that does not count all it does, far beyond what any
# goal needs.
STEPS = 2000000
CPU, TIMEOUT = 60, 600
# A smoke test is passed by a prover that gives up, so each costs the whole limit.
SMOKE_STEPS, SMOKE_CPU = 200000, 1
# Which prover proved a goal when the file was written, one "PROVER goal" a line: it is asked first, and where it does not prove the goal now,
# all of them are. The file saves time; no verdict rests on it.
HINTS = "tests/proof/hints.txt"

# What Frama-C reads. The headers' functions are proved once, in the first two units that have them.
THEOREMS, LAYOUT = "tests/proof/index_maps.c", "src/proved/checkpoint_layout.c"
UNITS = [THEOREMS, LAYOUT, "src/proved/sampling.c", "src/proved/kernels_scalar.c", "src/proved/kernels_q8_scalar.c"]
ELEMENTARY = "src/proved/elementary.h"

# Contracts without a body: elementary functions and bit casts (src/proved/elementary.h). Nothing else may be believed.
BELIEVED = {"pi_expf", "pi_sinf", "pi_cosf", "pi_powf", "pi_sqrtf", "pi_float_of_bits", "pi_load_float", "pi_store_float"}


def add_options(parser):
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs of Frama-C at a time")
    parser.add_argument("--no-hints", action="store_true", help=f"let all provers race for each goal, without {HINTS}")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--cpu", type=int, default=CPU, help="seconds of processor time for a prover")
    parser.add_argument("--timeout", type=int, default=TIMEOUT)
    parser.add_argument("--provers", default=PROVERS)
    parser.add_argument("--cache", help="folder of a WP cache, for work on the proof; CI runs without")


def proof_files(root):
    return [f"{folder}/{name}" for folder in ("src/proved", "tests/proof") for name in sorted(os.listdir(os.path.join(root, folder)))
            if name.endswith((".c", ".h"))]


def header_functions(root, names):
    """The static inline functions of these headers, ghosts too."""
    found = set()
    for name in names:
        with open(os.path.join(root, "src/proved", name), encoding="utf-8") as file:
            found |= set(re.findall(r"static inline (?:\w+ )+?\*?(\w+)\(", file.read()))
    return found


INDEX_HEADERS = ["lemmas.h", "kv_index.h", "pack_index.h"]


def ghost_functions(root):
    """Functions in ghost code: they are proved and never compiled. And the theorems, which are no part of the library."""
    found = set()
    for path in proof_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for ghost in re.findall(r"/\*@ ghost\n.*?\*/", text, re.S):
            found |= set(re.findall(r"static (?:inline )?void (\w+)\(", ghost))
        if path == THEOREMS:
            found |= set(re.findall(r"^static \w+ (\w+)\(", text, re.M))
    return found


# Lemmas whose branches are meant to be unreachable: proofs by contradiction. The smoke tests look at their preconditions alone.
BY_CONTRADICTION = {"whole_groups", "unique_quotient"}


@functools.lru_cache(maxsize=None)
def functions_named(unit):
    """Every word that a call or definition of the unit begins with, ghost code included."""
    listing = subprocess.run(["frama-c", f"-cpp-extra-args=-I{ROOT}/src", "-print", os.path.join(ROOT, unit)], capture_output=True, text=True).stdout
    return set(re.findall(r"\b(\w+)\(", listing))


def skip(unit, also=frozenset()):
    """Options that leave out the headers' functions where another unit proves them, and these."""
    names = set(also) | (header_functions(ROOT, INDEX_HEADERS) if unit != THEOREMS else set())
    here = sorted(names & functions_named(unit))
    return ["-wp-skip-fct", ",".join(here)] if here else []


def read_hints():
    path = os.path.join(ROOT, HINTS)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {goal: prover for prover, goal in (line.split() for line in file if line.strip() and not line.startswith("#"))}


def bare(goal):
    """A goal's name without that of the memory model."""
    return re.sub(r"^typed_(?:ref_)?", "", goal)


class Setup:
    """A Why3 configuration of its own: the provers found, and cvc5 through the drivers of its predecessor and of z3, which Why3 1.5 has.
    Beside it the hints, as scripts that WP replays: a script names a prover, and WP asks that prover again."""

    def __init__(self, folder, options, hints=None):
        config = os.path.join(folder, "why3.conf")
        self.environment = dict(os.environ, WHY3CONFIG=config)
        provers = self.limit_provers(os.path.join(folder, "bin"), options.cpu)
        self.environment["PATH"] = os.path.join(folder, "bin") + os.pathsep + self.environment["PATH"]
        subprocess.run(["why3", "config", "detect"], env=self.environment, capture_output=True, check=True)
        with open(config, encoding="utf-8") as file:
            text = file.read()
        data = re.search(r'datadir = "([^"]+)"', text)
        drivers = os.path.join(data.group(1) if data else "/usr/share/why3", "drivers")
        for name in os.listdir(drivers):
            if name.endswith(".gen"):
                shutil.copy(os.path.join(drivers, name), folder)
        with open(os.path.join(drivers, "cvc4_17.drv"), encoding="utf-8") as file:
            driver = file.read().replace("ALL_SUPPORTED", "ALL")
        with open(os.path.join(folder, "cvc5.drv"), "w", encoding="utf-8") as file:
            file.write(driver)
        version = re.search(r"version (\S+)", subprocess.run(["cvc5", "--version"], capture_output=True, text=True).stdout).group(1)
        cvc5 = f"{provers['cvc5']} --stats --rlimit={options.steps} --lang=smt2 %f"
        # WP gives smoke tests seconds only: here they have steps.
        smoke = f"{provers['smoke']} -smt2 rlimit={SMOKE_STEPS} -st %f"
        with open(config, "a", encoding="utf-8") as file:
            for name, prover, file_of_driver in (("CVC5", cvc5, f"{folder}/cvc5.drv"), ("CVC5A", cvc5, "z3_471_nobv"), ("SMOKE", smoke, "z3_471")):
                file.write(f'\n[prover]\ncommand = "{prover}"\ncommand_steps = "{prover}"\ndriver = "{file_of_driver}"\neditor = ""\n'
                           f'in_place = false\ninteractive = false\nname = "{name}"\nshortcut = "{name.lower()}"\nversion = "{version}"\n')
        self.hints, self.session = hints or {}, os.path.join(folder, "session")
        self.write_scripts(config)

    @staticmethod
    def limit_provers(folder, cpu):
        """Provers with a limit of processor time, which the load of others does not shorten: none looks at its limit of steps everywhere.
        Name -> path."""
        os.mkdir(folder)
        paths = {}
        for name, tool, seconds in (("z3", "z3", cpu), ("cvc4", "cvc4", cpu), ("cvc5", "cvc5", cpu), ("smoke", "z3", SMOKE_CPU)):
            paths[name] = os.path.join(folder, name)
            with open(paths[name], "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec prlimit --cpu={seconds} {shutil.which(tool)} "$@"\n')
            os.chmod(paths[name], 0o755)
        return paths

    def write_scripts(self, config):
        with open(config, encoding="utf-8") as file:
            versions = dict(re.findall(r'^name = "(\w+)"\n(?:(?!\[).*\n)*?version = "(.*)"', file.read(), re.M))
        scripts = os.path.join(self.session, "script")
        os.makedirs(scripts)
        for goal, prover in self.hints.items():
            if prover in versions:
                with open(os.path.join(scripts, goal + ".json"), "w", encoding="utf-8") as file:
                    json.dump([{"prover": f"{prover}:{versions[prover]}", "verdict": "valid", "time": float(TIMEOUT)}], file)


class Result:
    """The outcome of one run of Frama-C on one file."""

    def __init__(self, output, seconds, hints):
        self.output, self.seconds = output, seconds
        self.proved = self.total = 0
        totals = re.search(r"Proved goals:\s+(\d+) / (\d+)", output)
        if totals:
            self.proved, self.total = int(totals.group(1)), int(totals.group(2))
        self.parsed = totals is not None and "aborted" not in output
        self.files = [os.path.realpath(path) for path in re.findall(r"\[kernel\] Parsing (\S+)", output)]
        self.functions = sorted(set(re.findall(r"\[rte:annot\] annotating function (\w+)", output)), key=lambda name: -len(name))
        self.goals = {}  # name -> who proved it, or None
        for who, goal, verdict in re.findall(r"\[wp\] (?:\[([^\]]+)\] )?Goal (\w+) : (\w+)", output):
            self.goals[goal] = who if verdict == "Valid" else None
        # A goal that no prover proved has a line "[Failed] Goal name".
        for goal in re.findall(r"\[wp\] \[(?:Failed|Timeout|Unknown|Stepout)\] Goal (\w+)", output):
            self.goals[goal] = None
        # Where a hint named a prover, WP reports that the script proved the goal, and below how many each prover did: the hints are right in all,
        # or the table does not say who.
        named = {goal: hints.get(bare(goal), "?") if who == "Script" else who for goal, who in self.goals.items()}
        told = {name: int(count) for name, count in re.findall(r"^  (\w+) [\d.]+[^:]*:\s+(\d+)", output, re.M) if int(count)}
        kept = {}
        for who in named.values():
            if who and who.split()[0] not in ("Qed", "CFG"):
                kept[who.split()[0]] = kept.get(who.split()[0], 0) + 1
        stale = "Script" in self.goals.values() and told != kept
        self.goals = {goal: "(any)" if stale and self.goals[goal] == "Script" else who for goal, who in named.items()}
        self.unproved = sorted(goal for goal, who in self.goals.items() if who is None)

    def function_of(self, goal):
        name = bare(goal)
        if name.startswith("lemma_"):
            return "(lemmas)"
        return next((function for function in self.functions if name.startswith(function + "_")), "(other)")

    def table(self):
        rows = {}
        for goal, who in self.goals.items():
            row = rows.setdefault(self.function_of(goal), {"goals": 0, "proved": 0, "by": {}})
            row["goals"] += 1
            row["proved"] += who is not None
            if who:
                short = who.split()[0]
                row["by"][short] = row["by"].get(short, 0) + 1
        return rows


def run(root, setup, unit, options, extra):
    """Frama-C WP on one file below root."""
    provers = ("script," if setup.hints else "") + options.provers
    command = ["frama-c", f"-cpp-extra-args=-I{root}/src", "-wp", "-wp-rte", "-warn-unsigned-overflow", "-warn-special-float", "none",
               "-wp-prover", provers, "-wp-session", setup.session, "-wp-par", "1", "-wp-steps", str(options.steps), "-wp-timeout", str(options.timeout)]
    command += ["-wp-cache", "update", "-wp-cache-dir", options.cache] if options.cache else ["-wp-cache", "none"]
    start = time.monotonic()
    done = subprocess.run(command + list(extra) + [os.path.join(root, unit)], env=setup.environment, capture_output=True, text=True)
    return Result(done.stdout + done.stderr, time.monotonic() - start, setup.hints)


def side_by_side(options, function, items):
    """The function of each item, in order, so many at a time."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(function, items)


def functions_without_body(root, unit):
    done = subprocess.run(["frama-c", f"-cpp-extra-args=-I{root}/src", "-metrics", os.path.join(root, unit)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{unit}: Frama-C cannot read it\n{done.stdout}{done.stderr}")
    found = set()
    for title in ("Specified-only functions", "Undefined and unspecified functions"):
        listed = re.search(re.escape(title) + r" \((\d+)\)\s*=+\n(.*?)(?:\n\s*\n|\Z)", done.stdout, re.S)
        names = set(re.findall(r"(\w+) \(\d+ calls?\)", listed.group(2))) if listed else set()
        if not listed or len(names) != int(listed.group(1)):
            raise RuntimeError(f"{unit}: cannot read the list of '{title}'\n{done.stdout}")
        found |= names
    return found


# Everything but the smoke tests, which have no category of their own.
ONLY_SMOKE = "-wp-prop=-@requires,-@ensures,-@invariant,-@variant,-@assigns,-@assert,-@terminates,-@lemma"


def smoke(root, setup, unit, options, select, named=""):
    """Contradictory preconditions and unreachable code, looked for; (number of tests passed, names of the others), of the tests named so."""
    limits = argparse.Namespace(**dict(vars(options), provers="smoke"))
    extra = ["-wp-smoke-tests", "-wp-smoke-timeout", str(TIMEOUT), ONLY_SMOKE]
    result = run(root, setup, unit, limits, extra + select)
    if not result.parsed:
        raise RuntimeError(f"{unit}: Frama-C gave no result\n{result.output[-3000:]}")
    verdicts = re.findall(rf"\[wp\] \[(\w+)\] Smoke-test (\w*{named})\b", result.output)
    return sum(verdict == "Passed" for verdict, _ in verdicts), [name for verdict, name in verdicts if verdict != "Passed"]
