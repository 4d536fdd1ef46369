"""A short way to rows on workers: a question goes straight to the worker that has them, and the answer straight back.

A task goes from client to scheduler to worker and back, and is planned, recorded and released: some fifteen milliseconds in which no row is
looked at. Where the client reaches the workers, a desk (an actor) on each answers instead. Desks know nothing of lost workers: what goes
wrong here is asked again by tasks, which do.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .. import _core

#: Seconds in which a worker must have answered that it is there.
_PATIENCE = 2.0


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

    async def ask(self, request: bytes) -> list[bytes]:
        """The sum of the answers of each list."""
        data, loop = self._worker.data, asyncio.get_running_loop()
        lanes = [[data[key] for key in lane] for lane in self._lanes]
        asked = [loop.run_in_executor(self._pool, summed, lane, request, self._threads) for lane in lanes]
        return list(await asyncio.gather(*asked))


def summed(parts: list[_core.Partition], request: bytes, threads: int) -> bytes:
    """The sum of the answers of some parts, in their order."""
    answers = [rows.answer(request, threads) for rows in parts]
    return answers[0] if len(answers) == 1 else _core.add_answers(answers)


class Desks:
    """A desk on every worker that has parts."""

    def __init__(self, client: Any, lanes: list[list[Any]], workers: list[str], threads: int) -> None:
        self._client = client
        self._places: dict[str, list[int]] = {}
        for place, worker in enumerate(workers):
            self._places.setdefault(worker, []).append(place)
        self._count = len(lanes)
        self._desks: dict[str, Any] = {}
        for worker, places in self._places.items():
            own = [lanes[place] for place in places]
            keys = [[part.key for part in lane] for lane in own]
            # on another worker it has no rows and says so: better than to wait for one that is lost
            where = {"workers": [worker], "allow_other_workers": True}
            self._desks[worker] = client.submit(Desk, keys, own, threads, actor=True, pure=False, **where)
        self._keys: dict[str, Any] | None = None

    @classmethod
    def open(cls, client: Any, lanes: list[list[Any]], workers: list[str], threads: int) -> Desks | None:
        """Desks for the lists of parts of some workers, where the client reaches all of these."""
        try:
            client.sync(_all, [asyncio.wait_for(client.rpc(worker).identity(), _PATIENCE) for worker in dict.fromkeys(workers)])
            return cls(client, lanes, workers, threads)
        except Exception:  # noqa: BLE001 - whatever it is, tasks do without
            return None

    def close(self) -> None:
        """Let go of the desks."""
        for desk in self._desks.values():
            desk.release()

    def ask(self, request: bytes) -> list[bytes] | None:
        """The answers of the lists, in their order; None if a desk did not answer."""
        try:
            if self._keys is None:
                self._keys = {worker: desk.result().key for worker, desk in self._desks.items()}
            replies = self._client.sync(_all, [self._one(worker, key, request) for worker, key in self._keys.items()])
        except Exception:  # noqa: BLE001 - a worker that is lost says so in many ways
            return None
        answers: list[bytes] = [b""] * self._count
        for worker, reply in zip(self._keys, replies, strict=True):
            if reply["status"] != "OK":
                return None
            for place, answer in zip(self._places[worker], reply["result"], strict=True):
                answers[place] = answer
        return answers

    def _one(self, worker: str, key: Any, request: bytes) -> Any:
        from distributed.protocol import to_serialize

        return self._client.rpc(worker).actor_execute(function="ask", actor=key, args=[to_serialize(request)], kwargs={})


async def _all(waited: list[Any]) -> list[Any]:
    return list(await asyncio.gather(*waited))
