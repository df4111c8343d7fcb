"""Running Frama-C WP on the proved files: provers, limits, and the reading of verdicts."""

import argparse
import os
import re
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ["frama-c", "why3", "z3", "cvc4", "cvc5"]
# cvc5a: cvc5 with floating-point numbers as why3 axiomatizes them by their real values, instead of the solver's own theory.
PROVERS = "z3,cvc5,cvc4,cvc5a"
# The limit that decides. The seconds only end a prover that does not count its steps, far beyond what any goal needs.
STEPS = 2000000
TIMEOUT = 100

# What Frama-C reads. The headers' functions are proved once, in the first two units that have them.
THEOREMS, LAYOUT = "tests/proof/index_maps.c", "src/proved/checkpoint_layout.c"
UNITS = [THEOREMS, LAYOUT, "src/proved/sampling.c", "src/proved/kernels_scalar.c", "src/proved/kernels_q8_scalar.c"]
ELEMENTARY = "src/proved/elementary.h"

# Contracts without a body: elementary functions and bit casts (src/proved/elementary.h). Nothing else may be believed.
BELIEVED = {"pi_expf", "pi_sinf", "pi_cosf", "pi_powf", "pi_sqrtf", "pi_float_of_bits", "pi_load_float", "pi_store_float"}


def add_options(parser):
    parser.add_argument("--par", type=int, default=2, help="provers at a time")
    parser.add_argument("--steps", type=int, default=STEPS)
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


# Lemmas whose branches are meant to be unreachable: proofs by contradiction. The smoke tests leave them out.
BY_CONTRADICTION = {"whole_groups", "unique_quotient"}


def skip(unit, also=frozenset()):
    """Options that leave out the headers' functions where another unit proves them, and these."""
    names = set(also) | (header_functions(ROOT, INDEX_HEADERS) if unit != THEOREMS else set())
    listing = subprocess.run(["frama-c", f"-cpp-extra-args=-I{ROOT}/src", "-print", os.path.join(ROOT, unit)], capture_output=True, text=True).stdout
    here = sorted(name for name in names if re.search(rf"\b{name}\(", listing))
    return ["-wp-skip-fct", ",".join(here)] if here else []


def prover_setup(folder):
    """A Why3 configuration of its own: the provers found, and cvc5 through the drivers of its predecessor and of z3, which Why3 1.5 has."""
    config = os.path.join(folder, "why3.conf")
    environment = dict(os.environ, WHY3CONFIG=config)
    subprocess.run(["why3", "config", "detect"], env=environment, capture_output=True, check=True)
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
    cvc5 = shutil.which("cvc5")
    with open(config, "a", encoding="utf-8") as file:
        for name, file_of_driver in (("CVC5", f"{folder}/cvc5.drv"), ("CVC5A", "z3_471_nobv")):
            file.write(f'\n[prover]\ncommand = "{cvc5} --stats --tlimit=%t000 --lang=smt2 %f"\n'
                       f'command_steps = "{cvc5} --stats --rlimit=%S --lang=smt2 %f"\ndriver = "{file_of_driver}"\neditor = ""\n'
                       f'in_place = false\ninteractive = false\nname = "{name}"\nshortcut = "{name.lower()}"\nversion = "{version}"\n')
    return environment


class Result:
    """The outcome of one run of Frama-C on one file."""

    def __init__(self, output, seconds):
        self.output, self.seconds = output, seconds
        self.proved = self.total = 0
        totals = re.search(r"Proved goals:\s+(\d+) / (\d+)", output)
        if totals:
            self.proved, self.total = int(totals.group(1)), int(totals.group(2))
        self.parsed = totals is not None and "aborted" not in output
        self.functions = sorted(set(re.findall(r"\[rte:annot\] annotating function (\w+)", output)), key=lambda name: -len(name))
        self.goals = {}  # name -> who proved it, or None
        for who, goal, verdict in re.findall(r"\[wp\] (?:\[([^\]]+)\] )?Goal (\w+) : (\w+)", output):
            self.goals[goal] = who if verdict == "Valid" else None
        # A goal that no prover proved has a line "[Failed] Goal name".
        for goal in re.findall(r"\[wp\] \[(?:Failed|Timeout|Unknown|Stepout)\] Goal (\w+)", output):
            self.goals[goal] = None
        self.unproved = sorted(goal for goal, who in self.goals.items() if who is None)

    def function_of(self, goal):
        bare = re.sub(r"^typed_(?:ref_)?", "", goal)
        if bare.startswith("lemma_"):
            return "(lemmas)"
        return next((name for name in self.functions if bare.startswith(name + "_")), "(other)")

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


def run(root, environment, unit, options, extra):
    """Frama-C WP on one file below root."""
    command = ["frama-c", f"-cpp-extra-args=-I{root}/src", "-wp", "-wp-rte", "-warn-unsigned-overflow", "-warn-special-float", "none",
               "-wp-prover", options.provers, "-wp-par", str(options.par), "-wp-steps", str(options.steps), "-wp-timeout", str(options.timeout)]
    command += ["-wp-cache", "update", "-wp-cache-dir", options.cache] if options.cache else ["-wp-cache", "none"]
    start = time.monotonic()
    done = subprocess.run(command + list(extra) + [os.path.join(root, unit)], env=environment, capture_output=True, text=True)
    return Result(done.stdout + done.stderr, time.monotonic() - start)


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


def smoke(root, environment, unit, options, select):
    """Contradictory preconditions and unreachable code, looked for; (number of tests passed, names of the others)."""
    extra = ["-wp-smoke-tests", "-wp-smoke-timeout", "2", ONLY_SMOKE]
    result = run(root, environment, unit, argparse.Namespace(**dict(vars(options), provers="z3")), extra + select)
    verdicts = re.findall(r"\[wp\] \[(\w+)\] Smoke-test (\w+)", result.output)
    return sum(verdict == "Passed" for verdict, _ in verdicts), [name for verdict, name in verdicts if verdict != "Passed"]
