#!/usr/bin/env python3
"""Runs ctest, says what was skipped and why, and ends with the line "N passed, N failed, N skipped".

    run_tests.py --build-dir DIR [--expected-skips FILE] [ctest arguments...]
    run_tests.py --suite [--expected-skips FILE] COMMAND...

Counted are cases: each case of a GoogleTest program, each other test once. A test says "SKIPPED[cause]: why" for whatever it skips. With
CI=true in the environment a skip whose cause is not in the list of expected ones is a failure; everywhere, so is running nothing.
With --suite it is not ctest that runs but another suite, which counts by itself and ends with a line of the same form.
Standard library only.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

EXPECTED_SKIPS = pathlib.Path(__file__).resolve().parents[1] / "data" / "expected_skips.txt"
UNSTATED = "unstated"

Skip = collections.namedtuple("Skip", "cause why test")
Outcome = collections.namedtuple("Outcome", "passed failed skips")


def read_causes(path):
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return {line.split(None, 1)[0]: line.split(None, 1)[-1] for line in lines if line}


def count_of(kind, output):
    found = re.findall(rf"^\[\s+{kind}\s+\] (\d+) tests?", output, re.M)
    return int(found[-1]) if found else 0


def outcome_of(name, status, output):
    """The cases of one ctest test, from its status ("run", "fail", "notrun", "disabled") and its output."""
    skips = [Skip(cause, why.strip(), name) for cause, why in re.findall(r"SKIPPED\[([\w.-]+)\]: ?(.*)", output)]
    if re.search(r"^\[=+\] \d+ tests? from .* ran\.", output, re.M):
        passed, failed, skipped = count_of("PASSED", output), count_of("FAILED", output), count_of("SKIPPED", output)
        if status == "fail" and failed == 0:
            failed = 1  # the program ended badly after its cases, for example with a leak
    else:
        passed, failed, skipped = int(status == "run"), int(status == "fail"), int(status in ("notrun", "disabled"))
    skips += [Skip(UNSTATED, "no cause was given", name)] * (skipped - len(skips))
    return Outcome(passed, failed, skips)


def run_ctest(build_dir, arguments):
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.xml"
        command = ["ctest", "--test-dir", str(build_dir), "--output-on-failure", "--output-junit", str(results),
                   "--test-output-size-passed", "100000000", "--test-output-size-failed", "100000000", *arguments]
        subprocess.run(command, check=False)
        if not results.exists():
            return []
        cases = xml.parse(results).getroot().iter("testcase")
        return [outcome_of(c.get("name"), c.get("status"), c.findtext("system-out") or "") for c in cases]


def run_suite(command):
    """A suite that counts by itself; its output passes through as it comes."""
    suite = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = []
    for line in suite.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    status = suite.wait()
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", lines[-1] if lines else "")
    passed, failed, skipped = (int(count) for count in counts.groups()) if counts else (0, 1, 0)
    if status != 0 and failed == 0:
        failed = 1  # it ended badly after its last line
    told = re.findall(r"SKIPPED\[([\w.-]+)\]: ?(.*)", "\n".join(lines))
    name = os.path.basename(command[0])
    skips = [Skip(cause, why.strip(), name) for cause, why in told]
    return [Outcome(passed, failed, skips + [Skip(UNSTATED, "no cause was given", name)] * (skipped - len(skips)))]


def print_skips(skips, causes):
    """Prints them by cause and gives the causes that are not expected."""
    by_cause = collections.defaultdict(list)
    for skip in skips:
        by_cause[skip.cause].append(skip)
    for cause, members in sorted(by_cause.items()):
        print(f"skipped for {cause} ({causes.get(cause, 'NOT in the list of expected skips')}): {len(members)}")
        for text, count in sorted(collections.Counter(f"{m.test}: {m.why}" for m in members).items()):
            print(f"  {text}" + (f" ({count} times)" if count > 1 else ""))
    return sorted(set(by_cause) - set(causes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build-dir")
    what.add_argument("--suite", action="store_true")
    parser.add_argument("--expected-skips", default=EXPECTED_SKIPS, type=pathlib.Path)
    options, arguments = parser.parse_known_args()
    outcomes = run_suite(arguments) if options.suite else run_ctest(options.build_dir, arguments)
    passed = sum(o.passed for o in outcomes)
    failed = sum(o.failed for o in outcomes)
    skips = [skip for o in outcomes for skip in o.skips]
    unexpected = print_skips(skips, read_causes(options.expected_skips))
    if unexpected and os.environ.get("CI") == "true":
        print(f"not expected under CI: skips for {', '.join(unexpected)}")
        failed += 1
    if passed + failed == 0:
        print("no test ran")
        failed = 1
    print(f"{passed} passed, {failed} failed, {len(skips)} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
