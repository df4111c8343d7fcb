"""python -m proofinfer: the reference program's bytes, and errors in words."""

import os
import subprocess
import sys
import unittest

import support


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "proofinfer", *arguments], capture_output=True, timeout=120, check=False, **options
    )


class Program(unittest.TestCase):
    def test_the_bytes_of_the_reference_program(self):
        model, tokenizer = support.real_model("stories260K.bin"), support.real_model("tok512.bin")
        for case in support.golden("cli_stories260K.json")["cases"]:
            # The reference leaves out byte pieces behind 126; here a character is whole.
            if all(argument.isascii() for argument in case["args"]):
                with self.subTest(arguments=case["args"]):
                    done = run(model, "-z", tokenizer, *case["args"])
                    self.assertEqual((done.stdout.hex(), done.stderr), (case["stdout_hex"], b""))

    def test_finds_the_tokenizer_beside_the_model(self):
        done = run(support.small_path(), "-n", "20", "-i", "hello")
        self.assertEqual((done.returncode, done.stdout[:5], done.stderr), (0, b"hello", b""))
        self.assertTrue(done.stdout.endswith(b"\n"))

    def test_errors_are_one_line(self):
        lonely = os.path.join(support.folder(), "lonely")
        os.makedirs(lonely, exist_ok=True)
        path = os.path.join(lonely, "model.bin")
        with open(path, "wb") as file:
            file.write(support.small_bytes())
        for arguments, words in (
            (["/no/such/model.bin"], b"No such file"),
            ([path], b"no tokenizer with 384 pieces"),
            ([support.small_path(), "-t", "-1"], b"temperature"),
        ):
            done = run(*arguments, cwd=lonely)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_a_reader_that_leaves(self):
        child = subprocess.Popen(
            [sys.executable, "-m", "proofinfer", support.large_path(), "-n", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        child.stdout.read(1)
        child.stdout.close()
        errors = child.stderr.read()
        child.stderr.close()
        self.assertEqual((child.wait(), errors), (1, b""))

    def test_version_and_help(self):
        self.assertIn(b"proofinfer 1.", run("--version").stdout)
        self.assertIn(b"--prompt", run("--help").stdout)


if __name__ == "__main__":
    unittest.main()
