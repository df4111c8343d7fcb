"""Every Python example of README.md runs, each by itself, and prints what it says it prints."""

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

    def test_every_example_runs(self):
        examples = re.findall(r"```python\n(.*?)```", self.text, flags=re.S)
        self.assertGreater(len(examples), 8)
        for number, example in enumerate(examples, 1):
            needs_numpy = "import numpy" in example
            with self.subTest(example=number, text=example):
                done = support.run_script(f"import os; os.chdir({self.folder!r})\n" + example)
                if needs_numpy and "No module named 'numpy'" in done.stderr:
                    continue
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)


if __name__ == "__main__":
    unittest.main()
