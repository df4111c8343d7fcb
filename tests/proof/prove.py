#!/usr/bin/env python3
"""Proves the shipped C files of src/proved with Frama-C WP: one command, non-zero unless every goal is proved.

Besides the goals it checks that nothing is assumed (no admit, assume or axiom, no contract without a body but the listed ones), that no
precondition is contradictory (smoke tests), that the files read are the files that the build compiled (path and digest), that the build's
libraries hold the machine code of these files, and that every proved function was executed.

--build is a release build with its tests (tests/tools/check.sh makes one). Executions are counted with those tests, linked with a library of its
own that counts.
Exit code 0: all of it holds; 1: something does not; 77: a tool is missing (skipped).
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time

import shipped
import wp


def fail(message):
    print("FAILED: " + message)
    return False


def annotations(text):
    """The ACSL comments of a file: all that Frama-C reads as annotation."""
    return re.findall(r"/\*@.*?\*/|//@[^\n]*", text, re.S)


def assumptions(path, text):
    """What a file would have believed: reasons to fail."""
    problems = []
    for annotation in annotations(text):
        bare = re.sub(r"//(?!@)[^\n]*", "", annotation[3:])
        for word in re.findall(r"\b(admit|axiom|assume|check|model|import|extern|calls)\b", bare):
            problems.append(f"{path}: '{word}' in an annotation")
        if "axiomatic" in bare and path != wp.ELEMENTARY:
            problems.append(f"{path}: an axiomatic block outside {wp.ELEMENTARY}")
    if re.search(r"__FRAMAC__", text) and path != wp.ELEMENTARY:
        problems.append(f"{path}: code for the proof tool only, outside {wp.ELEMENTARY}")
    return problems


def must_notice():
    """Planted mistakes: a check that cannot fail shows nothing."""
    for text in ("/*@ admit x > 0; */", "//@ admit x;", "/*@ axiomatic A { axiom a: 1 == 2; } */", "/*@ ghost /@ assume x; @/ */",
                 "#ifdef __FRAMAC__"):
        assert assumptions("planted.h", text), text
    assert not assumptions("sound.h", "/*@ requires n > 0; // axiom in a comment of the annotation\n*/ int admit;")


PLANTED = """/*@ requires n > 0 && n < 0; terminates \\true; assigns \\nothing; ensures impossible: \\result == 3; */
int contradictory(int n) { return n; }
/*@ requires n > 0; terminates \\true; assigns \\nothing; ensures wrong: \\result == 3; */
int wrong(int n) { return n; }
/*@ requires 2 <= a <= 1000 && 2 <= b <= 1000 && 2 <= n <= 1000; terminates \\true; assigns \\nothing;
    ensures right: a <= b ==> a * n <= b * n; */
void right(int a, int b, int n) {}
int believed(int n);
int calls(int n) { return believed(n); }
"""


def planted_goals_must_fail(folder, options):
    """A wrong contract, a contradictory one and a function without a body are noticed by the very functions that judge the real ones; a hint
    for the wrong one does not help it, and a useless one does no harm."""
    os.mkdir(os.path.join(folder, "planted"))
    options = argparse.Namespace(**dict(vars(options), steps=200000, cpu=2))
    setup = wp.Setup(os.path.join(folder, "planted"), options, {"wrong_ensures_wrong": "Z3", "right_ensures_right": "CVC5A"})
    with open(os.path.join(folder, "planted.c"), "w", encoding="utf-8") as file:
        file.write(PLANTED)
    functions = ["-wp-fct", "contradictory,wrong,right"]
    result = wp.run(folder, setup, "planted.c", options, functions)
    assert result.unproved == ["typed_wrong_ensures_wrong"] and result.proved == result.total - 1, result.output
    for named in ("", "_requires"):
        passed, failed = wp.smoke(folder, setup, "planted.c", options, functions, named)
        assert passed == 2 and failed == ["typed_contradictory_wp_smoke_default_requires"], failed
    assert wp.functions_without_body(folder, "planted.c") == {"believed"}


def check_nothing_assumed(root):
    good = True
    for path in wp.proof_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for problem in assumptions(path, file.read()):
                good = fail(problem)
    return good


def prove_unit(root, setup, unit, options):
    """What prove_all prints of one file: (problems, lines, result)."""
    problems = [f"{unit}: {name} has no body and is not on the list" for name in sorted(wp.functions_without_body(root, unit) - wp.BELIEVED)]
    result = wp.run(root, setup, unit, options, wp.skip(unit))
    if not result.parsed:
        return [f"{unit}: Frama-C gave no result\n{result.output[-3000:]}"], [], result
    lines = [f"{unit}: {result.proved} of {result.total} goals, {result.seconds:.0f} s"]
    for function, row in sorted(result.table().items()):
        by = ", ".join(f"{who} {count}" for who, count in sorted(row["by"].items()))
        lines.append(f"  {function:30} {row['proved']:4} of {row['goals']:4}   {by}")
    problems += [f"{unit}: {goal} is not proved" for goal in result.unproved]
    if result.proved != result.total or result.total != len(result.goals):
        problems.append(f"{unit}: {result.proved} of {result.total} goals are proved, and {len(result.goals)} are named")
    if result.files != [os.path.realpath(os.path.join(root, unit))]:
        problems.append(f"{unit}: Frama-C read {result.files}")
    return problems, lines, result


def smoke_unit(root, setup, unit, options):
    """(problems, tests passed): all smoke tests of a file, and the preconditions of its lemmas by contradiction."""
    passed, failed = wp.smoke(root, setup, unit, options, wp.skip(unit, wp.BY_CONTRADICTION))
    lemmas = sorted(wp.BY_CONTRADICTION & wp.functions_named(unit))
    if lemmas:
        more, more_failed = wp.smoke(root, setup, unit, options, ["-wp-fct", ",".join(lemmas)], "_requires")
        passed, failed = passed + more, failed + more_failed
        if more + len(more_failed) != len(lemmas):
            failed.append(f"{more + len(more_failed)} preconditions of {lemmas} were looked at")
    return [f"{unit}: a contradiction: {name}" for name in failed], passed


def prove_all(root, options):
    """(problems, names of the proved functions)."""
    problems, proved, total, functions, hints, began = [], 0, 0, set(), {}, time.monotonic()
    units = options.only or wp.UNITS
    with tempfile.TemporaryDirectory() as folder:
        setup = wp.Setup(folder, options, {} if options.no_hints else wp.read_hints())
        planted_goals_must_fail(folder, options)
        for found, lines, result in wp.side_by_side(options, lambda unit: prove_unit(root, setup, unit, options), units):
            print("\n".join(lines), flush=True)
            for problem in found:
                fail(problem)
            problems += found
            proved, total = proved + result.proved, total + result.total
            functions |= set(result.table()) - {"(lemmas)"}
            hints.update((wp.bare(goal), who.split()[0]) for goal, who in result.goals.items() if who not in (None, "Qed", "CFG", "(any)"))
        print(f"{proved} of {total} goals proved, {total - proved} unproved, {time.monotonic() - began:.0f} s", flush=True)
        if not proved == total > 0:
            problems.append("goals are unproved")
        if options.write_hints:
            write_hints(root, hints)
        if options.no_smoke:
            return problems, functions
        began, tests = time.monotonic(), 0
        for found, passed in wp.side_by_side(options, lambda unit: smoke_unit(root, setup, unit, options), units):
            tests += passed
            for problem in found:
                fail(problem)
            problems += found
        if tests < 100 and not options.only:
            problems.append(f"only {tests} smoke tests ran")
            fail(problems[-1])
        print(f"{tests} smoke tests, {time.monotonic() - began:.0f} s", flush=True)
    return problems, functions


def write_hints(root, hints):
    with open(os.path.join(root, wp.HINTS), "w", encoding="utf-8") as file:
        file.write("# Written by tests/proof/prove.py --no-hints --write-hints: which prover to ask first for a goal. No verdict rests on it.\n")
        file.writelines(f"{prover} {goal}\n" for goal, prover in sorted(hints.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="release build whose files these are")
    parser.add_argument("--coverage-build", default="build/proof-coverage", help="folder of the library that counts, which is made")
    parser.add_argument("--only", action="append", help="prove only these files; what ties them to the build is not checked")
    parser.add_argument("--no-smoke", action="store_true", help="leave out the smoke tests")
    parser.add_argument("--write-hints", action="store_true", help=f"write {wp.HINTS}")
    wp.add_options(parser)
    options = parser.parse_args()

    missing = [tool for tool in wp.TOOLS + shipped.TOOLS if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED[frama-c]: not found: {', '.join(missing)} (tests/tools/install_dependencies.sh proof)")
        return 77
    must_notice()
    root, build = wp.ROOT, os.path.join(wp.ROOT, options.build)
    good = check_nothing_assumed(root)
    read = shipped.files_of_frama_c(root)
    problems, functions = prove_all(root, options)
    good = good and not problems
    if not options.only:
        problems = shipped.check_files(root, build, read)
        problems += shipped.check_machine_code(root, build)
        problems += shipped.check_executed(root, build, os.path.join(root, options.coverage_build), functions - wp.ghost_functions(root))
        for problem in problems:
            good = fail(problem)
    print("the proof holds" if good else "the proof does NOT hold")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
