"""The golden figures of the reference program, bit for bit, through the Python objects."""

import hashlib
import struct
import unittest
from array import array

import checkpoints
import support

import proofinfer


def golden_case(name):
    return next(case for case in support.golden("run_c_f32.json")["cases"] if case["name"] == name)


class GoldenModel(unittest.TestCase):
    def check_logits(self, model, case):
        digest = hashlib.sha256()
        with model.session() as session:
            session.append(case["tokens"], logits="all")
            for position in range(len(case["tokens"])):
                with session.logits(position) as logits:
                    digest.update(logits)
                    self.assertEqual(case["argmax"][position], max(range(len(logits)), key=logits.__getitem__))
            words = struct.unpack(
                f"<{len(case['last_logits_hex'])}I", session.logits().tobytes()[: 4 * len(case["last_logits_hex"])]
            )
        self.assertEqual(case["logits_sha256"], digest.hexdigest())
        self.assertEqual(case["last_logits_hex"], [f"{word:08x}" for word in words])

    def check_ids(self, model, tokenizer, case):
        def ids(expected, **sampling):
            with model.session() as session:
                pieces = list(session.generate([1], tokenizer, max_tokens=len(expected), stop_tokens=[], **sampling))
            self.assertEqual(expected, [piece.token for piece in pieces])
            self.assertEqual(pieces[-1].stop_reason, proofinfer.StopReason.LENGTH)

        ids(case["greedy_from_1"])
        for sampled in case["sampled"]:
            ids(sampled["ids"], temperature=sampled["temperature"], top_p=sampled["top_p"], seed=sampled["seed"])

    def check_synthetic(self, name):
        case = golden_case(name)
        data = checkpoints.legacy_checkpoint(case["shape"], case["seed"])
        self.assertEqual(case["file_sha256"], hashlib.sha256(data).hexdigest())
        for isa in proofinfer.isas():
            if isa.available:
                with self.subTest(isa=isa.name), proofinfer.Model.from_bytes(data, isa=isa.name) as model:
                    tokenizer = proofinfer.Tokenizer.from_bytes(checkpoints.byte_vocabulary(model.vocab_size), model)
                    self.check_logits(model, case)
                    self.check_ids(model, tokenizer, case)

    def test_head_size_2(self):
        self.check_synthetic("head_size_2")

    def test_odd_dims(self):
        self.check_synthetic("odd_dims")

    def test_untied(self):
        self.check_synthetic("untied")

    def test_stories260K(self):  # noqa: N802
        case = golden_case("stories260K")
        with proofinfer.Model(support.real_model("stories260K.bin")) as model:
            tokenizer = proofinfer.Tokenizer(support.real_model("tok512.bin"), model)
            self.check_logits(model, case)
            self.check_ids(model, tokenizer, case)


class GoldenSampler(unittest.TestCase):
    def test_every_draw(self):
        cases = support.golden("sampler.json")["cases"]
        self.assertGreater(len(cases), 90)
        for case in cases:
            logits = array("f", struct.unpack(f">{len(case['logits_hex']) // 8}f", bytes.fromhex(case["logits_hex"])))
            with proofinfer.Sampler(
                len(logits), temperature=case["temperature"], top_p=case["top_p"], seed=case["seed"]
            ) as sampler:
                self.assertEqual(case["ids"], [sampler.sample(logits) for _ in case["ids"]])


class GoldenTokenizer(unittest.TestCase):
    def test_every_text(self):
        for figures in support.golden("tokenizer.json")["sets"]:
            tokenizer = proofinfer.Tokenizer(support.real_model(figures["tokenizer"]), figures["vocab_size"])
            for case in figures["cases"]:
                text = bytes.fromhex(case["bytes_hex"]) if "bytes_hex" in case else case["text"]
                with self.subTest(tokenizer=figures["tokenizer"], text=text):
                    self.assertEqual(case["ids"], tokenizer.encode(text, bos=figures["bos"], eos=figures["eos"]))


class GoldenTalk(unittest.TestCase):
    def test_a_real_model_holds_the_recorded_talk(self):
        path, talk = support.smollm2(), support.golden("smollm2.json")
        messages = []
        with proofinfer.Model(path) as model, proofinfer.Tokenizer(path, 0) as tokenizer:
            session = model.session(context_length=256)
            for turn in talk["turns"]:
                messages.append(("user", turn["user"]))
                self.assertEqual(turn["prompt"], proofinfer.encode_chat(tokenizer, messages))
                pieces = list(session.chat(messages, tokenizer))
                self.assertEqual(turn["answer"], [piece.token for piece in pieces])
                text = "".join(piece.text for piece in pieces)
                self.assertEqual(turn["text"], text)
                messages.append(("assistant", text))


if __name__ == "__main__":
    unittest.main()
