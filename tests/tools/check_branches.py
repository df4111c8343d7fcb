#!/usr/bin/env python3
"""Compares the branches that no test takes with the list of those that none can.

    check_branches.py COVERAGE.json EXCEPTIONS.txt

COVERAGE.json: what `gcovr --json` writes. EXCEPTIONS.txt: a line "FILE, N: CODE", N branches of the lines of FILE that read CODE being never
taken, then an indented line with the reason. The list must be exact: a missed branch that is not in it fails, and so does an entry that is not
missed any more. Standard library only.
"""
import collections
import json
import pathlib
import re
import sys

ENTRY = re.compile(r"(\S+), (\d+): (.*)")


def count_branches(coverage, line_of):
    """All branches, and a Counter of missed ones by (file, code of the line)."""
    total, missed = 0, collections.Counter()
    for file in coverage["files"]:
        for line in file["lines"]:
            branches = [branch for branch in line.get("branches", []) if not branch.get("throw")]
            total += len(branches)
            missed[file["file"], line_of(file["file"], line["line_number"]).strip()] += sum(branch["count"] == 0 for branch in branches)
    return total, +missed


def read_exceptions(text):
    """(file, code) -> branches; an entry without a reason, and a reason without an entry, is an error."""
    exceptions, awaited = {}, None
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            if awaited is None:
                raise ValueError(f"a reason without an entry: {line.strip()}")
            awaited = None
            continue
        found = ENTRY.fullmatch(line)
        if awaited is not None or not found:
            raise ValueError(f"an entry without a reason: {awaited}" if awaited else f"no entry: {line}")
        awaited = line
        exceptions[found[1], found[3].strip()] = int(found[2])
    if awaited is not None:
        raise ValueError(f"an entry without a reason: {awaited}")
    return exceptions


def problems_of(missed, exceptions):
    return [f"{file}: {code}\n    {missed.get((file, code), 0)} branches are never taken; the list of exceptions says {exceptions.get((file, code), 0)}"
            for file, code in sorted(missed.keys() | exceptions.keys()) if missed.get((file, code), 0) != exceptions.get((file, code), 0)]


def self_test():
    """The judgement sees each thing that it is there to see."""
    lines = [{"line_number": 1, "branches": [{"count": 0}, {"count": 3}]}, {"line_number": 2, "branches": [{"count": 1}, {"count": 3}]},
             {"line_number": 3, "branches": []}]
    total, missed = count_branches({"files": [{"file": "a.cpp", "lines": lines}]}, lambda file, number: f"  line {number}")
    assert total == 4 and missed == {("a.cpp", "line 1"): 1}
    listed = read_exceptions("# comment\n\na.cpp, 1: line 1\n  because\n")
    assert not problems_of(missed, listed)
    assert problems_of(missed, {})
    assert problems_of({}, listed)
    assert problems_of({("a.cpp", "line 1"): 2}, listed)
    for bad in ("a.cpp, 1: line 1\n", "  because\n", "a.cpp: line 1\n  because\n", "a.cpp, 1: x\na.cpp, 1: y\n  because\n"):
        try:
            read_exceptions(bad)
        except ValueError:
            continue
        raise AssertionError(f"accepted: {bad!r}")


def main():
    self_test()
    coverage = json.loads(pathlib.Path(sys.argv[1]).read_text())
    sources = {file["file"]: pathlib.Path(file["file"]).read_text().splitlines() for file in coverage["files"]}
    total, missed = count_branches(coverage, lambda file, number: sources[file][number - 1])
    exceptions = read_exceptions(pathlib.Path(sys.argv[2]).read_text())
    problems = problems_of(missed, exceptions)
    print("\n".join(problems + [f"branches: {total - sum(missed.values())} of {total} taken, {sum(exceptions.values())} listed as exceptions"]))
    return 1 if problems or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
