"""The tree as a whole: what the top level holds, nothing of this machine, nothing of other projects, no check that cannot fail."""
import pathlib
import re

from checks import ROOT, must_notice, report, tracked_files

TOP_LEVEL = {"include", "src", "bindings", "tests", "reference", "fuzz", "docs", "CMakeLists.txt", "CMakePresets.json", "proofinfer.pc.in",
             "README.md", "LICENSE"}
OTHERS_FILES = {"run.c", "runq.c", "stories260K.bin", "tok512.bin", "tokenizer.bin", "stories15M.bin"}
LARGEST_BYTES = 4 << 20
# Folders that a checkout may stand in and that files may well name.
COMMON_PARENTS = {"/", "/tmp", "/usr/src", "/opt", "/home", "/src", "/var/tmp"}
UNFAILING = [r"\|\|\s*true\b", r"\|\|\s*:", r"continue-on-error", r"^\s*set \+e\b", r"\|\|\s*exit 0\b"]


def top_level_problems(names):
    tops = {name.split("/")[0] for name in names}
    return [f"{top}: the top level holds only {', '.join(sorted(TOP_LEVEL))} and dotfiles"
            for top in sorted(tops - TOP_LEVEL) if not top.startswith(".")]


def path_problems(name, text, machine_paths):
    return [f"{name}: mentions the machine path {path}" for path in machine_paths if path in text]


def name_problems(name, size):
    found = []
    if pathlib.PurePath(name).name in OTHERS_FILES:
        found.append(f"{name}: belongs to another project")
    if size > LARGEST_BYTES:
        found.append(f"{name}: {size} bytes")
    return found


def unfailing_problems(name, text):
    return [f"{name}:{number}: {line.strip()}: a failure would not be seen" for number, line in enumerate(text.splitlines(), 1)
            if any(re.search(pattern, line) for pattern in UNFAILING)]


def self_test():
    must_notice("a stray folder", top_level_problems(["scratch/x.txt"]))
    assert not top_level_problems(["src/x.c", ".ci/run", "README.md"])
    must_notice("a path of this machine", path_problems("x", "see /srv/checkout/proofinfer/src", ["/srv/checkout/"]))
    must_notice("another project's file", name_problems("tests/data/run" + ".c", 10))
    must_notice("a large file", name_problems("x.bin", LARGEST_BYTES + 1))
    for line in ("make test || " + "true", "continue-on" + "-error: yes", "  set " + "+e", "ctest || " + ":", "ctest || " + "exit 0"):
        must_notice(line, unfailing_problems("x", line))
    assert not unfailing_problems("x", "set -euo pipefail\nfoo || exit 1")


self_test()
files = tracked_files()
found = top_level_problems(files)
paths = [str(ROOT) + "/", str(pathlib.Path.home()) + "/"]
if str(ROOT.parent) not in COMMON_PARENTS:
    paths.append(str(ROOT.parent) + "/")
for name in files:
    path = ROOT / name
    found += name_problems(name, path.stat().st_size)
    found += path_problems(name, path.read_bytes().decode("utf-8", "replace"), paths)
for name in (".ci/run", ".github/workflows/ci.yml", "tests/tools/check.sh", "tests/tools/install_dependencies.sh", "tests/tools/long.sh"):
    if not (ROOT / name).is_file():
        found.append(f"{name}: is missing")
    else:
        found += unfailing_problems(name, (ROOT / name).read_text())
if "bash .ci/run" not in (ROOT / ".github/workflows/ci.yml").read_text():
    found.append(".github/workflows/ci.yml: does not run .ci/run")
report(found, f"the tree: {len(files)} files")
