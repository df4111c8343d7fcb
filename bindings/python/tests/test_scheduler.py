"""Scheduler: what each generation gives alone, cancellations, refusals, other threads, generations of one's own."""

import threading
import unittest

import support

import proofinfer
from proofinfer import StopReason


class Scheduling(support.SmallTest):
    def alone(self, prompt, **options):
        with self.model.session() as session:
            pieces = list(session.generate(prompt, self.tokenizer, **options))
        return [piece.token for piece in pieces], "".join(piece.text for piece in pieces), pieces[-1].stop_reason

    def test_each_gets_what_it_gets_alone(self):
        with proofinfer.Scheduler(self.model, self.tokenizer, prefill_chunk=3) as scheduler:
            asked, got = {}, {}
            for seed in range(12):
                options = {"temperature": 1.0, "seed": seed, "max_tokens": 5 + seed, "stop_tokens": []}
                prompt = [1] * (1 + seed * 2)
                asked[scheduler.submit(prompt, **options)] = (prompt, options)
            for event in scheduler:
                self.assertIsNone(event.error)
                tokens, text, _ = got.get(event.id, ([], "", None))
                got[event.id] = ([*tokens, event.token], text + event.text, event.stop_reason)
            self.assertEqual(scheduler.count, 0)
            for number, (prompt, options) in asked.items():
                self.assertEqual(got[number], self.alone(prompt, **options))

    def test_text_prompts_and_limits(self):
        with proofinfer.Scheduler(self.model, self.tokenizer, max_generations=1) as scheduler:
            number = scheduler.submit("ab", max_tokens=4, stop_tokens=[])
            with self.assertRaisesRegex(proofinfer.LimitError, "max_generations 1"):
                scheduler.submit("ab")
            self.assertIsNone(scheduler.next())
            self.assertGreater(scheduler.step(), 0)
            self.assertIsNone(scheduler.next(number + 1))
            first = scheduler.next(number)
            self.assertEqual(first.id, number)
            self.assertGreater(scheduler.memory_bytes, 0)
            text = first.text + "".join(event.text for event in scheduler)
            self.assertEqual(text, self.alone("ab", max_tokens=4, stop_tokens=[])[1])
        with proofinfer.Scheduler(self.model, self.tokenizer, memory_limit_bytes=10**6) as scheduler:
            message = r"needs at least \d+ bytes; \d+ of memory_limit_bytes 1000000 are available"
            self.assertRaisesRegex(proofinfer.LimitError, message, lambda: [scheduler.submit([1]) for _ in range(64)])
        with self.assertRaises(proofinfer.ClosedError):
            scheduler.step()

    def test_cancelling_from_another_thread(self):
        with proofinfer.Scheduler(self.model, self.tokenizer) as scheduler:
            number = scheduler.submit([1], stop_tokens=[])
            reasons = []
            for event in scheduler:
                if event.stop_reason is None and not reasons:
                    reasons.append(None)
                    thread = threading.Thread(target=scheduler.cancel, args=(number,))
                    thread.start()
                    thread.join()
                if event.stop_reason is not None:
                    reasons.append(event.stop_reason)
            self.assertEqual(reasons, [None, StopReason.CANCELLED])
            scheduler.cancel(number)
            with self.assertRaises(proofinfer.ArgumentError):
                scheduler.cancel(number + 1)

    def test_a_generation_of_ones_own(self):
        expected = self.expected(8)
        with proofinfer.Scheduler(self.model, self.tokenizer) as scheduler, self.model.session() as session:
            generation = self.generate(session, max_tokens=8)
            first = next(generation).token
            number = scheduler.add(generation)
            events = list(scheduler)
            self.assertEqual([first] + [event.token for event in events], expected)
            self.assertEqual({event.id for event in events}, {number})
            self.assertEqual(events[-1].stop_reason, StopReason.LENGTH)
            self.assertEqual(generation.stop_reason, StopReason.LENGTH)
            self.assertEqual(list(generation), [])
            moved = self.model.session()
            generation = self.generate(moved, max_tokens=8)
            scheduler.add(generation)
            moved.append([5])
            (event,) = list(scheduler)
            self.assertIsInstance(event.error, proofinfer.StateError)
            self.assertIsNone(event.token)

    def test_a_step_releases_views_of_the_sessions_that_it_moves(self):
        with proofinfer.Scheduler(self.model, self.tokenizer) as scheduler, self.model.session() as session:
            session.append([1, 2])
            view = session.logits()
            part = view[0:3]
            number = scheduler.add(self.generate(session, max_tokens=2))
            with self.assertRaises(BufferError):
                scheduler.step()
            part.release()
            self.assertEqual(scheduler.step(), 1)
            with self.assertRaises(ValueError):
                view[0]
            scheduler.cancel(number)
            self.assertEqual([event.stop_reason for event in scheduler], [StopReason.CANCELLED])

    def test_wrong_arguments(self):
        with proofinfer.Scheduler(self.model, self.tokenizer) as scheduler:
            with self.assertRaises(TypeError):
                scheduler.submit([1], stop_strings="abc")
            with self.assertRaises(TypeError):
                scheduler.add(None)


if __name__ == "__main__":
    unittest.main()
