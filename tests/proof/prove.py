#!/usr/bin/env python3
"""Proves the shipped C files of src/proved with Frama-C WP: one command, non-zero unless every goal is proved.

Besides the goals it checks that nothing is assumed (no admit, assume or axiom, no contract without a body but the listed ones), that no
precondition is contradictory (smoke tests), that the files read are the files that the build compiled (path and digest), that the build's
libraries hold the machine code of these files, and that every proved function was executed.

--build is a release build (tests/tools/check.sh makes one). The machine code's execution is counted in a build of its own, with coverage.
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
int believed(int n);
int calls(int n) { return believed(n); }
"""


def planted_goals_must_fail(environment, folder, options):
    """A wrong contract, a contradictory one and a function without a body are noticed by the very functions that judge the real ones."""
    with open(os.path.join(folder, "planted.c"), "w", encoding="utf-8") as file:
        file.write(PLANTED)
    result = wp.run(folder, environment, "planted.c", options, ["-wp-fct", "contradictory,wrong"])
    assert result.unproved == ["typed_wrong_ensures_wrong"] and result.proved == result.total - 1, result.output
    _, failed = wp.smoke(folder, environment, "planted.c", options, ["-wp-fct", "contradictory,wrong"])
    assert failed == ["typed_contradictory_wp_smoke_default_requires"], failed
    assert wp.functions_without_body(folder, "planted.c") == {"believed"}


def check_nothing_assumed(root):
    good = True
    for path in wp.proof_files(root):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for problem in assumptions(path, file.read()):
                good = fail(problem)
    return good


def check_bodies(root, unit):
    """Functions without a body, by Frama-C's own count, are listed ones."""
    good = True
    for name in sorted(wp.functions_without_body(root, unit) - wp.BELIEVED):
        good = fail(f"{unit}: {name} has no body and is not on the list")
    return good


def prove_unit(root, environment, unit, options):
    """Proves one file and prints its functions; (holds, result)."""
    good = check_bodies(root, unit)
    result = wp.run(root, environment, unit, options, wp.skip(unit))
    if not result.parsed:
        return fail(f"{unit}: Frama-C gave no result\n{result.output[-3000:]}"), result
    print(f"{unit}: {result.proved} of {result.total} goals, {result.seconds:.0f} s")
    for function, row in sorted(result.table().items()):
        by = ", ".join(f"{who} {count}" for who, count in sorted(row["by"].items()))
        print(f"  {function:30} {row['proved']:4} of {row['goals']:4}   {by}")
    for goal in result.unproved:
        good = fail(f"{unit}: {goal} is not proved")
    if result.proved != result.total or result.total != len(result.goals):
        good = fail(f"{unit}: {result.proved} of {result.total} goals are proved, and {len(result.goals)} are named")
    return good, result


def prove_all(root, options):
    good, proved, total, functions, began = True, 0, 0, set(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment = wp.prover_setup(folder)
        planted_goals_must_fail(environment, folder, options)
        for unit in options.only or wp.UNITS:
            holds, result = prove_unit(root, environment, unit, options)
            good = good and holds
            proved, total = proved + result.proved, total + result.total
            functions |= set(result.table()) - {"(lemmas)"}
            sys.stdout.flush()
        print(f"{proved} of {total} goals proved, {total - proved} unproved, {time.monotonic() - began:.0f} s")
        began, tests = time.monotonic(), 0
        for unit in options.only or wp.UNITS:
            count, failed = wp.smoke(root, environment, unit, options, wp.skip(unit, wp.BY_CONTRADICTION))
            tests += count
            for name in failed:
                good = fail(f"{unit}: a contradiction: {name}")
        if tests < 100 and not options.only:
            good = fail(f"only {tests} smoke tests ran")
        print(f"{tests} smoke tests, {time.monotonic() - began:.0f} s")
    return good and proved == total > 0, functions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="release build whose files these are")
    parser.add_argument("--coverage-build", default="build/proof-coverage", help="folder of the build with coverage that is made")
    parser.add_argument("--only", action="append", help="prove only these files; nothing else is checked")
    wp.add_options(parser)
    options = parser.parse_args()

    missing = [tool for tool in wp.TOOLS + shipped.TOOLS if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED[frama-c]: not found: {', '.join(missing)} (tests/tools/install_dependencies.sh proof)")
        return 77
    must_notice()
    root = wp.ROOT
    good = check_nothing_assumed(root)
    good_goals, functions = prove_all(root, options)
    good = good and good_goals
    if not options.only:
        problems = shipped.check_files(root, os.path.join(root, options.build))
        problems += shipped.check_machine_code(root, os.path.join(root, options.build))
        problems += shipped.check_executed(root, os.path.join(root, options.coverage_build), functions - wp.ghost_functions(root))
        for problem in problems:
            good = fail(problem)
    print("the proof holds" if good else "the proof does NOT hold")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
