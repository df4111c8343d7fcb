"""What the structure checks share: the tree's files, and a report that ends the program. Standard library only."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tracked_files():
    """Paths relative to the root: what git tracks and what it would add, or every file where there is no git."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                                 capture_output=True).stdout
        names = sorted(set(listing.decode().split("\0")) - {""})
        return [name for name in names if (ROOT / name).is_file()]
    return sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                  if p.is_file() and "build" not in p.relative_to(ROOT).parts and "__pycache__" not in p.parts)


def header_functions(text):
    """Names of the functions that the public header declares, in order."""
    return re.findall(r"^PROOFINFER_API\s[^;(]*?\b(proofinfer_\w+)\s*\(", text, re.M)


def strip_comments(text):
    """C and C++ comments and string literals replaced by blanks; line breaks stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: "\n" * m.group().count("\n") if m.group()[0] == "/" else '""', text)


def skip(cause, why):
    """Ends the program as skipped; the test runner reads the line."""
    print(f"SKIPPED[{cause}]: {why}")
    sys.exit(77)


def must_notice(what, problems):
    """A check that does not see a planted mistake is itself broken."""
    if not problems:
        print(f"self-test: the check does not notice {what}")
        sys.exit(2)


def report(problems, what):
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{len(problems)} problem(s): {what}")
    print(f"ok: {what}")
