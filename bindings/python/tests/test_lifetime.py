"""Closing in any order, twice and from other threads; garbage; forks; exits with live objects; memory that stays flat."""

import contextlib
import gc
import itertools
import os
import threading
import unittest
import weakref

import support

import proofinfer
from proofinfer._handle import Handle


class Closing(support.SmallTest):
    def objects(self):
        model, tokenizer = support.open_small()
        session = model.session(context_length=16)
        sampler = proofinfer.Sampler(model)
        generation = session.generate([1], tokenizer, sampler, stop_tokens=[])
        next(generation)
        batch = proofinfer.Batch(model, 2)
        batch.add(session, 3)
        return [model, tokenizer, session, sampler, generation, batch, tokenizer.stream(), proofinfer.Cancel()]

    def test_every_order_and_twice(self):
        # Any order of the five that know each other, the others first or last.
        for order in itertools.permutations(range(5)):
            objects = self.objects()
            for number in order:
                objects[number].close()
                objects[number].close()
                self.assertTrue(objects[number].closed)
            for each in objects:
                each.close()

    def test_use_after_close_is_closed_error(self):
        model, tokenizer, session, sampler, generation, batch, stream, cancel = objects = self.objects()
        for each in objects:
            each.close()
            self.assertIn("closed", repr(each))
        uses = [
            lambda: model.dim,
            lambda: model.format,
            lambda: model.tensors,
            model.properties,
            model.session,
            lambda: tokenizer.vocab_size,
            lambda: tokenizer.encode("a"),
            lambda: tokenizer.decode([5]),
            lambda: tokenizer.piece(5),
            lambda: session.append([1]),
            session.logits,
            lambda: session.logits(0),
            lambda: session.rewind(0),
            lambda: session.tokens,
            lambda: session.position,
            lambda: session.memory_bytes,
            lambda: session.generate([1], tokenizer),
            lambda: sampler.sample([0.0] * 384),
            lambda: sampler.reseed(1),
            lambda: sampler.accept([1]),
            lambda: sampler.set_bias({1: 1.0}),
            lambda: sampler.set_banned([1]),
            lambda: sampler.set_mask(None),
            generation.logprobs,
            lambda: next(generation),
            lambda: generation.force(1),
            lambda: batch.add(session, 1),
            batch.evaluate,
            batch.clear,
            lambda: stream.push(5),
            stream.flush,
            cancel.request,
            lambda: cancel.progress,
            lambda: proofinfer.Sampler(model),
            lambda: proofinfer.Model.from_bytes(support.small_bytes(), cancel=cancel),
        ]
        for use in uses:
            with self.assertRaisesRegex(proofinfer.ClosedError, "is closed") as caught:
                use()
            self.assertIsInstance(caught.exception, ValueError)
            self.assertIsInstance(caught.exception, proofinfer.ProofinferError)

    def test_a_generation_outlives_what_it_uses(self):
        model, tokenizer = support.open_small()
        session = model.session()
        sampler = proofinfer.Sampler(model)
        generation = session.generate([1], tokenizer, sampler, max_tokens=20, stop_tokens=[])
        for each in (model, tokenizer, session, sampler):
            each.close()
        self.assertEqual([piece.token for piece in generation], self.expected(20))

    def test_close_frees_at_once_also_after_an_error(self):
        session = self.model.session()
        handle = weakref.ref(session._held)
        try:
            session.append([9999])
        except proofinfer.ArgumentError as error:
            kept = error
        self.assertIn("9999", str(kept))
        session.close()
        self.assertIsNone(handle())

    def test_what_is_dropped_is_freed(self):
        gc.collect()
        gc.disable()
        try:
            handles = [weakref.ref(each._held) for each in self.objects()]
            self.assertEqual([handle() for handle in handles], [None] * len(handles))
        finally:
            gc.enable()

    def test_a_failed_constructor_leaves_nothing(self):
        def handles():
            gc.collect()
            return sum(isinstance(each, Handle) for each in gc.get_objects())

        before = handles()
        for _ in range(3):
            with self.assertRaises(proofinfer.ProofinferError):
                proofinfer.Model.from_bytes(b"nothing")
        self.assertLessEqual(handles(), before)  # one of an earlier test may have gone meanwhile

    def test_close_while_another_thread_is_inside(self):
        with proofinfer.Model(support.large_path()) as model:
            session = model.session()
            outcomes = []

            def work():
                try:
                    session.append([5] * 200)
                    outcomes.append("done")
                except proofinfer.ProofinferError as error:
                    outcomes.append(error)

            thread = threading.Thread(target=work)
            handle = weakref.ref(session._held)
            thread.start()
            while not session._views.movers and thread.is_alive():
                pass
            session.close()
            model.close()
            thread.join()
        self.assertIn(str(outcomes[0]), ("done", "this Session is closed"))
        self.assertIsNone(handle())

    def test_ten_thousand_objects_stay_flat(self):
        def cycle(count):
            for _ in range(count):
                with self.model.session(context_length=8) as session, self.generate(session, max_tokens=2) as generation:
                    next(generation)
                    with contextlib.suppress(proofinfer.ArgumentError):
                        session.append([9999])

        cycle(1000)
        before = resident_bytes()
        cycle(10000)
        self.assertLess(resident_bytes() - before, 2 << 20)

    def test_failed_loads_leave_no_file_open(self):
        path = os.path.join(support.folder(), "broken.bin")
        with open(path, "wb") as file:
            file.write(support.small_bytes()[:-1])
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            self.assertRaises(proofinfer.ProofinferError, proofinfer.Model, path)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SETUP = """
import proofinfer, support, threading, os
model, tokenizer = support.open_small(threads=2)
session = model.session()
generation = session.generate([1], tokenizer, stop_tokens=[])
first = next(generation)
logits = model.session()
logits.append([1])
view = logits.logits()
part = view[1:3]
"""


class Processes(unittest.TestCase):
    def check(self, text, expected=""):
        done = support.run_script(SETUP + text)
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr), (0, expected, ""))

    def test_exit_with_live_objects(self):
        self.check("")

    def test_exit_inside_a_cycle(self):
        self.check("cycle = [model, session, generation, view]; cycle.append(cycle); del model, session, generation, view")

    def test_exit_while_threads_generate(self):
        self.check(
            """
def forever():
    while True:
        with model.session() as mine:
            for piece in mine.generate([1], tokenizer, stop_tokens=[]):
                pass
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
import time; time.sleep(0.3)
"""
        )

    def test_a_forked_child_goes_on_where_the_parent_stood(self):
        self.check(
            """
child = os.fork()
rest = [piece.token for piece in generation]
with model.session() as other:
    other.append([1])
    assert other.logits_copy().tolist() == view.tolist()
assert len(rest) == 127
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both", flush=True)
""",
            "both",
        )

    def test_children_of_a_pool(self):
        done = support.run_script(
            SETUP
            + """
import multiprocessing
def tell(number):
    with model.session() as mine:
        return mine.generate([1, number], tokenizer, max_tokens=9, stop_tokens=[]).text()
with multiprocessing.get_context("fork").Pool(2) as pool:
    theirs = pool.map(tell, range(20))
    pool.close(); pool.join()
assert theirs == [tell(number) for number in range(20)]
"""
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_unused_package_exits_clean(self):
        done = support.run_script("import proofinfer")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
