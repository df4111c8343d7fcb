"""Threads that open, generate, cancel and close in random order, for a given time: right tokens, no crash, flat memory.

python stress.py [--seconds 10] [--threads 8] [--seed 1]
"""

import argparse
import asyncio
import contextlib
import gc
import os
import random
import sys
import threading
import time

import checkpoints
import support

import proofinfer


def greedy(model, tokenizer, prompt, count):
    with model.session() as session:
        return [piece.token for piece in session.generate(prompt, tokenizer, max_tokens=count, stop_tokens=[])]


class World:
    """What the threads share, and may close under each other at any time."""

    def __init__(self):
        self.model, self.tokenizer = support.open_small(threads=2)
        self.prompts = [[1, number, number + 100] for number in range(8)]
        self.expected = [greedy(self.model, self.tokenizer, prompt, 40) for prompt in self.prompts]
        self.shared = self.model.session()
        self.counts = {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1


def generate(world, chance):
    number = chance.randrange(len(world.prompts))
    session = world.model.session(context_length=64)
    generation = session.generate(world.prompts[number], world.tokenizer, max_tokens=40, stop_tokens=[])
    tokens = []
    for piece in generation:
        tokens.append(piece.token)
        if chance.random() < 0.02:
            break
    if tokens != world.expected[number][: len(tokens)]:
        raise AssertionError(f"prompt {number}: {tokens}")
    close_some(chance, [session, generation])


def close_some(chance, objects):
    chance.shuffle(objects)
    for each in objects[: chance.randrange(len(objects) + 1)]:
        for _ in range(chance.randrange(1, 3)):
            each.close()


def open_and_close(world, chance):
    model, tokenizer = support.open_small()
    session = model.session(context_length=8)
    session.append([1, 2], logits="all")
    view = session.logits(0)
    close_some(chance, [model, tokenizer, session])
    if chance.random() < 0.3:
        del view
    for data in (b"", support.small_bytes()[:-1], b"{" * 100):
        with contextlib.suppress(proofinfer.ProofinferError):
            proofinfer.Model.from_bytes(data)


def cancel(world, chance):
    number = chance.randrange(len(world.prompts))
    stop = proofinfer.Cancel()
    timer = threading.Timer(chance.random() / 500, stop.request)
    timer.start()
    with world.model.session() as session:
        generation = session.generate(world.prompts[number], world.tokenizer, max_tokens=40, stop_tokens=[], cancel=stop)
        tokens = []
        while len(tokens) < 40:
            try:
                tokens.append(next(generation).token)
            except proofinfer.CancelledError:
                stop.reset()
        if tokens != world.expected[number]:
            raise AssertionError(f"cancelled prompt {number}: {tokens}")
    timer.join()


def cancel_tasks(world, chance):
    async def one(number):
        with world.model.session() as session:
            generation = session.generate(world.prompts[number], world.tokenizer, max_tokens=40, stop_tokens=[])
            return [piece.token async for piece in generation]

    async def main():
        tasks = [asyncio.ensure_future(one(number)) for number in range(4)]
        await asyncio.sleep(chance.random() / 200)
        tasks[chance.randrange(4)].cancel()
        for number, result in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
            if not isinstance(result, asyncio.CancelledError) and result != world.expected[number]:
                raise AssertionError(f"task {number}: {result}")

    asyncio.run(main())


def fight(world, chance):
    """Everybody on one session, which is closed now and then."""
    session = world.shared
    try:
        what = chance.randrange(6)
        if what == 0:
            session.append([chance.randrange(384) for _ in range(chance.randrange(1, 9))], logits=chance.choice(("last", "all")))
        elif what == 1:
            session.rewind(0)
        elif what == 2:
            with session.logits() as view:
                view.tolist()
        elif what == 3:
            for _ in session.generate([1, 2], world.tokenizer, max_tokens=5, stop_tokens=[]):
                pass
        elif what == 4:
            with proofinfer.Batch(world.model, 4) as batch:
                batch.add(session, 5)
                batch.evaluate()
        elif chance.random() < 0.2:
            session.close()
            world.shared = world.model.session(context_length=64)
    except (proofinfer.BusyError, proofinfer.StateError, proofinfer.ContextError, proofinfer.ClosedError) as error:
        world.count(type(error).__name__)
    except proofinfer.ArgumentError:
        world.count("ArgumentError")
    except BufferError:
        world.count("BufferError")
    except ValueError as error:
        if "released" not in str(error):
            raise
        world.count("released")


ACTIONS = [generate, generate, open_and_close, cancel, cancel_tasks, fight, fight, fight]


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any-memory", action="store_true", help="under a checker that keeps freed memory")
    arguments = parser.parse_args()
    checkpoints.SMALL["seq_len"] = 128
    sys.setswitchinterval(1e-5)  # threads meet in the middle of things
    world, failures = World(), []
    start = time.monotonic()
    end = start + arguments.seconds

    def run(number):
        chance = random.Random(arguments.seed * 1000 + number)
        try:
            while time.monotonic() < end and not failures:
                action = chance.choice(ACTIONS)
                action(world, chance)
                world.count(action.__name__)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(arguments.threads)]
    for thread in threads:
        thread.start()
    readings = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(arguments.seconds / 40)
        readings.append(resident_bytes())
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    gc.collect()
    # The most of the second half against the most of the second quarter: growth shows, the allocator's ups and downs do not.
    quarter = len(readings) // 4
    growth = max(readings[2 * quarter :]) - max(readings[quarter : 2 * quarter])
    actions = sum(count for what, count in world.counts.items() if what.islower())
    print(
        f"{actions} actions in {time.monotonic() - start:.0f} s, {arguments.threads} threads: {dict(sorted(world.counts.items()))}"
    )
    print(f"memory: {readings[quarter] / 2**20:.1f} MiB, then {growth / 2**20:+.1f} MiB")
    limit = max(4 << 20, readings[quarter] // 10)
    if growth > limit and not arguments.any_memory:
        sys.exit(f"memory grew by {growth} bytes; at most {limit} expected")


if __name__ == "__main__":
    main()
