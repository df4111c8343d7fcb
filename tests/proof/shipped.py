"""That what was proved is what ships: the same files, their machine code in the libraries, and every proved function executed."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import wp

TOOLS = ["cmake", "ninja", "gcov", "objdump", "ar"]
# What executes the functions beyond a story told with the scalar kernels: faults of files, kernels and walks called one by one.
EXECUTING_TESTS = {"unit_checkpoint_faults": "--gtest_filter=*cut_in_a_file*:*nothing_is_allocated*", "unit_kernels": "--gtest_filter=*scalar*",
                   "unit_sampling": "--gtest_filter=*"}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def library_commands(build):
    """(folder, arguments, source) of each object of the library, from compile_commands.json."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    found = []
    for command in commands:
        arguments = command.get("arguments") or shlex.split(command["command"])
        if "/src/" in command["file"] and not "/src/cli/" in command["file"]:
            found.append((command["directory"], arguments, os.path.realpath(os.path.join(command["directory"], command["file"]))))
    return found


def without_output(arguments):
    """The command without its object and its action."""
    kept, skipped = [], False
    for argument in arguments:
        if skipped or argument in ("-c", "-o"):
            skipped = argument == "-o"
        elif not argument.endswith("ccache"):
            kept.append(argument)
    return kept


def digests(paths):
    """Real path -> SHA-256 of the file's bytes."""
    return {os.path.realpath(path): digest(path) for path in paths}


def files_of_frama_c(root):
    """The files below root that Frama-C reads for the proof, by its own preprocessing commands, with their digests."""
    found = set()
    for unit in wp.UNITS:
        shown = subprocess.run(["frama-c", f"-cpp-extra-args=-I{root}/src", "-print-cpp-commands", os.path.join(root, unit)],
                               capture_output=True, text=True, check=True).stdout
        arguments = without_output(shlex.split(shown[shown.index("gcc "):]))
        text = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=True).stdout
        found |= {os.path.join(root, path) for path in re.findall(r'^# \d+ "([^"<]+)"', text, re.M)}
    real = os.path.realpath(root) + os.sep
    return digests(path for path in found if os.path.realpath(path).startswith(real) and os.path.isfile(path))


def files_of_build(build):
    """The files that the library's commands in compile_commands.json compile, headers too, with their digests."""
    found = set()
    for folder, arguments, _ in library_commands(build):
        done = subprocess.run(without_output(arguments) + ["-MM"], cwd=folder, capture_output=True, text=True, check=True)
        found |= {os.path.join(folder, word) for word in done.stdout.replace("\\\n", " ").split(":", 1)[1].split()}
    return digests(found)


def compare_files(read, compiled):
    """Problems: each file that Frama-C read, the theorems aside, is by path and bytes one that the build compiles."""
    problems = []
    for path, sha in sorted(read.items()):
        if not path.endswith(os.sep + wp.THEOREMS) and compiled.get(path) != sha:
            problems.append(f"{path}, as Frama-C read it, " + ("has other bytes than the build compiles" if path in compiled else "is not compiled"))
    return problems


def other_files_must_be_noticed(root, read, compiled):
    """A copy in another place, and other bytes in the same place: both given to the comparison that judges the real files."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("src/proved", "tests/proof"):
            shutil.copytree(os.path.join(root, part), os.path.join(folder, part))
        with open(os.path.join(folder, wp.LAYOUT), "a", encoding="utf-8") as file:
            file.write("\n")
        copy = files_of_frama_c(folder)
        moved = {os.path.realpath(os.path.join(root, os.path.relpath(path, os.path.realpath(folder)))): sha for path, sha in copy.items()}
    layout = os.path.realpath(os.path.join(root, wp.LAYOUT))
    assert len(compare_files(copy, compiled)) == len(copy) - 1 == len(read) - 1, "a copy elsewhere passes"
    assert compare_files(moved, compiled) == [f"{layout}, as Frama-C read it, has other bytes than the build compiles"], "other bytes pass"


def check_files(root, build, read):
    """Every file of src/proved that Frama-C read is one that the build's commands compile, and none was left unread. Problems.

    That the objects in the libraries were made of these bytes is what check_machine_code compares."""
    for needed in ("compile_commands.json", "src/libproofinfer.a", "src/libproofinfer.so"):
        if not os.path.exists(os.path.join(build, needed)):
            return [f"{build} has no {needed}: build a release first (tests/tools/check.sh)"]
    compiled = files_of_build(build)
    problems = compare_files(read, compiled)
    if not problems:
        other_files_must_be_noticed(root, read, compiled)
    same = 0
    for name in sorted(os.listdir(os.path.join(root, "src/proved"))):
        path = os.path.realpath(os.path.join(root, "src/proved", name))
        if path not in read:
            problems.append(f"src/proved/{name} is not read by Frama-C")
        elif compiled.get(path) == read[path]:
            same += 1
            print(f"  read and compiled  {read[path]}  src/proved/{name}")
    print(f"  {same} files of src/proved: the same path and SHA-256 for Frama-C and for {os.path.relpath(build, root)}/compile_commands.json")
    return problems


def instructions(path):
    """name -> the function's instructions, without addresses and operands that the linker fills in."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", path], capture_output=True, text=True, check=True).stdout
    found, lines = {}, None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(\w[\w.]*)>:$", line)
        if head:
            lines = found.setdefault(head.group(1), [])
        elif lines is not None and "\t" in line:
            code = re.sub(r"\s*[#<].*", "", line.split("\t", 1)[1].strip())
            code = re.sub(r"-?(0x)?[0-9a-f]+\(%rip\)", "(%rip)", code)
            code = re.sub(r"^(j\w+|call\w*|bnd jmp)\s+.*", r"\1", code)
            lines.append(re.sub(r"\s+", " ", code))
    return {name: strip_padding(code) for name, code in found.items()}


def strip_padding(code):
    while code and re.match(r"(nop|xchg %ax,%ax|data16|cs nop|int3)", code[-1]):
        code = code[:-1]
    return code


def check_machine_code(root, build):
    """The libraries hold what the commands make of the proved files: each function's instructions, compared. Problems."""
    problems, compared, instruction_count = [], 0, 0
    shared = instructions(os.path.join(build, "src", "libproofinfer.so"))
    with tempfile.TemporaryDirectory() as folder:
        for directory, arguments, source in library_commands(build):
            if os.path.dirname(source) != os.path.realpath(os.path.join(root, "src/proved")):
                continue
            member, made = os.path.basename(source) + ".o", os.path.join(folder, "made.o")
            subprocess.run(without_output(arguments) + ["-c", "-o", made], cwd=directory, check=True)
            subprocess.run(["ar", "x", "--output", folder, os.path.join(build, "src", "libproofinfer.a"), member], check=True)
            expected, archived = instructions(made), instructions(os.path.join(folder, member))
            if expected != archived or not expected:
                problems.append(f"libproofinfer.a: {member} is not what its command makes of {os.path.basename(source)}")
            for name, code in expected.items():
                compared, instruction_count = compared + 1, instruction_count + len(code)
                if shared.get(name) != code:
                    problems.append(f"libproofinfer.so: the code of {name} is not what the command makes of {os.path.basename(source)}")
    print(f"  {compared} compiled functions of src/proved, {instruction_count} instructions: the same in libproofinfer.a and libproofinfer.so"
          if not problems else "  machine code differs")
    if compared < 20:
        problems.append(f"only {compared} functions compared")
    return problems


def build_that_counts(root, release, build):
    """A library that counts the entries of its functions, inlining none, and the release's program and tests linked with it."""
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    flags = "--coverage -O1 -fno-inline -fprofile-update=atomic"
    subprocess.run(["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DPROOFINFER_BUILD_TESTS=OFF",
                    "-DPROOFINFER_BUILD_SHARED=OFF", "-DPROOFINFER_BUILD_PROGRAM=OFF", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_CXX_COMPILER=g++",
                    f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"], **quiet)
    subprocess.run(["cmake", "--build", build, "--target", "proofinfer_static"], **quiet)
    for target in ["bin/proofinfer", *EXECUTING_TESTS]:
        listed = subprocess.run(["ninja", "-C", release, "-t", "commands", target], capture_output=True, text=True, check=True).stdout
        link = next(line for line in reversed(listed.splitlines()) if f" -o {target} " in line or f"/{target} " in line)
        counting = os.path.join(build, "src", "libproofinfer.a")
        arguments = [counting if re.fullmatch(r"src/libproofinfer\.(a|so[.\d]*)", word) else word for word in shlex.split(link) if word not in (":", "&&")]
        assert arguments.count(counting) == 1, link
        arguments[arguments.index("-o") + 1] = os.path.join(build, os.path.basename(target))
        subprocess.run(arguments + ["--coverage", "-pthread", "-lm"], cwd=release, **quiet)


def tell_stories(root, build):
    """The program, with the scalar kernels alone: a float32 model, the same in 8 bits, greedy and sampled in both ways."""
    program, demo = os.path.join(build, "proofinfer"), os.path.join(root, "reference/demo")
    quantized = os.path.join(build, "demo-q8.bin")
    common = ["-q", "--isa", "scalar", "-z", os.path.join(demo, "demo_tokenizer.bin"), "-i", "Once upon a time", "-n", "24", "-s", "7"]
    runs = [["convert", os.path.join(demo, "demo.bin"), quantized, "-q"]]
    for model in (os.path.join(demo, "demo.bin"), quantized):
        runs += [["generate", model] + common + sampling for sampling in (["-t", "0"], ["-t", "1", "-p", "0.9"], ["-t", "1", "-p", "1"])]
    for arguments in runs:
        subprocess.run([program] + arguments, stdout=subprocess.DEVNULL, check=True)


def execution_counts(build):
    """name -> how often each function of src/proved was entered, by gcov's own count over all objects."""
    counts = {}
    for folder, _, names in os.walk(os.path.join(build, "src")):
        data = [os.path.join(folder, name) for name in names if name.endswith(".gcda")]
        if not data:
            continue
        output = subprocess.run(["gcov", "--json-format", "--stdout"] + data, cwd=build, capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            for file in json.loads(line)["files"]:
                if "src/proved/" in file["file"]:
                    for function in file["functions"]:
                        name = function["demangled_name"].split("(")[0]
                        counts[name] = counts.get(name, 0) + function["execution_count"]
    return counts


def check_executed(root, release, build, functions):
    """Every one of the functions was entered, by the program with the scalar kernels or by tests. Problems."""
    build_that_counts(root, release, build)
    for folder, _, names in os.walk(build):
        for name in names:
            if name.endswith(".gcda"):
                os.remove(os.path.join(folder, name))
    if sum(execution_counts(build).values()) != 0:
        return ["functions are counted before anything runs"]
    tell_stories(root, build)
    by_program = execution_counts(build)
    for test, which in EXECUTING_TESTS.items():
        done = subprocess.run([os.path.join(build, test), "--gtest_brief=1", which], capture_output=True, text=True)
        if done.returncode != 0:
            return [f"{test} fails with the library that counts\n{done.stdout[-2000:]}{done.stderr[-2000:]}"]
    counts = execution_counts(build)
    print("  executions: by the program with --isa scalar, and with the unit tests")
    for name in sorted(functions):
        print(f"  {name:30} {by_program.get(name, 0):10} {counts.get(name, 0):10}")
    missing = sorted(name for name in functions if counts.get(name, 0) == 0)
    told = sum(by_program.get(name, 0) > 0 for name in functions)
    print(f"  {len(functions) - len(missing)} of {len(functions)} proved functions executed, {told} of them by the program's scalar path")
    return [f"{name} is proved and never executed" for name in missing]
