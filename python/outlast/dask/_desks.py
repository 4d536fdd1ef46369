"""A short way to rows on workers: a question goes straight to the worker that has them, and the answer straight back.

A task goes from client to scheduler to worker and back, and is planned, recorded and released: some fifteen milliseconds in which no row is
looked at. Where the client reaches the workers, a desk (an actor) on each answers instead. Desks know nothing of lost workers: what goes
wrong here is asked again by tasks, which do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .. import _core

#: Seconds in which a worker must have answered that it is there.
_PATIENCE = 2.0
#: Seconds after which the scheduler is asked whether the workers that have not answered still are there.
_LOOK = 5.0


class Desk:
    """Answers on a worker for the parts that lie there: lists of keys, each asked one after the other by a thread."""

    def __init__(self, lanes: list[list[Any]], ready: list[list[_core.Partition]], threads: int) -> None:
        from distributed import get_worker

        # the rows themselves are the worker's to keep, or to spill
        del ready
        self._worker = get_worker()
        self._lanes = lanes
        self._threads = threads
        self._pool = ThreadPoolExecutor(len(lanes), thread_name_prefix="outlast")

    async def ask(self, request: bytes) -> bytes:
        """The sum of the answers of all parts, list by list."""
        data, loop = self._worker.data, asyncio.get_running_loop()
        lanes = [[data[key] for key in lane] for lane in self._lanes]
        asked = [loop.run_in_executor(self._pool, summed, lane, request, self._threads) for lane in lanes]
        return total(await asyncio.gather(*asked))


def total(answers: list[bytes]) -> bytes:
    """The sum of some answers, in their order."""
    return answers[0] if len(answers) == 1 else _core.add_answers(answers)


def summed(parts: list[_core.Partition], request: bytes, threads: int) -> bytes:
    """The sum of the answers of some parts, in their order."""
    return total([rows.answer(request, threads) for rows in parts])


class Desks:
    """A desk on every worker that has parts."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._desks: dict[str, Any] = {}
        self._keys: dict[str, Any] | None = None

    @classmethod
    def open(cls, client: Any, lanes: list[list[Any]], workers: list[str], threads: int) -> Desks | None:
        """Desks for the lists of parts of some workers, one worker for each list, where the client reaches all of these."""
        desks = cls(client)
        try:
            client.sync(_all, [asyncio.wait_for(client.rpc(worker).identity(), _PATIENCE) for worker in dict.fromkeys(workers)])
            for worker in dict.fromkeys(workers):
                desks._place(worker, [lane for lane, own in zip(lanes, workers, strict=True) if own == worker], threads)
        except Exception:  # noqa: BLE001 - whatever it is, tasks do without
            desks.close()
            return None
        except BaseException:
            desks.close()
            raise
        return desks

    def _place(self, worker: str, lanes: list[list[Any]], threads: int) -> None:
        keys = [[part.key for part in lane] for lane in lanes]
        # anywhere rather than nowhere: a desk elsewhere is not asked, and one that waits for a lost worker would be waited for
        where = {"workers": [worker], "allow_other_workers": True}
        self._desks[worker] = self._client.submit(Desk, keys, lanes, threads, actor=True, pure=False, **where)

    def __len__(self) -> int:
        return len(self._desks)

    def close(self) -> None:
        """Let go of the desks."""
        for desk in self._desks.values():
            desk.release()

    def ask(self, request: bytes) -> list[bytes] | None:
        """The answers of the workers; None if a desk did not answer."""
        try:
            if self._keys is None:
                self._keys = {worker: desk.result().key for worker, desk in self._desks.items()}
            replies = self._client.sync(self._watched, request)
        except Exception:  # noqa: BLE001 - a worker that is lost says so in many ways
            return None
        return [reply["result"] for reply in replies] if all(reply["status"] == "OK" for reply in replies) else None

    async def _watched(self, request: bytes) -> list[Any]:
        """What the workers reply, as long as all that have not are there."""
        asked = {asyncio.ensure_future(self._one(worker, key, request)): worker for worker, key in (self._keys or {}).items()}
        waited = set(asked)
        try:
            while waited:
                done, waited = await asyncio.wait(waited, timeout=_LOOK, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    task.result()
                if waited and not done:
                    there = await self._client.scheduler.ncores(workers=None)
                    lost = [asked[task] for task in waited if asked[task] not in there]
                    if lost:
                        raise OSError(f"lost: {lost}")
        finally:
            for task in waited:
                task.cancel()
        return [task.result() for task in asked]

    def _one(self, worker: str, key: Any, request: bytes) -> Awaitable[Any]:
        from distributed.protocol import to_serialize

        asked: Awaitable[Any] = self._client.rpc(worker).actor_execute(function="ask", actor=key, args=[to_serialize(request)], kwargs={})
        return asked


async def _all(waited: list[Any]) -> None:
    await asyncio.gather(*waited)
