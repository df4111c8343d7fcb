"""The async iterator, its cancellation, and an event loop that goes on meanwhile."""

import asyncio
import time
import unittest

import support

import proofinfer


class Async(support.SmallTest):
    def test_the_same_pieces(self):
        async def collect():
            with self.model.session() as session:
                return [piece async for piece in self.generate(session, max_tokens=20)]

        pieces = asyncio.run(collect())
        self.assertEqual([piece.token for piece in pieces], self.expected(20))
        self.assertIs(pieces[-1].stop_reason, proofinfer.StopReason.LENGTH)

    def test_many_at_once(self):
        async def tell():
            with self.model.session() as session:
                return [piece.token async for piece in self.generate(session, max_tokens=20)]

        async def all_of_them():
            return await asyncio.gather(*[tell() for _ in range(20)])

        self.assertEqual(asyncio.run(all_of_them()), [self.expected(20)] * 20)

    def test_a_cancelled_task_cancels_the_prefill(self):
        with proofinfer.Model(support.large_path()) as model, model.session() as session:

            async def main():
                task = asyncio.create_task(session.append_async([5] * 4000))
                ticks = 0
                for _ in range(10):  # the loop goes on meanwhile
                    await asyncio.sleep(0.01)
                    ticks += 1
                task.cancel()
                start = time.monotonic()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return ticks, time.monotonic() - start

            ticks, seconds = asyncio.run(main())
            self.assertEqual((ticks, session.position), (10, 0))
            self.assertLess(seconds, 0.2 * max(support.SLACK, 3))

    def test_a_cancelled_generation_loses_nothing(self):
        expected = self.expected(100)

        async def main():
            with self.model.session() as session, self.generate(session, max_tokens=100) as generation:
                tokens, cancelled = [], 0
                while len(tokens) < 100:
                    task = asyncio.ensure_future(generation.__anext__())
                    for _ in range(len(tokens) % 4):
                        await asyncio.sleep(0)
                    if len(tokens) % 5 or cancelled % 2 == 0:
                        task.cancel()
                    try:
                        tokens.append((await task).token)
                    except asyncio.CancelledError:
                        cancelled += 1
                        tokens.append((await generation.__anext__()).token)
                return tokens, cancelled

        tokens, cancelled = asyncio.run(main())
        self.assertEqual(tokens, expected)
        self.assertGreater(cancelled, 10)

    def test_cancel_object_and_errors(self):
        async def main():
            with self.model.session() as session, proofinfer.Cancel() as cancel:
                cancel.request()
                with self.assertRaises(proofinfer.CancelledError):
                    await session.append_async([1], cancel=cancel)
                with self.assertRaises(proofinfer.ArgumentError):
                    await session.append_async([9999])
                await session.append_async([1, 2])
                generation = self.generate(session, max_tokens=1)
                self.assertIsNotNone(await generation.next_async())
                self.assertIsNone(await generation.next_async())
                generation.close()
                with self.assertRaises(proofinfer.ClosedError):
                    await generation.next_async()

        asyncio.run(main())

    def test_leaving_in_the_middle(self):
        async def main():
            with self.model.session() as session:
                async for _ in self.generate(session):
                    return session.position

        self.assertEqual(asyncio.run(main()), 1)


if __name__ == "__main__":
    unittest.main()
