"""Objects compiled for one instruction set hold no weak symbol: the linker could pick that copy for code that runs on an older CPU.
Argument: the build folder."""
import pathlib
import re
import subprocess
import sys

from checks import must_notice, report


def weak_problems(name, listing):
    """listing: the output of nm. W, V, u: weak or unique, that is an inline function, a template or their data."""
    return [f"{name}: {match.group(2)} is weak" for match in re.finditer(r"^[0-9a-f]+ ([WVuwv]) (\S+)$", listing, re.M)]


def self_test():
    must_notice("a weak function", weak_problems("x", "0000000000000000 W _ZSt3minIfERKT_S2_S2_\n"))
    must_notice("weak data", weak_problems("x", "0000000000000010 V _ZN10proofinfer5tableE\n"))
    assert not weak_problems("x", "0000000000000000 T _ZN1x1yEv\n                 U memcpy\n0000000000000000 t z\n")


self_test()
objects = sorted(path for path in pathlib.Path(sys.argv[1]).rglob("*.o") if re.match(r"kernels_(?!scalar)\w+\.", path.name))
if not objects:
    sys.exit("no object of an instruction set under " + sys.argv[1])
found = []
for path in objects:
    found += weak_problems(path.name, subprocess.run(["nm", str(path)], check=True, capture_output=True, text=True).stdout)
report(found, f"{len(objects)} objects of instruction sets without weak symbols")
