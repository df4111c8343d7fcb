"""The binary interface against the stored baseline, by libabigail. Arguments: shared library [--write].
Removed or changed functions and types fail; added ones do not: the baseline is rewritten when a version is released."""
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

from checks import ROOT, report, skip

BASELINE = ROOT / "tests" / "data" / "abi" / f"proofinfer-1.{platform.machine()}.abi"
CHANGED, INCOMPATIBLE = 4, 8  # bits of abidiff's exit code


def describe(library, to):
    subprocess.run(["abidw", "--header-file", str(ROOT / "include" / "proofinfer.h"), "--drop-private-types", "--exported-interfaces-only",
                    "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash", "--out-file", str(to), library],
                   check=True)
    to.write_text(to.read_text().replace(str(ROOT) + "/", ""))


def differences(old, new):
    done = subprocess.run(["abidiff", "--no-added-syms", str(old), str(new)], capture_output=True, text=True)
    return [done.stdout + done.stderr] if done.returncode & (1 | 2 | CHANGED | INCOMPATIBLE) else []


library = sys.argv[1]
if not shutil.which("abidw") or not shutil.which("abidiff"):
    skip("abigail", "abidw and abidiff are not installed")
if ".debug_info" not in subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout:
    skip("no-debug-info", "the library was built without debug information; the debug builds check it")
if "--write" in sys.argv:
    BASELINE.parent.mkdir(exist_ok=True)
    describe(library, BASELINE)
    sys.exit()
if not BASELINE.exists():
    skip("abi-baseline", f"no baseline for {platform.machine()}")
with tempfile.TemporaryDirectory() as folder:
    now = pathlib.Path(folder) / "now.abi"
    describe(library, now)
    # Self-test: a parameter that changed its type, and a function that is gone.
    changed = pathlib.Path(folder) / "changed.abi"
    text = now.read_text()
    for old, new in (("type-decl name='double' size-in-bits='64'", "type-decl name='double' size-in-bits='32'"),
                     ("proofinfer_session_rewind", "proofinfer_session_rewound")):
        if old not in text:
            sys.exit(f"self-test: the description of the library lacks {old}")
        changed.write_text(text.replace(old, new))
        if not differences(now, changed):
            sys.exit(f"self-test: abidiff does not notice {old} becoming {new}")
    report(differences(BASELINE, now), "binary interface as in " + BASELINE.name)
