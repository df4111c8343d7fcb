"""The public header: compiles alone as C and C++ of every age, every function documented, only types that every FFI can say."""
import re
import shutil
import subprocess
import tempfile

from checks import ROOT, header_functions, must_notice, report, strip_comments

HEADER = ROOT / "include" / "proofinfer.h"
STANDARDS = [("gcc", "c", "c89"), ("gcc", "c", "c99"), ("gcc", "c", "c11"), ("g++", "c++", "c++98"), ("g++", "c++", "c++17"),
             ("clang", "c", "c89"), ("clang", "c", "c99"), ("clang", "c", "c11"), ("clang++", "c++", "c++98"), ("clang++", "c++", "c++17")]


def compile_problems(header):
    found = []
    for compiler, language, standard in STANDARDS:
        if not shutil.which(compiler):
            print(f"SKIPPED[{compiler.replace('+', 'p')}]: {compiler} is not installed")
            continue
        # clang calls the header's own long long (in <stdint.h>) an extension of C89 and C++98: of the C library, not of ours.
        command = [compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes" if language == "c" else "-Wshadow",
                   "-Werror", "-fsyntax-only", "-x", language, "-I", str(header.parent), "-"]
        program = f"#include <{header.name}>\n#include <{header.name}>\nint translation_unit;\n"
        done = subprocess.run(command, input=program, text=True, capture_output=True)
        if done.returncode != 0:
            found.append(f"{compiler} -std={standard}:\n{done.stderr}")
    return found


def documentation_problems(text):
    """Every declaration stands under a comment; a group of declarations without blank line between them may share one, and the first group
    of a section may have the section's."""
    found = []
    section = False
    for block in re.split(r"\n\s*\n", text):
        documented, section = section, block.startswith("/* ----") and block.endswith("*/") and "\n" in block
        inside = False
        for line in block.splitlines():
            stripped = line.strip()
            if stripped.startswith("/*"):
                inside, documented = True, True
            if inside:
                inside = "*/" not in stripped
                continue
            match = re.match(r"PROOFINFER_API\s.*?\b(proofinfer_\w+)\s*\(", stripped)
            if match and not documented:
                found.append(f"{match.group(1)}: has no comment")
    return found


def type_problems(text):
    code = strip_comments(text)
    declarations = re.findall(r"^(?:PROOFINFER_API|typedef)\b[^;]*;", code, re.M | re.S)
    found = []
    for declaration in declarations:
        flat = " ".join(declaration.split())
        for pattern, why in ((r"\bbool\b|\b_Bool\b", "bool"), (r"\benum\b", "an enum"), (r"\.\.\.", "a variable argument list"),
                             (r"\blong\b", "long"), (r"\bint\b", "a plain int"), (r"\bunsigned\b", "a plain unsigned")):
            if re.search(pattern, flat):
                found.append(f"{flat[:90]}: has {why}")
        if flat.startswith("PROOFINFER_API"):
            if "(" not in flat:
                found.append(f"{flat[:90]}: exports a variable")
            for word in re.findall(r"\b(proofinfer_\w+)\b(?!\s*\()", flat):
                if word.endswith("_function"):
                    continue
                if not re.search(rf"\b{word}\s*\*", flat):
                    found.append(f"{flat[:90]}: {word} crosses by value")
    return found


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        import pathlib
        bad = pathlib.Path(folder) / "bad.h"
        bad.write_text("static inline int f(void) { return 0; } // C99\n")
        must_notice("a header that is no C89", compile_problems(bad))
    must_notice("a function without comment", documentation_problems("\n\nPROOFINFER_API int32_t proofinfer_x(void);\n"))
    for line in ("PROOFINFER_API bool proofinfer_x(void);", "PROOFINFER_API int32_t proofinfer_x(const char *f, ...);",
                 "PROOFINFER_API long proofinfer_x(void);", "PROOFINFER_API int32_t proofinfer_x(proofinfer_model model);",
                 "PROOFINFER_API int32_t proofinfer_count;", "PROOFINFER_API int32_t proofinfer_x(enum proofinfer_kind k);"):
        must_notice(line, type_problems(line))
    assert not type_problems("PROOFINFER_API int32_t proofinfer_x(const proofinfer_model *model, size_t n);")


self_test()
text = HEADER.read_text()
found = compile_problems(HEADER) + documentation_problems(text) + type_problems(text)
names = header_functions(text)
if len(names) != len(set(names)) or len(names) < 50:
    found.append(f"{len(names)} functions, {len(set(names))} names")
report(found, f"proofinfer.h: {len(names)} functions, {len(STANDARDS)} language standards")
