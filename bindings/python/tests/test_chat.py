"""Chat and scoring: sessions evaluate what is new of a list of messages, scores have the bits of single appends."""

import math
import struct
import threading
import unittest

import support

import proofinfer
from proofinfer import ArgumentError, Cancel, CancelledError, ContextError, UnsupportedError


class Chat(unittest.TestCase):
    def setUp(self):
        self.model, self.tokenizer = support.open_small()
        self.session = self.model.session()

    def text_of(self, ids):
        return self.tokenizer.decode(ids)

    def test_templates_are_listed_and_a_file_may_have_none(self):
        self.assertEqual(proofinfer.chat_templates(), ("llama2", "llama3", "chatml", "zephyr", "mistral"))
        self.assertIsNone(proofinfer.chat_template(self.tokenizer))
        with self.assertRaisesRegex(UnsupportedError, "no chat template; known are llama2"):
            proofinfer.encode_chat(self.tokenizer, [("user", "x")])

    def test_messages_are_mappings_or_pairs(self):
        pairs = [("system", "Be kind."), ("user", "Hello"), ("assistant", "Hi"), ("user", "na\u00efve \U0001f600")]
        mappings = [{"role": role, "content": content} for role, content in pairs]
        ids = proofinfer.encode_chat(self.tokenizer, iter(mappings), template="llama2")
        self.assertEqual(ids, proofinfer.encode_chat(self.tokenizer, pairs, template="llama2"))
        first = self.tokenizer.encode("[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHello [/INST] Hi ")
        second = self.tokenizer.encode("[INST] na\u00efve \U0001f600 [/INST]")
        self.assertEqual(ids, [*first, self.tokenizer.eos, *second])

    def test_wrong_messages_are_named(self):
        for messages, part in (
            ([("robot", "x")], "message 0 has the role 'robot'"),
            ([("user", "x"), "user"], "message 1 is 'user'"),
            ([{"role": "user"}], "message 0 is"),
            ([("user", "x"), ("system", "x")], "message 1 is a system message"),
            ([], "there are 0 messages"),
        ):
            with self.subTest(messages=messages), self.assertRaisesRegex(ArgumentError, part):
                proofinfer.encode_chat(self.tokenizer, messages, template="chatml")
        with self.assertRaisesRegex(ArgumentError, "'robots' is not known"):
            proofinfer.encode_chat(self.tokenizer, [("user", "x")], template="robots")

    def test_answer_adds_what_the_assistant_begins_with(self):
        with_answer = proofinfer.encode_chat(self.tokenizer, [("user", "x")], template="chatml")
        without = proofinfer.encode_chat(self.tokenizer, [("user", "x")], template="chatml", answer=False)
        self.assertEqual(self.text_of(with_answer), self.text_of(without) + "<|im_start|>assistant\n")

    def test_many_ids_are_read_in_two_calls(self):
        many = [("user", "\U0001f600" * 3)] * 400
        self.assertEqual(len(proofinfer.encode_chat(self.tokenizer, many, template="zephyr", answer=False)) > 400 * 12, True)

    def test_a_growing_chat_evaluates_what_is_new(self):
        messages = [("user", "Hello")]
        answer = self.session.chat(messages, self.tokenizer, template="llama2", max_tokens=5)
        text = answer.text()
        held = self.session.tokens
        messages += [("assistant", text), ("user", "More")]
        prompt = proofinfer.encode_chat(self.tokenizer, messages, template="llama2")
        again = self.session.chat(messages, self.tokenizer, template="llama2", max_tokens=5)
        common = self.session.position
        self.assertEqual(prompt[:common], held[:common])
        self.assertGreaterEqual(common, len(proofinfer.encode_chat(self.tokenizer, messages[:1], template="llama2")))
        fresh = self.model.session().chat(messages, self.tokenizer, template="llama2", max_tokens=5)
        self.assertEqual([piece.token for piece in again], [piece.token for piece in fresh])

    def test_the_same_list_again_gives_the_same_answer(self):
        ask = lambda: self.session.chat([("user", "Hello")], self.tokenizer, template="llama2", max_tokens=6).text()  # noqa: E731
        self.assertEqual(ask(), ask())

    def test_answers_end_with_the_templates_stop_tokens(self):
        self.assertEqual(proofinfer.chat_stop_tokens(self.tokenizer, "llama2"), [self.tokenizer.eos])
        generation = self.session.chat([("user", "x")], self.tokenizer, template="llama2")
        generation.force(self.tokenizer.eos)
        self.assertEqual(next(generation).stop_reason, proofinfer.StopReason.TOKEN)
        generation = self.session.chat([("user", "x")], self.tokenizer, template="llama2", stop_tokens=[], max_tokens=2)
        generation.force(self.tokenizer.eos)
        self.assertIsNone(next(generation).stop_reason)

    def test_a_chat_longer_than_the_context_is_refused_and_changes_nothing(self):
        session = self.model.session(context_length=8)
        session.append([1, 5])
        with self.assertRaisesRegex(ContextError, "the session has 8 positions"):
            session.chat([("user", "x" * 20)], self.tokenizer, template="llama2")
        self.assertEqual(session.tokens, [1, 5])


class Score(unittest.TestCase):
    def setUp(self):
        self.model, self.tokenizer = support.open_small()
        self.tokens = [1, *(3 + i * 37 % 250 for i in range(1, 100))]

    def plain(self, tokens):
        """By its definition."""
        session, values = self.model.session(), []
        for token in tokens:
            values.append(proofinfer.logprobs(session.logits(), [token])[0] if values else math.nan)
            session.append([token])
        return values

    def bits(self, values):
        return [struct.pack("f", value) if not math.isnan(value) else None for value in values]

    def test_scores_are_those_of_appending_one_by_one(self):
        expected = self.bits(self.plain(self.tokens))
        session = self.model.session()
        self.assertEqual(self.bits(session.score(self.tokens[:30]) + session.score(self.tokens[30:])), expected)
        self.assertEqual(session.tokens, self.tokens)
        self.assertIsNotNone(session.logits())

    def test_many_texts_are_scored_together(self):
        texts = [self.tokens[:7], [], [1], self.tokens, self.tokens[:50]]
        found = self.model.score(iter(texts))
        self.assertEqual([self.bits(values) for values in found], [self.bits(self.plain(text)) for text in texts])
        self.assertEqual(self.model.score([]), [])

    def test_perplexity_is_of_what_was_scored(self):
        self.assertAlmostEqual(proofinfer.perplexity([math.nan, -1.0, -3.0]), math.exp(2))
        self.assertTrue(math.isnan(proofinfer.perplexity([math.nan])))
        self.assertTrue(math.isnan(proofinfer.perplexity([])))

    def test_wrong_tokens_are_refused_and_nothing_is_appended(self):
        session = self.model.session()
        with self.assertRaisesRegex(ArgumentError, "token 1 is"):
            session.score([1, self.model.vocab_size])
        self.assertEqual(session.position, 0)
        with self.assertRaisesRegex(ContextError, "text 1 has"):
            self.model.score([[1], [1] * (self.model.seq_len + 1)])
        with self.assertRaises(TypeError):
            self.model.score(["text"])

    def test_a_cancel_stops_it(self):
        with Cancel() as cancel:
            cancel.request()
            with self.assertRaises(CancelledError):
                self.model.score([self.tokens], cancel=cancel)
            session = self.model.session()
            with self.assertRaises(CancelledError):
                session.score(self.tokens, cancel=cancel)
            self.assertEqual(session.position, 0)

    def test_threads_score_beside_each_other(self):
        expected, found = self.bits(self.plain(self.tokens)), []
        threads = [threading.Thread(target=lambda: found.append(self.model.score([self.tokens])[0])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([self.bits(values) for values in found], [expected] * 4)


if __name__ == "__main__":
    unittest.main()
