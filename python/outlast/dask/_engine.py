"""Parts of rows on workers, and the way questions get to them and answers back."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from . import _desks, _parts

#: Answers that one task adds up: those of many parts meet in a tree, and not all on the client.
_FAN_IN = 8
#: Bytes for each part up to which an answer is small.
_SMALL = 1 << 18
#: Bytes up to which answers come straight to the client.
_STRAIGHT = 1 << 25
#: Bytes up to which a request is sent within each task.
_WITHIN = 1 << 15
#: Parts up to which their places are looked at.
_MOST_PLACED = 1000


class Told(NamedTuple):
    """An answer, and the bytes that were sent for it."""

    answer: bytes
    sent: int


def _ask(parts: list[_core.Partition], request: bytes, threads: int) -> Told:
    answer = _desks.summed(parts, request, threads)
    return Told(answer, len(request) + len(answer))


def _add(told: list[Told]) -> Told:
    total = _core.add_answers([part.answer for part in told])
    return Told(total, len(total) + sum(part.sent for part in told))


def current_client() -> Any:
    """The distributed client in use, or None."""
    try:
        import distributed
    except ImportError:
        return None
    try:
        return distributed.get_client() if _on_worker() else distributed.default_client()
    except ValueError:
        return None


def client_in_use(given: Any) -> Any:
    """The client that was given, or the current one, or None."""
    if given is None:
        return current_client()
    try:
        from distributed import Client
    except ImportError:
        Client = None
    if Client is None or not isinstance(given, Client):
        raise TypeError(f"client is a {type(given).__name__}, expected a distributed.Client")
    if given.asynchronous:
        raise TypeError("client is asynchronous: fits wait for their answers and need a distributed.Client(asynchronous=False)")
    return given


def _on_worker() -> bool:
    from distributed import worker

    try:
        worker.get_worker()
    except ValueError:
        return False
    return True


@contextmanager
def waiting(client: Any) -> Iterator[None]:
    """Within a task of a worker: its thread is left to others, which may be what is waited for, and taken again at the end."""
    left = client is not None and _on_worker() and _left_pool()
    try:
        yield
    finally:
        if left:
            import distributed

            distributed.rejoin()


def _left_pool() -> bool:
    import distributed

    try:
        distributed.secede()
    except (AttributeError, KeyError):
        # a thread that is not the worker's, or one that has left already
        return False
    return True


def computed(client: Any, tasks: list[Any]) -> list[Any]:
    """The results of delayed tasks, by dask's threads where there is no client."""
    import dask

    if client is None:
        return list(dask.compute(*tasks, scheduler="threads"))
    futures = client.compute(tasks)
    try:
        results: list[Any] = client.gather(futures)
    except BaseException:
        client.cancel(futures)
        raise
    return results


def persisted(client: Any, tasks: list[Any]) -> list[Any]:
    """The same tasks, begun, whose results are kept where they are made."""
    import dask

    return list(dask.persist(*tasks, scheduler="threads") if client is None else client.persist(tasks))


def held(value: Any, pure: bool = False) -> Any:
    """A value that tasks depend on: it goes to each worker once, and not with every task."""
    import dask

    return dask.delayed(value, pure=pure, traverse=False)


def balanced(rows: list[int], holders: list[str | None], threads: dict[str, int]) -> list[str]:
    """The worker for each part: its holder, but parts move, the smallest that help first, while that shortens the longest wait.

    Of three equal parts on one worker and one on another, for instance, one moves.
    """
    held: dict[str, list[int]] = {worker: [] for worker in threads}

    def wait(worker: str, parts: list[int]) -> float:
        """A part takes one thread."""
        return max(sum(parts) / threads[worker], max(parts, default=0))

    places: list[str] = []
    for count, holder in zip(rows, holders, strict=True):
        place = holder if holder is not None else min(held, key=lambda worker: wait(worker, [*held[worker], count]))
        places.append(place)
        held[place].append(count)
    while len(rows) <= _MOST_PLACED:
        slow, fast = (pick(held, key=lambda worker: wait(worker, held[worker])) for pick in (max, min))
        longest = wait(slow, held[slow])
        there = sorted((rows[part], part) for part, place in enumerate(places) if place == slow and rows[part] > 0)
        part = next((part for count, part in there if wait(fast, [*held[fast], count]) < longest * (1 - 1e-9)), None)
        if part is None:
            break
        places[part] = fast
        held[slow].remove(rows[part])
        held[fast].append(rows[part])
    return places


def lanes(rows: list[int], workers: list[str], threads: dict[str, int]) -> list[list[int]]:
    """The parts that are asked one after the other: as many lists for a worker as it has threads, of about as many rows each, each in order."""
    made: list[list[int]] = []
    for worker in dict.fromkeys(workers):
        own: list[list[int]] = [[] for _ in range(max(1, threads.get(worker, 1)))]
        for part in sorted((part for part, place in enumerate(workers) if place == worker), key=lambda part: -rows[part]):
            min(own, key=lambda lane: sum(rows[other] for other in lane)).append(part)
        made.extend(sorted(lane) for lane in own if lane)
    return made


class Engine:
    """The rows of a collection, ready to be asked."""

    def __init__(self, collection: _parts.Collection, client: Any, shift: bool) -> None:
        self._client = client
        self._threads = 1
        self.passes = 0
        self.sent: list[int] = []
        """Bytes of each pass: questions and answers, those between workers included."""
        self.columns = collection.columns
        self.width = collection.columns.number if collection.columns.map is None else len(collection.columns.map.components_)
        """Columns that are fitted."""
        self._parts: list[Any] = []
        """Tasks that have the rows of a part each, on its worker."""
        self._desks: _desks.Desks | None = None
        """The short way to the parts, while there is one."""
        self.shift: NDArray[np.float64] | None = None
        try:
            # what a map makes is near 0
            self._read(collection, shift and collection.columns.map is None)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the rows on the workers, whoever else still knows of their tasks: a traceback does."""
        if self._client is not None:
            for part in self._parts:
                part.release()
        if self._desks is not None:
            self._desks.close()
        self._parts, self._desks = [], None

    def _read(self, collection: _parts.Collection, shift: bool) -> None:
        found = self._convert(collection, first_part=shift)
        if shift and np.any(centre := _parts.centre(found)):
            # the first part did not tell what all of them are like: once more
            before = 0.0 if self.shift is None else self.shift
            self.close()
            found = self._convert(collection, given=(before + centre).astype(np.float32).astype(np.float64))
        self.classes = _parts.all_classes(found)
        self.part_rows = [part.rows for part in found]
        self.rows = sum(self.part_rows)
        places = {label: place for place, label in enumerate(self.classes.tolist())}
        firsts = np.concatenate([[0], np.cumsum(self.part_rows)[:-1]]).tolist()
        codes = [[places[label] for label in part.classes.tolist()] for part in found]
        arguments = [(b, c, f) for b, c, f in zip(self._parts, codes, firsts, strict=True)]
        threads: dict[str, int] = {} if self._client is None else self._client.nthreads()
        self._workers = self._places(self._parts, threads) if threads else None
        """The worker of each part."""
        self._lanes = [[part] for part in range(len(found))] if self._workers is None else lanes(self.part_rows, self._workers, threads)
        """Parts that one task asks: tasks cost more than calls."""
        self._parts = self._start(_parts.renumber, arguments, self._workers)
        self._desks = self._opened()
        if self._client is None:
            self._threads = max(1, (os.cpu_count() or 1) // len(self._parts))

    def _convert(self, collection: _parts.Collection, first_part: bool = False, given: NDArray[np.float64] | None = None) -> list[_parts.About]:
        """Makes the parts blocks of the core, less a shift that is given or guessed from the first of them."""
        import dask

        shift = dask.delayed(_parts.guessed_centre)(collection.parts[0]) if first_part else None if given is None else held(given)
        # a map may be large
        columns = collection.columns if collection.columns.map is None else held(collection.columns)
        made = [dask.delayed(_parts.convert)(number, part, shift, columns) for number, part in enumerate(collection.parts)]
        asked = [*made, shift] if first_part else made
        if self._client is None:
            kept = persisted(None, asked)
            found = computed(None, [dask.delayed(_parts.about)(block) for block in kept[: len(made)]])
            used = computed(None, kept[-1:])[0] if first_part else given
        else:
            kept = list(self._client.compute(asked))
            told: list[Any] = []
            try:
                told = self._client.map(_parts.about, kept[: len(made)], pure=False)
                found = self._client.gather(told)
                used = kept[-1].result() if first_part else given
            except BaseException:
                self._client.cancel([*kept, *told])
                raise
        self.shift = None if used is None or not np.any(used) else used
        self._parts = kept[: len(made)]
        return found

    def _places(self, blocks: list[Any], threads: dict[str, int]) -> list[str]:
        """A worker for each part: where it is, but for parts that make one worker wait for another."""
        holders = self._client.who_has(blocks)
        known = [next((worker for worker in holders.get(block.key, ()) if worker in threads), None) for block in blocks]
        return balanced(self.part_rows, known, threads)

    def _start(self, function: Any, arguments: list[tuple[Any, ...]], workers: list[str] | None) -> list[Any]:
        """A task for each of the arguments, on its worker, where the result is kept."""
        import dask

        if self._client is None:
            return persisted(None, [dask.delayed(function)(*part) for part in arguments])
        if workers is None:
            return list(self._client.map(function, *map(list, zip(*arguments, strict=True)), pure=False))
        # Without a worker's name the scheduler takes many such tasks for ones that any worker may begin with, and sends rows about.
        # Any other will do where that one dies.
        keep = {"pure": False, "allow_other_workers": True}
        tasks: list[Any] = [None] * len(arguments)
        for worker in dict.fromkeys(workers):
            places = [place for place, own in enumerate(workers) if own == worker]
            own = zip(*(arguments[place] for place in places), strict=True)
            started = self._client.map(function, *map(list, own), workers=[worker], **keep)
            for place, task in zip(places, started, strict=True):
                tasks[place] = task
        return tasks

    def _opened(self) -> _desks.Desks | None:
        """Desks where answers come straight here: of few workers, on which no task of ours waits."""
        if self._workers is None or len(set(self._workers)) > _FAN_IN or self._client.asynchronous or _on_worker():
            return None
        lanes = [[self._parts[part] for part in lane] for lane in self._lanes]
        return _desks.Desks.open(self._client, lanes, [self._workers[lane[0]] for lane in self._lanes], self._threads)

    def told(self, function: Any, *arguments: Any) -> list[Any]:
        """What `function(rows, first, *arguments)` says of each part, worked out on the workers."""
        firsts = np.concatenate([[0], np.cumsum(self.part_rows)[:-1]]).tolist()
        asked = [(part, first, *arguments) for part, first in zip(self._parts, firsts, strict=True)]
        tasks = self._start(function, asked, self._workers)
        if self._client is None:
            return computed(None, tasks)
        try:
            results: list[Any] = self._client.gather(tasks)
        except BaseException:
            self._client.cancel(tasks)
            raise
        return results

    def without(self, change: Any, *arguments: Any) -> Engine:
        """The same rows with other weights: `change(rows, first, *arguments)` makes them, on the workers."""
        other = copy.copy(self)
        other.passes, other.sent = 0, []
        firsts = np.concatenate([[0], np.cumsum(self.part_rows)[:-1]]).tolist()
        changed = [(part, first, *arguments) for part, first in zip(self._parts, firsts, strict=True)]
        other._parts, other._desks = [], None
        try:
            other._parts = self._start(change, changed, self._workers)
            other._desks = other._opened()
        except BaseException:
            other.close()
            raise
        return other

    def __call__(self, request: bytes) -> bytes:
        """The sum of all parts' answers."""
        told = self._local(request) if self._client is None else self._directly(request) or self._remote(request)
        self.passes += 1
        self.sent.append(told.sent)
        return told.answer

    def _local(self, request: bytes) -> Told:
        import dask

        ask, add = dask.delayed(_ask, pure=False), dask.delayed(_add, pure=False)
        told = [ask([part], request, self._threads) for part in self._parts]
        while len(told) > 1:
            told = [add(told[at : at + _FAN_IN]) for at in range(0, len(told), _FAN_IN)]
        result: Told = computed(None, told)[0]
        return result

    def _directly(self, request: bytes) -> Told | None:
        """By the desks, if these answer and their answers are few and small enough to be added here."""
        last = self.sent[-1] if self.sent else 0
        if self._desks is None or last > _STRAIGHT:
            return None
        answers = self._desks.ask(request)
        if answers is None:
            self._desks.close()
            self._desks = None
            return None
        return Told(_desks.total(answers), len(request) * len(self._desks) + sum(map(len, answers)))

    def _remote(self, request: bytes) -> Told:
        client = self._client
        large = bool(self.sent) and self.sent[-1] > _SMALL * len(self._lanes)
        # what is small is a part of every task, what is not goes to every worker once, under a name of its own
        question = request if len(request) <= _WITHIN else client.submit(bytes, request, pure=False)
        asked = [([self._parts[part] for part in lane], question, self._threads) for lane in self._lanes]
        told = self._start(_ask, asked, None if self._workers is None else [self._workers[lane[0]] for lane in self._lanes])
        made = list(told)
        try:
            while len(told) > (1 if large else _FAN_IN):
                told = [client.submit(_add, told[at : at + _FAN_IN], pure=False) for at in range(0, len(told), _FAN_IN)]
                made.extend(told)
            # so few and small that a task to add them would cost more than it saves
            answers: list[Told] = client.gather(told)
        except BaseException:
            client.cancel(made)
            raise
        return Told(_core.add_answers([part.answer for part in answers]), sum(part.sent for part in answers))
