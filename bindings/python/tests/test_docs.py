"""Every Python example of README.md runs, each by itself, and prints what it says it prints."""

import importlib.util
import os
import re
import shutil
import unittest

import support

README = os.path.join(os.path.dirname(support.HERE), "README.md")


class Examples(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(README):
            self.skipTest("SKIPPED[package-source]: README.md is not beside these tests")
        with open(README, encoding="utf-8") as file:
            self.text = file.read()
        self.folder = os.path.join(support.folder(), "examples")
        os.makedirs(self.folder, exist_ok=True)
        demo = os.path.join(support.REPOSITORY, "reference", "demo")
        for name, small in (
            ("demo.bin", support.small_path()),
            ("demo_tokenizer.bin", support.small_path()[:-4] + "_tokenizer.bin"),
        ):
            given = os.path.join(demo, name)
            shutil.copy(given if os.path.exists(given) else small, os.path.join(self.folder, name))

    def run_examples(self, with_numpy):
        examples = re.findall(r"```python\n(.*?)```", self.text, flags=re.S)
        chosen = [example for example in examples if ("import numpy" in example) == with_numpy]
        for number, example in enumerate(chosen, 1):
            with self.subTest(example=number, text=example):
                done = support.run_script(f"import os; os.chdir({self.folder!r})\n" + example)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return len(chosen)

    def test_every_example_runs(self):
        self.assertGreater(self.run_examples(with_numpy=False), 8)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED[numpy]: it is not installed")
    def test_the_example_with_numpy_runs(self):
        self.assertEqual(self.run_examples(with_numpy=True), 1)


if __name__ == "__main__":
    unittest.main()
