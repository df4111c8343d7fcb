"""That what was proved is what ships: the same files, their machine code in the libraries, and every proved function executed."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile

import wp

TOOLS = ["cmake", "ninja", "gcov", "objdump", "ar"]
# What executes the functions: the loader and every kernel through the recorded figures, the sampler, the converter; bit casts of NaN by the unit test.
EXECUTING_TESTS = ["conformance_golden_logits", "conformance_golden_sampler", "conformance_convert", "unit_checkpoint_faults", "unit_kernels",
                   "unit_sampling"]


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


def check_files(root, build):
    """Every file of src/proved that Frama-C read is, by path and bytes, one that the build's commands compile. Problems."""
    if not os.path.exists(os.path.join(build, "compile_commands.json")):
        return [f"{build} has no compile_commands.json: build a release first (tests/tools/check.sh)"]
    compiled = set()
    for folder, arguments, _ in library_commands(build):
        done = subprocess.run(without_output(arguments) + ["-MM"], cwd=folder, capture_output=True, text=True, check=True)
        compiled |= {os.path.realpath(os.path.join(folder, word)) for word in done.stdout.replace("\\\n", " ").split(":", 1)[1].split()}
    # The digests of the compiled bytes are those of the files at these paths; the library must not be older than any of them.
    library, problems = os.path.join(build, "src", "libproofinfer.a"), []
    if not os.path.exists(library):
        return [f"{library} is not there"]
    for name in sorted(os.listdir(os.path.join(root, "src/proved"))):
        path = os.path.realpath(os.path.join(root, "src/proved", name))
        if path not in compiled:
            problems.append(f"src/proved/{name} is not compiled by {build}/compile_commands.json")
        print(f"  compiled  sha256 {digest(path)}  src/proved/{name}" if path in compiled else f"  NOT compiled  src/proved/{name}")
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


def build_with_coverage(root, build):
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DPROOFINFER_BUILD_TESTS=ON",
                    "-DPROOFINFER_BUILD_SHARED=OFF", "-DPROOFINFER_BUILD_PROGRAM=OFF", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_CXX_COMPILER=g++",
                    "-DCMAKE_C_FLAGS=--coverage -O1 -fno-inline -fprofile-update=atomic",
                    "-DCMAKE_CXX_FLAGS=--coverage -O1 -fno-inline -fprofile-update=atomic"], **quiet)
    subprocess.run(["cmake", "--build", build, "--target"] + EXECUTING_TESTS, **quiet)


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
                        counts[function["name"]] = counts.get(function["name"], 0) + function["execution_count"]
    return counts


def check_executed(root, build, functions):
    """Every one of the functions was entered by the tests. Problems."""
    build_with_coverage(root, build)
    for folder, _, names in os.walk(build):
        for name in names:
            if name.endswith(".gcda"):
                os.remove(os.path.join(folder, name))
    environment = dict(os.environ, PROOFINFER_QUICK_FIGURES="1", PROOFINFER_PROPERTY_COUNT="20")
    for test in EXECUTING_TESTS:
        program = os.path.join(build, "tests", test.split("_")[0], test)
        done = subprocess.run([program, "--gtest_brief=1"], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return [f"{test} fails in the build with coverage\n{done.stdout[-2000:]}{done.stderr[-2000:]}"]
    counts = execution_counts(build)
    missing = sorted(name for name in functions if counts.get(name, 0) == 0)
    print(f"  {len(functions) - len(missing)} of {len(functions)} proved functions executed, the least often: "
          + ", ".join(f"{name} {counts.get(name, 0)}" for name in sorted(functions, key=lambda name: counts.get(name, 0))[:3]))
    return [f"{name} is proved and never executed" for name in missing]
