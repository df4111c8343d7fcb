#!/usr/bin/env python3
"""The curl lines of a server's README give the output that stands below them: readme_test.py README MODEL TOKENIZER -- SERVER_COMMAND...

Prints a line for each command; the exit status is 0 if all hold."""
import argparse
import re
import subprocess
import sys


def conversations(readme):
    """(command, output) of every shell prompt in a console block."""
    with open(readme, encoding="utf-8") as file:
        blocks = re.findall(r"```console\n(.*?)```", file.read(), flags=re.S)
    return [(said.split("\n", 1)[0], said.split("\n", 1)[1]) for block in blocks for said in re.split(r"^\$ ", block, flags=re.M)[1:]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("readme")
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    server = subprocess.Popen([*arguments.command, "--listen", "127.0.0.1:0", "--model", arguments.model, "--tokenizer", arguments.tokenizer],
                              stdout=subprocess.PIPE, text=True)
    failed = count = 0
    try:
        port = server.stdout.readline().rsplit(":", 1)[1].strip()
        for command, expected in conversations(arguments.readme):
            done = subprocess.run(command.replace(":8080", ":" + port), shell=True, capture_output=True, text=True, timeout=60, check=False)
            count += 1
            holds = (done.returncode, done.stdout) == (0, expected)
            failed += not holds
            print(("ok      " if holds else "FAILED  ") + command)
            if not holds:
                print(f"expected {expected!r}\nfound    {done.stdout!r} {done.stderr!r}")
    finally:
        server.terminate()
        server.wait(30)
    return 0 if count >= 4 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
