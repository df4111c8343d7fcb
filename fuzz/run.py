#!/usr/bin/env python3
"""Runs the libFuzzer targets for a time each and prints rate, share that loaded, and finds.

    run.py --build-dir build/fuzz [--seconds 30] [--jobs 2] [--keep DIR] [target...]

Fails on a find, below a fifth of the rates that are aimed at, and where less than a fifth of the executions got past the loader. New
inputs that reach new code go to a folder under the build folder; --keep adds those that reach lines which DIR/<target> (the tree's corpus) does not.
Standard library only.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

FUZZ = pathlib.Path(__file__).resolve().parent
# target: dictionary, longest input in bytes, executions aimed at in a second of CPU time. The machine may have other things to do, and may even stand
# still: wall-clock time says nothing about the library. A target asserts the time of each execution itself.
TARGETS = {
    "model": ("checkpoint", 4096, 1000),
    "tokenizer": ("tokenizer", 2048, 1000),
    "text": ("text", 512, 1000),
    "session": ("session", 512, 200),
    "differential": ("checkpoint", 2048, 200),
    "convert": ("checkpoint", 2048, 200),
    "state": ("session", 4096, 200),
    "packed": ("checkpoint", 32768, 200),
    "gguf": ("gguf", 24576, 200),
}
LEAST_PART_OF_RATE = 1 / 5
LEAST_LOADED = 1 / 5


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def problems_of(target, returncode, executions, rate, loaded, finds):
    aim = TARGETS[target][2]
    found = [f"{target}: a find: {find}" for find in finds]
    if returncode != 0 and not finds:
        found.append(f"{target}: the fuzzer ended with {returncode}")
    if not found and rate < aim * LEAST_PART_OF_RATE:
        found.append(f"{target}: {rate} executions a CPU second; at least {aim * LEAST_PART_OF_RATE:.0f} expected")
    if not found and loaded < executions * LEAST_LOADED:
        found.append(f"{target}: {loaded} of {executions} executions got past the loader; at least a fifth expected")
    return found


def run(target, build, seconds, keep):
    dictionary, longest, aim = TARGETS[target]
    program = build / "fuzz" / f"fuzz_{target}"
    work = build / "fuzz-work" / target
    found, artifacts = work / "found", work / "finds"
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    for old in artifacts.iterdir():
        old.unlink()
    inputs = [str(found), str(build / "fuzz-seeds" / target)]
    if (FUZZ / "corpus" / target).is_dir():
        inputs.append(str(FUZZ / "corpus" / target))
    command = [str(program), *inputs, f"-max_len={longest}", "-len_control=0", f"-dict={FUZZ}/dictionaries/{dictionary}.dict",
               f"-max_total_time={seconds}", "-print_final_stats=1", "-timeout=300", "-report_slow_units=300",
               "-rss_limit_mb=2048", f"-artifact_prefix={artifacts}/"]
    with open(work / "log.txt", "w") as log, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as fuzzer:
        _, status, usage = os.wait4(fuzzer.pid, 0)
        fuzzer.returncode = returncode = os.waitstatus_to_exitcode(status)
    text = (work / "log.txt").read_text(errors="replace")
    executions = number(r"stat::number_of_executed_units: (\d+)", text)
    rate = int(executions / max(usage.ru_utime + usage.ru_stime, 0.01))
    loaded = number(r"executions \d+, loaded (\d+)", text)
    finds = sorted(str(path) for path in artifacts.iterdir())
    share = f"{100 * loaded / executions:.0f} %" if executions and not finds else "?"
    print(f"{target:13} {executions:9} executions, {rate} a CPU second (aim {aim}), loaded {share}, finds {len(finds)}", flush=True)
    problems = problems_of(target, returncode, executions, rate, loaded, finds)
    if problems:
        print("\n".join(text.splitlines()[-60:]), flush=True)
    elif keep:
        (keep / target).mkdir(parents=True, exist_ok=True)
        subprocess.run([str(program), "-merge=1", "-use_counters=0", f"-max_len={longest}", str(keep / target), str(found), str(build / "fuzz-seeds" / target)],
                       check=True, capture_output=True)
    return problems


def self_test():
    """The judgement sees each thing that it is there to see."""
    assert not problems_of("model", 0, 30000, 1000, 20000, [])
    assert problems_of("model", 77, 30000, 1000, 20000, ["crash-1"])
    assert problems_of("model", 1, 0, 0, 0, [])
    assert problems_of("model", 0, 5000, 199, 5000, [])
    assert problems_of("model", 0, 30000, 1000, 5999, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("targets", nargs="*", default=[])
    options = parser.parse_args()
    self_test()
    build = options.build_dir.resolve()
    seeds = build / "fuzz-seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    subprocess.run([str(build / "fuzz" / "fuzz_make_seeds"), str(seeds)], check=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, target, build, options.seconds, options.keep) for target in options.targets or TARGETS]
        problems = [problem for future in runs for problem in future.result()]
    for problem in problems:
        print(problem)
    print(f"fuzzing: {'FAILED' if problems else 'no finds'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
