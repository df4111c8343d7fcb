"""What the built libraries export, need and leave undefined. Arguments: shared library, static library ("" where not built)."""
import re
import subprocess
import sys

from checks import ROOT, header_functions, must_notice, report

PINNED = ROOT / "tests" / "data" / "exported_symbols.txt"
ALLOWED_NEEDS = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Of the C++ runtime: mangled names, exception and RTTI support, guards, operators. __cxa_finalize and __cxa_atexit are the C library's.
CXX_RUNTIME = re.compile(r"^(_Z(?!N10proofinfer|NK10proofinfer|TV?N10proofinfer)\w*|__cxa_(?!finalize$|atexit$)\w+|__gxx_\w+|_Unwind_\w+|"
                         r"__dynamic_cast|_ZT[IVS]\w*10__cxxabiv1\w*)$")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def export_problems(exported, pinned, declared):
    found = [f"{name}: exported, and not in {PINNED.name}" for name in sorted(exported - pinned)]
    found += [f"{name}: in {PINNED.name}, and not exported" for name in sorted(pinned - exported)]
    found += [f"{name}: in the header, and not in {PINNED.name}" for name in sorted(declared - pinned)]
    found += [f"{name}: in {PINNED.name}, and not in the header" for name in sorted(pinned - declared)]
    return found


def undefined_problems(library, listing):
    """listing: the output of nm -u. Names of the library itself, undefined in one member of an archive and defined in another, are fine."""
    found = []
    for line in listing.splitlines():
        match = re.match(r"\s+[UwWvV]\s+(\S+)", line)
        name = match.group(1).split("@")[0] if match else ""
        if CXX_RUNTIME.match(name):
            found.append(f"{library}: needs {name} of the C++ runtime")
    return found


def dynamic_problems(listing):
    found = []
    needs = set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", listing))
    found += [f"needs {name}" for name in sorted(needs - ALLOWED_NEEDS)]
    if "[libproofinfer.so.1]" not in listing:
        found.append("SONAME is not libproofinfer.so.1")
    if "BIND_NOW" not in listing:
        found.append("is not linked with -z now")
    if re.search(r"\((RPATH|RUNPATH)\)", listing):
        found.append("has a run path")
    if "TEXTREL" in listing:
        found.append("has text relocations")
    return found


def self_test():
    must_notice("a symbol too many", export_problems({"a", "b"}, {"a"}, {"a"}))
    must_notice("a symbol too few", export_problems(set(), {"a"}, {"a"}))
    must_notice("a function that is not pinned", export_problems({"a"}, {"a"}, {"a", "b"}))
    for name in ("_Znwm", "__cxa_throw", "__gxx_personality_v0", "_Unwind_Resume", "_ZNSt6vectorIiSaIiEE9push_backEOi", "__cxa_guard_acquire",
                 "__cxa_pure_virtual", "_ZTVN10__cxxabiv117__class_type_infoE"):
        must_notice(name, undefined_problems("x", f"                 U {name}\n"))
    assert not undefined_problems("x", "                 w __cxa_finalize@GLIBC_2.2.5\n                 U _ZN10proofinfer4failEv\n U malloc\n")
    good = "(NEEDED) Shared library: [libc.so.6]\n(SONAME) Library soname: [libproofinfer.so.1]\n(FLAGS) BIND_NOW\n"
    assert not dynamic_problems(good)
    must_notice("libstdc++", dynamic_problems(good + "(NEEDED)    Shared library: [libstdc++.so.6]"))
    must_notice("a wrong SONAME", dynamic_problems(good.replace("so.1", "so.2")))
    must_notice("a run path", dynamic_problems(good + "0x1d (RUNPATH) Library runpath: [/x]"))


self_test()
shared, static = (sys.argv[1:] + ["", ""])[:2]
found = []
declared = set(header_functions((ROOT / "include" / "proofinfer.h").read_text()))
pinned = {line for line in PINNED.read_text().splitlines() if line and not line.startswith("#")}
exported = pinned
if shared:
    defined = run("nm", "-D", "--defined-only", shared)
    exported = {line.split()[-1].split("@")[0] for line in defined.splitlines()} - {"PROOFINFER_1"}
    found += dynamic_problems(run("readelf", "-dW", shared))
    found += undefined_problems(shared, run("nm", "-u", shared))
    if "GNU_RELRO" not in run("readelf", "-lW", shared):
        found.append("has no relro segment")
    stack = re.search(r"GNU_STACK.*", run("readelf", "-lW", shared))
    if not stack or "RWE" in stack.group():
        found.append("has an executable stack")
found += export_problems(exported, pinned, declared)
if static:
    found += undefined_problems(static, run("nm", "-u", static))
report(found, f"{len(pinned)} exported functions, needs and undefined symbols")
