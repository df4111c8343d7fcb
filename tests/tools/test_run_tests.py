"""The test runner, on made-up tests: it counts cases, sees skips and their causes, and fails where it must."""
import os
import pathlib
import subprocess
import sys
import tempfile

RUNNER = pathlib.Path(__file__).with_name("run_tests.py")

GTEST = """[==========] Running 3 tests from 1 test suite.
x.cpp:1: Skipped
SKIPPED[{cause}]: a.bin is absent
[  SKIPPED ] X.a (0 ms)
[==========] 3 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
"""
GTEST_FAILED = """[==========] 2 tests from 1 test suite ran. (0 ms total)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
"""


def run(tests, ci, expected="models because"):
    """tests: (name, output, exit code, skip code). Gives the runner's exit code and its last line."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        lines = []
        for name, output, code, skip_code in tests:
            (root / f"{name}.txt").write_text(output)
            lines.append(f'add_test({name} "/bin/sh" "-c" "cat \'{root / name}.txt\'; exit {code}")')
            if skip_code:
                lines.append(f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE {skip_code})")
        (root / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
        (root / "expected.txt").write_text(expected + "\n")
        environment = dict(os.environ, CI="true" if ci else "")
        done = subprocess.run([sys.executable, str(RUNNER), "--build-dir", folder, "--expected-skips", str(root / "expected.txt")],
                              capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout.strip().splitlines()[-1], done.stdout


def run_suite(output, ci, code=0):
    """The same of a suite that counts by itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "output.txt").write_text(output)
        (root / "expected.txt").write_text("models because\n")
        done = subprocess.run([sys.executable, str(RUNNER), "--suite", "--expected-skips", str(root / "expected.txt"), "/bin/sh", "-c",
                               f"cat '{root / 'output.txt'}'; exit {code}"],
                              capture_output=True, text=True, env=dict(os.environ, CI="true" if ci else ""))
        return done.returncode, done.stdout.strip().splitlines()[-1], done.stdout


def expect(what, got, code, last):
    if got[:2] != (code, last):
        sys.exit(f"{what}: exit code {got[0]} and {got[1]!r}; expected {code} and {last!r}\n{got[2]}")


good = ("plain", "fine\n", 0, 0)
expect("cases are counted", run([good, ("g", GTEST.format(cause="models"), 0, 0)], True), 0, "3 passed, 0 failed, 1 skipped")
expect("an unknown cause", run([good, ("g", GTEST.format(cause="mood"), 0, 0)], True), 1, "3 passed, 1 failed, 1 skipped")
expect("an unknown cause at home", run([good, ("g", GTEST.format(cause="mood"), 0, 0)], False), 0, "3 passed, 0 failed, 1 skipped")
silent = GTEST.replace("SKIPPED[{cause}]: a.bin is absent\n", "")
expect("no cause", run([good, ("g", silent, 0, 0)], True), 1, "3 passed, 1 failed, 1 skipped")
expect("a failed case", run([good, ("g", GTEST_FAILED, 1, 0)], True), 1, "2 passed, 1 failed, 0 skipped")
expect("a failed program with good cases", run([good, ("g", GTEST.format(cause="models"), 1, 0)], True), 1, "3 passed, 1 failed, 1 skipped")
expect("a script that skips", run([good, ("s", "SKIPPED[models]: none\n", 77, 77)], True), 0, "1 passed, 0 failed, 1 skipped")
expect("a script that skips without cause", run([good, ("s", "", 77, 77)], True), 1, "1 passed, 1 failed, 1 skipped")
expect("a script that skips a part", run([("s", "SKIPPED[models]: a part\n", 0, 0)], True), 0, "1 passed, 0 failed, 1 skipped")
expect("a failing script", run([good, ("s", "bad\n", 3, 0)], True), 1, "1 passed, 1 failed, 0 skipped")
expect("a crash", run([good, ("s", "[==========] Running 3 tests\n", 139, 0)], True), 1, "1 passed, 1 failed, 0 skipped")
expect("nothing", run([], True), 1, "0 passed, 1 failed, 0 skipped")
LAST = "3 passed, 0 failed, 1 skipped"
expect("a suite", run_suite(f"SKIPPED[models]: none\n{LAST}\n", True), 0, LAST)
expect("a suite's unknown cause", run_suite(f"SKIPPED[mood]: bad\n{LAST}\n", True), 1, "3 passed, 1 failed, 1 skipped")
expect("a suite's unknown cause at home", run_suite(f"SKIPPED[mood]: bad\n{LAST}\n", False), 0, LAST)
expect("a suite's skip without cause", run_suite(f"{LAST}\n", True), 1, "3 passed, 1 failed, 1 skipped")
expect("a suite that ends badly", run_suite(f"SKIPPED[models]: none\n{LAST}\n", True, 3), 1, "3 passed, 1 failed, 1 skipped")
expect("a suite that counts a failure", run_suite("2 passed, 1 failed, 0 skipped\n", True, 1), 1, "2 passed, 1 failed, 0 skipped")
expect("a suite that stops in the middle", run_suite("1 passed\n", True), 1, "0 passed, 1 failed, 0 skipped")
expect("a suite that ran nothing", run_suite("0 passed, 0 failed, 0 skipped\n", True), 1, "0 passed, 1 failed, 0 skipped")
print("ok: the test runner")
