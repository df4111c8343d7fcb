"""The arrows between the rooms of src/: who may include whom, where intrinsics and system headers may stand."""
import re

from checks import ROOT, must_notice, report

ROOMS = ["proved", "base", "format", "kernels", "model", "api", "cli"]
MAY_INCLUDE = {
    "proved": {"proved"},
    "base": {"proved", "base"},
    "format": {"proved", "base", "format"},
    "kernels": {"proved", "base", "kernels"},
    "model": {"proved", "base", "format", "kernels", "model"},
    "api": {"proved", "base", "format", "kernels", "model", "api"},
    "cli": {"cli"},
}
PUBLIC_HEADER_ROOMS = {"api", "cli"}
INTRINSICS = {"immintrin.h", "emmintrin.h", "xmmintrin.h", "x86intrin.h", "arm_neon.h", "smmintrin.h", "tmmintrin.h"}
SYSTEM = {"unistd.h", "fcntl.h", "pthread.h", "signal.h", "sched.h", "dirent.h", "windows.h", "dlfcn.h"}
FORBIDDEN = {"iostream", "stdexcept", "exception", "string", "vector", "map", "memory", "functional", "thread", "mutex"}


def problems_of(path, text):
    """path: relative to src/."""
    room = path.split("/")[0]
    name = path.split("/")[-1]
    found = []
    for line_number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        quoted, target = match.group(1) == '"', match.group(2)
        where = f"src/{path}:{line_number}: includes {target}: "
        if target == "proofinfer.h":
            if room not in PUBLIC_HEADER_ROOMS:
                found.append(where + "only api and cli know the public header")
        elif quoted:
            head = target.split("/")[0]
            if room == "cli" and (ROOT / "src" / "cli" / target).is_file():
                continue  # the program finds its own files by their names
            if "/" not in target or head not in ROOMS:
                found.append(where + "not a path from src/")
            elif head not in MAY_INCLUDE[room]:
                found.append(where + f"{room} may include {', '.join(sorted(MAY_INCLUDE[room]))} only")
        elif target in INTRINSICS:
            if not re.match(r"kernels_[a-z0-9]+\.", name):
                found.append(where + "intrinsics stand in kernels_<isa> files only")
        elif target in SYSTEM or target.startswith(("sys/", "linux/")):
            if room != "cli" and not re.match(r"os_\w+\.cpp$", name):
                found.append(where + "the operating system is called in os_<system>.cpp only")
        elif target in FORBIDDEN and room != "cli":
            found.append(where + "the library keeps no part of the C++ runtime")
    return found


def self_test():
    must_notice("format including kernels", problems_of("format/x.cpp", '#include "kernels/kernels.h"'))
    must_notice("kernels including format", problems_of("kernels/x.cpp", '#include "format/checkpoint.h"'))
    must_notice("base including model", problems_of("base/x.cpp", '#include "model/model.h"'))
    must_notice("proved including base", problems_of("proved/x.c", '#include "base/os.h"'))
    must_notice("model including the public header", problems_of("model/x.cpp", "#include <proofinfer.h>"))
    must_notice("the program including internals", problems_of("cli/x.cpp", '#include "model/model.h"'))
    must_notice("intrinsics in forward", problems_of("model/forward.cpp", "#include <immintrin.h>"))
    must_notice("threads in a kernel", problems_of("kernels/x.cpp", "#include <pthread.h>"))
    must_notice("std::string", problems_of("model/x.cpp", "#include <string>"))
    assert not problems_of("kernels/kernels_avx2.cpp", "#include <immintrin.h>")
    assert not problems_of("api/model.cpp", '#include "proofinfer.h"\n#include "model/model.h"\n#include <string.h>')



self_test()
found = []
for file in sorted((ROOT / "src").rglob("*")):
    path = str(file.relative_to(ROOT / "src"))
    if file.suffix in {".h", ".c", ".cpp"}:
        found += problems_of(path, file.read_text())
report(found, "include arrows of src/")
