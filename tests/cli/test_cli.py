"""The program `proofinfer`, from outside: what it prints, where, and with which exit code.

PROOFINFER_PROGRAM is the program; PROOFINFER_MODELS the folder of the models that are not in the tree (default: ../shared/models
beside the repository). Without those models the tests that need them are skipped and say so.
"""

import hashlib
import json
import math
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import chain_model
from chain_model import BOS, EOS, byte_token

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.path.abspath(os.environ.get("PROOFINFER_PROGRAM", os.path.join(ROOT, "build", "bin", "proofinfer")))
MODELS = os.environ.get("PROOFINFER_MODELS") or os.path.join(os.path.dirname(ROOT), "shared", "models")
STORIES = os.path.join(MODELS, "stories260K.bin")
TOK512 = os.path.join(MODELS, "tok512.bin")
GOLDEN = os.path.join(ROOT, "tests", "data", "golden", "cli_stories260K.json")
HELP = os.path.join(ROOT, "tests", "data", "cli_help.txt")
MAN_PAGE = os.path.join(ROOT, "docs", "man", "proofinfer.1")
COMMANDS = ["generate", "chat", "score", "tokenize", "inspect", "convert", "bench", "selftest"]
LLAMA = "\N{LLAMA}".encode()

HAVE_MODELS = os.path.isfile(STORIES) and os.path.isfile(TOK512)
needs_models = unittest.skipUnless(HAVE_MODELS, "SKIPPED[real-models]: %s and tok512.bin are not there" % STORIES)


def run(*arguments, stdin=b"", cwd=None, stdout=subprocess.PIPE, preexec=None, timeout=300):
    return subprocess.run([PROGRAM, *arguments], input=stdin, stdout=stdout, stderr=subprocess.PIPE, cwd=cwd, preexec_fn=preexec,
                          timeout=timeout)


class Case(unittest.TestCase):
    """A test with a folder of its own; `world` puts a chain model and its tokenizer there."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="proofinfer-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def world(self, successors, seq_len=256, extra=(b" ",), model="m.bin", tokenizer="tokenizer.bin"):
        chain_model.write_tokenizer(self.path(tokenizer), extra)
        chain_model.write_model(self.path(model), successors, 259 + len(extra), seq_len)
        return self.path(model)

    def saying(self, text, **options):
        return self.world(chain_model.cycle([byte_token(byte) for byte in text]), **options)

    def succeed(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refuse(self, exit_code, *arguments, saying=(), **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, exit_code, (arguments, done.stderr))
        self.assertEqual(done.stdout, b"")
        message = done.stderr.decode()
        self.assertTrue(message.startswith("proofinfer: "), message)
        for part in saying:
            self.assertIn(part, message)
        return message


class Golden(Case):
    @needs_models
    def test_raw_pieces_are_the_bytes_of_the_reference(self):
        with open(GOLDEN, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertEqual(len(cases), 7)
        for case in cases:
            with self.subTest(arguments=case["args"]):
                out = self.succeed(STORIES, "-z", TOK512, *case["args"], "--raw-pieces")
                self.assertEqual(out.hex(), case["stdout_hex"])
                self.assertEqual(hashlib.sha256(out).hexdigest(), case["sha256"])

    @needs_models
    def test_bytes_do_not_depend_on_threads_or_spelling(self):
        wanted = self.succeed(STORIES, "-z", TOK512, "-t", "1.0", "-s", "7", "-n", "100")
        long = ["--tokenizer", TOK512, "--temperature=1", "--seed", "7", "--steps=100", "--top-p", "0.9", "--mode", "generate"]
        for threads in ("1", "2", "3"):
            self.assertEqual(self.succeed("generate", *long, "--threads", threads, STORIES), wanted)

    @needs_models
    def test_story_is_the_same_in_both_forms_where_all_is_ascii(self):
        arguments = [STORIES, "-z", TOK512, "-n", "120", "-i", "Once"]
        self.assertEqual(self.succeed(*arguments), self.succeed(*arguments, "--raw-pieces"))

    @needs_models
    def test_default_temperature_is_zero_and_the_default_seed_fixed(self):
        self.assertEqual(self.succeed(STORIES, "-z", TOK512), self.succeed(STORIES, "-z", TOK512, "-t", "0", "-n", "256"))
        self.assertEqual(self.succeed(STORIES, "-z", TOK512, "-t", "1"), self.succeed(STORIES, "-z", TOK512, "-t", "1", "-s", "1"))


class Generate(Case):
    def test_prints_text_and_one_newline_and_nothing_else(self):
        model = self.saying(b"abc")
        done = run(model, "-n", "6")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"abcabc\n", b""))

    def test_prompt_is_echoed_without_the_space_in_front(self):
        model = self.world({byte_token(ord("!")): byte_token(ord("?"))})
        self.assertEqual(self.succeed(model, "-i", "hi!", "-n", "5"), b"hi!?\n")

    def test_steps_count_positions_of_the_prompt_too(self):
        model = self.world({byte_token(ord("!")): byte_token(ord("?"))})
        # The tokens are BOS, " ", "h", "i", "!": n steps print n of them behind the first.
        for steps, text in (("1", b""), ("2", b"h"), ("3", b"hi"), ("4", b"hi!"), ("5", b"hi!?")):
            self.assertEqual(self.succeed(model, "-i", "hi!", "-n", steps), text + b"\n", steps)

    def test_says_that_a_long_prompt_leaves_nothing_to_generate(self):
        model = self.saying(b"abc")
        done = run(model, "-i", "hello", "-n", "3")
        self.assertEqual(done.stdout, b"he\n")
        self.assertIn(b"the prompt has 7 tokens and there are 3 positions", done.stderr)
        self.assertEqual(run(model, "-i", "hello", "-n", "3", "--quiet").stderr, b"")

    def test_zero_or_too_many_steps_are_the_whole_context(self):
        model = self.saying(b"abc", seq_len=30)
        for steps in ("0", "31", "1000000"):
            self.assertEqual(self.succeed(model, "-n", steps), b"abc" * 10 + b"\n")

    def test_context_bounds_the_steps(self):
        model = self.saying(b"abc", seq_len=30)
        self.assertEqual(self.succeed(model, "-n", "0", "--context", "6"), b"abcabc\n")
        self.refuse(1, model, "--context", "31", saying=["31", "30"])

    def test_prompt_of_context_length_and_one_less_and_more(self):
        model = self.saying(b"abc", seq_len=10)
        for length, text in ((7, b"xxxxxxx"), (8, b"xxxxxxxx"), (9, b"xxxxxxxxx"), (20, b"xxxxxxxxx")):
            # BOS and " " take two positions; a token behind the last position is sampled only if all of the prompt fits.
            out = self.succeed(model, "-i", "x" * length, "-n", "0", "-q")
            self.assertTrue(out.startswith(text), (length, out))
            self.assertEqual(out.endswith(b"<unk>\n"), length <= 8, (length, out))

    def test_begin_token_ends_the_text_unless_the_stops_say_otherwise(self):
        a, b = byte_token(ord("a")), byte_token(ord("b"))
        model = self.world({BOS: a, a: b, b: BOS})
        self.assertEqual(self.succeed(model), b"ab\n")
        self.assertEqual(self.succeed(model, "--stop", str(b)), b"a\n")
        self.assertEqual(self.succeed(model, "--stop", "%d,%d" % (b, a)), b"\n")
        self.assertEqual(self.succeed(model, "--stop", "none", "-n", "4"), b"ab\n<s>\na\n")

    def test_stop_strings_are_cut_exactly_across_tokens(self):
        model = self.saying(b"abcdefgh")
        for stops, wanted in (
            (["d"], b"abc\n"),
            (["cde"], b"ab\n"),
            (["xyz", "ef", "def"], b"abc\n"),  # both end at f, the longer counts
            (["defgh!", "gh"], b"abcdef\n"),
            (["never"], b"abcdefghab\n"),
            (["abx"], b"abcdefghab\n"),  # ab is held back until the end
            (["bc", "\u00e9"], b"a\n"),
        ):
            flags = [word for stop in stops for word in ("--stop-string", stop)]
            self.assertEqual(self.succeed(model, "-n", "10", *flags), wanted, stops)
        self.assertEqual(self.succeed(model, "-n", "10", "-i", "abc", "--stop-string", "fg"), b"abcde\n", "the prompt is not searched")

    def test_without_a_stop_string_that_comes_the_text_is_the_same(self):
        for text in (b"abc", "\u00e9\u20ac".encode(), b"\xc3", b"a\x07b"):
            model = self.saying(text)
            for steps in ("1", "2", "9", "0"):
                wanted = self.succeed(model, "-n", steps)
                self.assertEqual(self.succeed(model, "-n", steps, "--stop-string", "never"), wanted)
        a = byte_token(ord("a"))
        self.assertEqual(self.succeed(self.world({BOS: a, a: BOS}), "--stop-string", "never"), b"a\n")

    def test_penalties_bans_and_biases_change_what_is_likeliest(self):
        model = self.saying(b"abc")
        # The successor has the only logit that is not 0: without it the first of the others is taken.
        self.assertEqual(self.succeed(model, "-n", "4", "--ban", str(byte_token(ord("b")))), b"a<unk><unk><unk>\n")
        self.assertEqual(self.succeed(model, "-n", "3", "--bias", "%d:100" % byte_token(ord("z"))), b"zzz\n")
        self.assertEqual(self.succeed(model, "-n", "4", "--presence-penalty", "1000"), b"abc<unk>\n")
        self.assertEqual(self.succeed(model, "-n", "4", "--frequency-penalty", "1000", "--penalty-window", "2"), b"abca\n")
        self.assertEqual(self.succeed(model, "-n", "4", "-t", "9", "--top-k", "1"), b"abca\n")
        self.assertEqual(self.succeed(model, "-n", "4", "-t", "0.01", "--min-p", "1", "--typical-p", "0.5"), b"abca\n")

    def test_end_token_does_not_end_the_text(self):
        a = byte_token(ord("a"))
        model = self.world({BOS: a, a: EOS, EOS: BOS})
        self.assertEqual(self.succeed(model), b"a\n</s>\n\n")

    def test_prompt_file_is_taken_to_the_byte(self):
        model = self.saying(b"abc")
        text = b"line\nnext\0end \xff"
        with open(self.path("prompt"), "wb") as file:
            file.write(text)
        arguments = [model, "-n", "100", "--stop", "0", "--prompt-file"]
        self.assertEqual(self.succeed(*arguments, self.path("prompt")), b"line\nnextend \xef\xbf\xbd\n")
        self.assertEqual(self.succeed(*arguments, "-", stdin=text), b"line\nnextend \xef\xbf\xbd\n")
        self.refuse(1, *arguments, self.path("absent"), saying=[self.path("absent")])
        self.refuse(2, *arguments, "-", "-i", "x", saying=["--prompt-file"])

    def test_long_prompt_from_the_command_line(self):
        model = self.saying(b"abc", seq_len=6000)
        text = "x" * 5000
        self.assertEqual(self.succeed(model, "-i", text, "-n", "5003", "--stop", "none"), text.encode() + b"<unk><unk>\n")

    def test_empty_prompt_is_no_prompt(self):
        model = self.saying(b"abc")
        self.assertEqual(self.succeed(model, "-i", "", "-n", "3"), b"abc\n")

    def test_rates_are_of_the_time_that_passed(self):
        model = self.saying(b"abc")
        for flags in ([], ["--stop-string", "zz"]):
            begin = time.monotonic()
            shown = run(model, "-n", "60", "-v", *flags).stderr.decode()
            seconds = time.monotonic() - begin
            rates = [float(rate) for rate in re.findall(r"tokens, ([\d.]+) tok/s", shown)]
            self.assertEqual(len(rates), 2, shown)
            self.assertGreaterEqual(rates[0], 1 / seconds - 0.05)
            self.assertGreaterEqual(rates[1], 60 / seconds - 0.05)

    def test_verbose_tells_the_timing_on_the_standard_error_only(self):
        model = self.saying(b"abc")
        done = run(model, "-n", "6", "-v", "--threads", "2")
        self.assertEqual(done.stdout, b"abcabc\n")
        self.assertRegex(done.stderr.decode(), r"^prompt: 1 tokens, [\d.]+ tok/s; generated: 6 tokens, [\d.]+ tok/s; load: [\d.]+ s; "
                                               r"threads: 2; kernels: \w+\n$")
        self.assertEqual(run(model, "-n", "6", "-v", "-q").stderr, b"")

    def test_threads_follow_the_affinity(self):
        model = self.saying(b"abc")
        one = {min(os.sched_getaffinity(0))}
        done = run(model, "-n", "6", "-v", preexec=lambda: os.sched_setaffinity(0, one))
        self.assertIn(b"threads: 1;", done.stderr)

    def test_nan_weights_are_an_error_and_the_line_is_ended(self):
        model = self.saying(b"abc")
        with open(model, "r+b") as file:
            file.seek(28 + 4 * 4 * byte_token(ord("b")))  # the embedding of "b": 4 values a row
            file.write(b"\x00\x00\xc0\x7f" * 4)
        done = run(model)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stdout, b"ab\n")
        self.assertTrue(done.stderr.startswith(b"proofinfer: "), done.stderr)


class Quota(Case):
    """A container's limit of processors bounds the threads. Told with files put over the system's own in a mount namespace."""

    def threads(self, groups, files):
        """How many there are where /proc/self/cgroup has these lines and /sys/fs/cgroup these files. None: no namespace is to be had."""
        model = self.saying(b"abc")
        mount = tempfile.mkdtemp(dir=self.folder)
        for name, text in files.items():
            path = os.path.join(mount, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        with open(self.path("groups"), "w", encoding="ascii") as file:
            file.write(groups)

        def in_namespace(user, *words):
            return subprocess.run(["unshare", "--mount", *user, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        inside = 'mount --bind "$1" /proc/$$/cgroup && mount --bind "$2" /sys/fs/cgroup || exit 77; shift 2; exec "$@"'
        shell = ["sh", "-c", inside, "sh", self.path("groups"), mount]
        for user in ([], ["--user", "--map-root-user"]):
            if in_namespace(user, *shell, "true").returncode == 0:
                done = in_namespace(user, *shell, PROGRAM, model, "-n", "3", "-v")
                self.assertEqual(done.returncode, 0, done)
                return int(re.search(rb"threads: (\d+);", done.stderr).group(1))
        return None

    def test_the_smallest_quota_above_bounds_the_threads(self):
        every = len(os.sched_getaffinity(0))
        if every < 2 or self.threads("", {}) is None:
            self.skipTest("SKIPPED[namespaces]: two processors and leave to mount over files are needed")
        two = "cpu,cpuacct/g/cpu.cfs_"
        cases = [
            (every, "0::/\n", {}),
            (every, "0::/\n", {"cpu.max": "max 100000\n"}),
            (every, "0::/\n", {"cpu.max": "%d00000 100000\n" % every}),
            (every, "0::/\n", {"cpu.max": "100000\n"}),
            (every, "0::/\n", {"cpu.max": "100000 0\n"}),
            (1, "0::/\n", {"cpu.max": "100000 100000\n"}),
            (1, "0::/\n", {"cpu.max": "30000 100000\n"}),
            (1, "0::/\n", {"cpu.max": "199999 100000\n"}),
            (1, "0::/a/b\n", {"a/b/cpu.max": "100000 100000\n"}),
            (1, "0::/a/b/\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "100000 100000\n"}),
            (1, "0::/a/b\n", {"cpu.max": "50000 50000\n"}),
            (every, "0::/a\n", {"b/cpu.max": "100000 100000\n"}),
            (1, "0::/a\n", {"unified/a/cpu.max": "100000 100000\n"}),
            (1, "no group\n1:name=systemd:/x\n0::/a\n", {"a/cpu.max": "100000 100000\n"}),
            (1, "4:cpu,cpuacct:/g\n", {two + "quota_us": "100000\n", two + "period_us": "100000\n"}),
            (1, "4:cpuacct,cpu:/g\n", {"cpu/g/cpu.cfs_quota_us": "150000\n", "cpu/g/cpu.cfs_period_us": "100000\n"}),
            (every, "4:cpu,cpuacct:/g\n", {two + "quota_us": "-1\n", two + "period_us": "100000\n"}),
            (every, "4:cpu,cpuacct:/g\n", {two + "quota_us": "100000\n"}),
            (every, "4:cpuset:/g\n", {"cpuset/g/cpu.cfs_quota_us": "100000\n", "cpuset/g/cpu.cfs_period_us": "100000\n"}),
        ]
        for wanted, groups, files in cases:
            with self.subTest(groups=groups, files=files):
                self.assertEqual(self.threads(groups, files), wanted)


class Utf8(Case):
    def test_raw_pieces_drop_single_bytes_that_cannot_be_printed(self):
        model = self.saying(b"a" + LLAMA + b"\n\x1b\x7f")
        self.assertEqual(self.succeed(model, "-n", "9", "--raw-pieces"), b"a\na\n")

    def test_pieces_end_at_nul_when_raw(self):
        model = self.world({BOS: 260}, extra=(b" ", b"ab\0cd"))
        self.assertEqual(self.succeed(model, "-n", "1", "--raw-pieces"), b"ab\n")

    def test_whole_characters_come_out_of_byte_pieces(self):
        model = self.saying(b"a" + LLAMA + b"b")
        self.assertEqual(self.succeed(model, "-n", "12"), (b"a" + LLAMA + b"b") * 2 + b"\n")

    def test_end_inside_a_character_gives_one_replacement(self):
        model = self.saying(b"a" + LLAMA)
        for steps in (2, 3, 4):
            self.assertEqual(self.succeed(model, "-n", str(steps)), b"a\xef\xbf\xbd\n")

    def test_bytes_that_are_no_character_become_replacements(self):
        model = self.saying(b"a\xff\xc3(")
        self.assertEqual(self.succeed(model, "-n", "4"), "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}(\n".encode())

    def test_control_characters_do_not_reach_the_terminal(self):
        model = self.saying(b"a\x1b\x07\x7f\xc2\x9b\tb")
        self.assertEqual(self.succeed(model, "-n", "8"), b"a\tb\n")

    def test_every_write_to_a_pipe_is_whole_characters(self):
        model = self.saying(LLAMA, seq_len=4000)
        reader, writer = os.pipe()
        child = subprocess.Popen([PROGRAM, model, "-n", "4000"], stdout=writer)
        os.close(writer)
        total = b""
        while True:
            part = os.read(reader, 3)  # the pipe is cut anywhere; what matters is what has been written when
            if not part:
                break
            total += part
        os.close(reader)
        self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual(total, LLAMA * 1000 + b"\n")

    def test_output_is_streamed_and_never_stands_inside_a_character(self):
        model = self.saying(b"a" + LLAMA, seq_len=20000)
        child = subprocess.Popen([PROGRAM, model, "-n", "20000"], stdout=subprocess.PIPE, bufsize=0)
        first = os.read(child.stdout.fileno(), 1)
        self.assertEqual(first, b"a")
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        self.assertEqual(child.wait(timeout=60), 130)
        child.stdout.close()
        (first + rest).decode("utf-8", "strict")
        self.assertTrue(rest.endswith(b"\n"))


class TokenizerSearch(Case):
    def setUp(self):
        super().setUp()
        self.model = self.saying(b"abc")
        os.mkdir(self.path("elsewhere"))
        self.elsewhere = self.path("elsewhere")

    def generate(self):
        return run(self.model, "-n", "3", cwd=self.elsewhere)

    def test_beside_the_model_by_its_stem_first(self):
        chain_model.write_tokenizer(self.path("m_tokenizer.bin"))
        with open(self.path("tokenizer.bin"), "wb") as file:
            file.write(b"nonsense")
        self.assertEqual(self.generate().stdout, b"abc\n")

    def test_then_tokenizer_bin_beside_the_model(self):
        self.assertEqual(self.generate().stdout, b"abc\n")

    def test_then_tokenizer_bin_in_the_current_folder(self):
        os.rename(self.path("tokenizer.bin"), os.path.join(self.elsewhere, "tokenizer.bin"))
        self.assertEqual(self.generate().stdout, b"abc\n")

    def test_one_of_another_size_is_passed_over(self):
        chain_model.write_tokenizer(self.path("m_tokenizer.bin"), (b" ", b"x", b"y"))
        self.assertEqual(self.generate().stdout, b"abc\n")

    def test_one_with_a_piece_of_two_gigabytes_is_no_other_size_but_wrong(self):
        with open(self.path("m_tokenizer.bin"), "wb") as file:
            file.write(struct.pack("<IfI", 1, 0.0, 0x80000000))
            file.truncate(12 + 0x80000000)  # sparse
        os.rename(self.path("tokenizer.bin"), os.path.join(self.elsewhere, "tokenizer.bin"))
        self.refuse(1, self.model, cwd=self.elsewhere, saying=[self.path("m_tokenizer.bin")])

    def test_error_lists_what_was_tried(self):
        chain_model.write_tokenizer(self.path("tokenizer.bin"), (b" ", b"x"))
        self.refuse(1, self.model, cwd=self.elsewhere,
                    saying=["260 pieces", self.path("m_tokenizer.bin"), "no such file", "has 261 pieces", "'tokenizer.bin'", "-z FILE"])

    def test_named_one_of_another_size_is_used_with_a_note(self):
        chain_model.write_tokenizer(self.path("big.bin"), (b" ", b"x"))
        done = run(self.model, "-z", self.path("big.bin"), "-n", "3")
        self.assertEqual((done.returncode, done.stdout), (0, b"abc\n"))
        self.assertIn(b"has 261 pieces and the model 260", done.stderr)
        self.assertEqual(run(self.model, "-z", self.path("big.bin"), "-n", "3", "-q").stderr, b"")
        self.assertEqual(run(self.model, "-z", self.path("tokenizer.bin"), "-n", "3").stderr, b"")

    def test_named_one_that_is_too_small_is_an_error_with_both_numbers(self):
        chain_model.write_tokenizer(self.path("small.bin"), ())
        self.refuse(1, self.model, "-z", self.path("small.bin"), saying=[self.path("small.bin"), "259", "260"])


class Usage(Case):
    def test_wrong_command_lines_are_named_and_point_at_the_help(self):
        model = self.saying(b"abc")
        cases = [
            ([], ["--help"]),
            (["frobnicate"], ["frobnicate", "--help"]),
            (["help", "frobnicate"], ["frobnicate"]),
            (["generate"], ["model", "help generate"]),
            ([model, "other"], ["other", "help generate"]),
            ([model, "--frobnicate"], ["--frobnicate", "help generate"]),
            ([model, "-x", "1"], ["-x"]),
            ([model, "-n"], ["-n", "N"]),
            ([model, "-n", "ten"], ["-n", "ten"]),
            ([model, "-n", "-1"], ["-n", "-1"]),
            ([model, "-n", "99999999999999999999"], ["-n"]),
            ([model, "--steps=1.5"], ["--steps", "1.5"]),
            ([model, "-t", "-1"], ["-t", "-1"]),
            ([model, "-t", "nan"], ["-t", "nan"]),
            ([model, "-t", "inf"], ["-t", "inf"]),
            ([model, "-t", ""], ["-t"]),
            ([model, "-p", "1.5"], ["-p", "1.5"]),
            ([model, "-s", "-1"], ["-s", "-1"]),
            ([model, "-s", "18446744073709551616"], ["-s"]),
            ([model, "-m", "sing"], ["-m", "sing"]),
            ([model, "--threads", "0"], ["--threads", "from 1 up,", "0"]),
            ([model, "--context", "0"], ["--context", "from 1 up,", "0"]),
            ([model, "--threads", "-1"], ["--threads", "-1"]),
            ([model, "--isa", "mmx"], ["--isa", "mmx"]),
            ([model, "--stop", "1,x"], ["--stop", "x"]),
            ([model, "--stop-string", ""], ["--stop-string", "0 bytes"]),
            ([model, "--stop-string", "x", "--raw-pieces"], ["--stop-string", "--raw-pieces"]),
            ([model, "--top-k", "-1"], ["--top-k", "-1"]),
            ([model, "--min-p", "2"], ["--min-p", "from 0 to 1"]),
            ([model, "--repetition-penalty", "0"], ["--repetition-penalty", "from 0.001 to 1000"]),
            ([model, "--presence-penalty", "-1001"], ["--presence-penalty", "from -1000 to 1000"]),
            ([model, "--penalty-window", "0"], ["--penalty-window", "0"]),
            ([model, "--ban", "1,x"], ["--ban", "x"]),
            ([model, "--ban", "260"], ["--ban", "260"]),
            ([model, "--bias", "1"], ["--bias", "ID:NUMBER"]),
            ([model, "--bias", "1:nan"], ["--bias", "1:nan"]),
            ([model, "--bias", "1:2,1:3"], ["--bias", "again"]),
            ([model, "--quiet=yes"], ["--quiet"]),
            (["chat"], ["model", "help chat"]),
            (["chat", model, "--stop", "1"], ["--stop", "help chat"]),
            (["score"], ["model", "help score"]),
            (["score", model, "a", "b"], ["b"]),
            (["score", model, "a", "--file", "b"], ["--file"]),
            (["score", model, "a", "--context", "1"], ["--context", "1"]),
            (["score", model, "a", "--context", "9", "--stride", "9"], ["--stride", "9"]),
            (["tokenize"], ["-z"]),
            (["tokenize", "a", "b", "c"], ["c"]),
            (["inspect", model, "--steps", "1"], ["--steps", "help inspect"]),
            (["bench", model, "--repeats", "0"], ["--repeats"]),
            (["convert", model], ["convert", "help convert"]),
            (["convert", model, "out.bin", "--to", "v3"], ["--to", "v3", "legacy"]),
            (["selftest", "x"], ["x"]),
        ]
        for arguments, parts in cases:
            with self.subTest(arguments=arguments):
                self.refuse(2, *arguments, saying=parts + ["See 'proofinfer"])

    def test_values_may_look_like_flags(self):
        model = self.saying(b"abc")
        self.assertEqual(self.succeed(model, "-i", "-n", "-n", "3"), b"-n\n")
        self.assertEqual(self.succeed(model, "--prompt=-n", "-n3"), b"-n\n")

    def test_many_threads_work(self):
        model = self.saying(b"abc")
        self.assertEqual(self.succeed(model, "-n", "6", "--threads", "64"), b"abcabc\n")
        self.refuse(2, model, "--threads", "1000000000", saying=["--threads"])

    def test_double_dash_ends_the_flags(self):
        model = self.saying(b"abc")
        self.assertEqual(self.succeed("-n", "3", "--", model), b"abc\n")
        self.refuse(1, "--", "--help", saying=["--help"])

    def test_missing_and_wrong_files_are_said_with_their_names(self):
        model = self.saying(b"abc")
        page = self.path("page.bin")
        with open(page, "wb") as file:
            file.write(b"<!DOCTYPE html><html><body>404</body></html>\n" * 10)
        empty = self.path("empty.bin")
        open(empty, "wb").close()
        cut = self.path("cut.bin")
        with open(model, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:-10])
        for command in ("generate", "chat", "inspect", "bench"):
            for path in (self.path("absent.bin"), self.folder, page, empty, cut):
                with self.subTest(command=command, path=path):
                    message = self.refuse(1, command, path, saying=[path])
                    self.assertEqual(message.count("\n"), 1, message)
        for path in (self.path("absent.bin"), self.folder, page, empty):
            with self.subTest(tokenizer=path):
                self.refuse(1, model, "-z", path, saying=[path])
                self.refuse(1, "tokenize", "-z", path, "x", saying=[path])

    def test_first_word_is_a_model_if_it_is_no_command(self):
        model = self.saying(b"abc")
        self.assertEqual(self.succeed(os.path.basename(model), "-n", "3", cwd=self.folder), b"abc\n")
        os.rename(model, self.path("plain"))
        self.assertEqual(self.succeed("plain", "-n", "3", cwd=self.folder), b"abc\n")
        os.rename(self.path("plain"), self.path("chat"))
        self.assertEqual(self.succeed("./chat", "-n", "3", cwd=self.folder), b"abc\n")


class Channels(Case):
    def test_reader_that_goes_away_ends_the_program_quietly(self):
        model = self.saying(b"abc", seq_len=20000)
        child = subprocess.Popen([PROGRAM, model, "-n", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(os.read(child.stdout.fileno(), 1), b"a")
        child.stdout.close()
        errors = child.stderr.read()
        child.stderr.close()
        self.assertEqual((child.wait(timeout=60), errors), (1, b""))

    def test_closed_and_full_outputs_are_errors(self):
        model = self.saying(b"abc")
        for arguments in ([model, "-n", "3"], ["inspect", model], ["--help"]):
            done = run(*arguments, stdout=None, preexec=lambda: os.close(1))
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(b"standard output", done.stderr)
            with open("/dev/full", "wb") as full:
                done = run(*arguments, stdout=full)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(b"standard output", done.stderr)

    def test_output_that_is_closed_is_never_taken_over_by_another_file(self):
        def close():
            os.close(0)
            os.close(1)

        done = subprocess.run([PROGRAM, "--help"], stdout=None, stderr=subprocess.PIPE, preexec_fn=close, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)

    def test_closed_standard_error_and_input_do_no_harm(self):
        model = self.saying(b"abc")

        def close():
            os.close(0)
            os.close(2)

        done = subprocess.run([PROGRAM, model, "-n", "3"], stdout=subprocess.PIPE, preexec_fn=close, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"abc\n"))

    def on_terminal(self, *arguments, stdin=b""):
        """The standard error on a terminal: returns the exit code, the output, and what the terminal got."""
        controller, terminal = pty.openpty()
        child = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal)
        os.close(terminal)
        out, _ = child.communicate(stdin, timeout=300)
        shown = b""
        while select.select([controller], [], [], 5)[0]:
            try:
                shown += os.read(controller, 65536)
            except OSError:
                break
        os.close(controller)
        return child.returncode, out, shown

    def test_terminal_gets_the_timing_and_the_output_stays_clean(self):
        model = self.saying(b"abc")
        code, out, shown = self.on_terminal(model, "-n", "6")
        self.assertEqual((code, out), (0, b"abcabc\n"))
        self.assertIn(b"generated: 6 tokens", shown)
        self.assertEqual(self.on_terminal(model, "-n", "6", "-q"), (0, b"abcabc\n", b""))

    def test_terminal_sees_how_far_the_bench_is(self):
        model = self.saying(b"abc", seq_len=64)
        arguments = ["bench", model, "--json", "--no-bounds", "--repeats", "2"]
        code, out, shown = self.on_terminal(*arguments)
        self.assertEqual((code, json.loads(out)["repeats"]), (0, 2))
        self.assertTrue(shown.endswith(b"\rmeasuring: run 1 of 2\x1b[K\rmeasuring: run 2 of 2\x1b[K\r\x1b[K"), shown)
        self.assertEqual(self.on_terminal(*arguments, "-q")[2], b"")

    def test_progress_of_a_long_prompt_is_wiped(self):
        model = self.saying(b"abc", seq_len=12000)
        code, out, shown = self.on_terminal(model, "--prompt-file", "-", "-n", "11000", stdin=b"x" * 10900)
        self.assertEqual((code, out[:100]), (0, b"x" * 100))
        if b"reading the prompt: " in shown:
            self.assertRegex(shown, rb"reading the prompt: \d+ of 10902 tokens\x1b\[K")
            self.assertLess(shown.rindex(b"reading the prompt"), shown.rindex(b"\r\x1b[Kprompt: "))


class Signals(Case):
    def interrupted(self, number, *arguments, wait_for):
        child = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = b""
        while wait_for not in seen:
            part = os.read(child.stdout.fileno(), 1)
            if not part:
                self.fail(child.stderr.read())
            seen += part
        sent = time.monotonic()
        child.send_signal(number)
        # The input stays open: the program must not need its end.
        rest = child.stdout.read()
        errors = child.stderr.read()
        code = child.wait(timeout=60)
        took = time.monotonic() - sent
        for channel in (child.stdin, child.stdout, child.stderr):
            channel.close()
        self.assertLess(took, 10)
        self.assertEqual(errors, b"")
        return code, seen + rest

    def test_interrupt_ends_generation_with_a_whole_line(self):
        model = self.saying(b"abc", seq_len=40000)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            got, out = self.interrupted(number, model, "-n", "40000", wait_for=b"abcabc")
            self.assertEqual(got, code)
            self.assertRegex(out, rb"^(abc)+a?b?\n$")

    def test_interrupt_ends_a_prompt_that_is_being_read(self):
        model = self.saying(b"abc", seq_len=60000)
        arguments = [model, "--prompt-file", "-", "-n", "0", "--context", "60000", "--threads", "1", "--isa", "scalar"]
        child = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdin.write(b"x" * 59000)
        child.stdin.close()
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out, errors = child.stdout.read(), child.stderr.read()
        child.stdout.close()
        child.stderr.close()
        # Nothing of the prompt is printed before all of it is read.
        self.assertEqual((child.wait(timeout=60), out, errors), (130, b"", b""))

    def test_interrupt_ends_a_chat_that_waits_for_input(self):
        model = self.saying(b"abc")
        code, out = self.interrupted(signal.SIGINT, "chat", model, "-y", "", wait_for=b"User: ")
        self.assertEqual((code, out), (130, b"User: \n"))

    def test_interrupt_ends_a_bench(self):
        model = self.saying(b"abc", seq_len=4000)
        child = subprocess.Popen([PROGRAM, "bench", model, "--repeats", "10000"], stdout=subprocess.PIPE)
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out = child.communicate(timeout=60)[0]
        self.assertEqual((child.returncode, out), (130, b""))

    def test_ignored_interrupt_stays_ignored(self):
        model = self.saying(b"abc", seq_len=3000)
        child = subprocess.Popen([PROGRAM, model, "-n", "3000"], stdout=subprocess.PIPE,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(os.read(child.stdout.fileno(), 1), b"a")
        child.send_signal(signal.SIGINT)
        out = child.communicate(timeout=60)[0]
        self.assertEqual((child.returncode, b"a" + out), (0, b"abc" * 1000 + b"\n"))


class Chat(Case):
    def chatty(self, answer=b"Hi", seq_len=512):
        """Answers every turn, which ends with "]", with `answer` and the end of the turn."""
        tokens = [byte_token(byte) for byte in b"]" + answer] + [EOS]
        return self.world({token: tokens[(number + 1) % len(tokens)] for number, token in enumerate(tokens)}, seq_len)

    def test_turns_from_a_pipe_until_its_end(self):
        model = self.chatty()
        out = self.succeed("chat", model, stdin=b"Be brief.\nHello\nAgain\n")
        self.assertEqual(out, b"Enter system prompt (optional): User: Assistant: Hi\nUser: Assistant: Hi\nUser: \n")

    def test_last_line_needs_no_newline(self):
        self.assertEqual(self.succeed("chat", self.chatty(), "-y", "", stdin=b"Hello"), b"User: Assistant: Hi\nUser: \n")

    def test_end_of_input_ends_it_cleanly_anywhere(self):
        model = self.chatty()
        self.assertEqual(self.succeed("chat", model), b"Enter system prompt (optional): \n")
        self.assertEqual(self.succeed("chat", model, stdin=b"\n"), b"Enter system prompt (optional): User: \n")

    def test_prompts_given_as_flags_are_not_asked_for(self):
        out = self.succeed("chat", self.chatty(), "-y", "Be brief.", "-i", "Hello", stdin=b"More\n")
        self.assertEqual(out, b"Assistant: Hi\nUser: Assistant: Hi\nUser: \n")

    def test_generate_has_it_as_a_mode(self):
        model = self.chatty()
        arguments = ["-y", "", "-i", "Hello"]
        self.assertEqual(self.succeed(model, "-m", "chat", *arguments), self.succeed("chat", model, *arguments))

    def test_full_context_is_said_and_ends_it(self):
        model = self.chatty(answer=b"abcdefgh", seq_len=64)
        # BOS, " ", "[INST] x [/INST]": 18 tokens; with the answer and its end a turn takes 27.
        done = run("chat", model, "-y", "", stdin=b"x\n" * 5)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, b"User: Assistant: abcdefgh\n" * 2 + b"User: Assistant: \n")
        self.assertIn(b"all 64 positions", done.stderr)

    def test_steps_bound_it(self):
        model = self.chatty(answer=b"abcdefgh")
        # 18 tokens of the turn, and one token printed behind each of the positions 18 to 20.
        done = run("chat", model, "-y", "", "-n", "20", stdin=b"x\ny\n")
        self.assertEqual((done.returncode, done.stdout), (0, b"User: Assistant: abc\n"))
        self.assertIn(b"all 20 positions", done.stderr)

    def test_lines_of_any_length(self):
        model = self.chatty(seq_len=8000)
        out = self.succeed("chat", model, "-n", "8000", "-y", "s" * 2000, stdin=b"x" * 5000 + b"\n")
        self.assertEqual(out, b"User: Assistant: Hi\nUser: \n")

    def positions(self, text):
        return 2 + len(text)  # the token that begins a text, the space in front, and a token a byte

    def test_system_prompt_is_in_the_first_turn_only_and_the_end_of_a_turn_takes_a_position(self):
        model = self.chatty()
        first = self.positions("[INST] <<SYS>>\nsystem\n<</SYS>>\n\nx [/INST]") + len("Hi") + 1
        second = self.positions("[INST] x [/INST]")
        for steps, answer in ((first + second, b"H\n"), (first + second - 1, b"\n")):
            out = self.succeed("chat", model, "-y", "system", "-n", str(steps), "-q", stdin=b"x\n" * 3)
            self.assertEqual(out, b"User: Assistant: Hi\nUser: Assistant: " + answer, steps)

    def test_a_turn_that_ends_within_the_prompt_starts_a_line_as_the_reference_does(self):
        h = byte_token(ord("H"))
        model = self.world({byte_token(ord("N")): EOS, byte_token(ord("]")): h, h: EOS})
        arguments = ["chat", model, "-y", "", "-i", "x"]
        # "[INST] x [/INST]": behind each N the most probable token is the end of the turn; <unk> is what the reference prints behind one.
        self.assertEqual(self.succeed(*arguments, "--raw-pieces").split(b"User: ")[0], b"Assistant: \n\nH\n<unk>")
        self.assertEqual(self.succeed(*arguments).split(b"User: ")[0], b"Assistant: H\n")

    def test_a_turn_that_is_ended_twice_leaves_an_empty_line_as_the_reference_does(self):
        h = byte_token(ord("H"))
        model = self.world({byte_token(ord("]")): h, h: EOS, EOS: EOS})
        arguments = ["chat", model, "-y", "", "-i", "x"]
        self.assertEqual(self.succeed(*arguments, "--raw-pieces").split(b"User: ")[0], b"Assistant: H\n\n")
        self.assertEqual(self.succeed(*arguments).split(b"User: ")[0], b"Assistant: H\n")

    @needs_models
    def test_random_numbers_are_drawn_as_the_reference_draws_them(self):
        # What the reference program prints with these seeds.
        told = {
            3: b'Assistant:  some birthday. Some move back and said to a big tree, "I will be a good my\n',
            8: b'Assistant: , there was a blueber. \nSue had some things in the pond and the wind was not angr\n',
        }
        for seed, text in told.items():
            arguments = [STORIES, "-z", TOK512, "-m", "chat", "-t", "1.0", "-p", "0.9", "-s", str(seed), "-n", "90", "-y", "Be kind.", "-i",
                         "Tell me of a cat"]
            self.assertEqual(self.succeed(*arguments, "--raw-pieces"), text)
            self.assertEqual(self.succeed(*arguments), text)

    @needs_models
    def test_schema_reaches_the_model_as_the_reference_renders_it(self):
        plain = "[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nhello [/INST]"
        told = self.succeed(STORIES, "-z", TOK512, "-i", plain, "-n", "100", "--raw-pieces")
        chat = self.succeed("chat", STORIES, "-z", TOK512, "-y", "Be kind.", "-i", "hello", "-n", "100", "--raw-pieces")
        # What generate prints behind the prompt is what chat prints behind "Assistant: ", up to the end of the turn.
        self.assertTrue(chat.startswith(b"Assistant: "))
        self.assertTrue(told.endswith(chat[len(b"Assistant: "):].split(b"User: ")[0]), (told, chat))


class Talk(Case):
    """A conversation in a named template; a GGUF file brings its own."""

    def talker(self, answer=b"Hi", seq_len=512):
        tokens = [byte_token(byte) for byte in b"]" + answer] + [EOS]
        return self.world({token: tokens[(number + 1) % len(tokens)] for number, token in enumerate(tokens)}, seq_len)

    def endless_talker(self, seq_len):
        a, b, c = (byte_token(byte) for byte in b"abc")
        return self.world({byte_token(ord("]")): a, a: b, b: c, c: a}, seq_len)

    def talk(self, model, lines, *flags):
        done = run("chat", model, "--template", "llama2", *flags, stdin=lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr.decode()

    def test_answers_alone_go_to_the_output(self):
        self.assertEqual(self.talk(self.talker(), b"Hello\nAgain\n\n"), (b"Hi\nHi\n", ""))

    def test_history_is_in_the_prompt_until_it_is_reset(self):
        model = self.talker(seq_len=2000)

        # BOS, space, "[INST] x [/INST]" and, of each turn before, that and " Hi " with a space in front of it all, and EOS.
        def prompt(turns, system=0):
            return 2 + 16 + system + (turns - 1) * (2 + 16 + 4 + 1)

        def fits_exactly(turns, lines, system=0, flags=()):
            for spare, notes in ((1, 0), (0, 1)):
                _, told = self.talk(model, lines, "-n", str(prompt(turns, system) + spare), "--max-tokens", "1", *flags)
                self.assertEqual(told.count("note:"), notes, told)

        kind = len("<<SYS>>\nkind\n<</SYS>>\n\n")
        fits_exactly(1, b"x\n")
        fits_exactly(1, b"x\n", kind, ("-y", "kind"))
        fits_exactly(1, b"/system kind\nx\n", kind)

        # The answer to the first is "H" here.
        done = [self.talk(model, b"x\nx\n", "-n", str(prompt(2) - 1 + spare), "--max-tokens", "1")[1] for spare in (1, 0)]
        self.assertEqual([told.count("forgotten") for told in done], [0, 1], done)

    def test_reset_forgets_and_other_commands_do_what_they_say(self):
        model = self.talker(seq_len=65)
        # The second prompt has 41 tokens, and the third would have 64.
        _, told = self.talk(model, b"x\nx\nx\n", "--max-tokens", "2")
        self.assertIn("the oldest 2 messages no longer fit the 65 positions and are forgotten", told)
        self.assertEqual(self.talk(model, b"x\nx\n/reset\nx\nx\n", "--max-tokens", "2"), (b"Hi\n" * 4, ""))
        out, told = self.talk(model, b"/nothing\n/help\n/quit\nx\n")
        self.assertEqual(out, b"")
        self.assertIn("no command '/nothing'", told)
        self.assertIn("/reset", told)
        self.assertEqual(self.talk(model, b"//x\n")[0], b"Hi\n")

    def test_message_that_is_too_long_is_not_sent_and_the_talk_goes_on(self):
        out, told = self.talk(self.talker(seq_len=64), b"y" * 100 + b"\nx\n")
        self.assertEqual(out, b"Hi\n")
        self.assertIn("this message makes a prompt of 117 tokens; there is room for 48, so it is not sent", told)

    def test_answer_ends_with_its_limits(self):
        model = self.talker(b"abcdefgh", seq_len=64)
        self.assertEqual(self.talk(model, b"x\nx\n", "--max-tokens", "3")[0], b"abc\nabc\n")
        self.assertEqual(self.talk(model, b"x\n", "--stop-string", "ef", "--stop-string", "zz")[0], b"abcd\n")
        endless = self.endless_talker(32)
        out, told = self.talk(endless, b"x\n")
        self.assertEqual(out, b"abc" * 5 + b"\n")
        self.assertIn("the answer has no room left: all 32 positions are used", told)
        self.assertEqual(self.talk(endless, b"x\n", "-q")[1], "")

    def test_first_line_and_system_prompt_come_by_flags(self):
        self.assertEqual(self.talk(self.talker(), b"Again\n", "-i", "Hello", "-y", "Be kind.")[0], b"Hi\nHi\n")

    def test_what_cannot_be_said_is_refused_and_the_talk_goes_on(self):
        model = self.talker()
        done = run("chat", model, "--template", "mistral", "--max-tokens", "1", stdin=b"x\n/system kind\nx\n")
        self.assertEqual((done.returncode, done.stdout), (0, b"H\nH\n"))
        self.assertIn(b"has no place for one; the conversation stays as it is", done.stderr)
        self.refuse(2, "chat", model, "--template", "mistral", "-y", "kind", saying=["-y", "has no place for one"])
        vocabulary = self.path("vocabulary.gguf")
        chain_model.write_gguf_vocabulary(vocabulary, without=4)
        out, told = self.talk(model, b"a\x04\nx\n/system \x04\nx\n", "-z", vocabulary, "--max-tokens", "1")
        self.assertEqual(out, b"H\nH\n")
        self.assertEqual((told.count("this message is not sent"), told.count("the conversation stays as it is")), (1, 1), told)

    def test_answer_that_cannot_be_encoded_again_is_forgotten_and_the_talk_goes_on(self):
        # The answer is a piece of two bytes, one of which has no piece by itself.
        turn, odd = byte_token(ord("]")), 260
        vocabulary = self.path("vocabulary.gguf")
        chain_model.write_gguf_vocabulary(vocabulary, without=4, extra=(b"o\x04",))
        model = self.world({turn: odd, odd: EOS}, extra=(b" ", b"o\x04"))
        out, told = self.talk(model, b"x\ny\n", "-z", vocabulary)
        self.assertEqual([line[:1] for line in out.splitlines()], [b"o", b"o"], out)
        self.assertEqual(told.count("is forgotten, and the message before it"), 2, told)
        self.assertNotIn("not sent", told)

    def test_wrong_flags_and_templates_are_refused(self):
        model = self.talker()
        self.refuse(2, "chat", model, "--template", "chatty", saying=["--template", "chatty", "llama3"])
        self.refuse(2, "chat", model, "--template", "llama2", "--raw-pieces", saying=["--raw-pieces"])
        self.refuse(2, "chat", model, "--max-tokens", "5", saying=["--max-tokens", "--template"])
        self.refuse(2, "chat", model, "--stop-string", "x", saying=["--stop-string", "--template"])

    def test_interrupt_stops_the_answer_and_the_next_one_leaves(self):
        model = self.endless_talker(4000)
        child = subprocess.Popen([PROGRAM, "chat", model, "--template", "llama2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.stdin.close)
        for _ in range(2):
            child.stdin.write(b"x\n")
            child.stdin.flush()
            self.assertEqual(child.stdout.read(10)[:3], b"abc")
            child.send_signal(signal.SIGINT)
            while child.stdout.read(1) != b"\n":
                pass
            time.sleep(0.2)
            self.assertIsNone(child.poll())
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(30), 130)

    def test_terminal_is_asked_with_a_sign(self):
        model = self.talker()
        child, terminal = pty.fork()
        if child == 0:
            os.execv(PROGRAM, [PROGRAM, "chat", model, "--template", "llama2"])
        self.addCleanup(os.close, terminal)
        told = b""
        os.write(terminal, b"x\n/quit\n")
        while True:
            try:
                more = os.read(terminal, 1000)
            except OSError:
                break
            if not more:
                break
            told += more
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertIn(b"/help tells the commands", told)
        self.assertIn(b"> ", told)
        self.assertIn(b"Hi\r\n", told)


class RealTalk(Case):
    @unittest.skipUnless(os.environ.get("PROOFINFER_SMOLLM2"), "SKIPPED[smollm2]: PROOFINFER_SMOLLM2 names no file")
    def test_the_recorded_talk_of_a_real_model(self):
        with open(os.path.join(os.path.dirname(GOLDEN), "smollm2.json"), encoding="utf-8") as file:
            talk = json.load(file)
        lines = "".join(turn["user"] + "\n" for turn in talk["turns"]).encode()
        out = self.succeed("chat", os.environ["PROOFINFER_SMOLLM2"], stdin=lines)
        self.assertEqual(out.decode(), "".join(turn["text"] + "\n" for turn in talk["turns"]))
        self.assertIn(b"Paris", out)


class Score(Case):
    """The chain model gives the successor of a token in its table a logit of about sqrt(dim), and every other token 0."""

    VOCABULARY = 260

    def setUp(self):
        super().setUp()
        self.model = self.saying(b"abc", seq_len=40)
        dim = 4
        whole = math.exp(math.sqrt(dim)) + self.VOCABULARY - 1
        self.likely, self.other = math.sqrt(dim) - math.log(whole), -math.log(whole)
        self.unknown = -math.log(self.VOCABULARY)  # behind a token that is not in the table

    def score(self, *arguments, **options):
        return json.loads(self.succeed("score", self.model, "--json", *arguments, **options))

    def logprobs(self, *arguments, **options):
        return [piece["logprob"] for piece in self.score("--tokens", *arguments, **options)["texts"][0]["pieces"]]

    def assert_near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        self.assertIsNone(found[0])
        for value, wanted in zip(found[1:], expected[1:]):
            self.assertAlmostEqual(value, wanted, places=4)

    def test_tells_what_the_model_gives_each_token(self):
        # The tokens are BOS, " ", "a", "b", "x", "c"; BOS is followed by "a" in the table.
        expected = [None, self.other, self.unknown, self.likely, self.other, self.unknown]
        self.assert_near(self.logprobs("abxc"), expected)
        figures = self.score("abxc")["total"]
        nats = -sum(expected[1:])
        self.assertEqual((figures["tokens"], figures["scored"], figures["scored_bytes"]), (6, 5, 4))
        self.assertAlmostEqual(figures["nats"], nats, places=4)
        self.assertAlmostEqual(figures["perplexity"], math.exp(nats / 5), places=2)
        self.assertAlmostEqual(figures["bits_per_byte"], nats / math.log(2) / 4, places=4)

    def test_text_comes_from_the_command_line_the_input_or_files(self):
        text = "abcab\ncx"
        wanted = self.score(text)["total"]
        for name in ("one", "two"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        self.assertEqual(self.score(stdin=text.encode())["total"], wanted)
        self.assertEqual(self.score("-", stdin=text.encode())["total"], wanted)
        both = self.score("--file", self.path("one"), "--file", self.path("two"))
        self.assertEqual([dict(one, name="") for one in both["texts"]], [dict(wanted, name="")] * 2)
        self.assertAlmostEqual(both["total"]["nats"], 2 * wanted["nats"])
        self.assertAlmostEqual(both["total"]["perplexity"], wanted["perplexity"])

    def test_lines_are_texts_of_their_own_whatever_they_are_evaluated_with(self):
        lines = ["abcabc", "x", "cab" * 10]
        found = self.score("--lines", "\n\n".join(lines) + "\n")["texts"]
        self.assertEqual([one["name"] for one in found], ["text:1", "text:3", "text:5"])
        for one, line in zip(found, lines):
            self.assertEqual(dict(one, name=""), dict(self.score(line)["texts"][0], name=""))

    def test_long_text_is_scored_in_windows(self):
        text = "abc" * 40
        whole = [None, self.other, self.unknown] + [self.likely] * 119
        # Each token depends on the one before alone, which every window has: where it has none, BOS stands there.
        for flags in ([], ["--context", "20", "--stride", "5"], ["--context", "2", "--stride", "1"], ["--context", "40", "--stride", "38"]):
            found = self.logprobs(text, *flags)
            if flags[:2] == ["--context", "2"]:
                # A window is BOS and one token: "a" is what follows BOS.
                expected = [None, self.other] + ([self.likely, self.other, self.other] * 40)
                self.assert_near(found, expected)
            else:
                self.assert_near(found, whole)

    def test_window_of_the_whole_text_is_no_window(self):
        text = "abc" * 11 + "a"
        self.assertEqual(len(self.logprobs(text)), 36)
        self.assertEqual(self.score(text, "--context", "36"), self.score(text, "--context", "36", "--stride", "1"))

    def test_table_has_a_line_a_text_and_their_sum(self):
        out = self.succeed("score", self.model, "--lines", "abc\nab").decode().splitlines()
        self.assertEqual(out[0].split(), ["tokens", "scored", "perplexity", "bits/byte", "text"])
        self.assertEqual([line.split()[0:2] + line.split()[4:] for line in out[1:]],
                         [["5", "4", "text:1"], ["4", "3", "text:2"], ["9", "7", "(all)"]])
        tokens = self.succeed("score", self.model, "--tokens", "a").decode().splitlines()
        self.assertEqual(tokens[1].split(), ["-", "1", '"\\n<s>\\n"'])
        self.assertEqual(tokens[3].split()[1:], ["100", '"<0x61>"'])

    def test_nothing_to_score_has_no_figures(self):
        self.assertIsNone(self.score("")["total"]["perplexity"])
        self.assertEqual(self.succeed("score", self.model, "").decode().splitlines()[1].split(), ["1", "0", "-", "-", "text"])
        self.assertEqual(self.score("--lines", "\n\n")["texts"], [])
        table = self.succeed("score", self.model, "--lines", "\n\n").decode().splitlines()
        self.assertEqual([line.split() for line in table], [["tokens", "scored", "perplexity", "bits/byte", "text"]])

    def test_bytes_of_a_first_token_that_nothing_is_known_about_do_not_count(self):
        vocabulary = self.path("vocabulary.gguf")
        chain_model.write_gguf_vocabulary(vocabulary, add_bos=False)
        figures = self.score("abc", "-z", vocabulary)["total"]  # " ", which the text does not have, "a", "b" and "c"
        self.assertEqual((figures["tokens"], figures["scored"], figures["scored_bytes"]), (4, 3, 3))
        chain_model.write_gguf_vocabulary(vocabulary)
        figures = self.score("abc", "-z", vocabulary)["total"]
        self.assertEqual((figures["tokens"], figures["scored"], figures["scored_bytes"]), (5, 4, 3))

    def test_model_of_one_position_scores_nothing(self):
        model = self.saying(b"abc", seq_len=1)
        total = json.loads(self.succeed("score", model, "--json", "abc"))["total"]
        self.assertEqual((total["tokens"], total["scored"], total["scored_bytes"], total["bits_per_byte"]), (5, 0, 0, None))

    def test_files_that_cannot_be_read_are_named(self):
        self.refuse(1, "score", self.model, "--file", self.folder, saying=["cannot read the text", self.folder])
        self.refuse(1, "score", self.model, "--file", "/nonexistent/x", saying=["/nonexistent/x"])


class Tokenize(Case):
    def setUp(self):
        super().setUp()
        self.tokenizer = self.path("t.bin")
        self.ids = chain_model.write_tokenizer(self.tokenizer, (b" ", b"h", b"e", b"he", b" he"))

    def test_prints_one_line_of_ids(self):
        out = self.succeed("tokenize", "-z", self.tokenizer, "he!")
        self.assertEqual(out, b"%d %d\n" % (self.ids[b" he"], byte_token(ord("!"))))

    def test_begin_and_end_on_request(self):
        out = self.succeed("tokenize", "-z", self.tokenizer, "--bos", "--eos", "h")
        self.assertEqual(out, b"1 %d %d 2\n" % (self.ids[b" "], self.ids[b"h"]))
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "--bos", ""), b"1\n")

    def test_text_from_the_input_is_taken_to_the_byte(self):
        text = b"a\0b\n\xff"
        wanted = b"%d " % self.ids[b" "] + b" ".join(b"%d" % byte_token(byte) for byte in text) + b"\n"
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, stdin=text), wanted)
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "-", stdin=text), wanted)

    def test_pieces_are_told_in_a_table(self):
        out = self.succeed("tokenize", "-z", self.tokenizer, "--pieces", "--bos", "he!").decode().splitlines()
        self.assertEqual([line.split(None, 1) for line in out],
                         [["id", "piece"], ["1", r'"\n<s>\n"'], [str(self.ids[b" he"]), '" he"'], [str(byte_token(33)), '"<0x21>"']])

    def test_decode_is_the_way_back(self):
        for text in ("hello", " hello", "a" + "\N{LLAMA}" + "b\n", ""):
            ids = self.succeed("tokenize", "-z", self.tokenizer, "--bos", text)
            self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "--decode", stdin=ids).decode(), text + "\n")
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "--decode", "1", str(self.ids[b" he"])), b"he\n")
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "--decode", "%d,1" % self.ids[b"h"]), b"h\n<s>\n\n")

    def test_decode_refuses_what_is_no_id(self):
        self.refuse(2, "tokenize", "-z", self.tokenizer, "--decode", "1", "x", saying=["'x'"])
        self.refuse(2, "tokenize", "-z", self.tokenizer, "--decode", "-5", saying=["-5"])
        self.refuse(1, "tokenize", "-z", self.tokenizer, "--decode", "999999", saying=["999999"])

    def test_vocabulary_is_counted_given_or_the_models(self):
        model = self.saying(b"abc")
        wanted = self.succeed("tokenize", "-z", self.path("tokenizer.bin"), "abc")
        self.assertEqual(self.succeed("tokenize", "-z", self.path("tokenizer.bin"), "--vocab", "260", "abc"), wanted)
        self.assertEqual(self.succeed("tokenize", model, "abc"), wanted)
        self.assertEqual(self.succeed("tokenize", model, stdin=b"abc"), wanted)
        self.assertEqual(self.succeed("tokenize", "-z", self.path("tokenizer.bin"), model, "abc"), wanted)
        self.refuse(1, "tokenize", "-z", self.path("tokenizer.bin"), "--vocab", "300", "abc", saying=["300"])

    def test_files_that_end_inside_a_piece_are_not_counted(self):
        with open(self.tokenizer, "rb") as file:
            whole = file.read()
        with open(self.tokenizer, "wb") as file:
            file.write(whole + b"\0\0\0")
        self.refuse(1, "tokenize", "-z", self.tokenizer, "he", saying=["--vocab", self.tokenizer])
        self.assertEqual(self.succeed("tokenize", "-z", self.tokenizer, "--vocab", "264", "he"), b"%d\n" % self.ids[b" he"])
        for cut in (0, 1, 4, 5, 12, 13, len(whole) - 1):
            with open(self.tokenizer, "wb") as file:
                file.write(whole[:cut])
            self.refuse(1, "tokenize", "-z", self.tokenizer, "he", saying=[self.tokenizer])
        for length in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f"):
            with open(self.tokenizer, "wb") as file:
                file.write(whole[:8] + length + whole[12:])
            self.refuse(1, "tokenize", "-z", self.tokenizer, "he", saying=[self.tokenizer])

    @needs_models
    def test_known_ids_of_the_large_vocabulary(self):
        tokenizer = os.path.join(MODELS, "tokenizer.bin")
        if not os.path.isfile(tokenizer):
            self.skipTest("SKIPPED[real-models]: %s is not there" % tokenizer)
        for text, ids in ((" Hello world", "1 29871 15043 3186"), ("This is \N{LLAMA}.cpp", "1 910 338 29871 243 162 169 156 29889 8223"),
                          ("<s>", "1 529 29879 29958"), (" " * 64 + "X", "1 462 462 462 462 1060")):
            self.assertEqual(self.succeed("tokenize", "-z", tokenizer, "--bos", text).decode(), ids + "\n")


class Convert(Case):
    def test_round_trip_and_default_group_size(self):
        model = self.saying(b"abc", seq_len=32)
        v1, back, v2 = self.path("v1.bin"), self.path("back.bin"), self.path("v2.bin")
        self.succeed("convert", model, v1, "--to", "v1")
        self.succeed("convert", v1, back, "--to", "legacy")
        with open(model, "rb") as before, open(back, "rb") as after:
            self.assertEqual(before.read(), after.read())
        done = run("convert", model, v2)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b"group size 2\n"))
        found = json.loads(self.succeed("inspect", v2, "--json"))
        self.assertEqual((found["element_type"], found["group_size"]), ("q8_0", 2))
        for tensor in found["tensors"]:
            self.assertEqual((tensor["type"], tensor["is_quantized"]), ("f32", False) if "norm" in tensor["name"] else ("q8_0", True))
        for flags in (["-q"], ["--group-size", "2"], ["--group-size", "2", "-q"], ["--to", "v1"]):
            done = run("convert", model, self.path("quiet.bin"), *flags)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), flags)

    def test_refuses_a_group_that_does_not_divide_and_leaves_no_file(self):
        model = self.saying(b"abc", seq_len=32)
        self.refuse(1, "convert", model, self.path("v2.bin"), "--group-size", "3", saying=["group_size is 3", "dim", "hidden_dim"])
        self.assertFalse(os.path.exists(self.path("v2.bin")))

    def test_names_as_long_as_the_system_takes(self):
        model = self.saying(b"abc", seq_len=32)
        self.succeed("convert", model, self.path("v" * 255), "--to", "v1")
        self.assertTrue(os.path.exists(self.path("v" * 255)))

    def test_a_limit_of_the_size_of_files_is_an_error(self):
        model = self.saying(b"abc", seq_len=32)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
        folder = os.path.dirname(self.path("v1.bin"))
        before = sorted(os.listdir(folder))
        self.refuse(1, "convert", model, self.path("v1.bin"), "--to", "v1", saying=["File too large"], preexec=limit)
        self.assertEqual(sorted(os.listdir(folder)), before)


    def test_a_packed_file_says_what_it_is_and_tells_the_same_story(self):
        model, packed = self.saying(b"abc", seq_len=32), self.path("packed.bin")
        self.succeed("convert", model, packed, "--packed")
        found = json.loads(self.succeed("inspect", packed, "--json"))
        self.assertEqual((found["format"], found["is_mapped"], found["file_bytes"]), ("proofinfer packed", True, os.path.getsize(packed)))
        before = json.loads(self.succeed("inspect", model, "--json"))
        for key in ("dim", "hidden_dim", "n_layers", "vocab_size", "seq_len", "parameter_count", "shared_classifier", "element_type"):
            self.assertEqual(found[key], before[key])
        last = found["tensors"][-1]
        self.assertEqual(last["file_offset"] + last["file_bytes"], found["file_bytes"])
        self.assertEqual(self.succeed(packed, "-n", "20"), self.succeed(model, "-n", "20"))

    def test_a_packed_file_to_which_all_may_write_is_read_and_not_mapped(self):
        model, packed = self.saying(b"abc", seq_len=32), self.path("packed.bin")
        self.succeed("convert", model, packed, "--packed")
        os.chmod(packed, 0o666)
        self.refuse(1, packed, "-n", "20", saying=["all users may write"])
        self.assertEqual(self.succeed(packed, "-n", "20", "--no-map"), self.succeed(model, "-n", "20"))

    def test_verify_finds_a_changed_weight_of_a_packed_file_and_opening_does_not(self):
        model, packed = self.saying(b"abc", seq_len=32), self.path("packed.bin")
        self.succeed("convert", model, packed, "--packed")
        self.succeed("inspect", packed, "--verify")
        with open(packed, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\x01")
        self.succeed("inspect", packed)
        self.refuse(1, "inspect", packed, "--verify", saying=["weights were changed", "fingerprint"])
        self.refuse(1, "inspect", packed, "--no-map", saying=["weights were changed", "fingerprint"])
        self.refuse(1, "convert", packed, self.path("v1.bin"), "--to", "v1", saying=["packed file"])
        self.refuse(2, "convert", model, self.path("x.bin"), "--to", "v1", "--packed", saying=["--packed"])


class InspectAndBench(Case):
    def test_inspect_json_has_shape_sizes_and_tensors(self):
        model = self.saying(b"abc", seq_len=32)
        told = self.succeed("inspect", model, "--json")
        self.assertTrue(told.startswith(b"{\n") and told.endswith(b"\n}\n"), told)
        found = json.loads(told)
        wanted = {"dim": 4, "hidden_dim": 2, "n_layers": 1, "n_heads": 1, "n_kv_heads": 1, "head_size": 4, "vocab_size": 260, "seq_len": 32,
                  "shared_classifier": False, "group_size": 0, "file_bytes": os.path.getsize(model), "file": model}
        self.assertEqual({key: found[key] for key in wanted}, wanted)
        # The tables that the format keeps for RoPE are no weights.
        weights = [tensor for tensor in found["tensors"] if not tensor["name"].startswith("rope")]
        self.assertEqual(found["parameter_count"], sum(tensor["rows"] * tensor["columns"] for tensor in weights))
        self.assertEqual(found["session"]["context_length"], 32)
        end = 28
        for tensor in found["tensors"]:
            self.assertEqual(tensor["file_bytes"], 4 * tensor["rows"] * tensor["columns"])
            self.assertGreaterEqual(tensor["file_offset"], end)
            end = tensor["file_offset"] + tensor["file_bytes"]
        self.assertEqual(end, os.path.getsize(model))

    def test_inspect_table_names_every_tensor(self):
        model = self.saying(b"abc")
        tensors = json.loads(self.succeed("inspect", model, "--json"))["tensors"]
        table = self.succeed("inspect", model).decode()
        for tensor in tensors:
            self.assertRegex(table, r"(?m)^%s .* %d +%d$" % (re.escape(tensor["name"]), tensor["file_offset"], tensor["file_bytes"]))

    def test_inspect_table_says_what_the_json_says(self):
        model = self.saying(b"abc", seq_len=32)
        found = json.loads(self.succeed("inspect", model, "--json"))
        sizes = dict(found, session=found["session"]["memory_bytes"])
        bytes_of = {key: r"%d bytes \(\d[\d.]* [kM]?B\)" % sizes[key] for key in ("file_bytes", "weight_bytes", "memory_bytes", "session")}
        lines = [
            ("file", re.escape(model)), ("format", "llama2.c legacy"), ("element type", "f32"), ("dimension", "4"), ("hidden dimension", "2"),
            ("layers", "1"), ("heads", "1"), ("key and value heads", "1"), ("head size", "4"), ("vocabulary", "260"), ("context", "32"),
            ("quantization group", "0"), ("parameters", "2180"), ("weights are", "in memory"), ("classifier", "has weights of its own"),
            ("file", bytes_of["file_bytes"]), ("weights in memory", bytes_of["weight_bytes"]), ("model in memory", bytes_of["memory_bytes"]),
            ("one session", bytes_of["session"] + " for 32 positions"),
        ]
        tensors = """
tensor                   type   rows x columns     file offset      file bytes
token_embedding           f32          260 x 4              28            4160
layers.0.attention_norm   f32                4            4188              16
layers.0.wq               f32            4 x 4            4204              64
layers.0.wk               f32            4 x 4            4268              64
layers.0.wv               f32            4 x 4            4332              64
layers.0.wo               f32            4 x 4            4396              64
layers.0.ffn_norm         f32                4            4460              16
layers.0.w1               f32            2 x 4            4476              32
layers.0.w2               f32            4 x 2            4508              32
layers.0.w3               f32            2 x 4            4540              32
final_norm                f32                4            4572              16
rope_tables               f32           32 x 4            4588             512
classifier                f32          260 x 4            5100            4160
"""
        whole = "".join("%-22s%s\n" % line for line in lines) + re.escape(tensors)
        self.assertRegex(self.succeed("inspect", model).decode(), r"\A%s\Z" % whole)

    def test_a_gguf_file_is_read_from_its_metadata_to_its_text(self):
        long = {b"a.ascii": b"x" * 200, b"a.stray": b"\x80" * 500, b"a.between": b"y" * 99 + "\N{LLAMA}\N{LLAMA}".encode(), b"a.lines": b"one\ntwo\x1b[2J"}
        keys = [(name, 8, struct.pack("<Q", len(value)) + value) for name, value in long.items()]
        model = self.path("m.gguf")
        chain_model.write_gguf_model(model, chain_model.cycle([byte_token(byte) for byte in b"abc"]), keys)
        self.assertEqual(self.succeed(model, "-n", "6"), b"abcabc\n")
        table = self.succeed("inspect", model).decode(errors="replace")
        shown = {"a.ascii": "x" * 100 + " ...", "a.stray": "\ufffd" * 103 + " ...", "a.between": "y" * 99 + "\N{LLAMA} ...", "a.lines": "one\\ntwo?[2J"}
        for name, value in shown.items():
            self.assertRegex(table, r"(?m)^%s +%s$" % (re.escape(name), re.escape(value)))
        found = json.loads(self.succeed("inspect", model, "--json"))
        self.assertEqual((found["format"], found["element_type"], found["vocab_size"]), ("GGUF version 3", "f32", 260))
        values = {entry["key"]: entry["value"] for entry in found["metadata"]}
        self.assertEqual({name.encode(): values[name].encode() for name in shown}, {**long, b"a.stray": "\ufffd".encode() * 500})

    def test_json_keeps_every_character_and_replaces_every_other_byte(self):
        model = self.saying(b"abc")
        kept = "\x7f \x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0003ffff\U00040000\U000fffff\U00100000\U0010ffff \t\r\x01"
        wrong = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc2", b"\xc2\x7f", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xe1\x80", b"\xe1\x80\x7f",
                 b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf1\x80\x80", b"\xf1\x80\x80\xc0", b"\xf5\x80\x80\x80", b"\xff"]
        odd = os.path.join(self.folder.encode(), kept.encode() + b"|".join(wrong))
        os.rename(model, odd)
        name = json.loads(self.succeed("inspect", odd, "--json"))["file"][len(self.folder) + 1:]
        self.assertEqual(name[:len(kept)], kept)
        for found, bytes_given in zip(name[len(kept):].split("|"), wrong, strict=True):
            # One for each byte that is not ASCII: a character that ends too soon is no character.
            expected = "".join(chr(byte) if byte < 0x80 else "\ufffd" for byte in bytes_given)
            self.assertEqual(found, expected, bytes_given)

    def test_json_parses_whatever_the_file_is_called(self):
        model = self.saying(b"abc")
        odd = os.path.join(self.folder.encode(), b'odd "name"\n\\ \xff.bin')
        os.rename(model, odd)
        found = json.loads(self.succeed("inspect", odd, "--json"))
        self.assertIn('odd "name"\n\\ \N{REPLACEMENT CHARACTER}.bin', found["file"])

    def test_bench_json_has_every_figure(self):
        model = self.saying(b"abc", seq_len=64)
        found = json.loads(self.succeed("bench", model, "--json", "--repeats", "3", "--threads", "1"))
        self.assertEqual((found["repeats"], found["threads"]), (3, 1))
        self.assertEqual((found["prompt_tokens"], found["decode_tokens"]), (32, 32))
        for key in ("load_seconds", "load_gigabytes_per_second", "prefill_tokens_per_second", "decode_tokens_per_second",
                    "session_memory_bytes", "peak_memory_bytes"):
            figure = found["figures"][key]
            self.assertGreater(figure["median"], 0, key)
            self.assertTrue(min(figure["runs"]) <= figure["median"] <= max(figure["runs"]), key)
        for rate, seconds in zip(*(found["figures"][key]["runs"] for key in ("load_gigabytes_per_second", "load_seconds")), strict=True):
            self.assertAlmostEqual(rate * seconds * 1e9 / found["file_bytes"], 1, places=3)
        self.assertEqual(len(found["figures"]["decode_tokens_per_second"]["runs"]), 3)

    def test_bench_measures_five_times_unless_told(self):
        model = self.saying(b"abc", seq_len=64)
        found = json.loads(self.succeed("bench", model, "--json", "--no-bounds"))
        self.assertEqual((found["repeats"], len(found["figures"]["prefill_tokens_per_second"]["runs"])), (5, 5))

    def number(self, text):
        """A figure of the table, of four significant digits at least or six decimals, and half a unit of its last digit."""
        self.assertRegex(text, r"^\d+(\.\d+)?$")
        self.assertTrue(len(text.replace(".", "").lstrip("0")) >= 4 or len(text.partition(".")[2]) == 6, text)
        return float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])

    def test_bench_table_has_medians_between_the_lowest_and_the_highest(self):
        model = self.saying(b"abc", seq_len=64)
        table = self.succeed("bench", model, "--repeats", "2", "--prompt-tokens", "4", "--decode-tokens", "4").decode()
        lines = {line[:21].rstrip(): line[21:] for line in table.split("\n\n")[1].splitlines()}
        self.assertEqual(lines.pop("").split(), ["median", "lowest", "highest"])
        units = {"load": "s", "load rate": "GB/s", "prefill": "tok/s", "decode": "tok/s", "memory read": "GB/s", "multiply and add": "GFLOP/s"}
        for label, unit in units.items():
            self.assertRegex(lines[label], r"^( +[\d.]+){3}  %s$" % unit)
            (median, error), (low, _), (high, _) = map(self.number, lines[label].split()[:3])
            # Of two runs it lies in the middle.
            self.assertLessEqual(low, high)
            self.assertLessEqual(abs(median - (low + high) / 2), 2.01 * max(error, self.number(lines[label].split()[2])[1]), lines[label])
        for label in ("peak memory, loaded", "session memory", "peak memory", "read per token"):
            self.assertRegex(lines[label], r"^ +[\d.]+ {24}MB$")
        share = self.number(lines["decode of the bound"].strip())[0]
        self.assertEqual("measuring error" in table, share > 1.02, table)
        for line in lines.values():
            for figure in re.findall(r"[\d.]+", line):
                self.number(figure)

    def test_the_prompt_of_the_bench_is_spread_over_the_vocabulary(self):
        model = self.saying(b"abc", seq_len=64)
        with open(model, "r+b") as file:
            file.seek(28 + 4 * 4 * 2)  # the embedding of the token beside the first
            file.write(b"\x00\x00\xc0\x7f" * 4)
        self.succeed("bench", model, "--prompt-tokens", "2", "--decode-tokens", "1", "--repeats", "1", "--no-bounds")

    def test_bounds_are_of_work_that_was_done(self):
        """Far above what one thread of any machine reads or computes lies what takes no time."""
        model = self.saying(b"abc", seq_len=64)
        figures = json.loads(self.succeed("bench", model, "--json", "--repeats", "1", "--threads", "1"))["figures"]
        self.assertLess(figures["multiply_add_gigaflops"]["median"], 2000)
        self.assertLess(figures["read_gigabytes_per_second"]["median"], 5000)

    def test_bench_table_and_clipping(self):
        model = self.saying(b"abc", seq_len=64)
        table = self.succeed("bench", model, "--prompt-tokens", "10", "--decode-tokens", "1000", "--repeats", "1").decode()
        self.assertIn("prompt of 10 tokens, 54 decoded", table)
        for label in ("load", "prefill", "decode", "peak memory"):
            self.assertRegex(table, r"(?m)^%s +[\d.]+" % label)
        self.assertNotIn("\ndecode ", self.succeed("bench", model, "--decode-tokens", "0", "--repeats", "1").decode())

    def test_bench_of_sessions_together(self):
        model = self.saying(b"abc", seq_len=64)
        arguments = ["bench", model, "--json", "--no-bounds", "--prompt-tokens", "4", "--decode-tokens", "9", "--repeats", "2"]
        figures = json.loads(self.succeed(*arguments, "--sessions", "3"))["figures"]
        self.assertEqual(len(figures["together_tokens_per_second"]["runs"]), 2)
        table = self.succeed(*[a for a in arguments if a != "--json"], "--sessions", "3").decode()
        self.assertIn("together 3 sessions", table)
        self.refuse(2, "bench", model, "--sessions", "3", "--decode-tokens", "0", saying=["--decode-tokens is 0"])
        self.assertGreater(figures["together_gain"]["median"], 0)
        one = ["bench", model, "--json", "--no-bounds", "--prompt-tokens", "4", "--decode-tokens", "1", "--repeats", "1", "--sessions", "1"]
        self.assertGreater(json.loads(self.succeed(*one))["figures"]["together_tokens_per_second"]["median"], 0)
        self.assertNotIn("together_gain", json.loads(self.succeed(*arguments))["figures"])

    def test_selftest_passes(self):
        self.assertEqual(self.succeed("selftest"), b"selftest passed\n")
        self.assertEqual(self.succeed("selftest", "-q"), b"")


def all_help():
    """What every command says of itself."""
    shown = b""
    for words in ([], *([command] for command in COMMANDS)):
        shown += b"$ proofinfer %s\n%s\n" % (" ".join(["help", *words]).encode(), run("help", *words).stdout)
    return shown.decode()


class Help(Case):
    def help_of(self, command):
        return self.succeed("help", command).decode()

    def test_texts_are_those_that_were_looked_at(self):
        with open(HELP, encoding="utf-8") as file:
            self.assertEqual(all_help(), file.read(), "if it is as it should be: test_cli.py --record-help")

    def flags_in(self, text):
        """Every flag that a line of the section Flags begins with, letters and names."""
        flags = set()
        for line in text.split("\nFlags:\n")[1].split("\n\n")[0].splitlines():
            head = re.match(r"  (?:(-\w), |    )(--[\w-]+)", line)
            if head:
                flags.update(spelling for spelling in head.groups() if spelling)
        return flags

    def test_every_way_to_ask_gives_the_same(self):
        overview = self.succeed("--help")
        for command in COMMANDS:
            text = self.help_of(command)
            self.assertEqual(self.succeed(command, "--help").decode(), text)
            self.assertEqual(self.succeed(command, "-h").decode(), text)
            self.assertIn("Examples:\n  ", text)
            self.assertRegex(overview.decode(), r"(?m)^  %s +\w" % command)
        self.assertEqual(self.succeed("-h"), overview)
        self.assertEqual(self.succeed("help"), overview)

    def test_fits_a_terminal(self):
        for text in [self.succeed("--help").decode()] + [self.help_of(command) for command in COMMANDS]:
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_flags_of_the_reference_are_there(self):
        flags = self.flags_in(self.help_of("generate"))
        for flag in ("-t", "-p", "-s", "-n", "-i", "-z", "-m", "-y", "--temperature", "--top-p", "--seed", "--steps", "--prompt",
                     "--tokenizer", "--mode", "--system", "--threads", "--isa", "--raw-pieces", "--context", "--stop", "--quiet", "--verbose"):
            self.assertIn(flag, flags)

    def man_page(self):
        with open(MAN_PAGE, encoding="utf-8") as file:
            return file.read()

    def flags_of_macros(self, line):
        """The arguments of the macro Fl on a line of mdoc: it ends at another macro, and goes on behind a comma."""
        is_flag = False
        for word in line.lstrip(".").split() if line.startswith(".") else []:
            if word in ("Fl", "Ar", "Cm", "Ns", "Pq", "Op", "It", "Ss", "Sh"):
                is_flag = word == "Fl"
            elif is_flag and re.fullmatch(r"-?[a-zA-Z][\w-]*", word):
                yield "-" + word

    def man_sections(self):
        """Section name to its flags, as the source spells them: "Fl n" is -n, "Fl -steps" is --steps."""
        sections = {}
        name = ""
        for line in self.man_page().splitlines():
            if line.startswith((".Ss ", ".Sh ")):
                name = line[4:]
            sections.setdefault(name, set()).update(self.flags_of_macros(line))
        return sections

    def test_man_page_has_every_flag_of_every_command(self):
        sections = self.man_sections()
        common = sections["DESCRIPTION"]
        for command in ("generate", "chat", "score", "tokenize", "inspect", "bench"):
            described = sections[command] | common
            for flag in self.flags_in(self.help_of(command)):
                with self.subTest(command=command, flag=flag):
                    known = flag in described or (command == "chat" and self.is_letter_of_described(flag, described))
                    self.assertTrue(known)

    def is_letter_of_described(self, flag, described):
        """The section on chat names the flags that it shares with generate by one of their spellings."""
        text = self.help_of("chat")
        pair = re.search(r"  (-\w), %s\b" % re.escape(flag), text)
        return bool(pair) and pair.group(1) in described

    def test_man_page_has_no_flag_that_the_program_lacks(self):
        known = {"--version", "-V", "-", "--"}
        for command in COMMANDS:
            known |= self.flags_in(self.help_of(command))
        for section, flags in self.man_sections().items():
            self.assertEqual(flags - known, set(), section)

    def test_man_page_has_every_command(self):
        for command in COMMANDS:
            self.assertRegex(self.man_page(), r"(?m)^\.Ss %s$" % command)

    def test_version_names_build_and_kernel_sets(self):
        text = self.succeed("--version").decode()
        with open(os.path.join(ROOT, "include", "proofinfer.h"), encoding="utf-8") as file:
            header = file.read()
        numbers = [re.search(r"PROOFINFER_VERSION_%s (\d+)" % part, header).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertTrue(text.startswith("proofinfer " + ".".join(numbers) + "\n"), text)
        self.assertRegex(text, r"(?m)^build: .+$")
        self.assertRegex(text, r"(?m)^kernel sets: scalar")

    def test_named_kernel_sets_give_the_same_text(self):
        model = self.saying(b"abc")
        sets = re.search(r"kernel sets: (.*)", self.succeed("--version").decode()).group(1).split(", ")
        for name in [name for name in sets if "(" not in name]:
            self.assertEqual(self.succeed(model, "-n", "6", "--isa", name), b"abcabc\n")


class Result(unittest.TextTestResult):
    """Says why tests are skipped, each reason once."""

    def addSkip(self, test, reason):
        if reason not in (known for _, known in self.skipped):
            print("\n" + reason, flush=True)
        super().addSkip(test, reason)


if __name__ == "__main__":
    if not os.access(PROGRAM, os.X_OK):
        sys.exit("no program at %s: name it with PROOFINFER_PROGRAM" % PROGRAM)
    if sys.argv[1:] == ["--record-help"]:
        with open(HELP, "w", encoding="utf-8") as file:
            file.write(all_help())
        sys.exit(0)
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Result))
