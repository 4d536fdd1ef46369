"""Which rows of a dask collection have a label that looks wrong."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from .. import _core, _input
from . import _engine, _parts
from ._estimators import TruncatedSVC

#: Rows, about, whose held-out decision values are brought here to learn what they say about the classes.
_CALIBRATED = 20_000

#: Rows of a class up to which they are dealt out to the folds one after the other; of more, chance leaves some to every fit.
_FEW = 40

_GIVEN, _SUGGESTED, _SCORE, _MARGIN = range(4)


class _Few(NamedTuple):
    """Rows of classes that have few, sorted, and their folds."""

    rows: NDArray[np.int64]
    folds: NDArray[np.uint64]


class Audit:
    """What `outlast.dask.audit` found. Rows are counted from 0, over all parts.

    Made by `audit`, not by hand.

    Parameters
    ----------
    table : dask array of shape (n_samples, 4)
        Given class, suggested class, score and margin of each row.
    classes : array
        The classes, sorted.
    noise : array of shape (n_classes, n_classes)
        The noise matrix.
    client : distributed.Client, default=None
        The cluster that has the table.
    """

    classes: NDArray[Any]
    """The classes, sorted; the matrix is in their order."""
    noise_matrix: NDArray[np.float64]
    """Of the rows given a class (row), the mean chance of every class (column): wrong labels, and what overlaps."""

    def __init__(self, table: Any, classes: NDArray[Any], noise: NDArray[np.float64], client: Any = None) -> None:
        self._table = table
        self._client = client
        self.classes = classes
        self.noise_matrix = noise

    def __getstate__(self) -> dict[str, Any]:
        # a client belongs to its process
        return {**self.__dict__, "_client": None}

    def __repr__(self) -> str:
        return f"Audit({self._table.shape[0]} rows, {len(self.classes)} classes)"

    @property
    def scores(self) -> Any:
        """How suspect each row is, 0 to 1, as a dask array: one minus the chance of its label by the fit made without it."""
        return self._table[:, _SCORE]

    @property
    def margins(self) -> Any:
        """The functional margin of each row in the fit made without it, as a dask array."""
        return self._table[:, _MARGIN]

    @property
    def suggested(self) -> Any:
        """The likeliest class of each row, as a dask array."""
        classes = self.classes
        return self._table[:, _SUGGESTED].map_blocks(lambda codes: classes[codes.astype(np.intp)], dtype=classes.dtype)

    def suspects(self, n: int = 100) -> Any:
        """The rows to look at, most suspect first: a pandas DataFrame whose index is the row.

        Parameters
        ----------
        n : int, default=100
            How many; those whose own label is the likeliest are left out.

        Returns
        -------
        pandas.DataFrame
            With the columns ``given``, ``suggested``, ``score`` and ``margin``.
        """
        import dask
        import pandas

        count = _input.whole("n", n, 1)
        blocks = list(self._table.to_delayed().ravel())
        firsts = np.concatenate([[0], np.cumsum(self._table.chunks[0])[:-1]]).tolist()
        worst = [dask.delayed(_worst)(block, first, count) for block, first in zip(blocks, firsts, strict=True)]
        client = _engine.client_in_use(self._client)
        with _engine.waiting(client):
            parts = _engine.computed(client, worst)
        rows = np.concatenate([part[0] for part in parts])
        table = np.concatenate([part[1] for part in parts])
        order = np.argsort(-table[:, _SCORE], kind="stable")[:count]
        found = {
            "given": self.classes[table[order, _GIVEN].astype(np.intp)],
            "suggested": self.classes[table[order, _SUGGESTED].astype(np.intp)],
            "score": table[order, _SCORE],
            "margin": table[order, _MARGIN],
        }
        return pandas.DataFrame(found, index=pandas.Index(rows[order], name="row"))

    def to_csv(self, path: str | os.PathLike[str], n: int = 1000) -> None:
        """Write the suspects as CSV, rows counted from 1.

        Parameters
        ----------
        path : str or path
            The file.
        n : int, default=1000
            How many.
        """
        suspects = self.suspects(n)
        suspects.index = suspects.index + 1
        suspects.to_csv(path)


def audit(
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    C: float = 1.0,
    truncation: float | str | None = "auto",
    memory: str | int = "1GB",
    random_state: Any = None,
    client: Any = None,
) -> Audit:
    """Rank the rows of a dask collection whose label looks wrong.

    Every row is judged by a robust linear fit (truncated hinge) that was made without it. Simpler than `outlast.audit`: one cross-validation, the
    linear kernel, C as given and columns as they are, so put them on one scale first. What the fits say is turned into chances of the classes
    by a logistic regression on the held-out decision values of a sample of the rows.

    Parameters
    ----------
    X : dask array or dataframe of shape (n_samples, n_features)
        The rows.
    y : dask array or series of shape (n_samples,)
        Their labels; every class needs two rows.
    folds : int, default=5
        As many fits are made, each without its share of the rows.
    C : float, default=1.0
        Weight of the losses.
    truncation : float, "auto" or None, default="auto"
        Margin at which the loss is cut off.
    memory : str or int, default="1GB"
        Memory for rows on the client.
    random_state : int, RandomState or None, default=None
        Seed of the folds.
    client : distributed.Client, default=None
        The cluster; None takes the current client, or dask's threads where there is none.

    Returns
    -------
    Audit
        With ``scores``, ``margins``, ``suggested``, ``suspects``, ``noise_matrix`` and ``to_csv``.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from outlast.dask import audit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> worst = int(np.argmax(X[:, 0]))
    >>> y[worst] = 0
    >>> found = audit(da.from_array(X, chunks=(300, 2)), y)
    >>> int(found.scores.compute().argmax()) == worst
    True
    """
    count, seed = _input.whole("folds", folds, 2, 100), _input.seed(random_state)
    client = _engine.client_in_use(client)
    collection = _parts.collect(X, y, None)
    method = TruncatedSVC(C, truncation=truncation, memory=memory, random_state=seed)
    with _engine.waiting(client):
        with closing(_engine.Engine(collection, client, shift=True)) as engine:
            few = _dealt(engine, count, seed)
            # each by an estimator of its own
            models = [clone(method)._fitted_to(partial(engine.without, _kept, fold, count, seed, few)) for fold in range(count)]
        return _judged(collection.parts, engine.part_rows, models, seed, few, client)


def _dealt(engine: _engine.Engine, folds: int, seed: int) -> _Few:
    """Folds for the rows of classes that have few, so that every fit has some of each."""
    k = len(engine.classes)
    counts = np.sum(engine.told(_counts, k), axis=0)
    if alone := [label for label, rows in zip(engine.classes.tolist(), counts, strict=True) if rows == 1]:
        others = "" if len(alone) == 1 else f", and so have {len(alone) - 1} others"
        raise ValueError(f"class {alone[0]!r} has 1 row{others}: every class needs 2 rows, so that a fit made without one of them knows it; leave it out")
    rare = np.flatnonzero(counts <= _FEW)
    if not len(rare):
        return _Few(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))
    told = engine.told(_rows_of, rare)
    rows, codes = (np.concatenate([part[place] for part in told]) for place in range(2))
    order = np.lexsort((_mixed(rows.astype(np.uint64), seed), codes))
    rows, codes = rows[order], codes[order]
    # from another fold on for each class, so that those of one row more do not all go to the first
    place = np.arange(len(codes)) - np.searchsorted(codes, codes) + codes
    order = np.argsort(rows)
    return _Few(rows[order], (place % folds).astype(np.uint64)[order])


def _counts(rows: _core.Partition, first: int, classes: int) -> NDArray[np.intp]:
    """Rows of each class. Runs on a worker."""
    return np.bincount(rows.codes, minlength=classes)


def _rows_of(rows: _core.Partition, first: int, classes: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of the rows of some classes, and their classes. Runs on a worker."""
    codes = rows.codes.astype(np.int64)
    own = np.flatnonzero(np.isin(codes, classes))
    return own.astype(np.int64) + first, codes[own]


def _judged(parts: list[Any], part_rows: list[int], models: list[Any], seed: int, few: _Few, client: Any) -> Audit:
    """Every row by the model that was fitted without it."""
    import dask
    import dask.array

    classes = models[0].classes_
    firsts = np.concatenate([[0], np.cumsum(part_rows)[:-1]]).tolist()
    held, dealt = _engine.held(models), _engine.held(few)
    # every class has its rows among them, however few of all it has
    share, fewest = _CALIBRATED / sum(part_rows), max(1.0, _CALIBRATED / (2 * len(classes) * len(parts)))
    asked = [dask.delayed(_held_out)(part, first, held, seed, dealt, share, fewest) for part, first in zip(parts, firsts, strict=True)]
    told = _engine.computed(client, asked)
    values, codes, weights = (np.concatenate([part[place] for part in told]) for place in range(3))
    chances = _engine.held(LogisticRegression(C=1e6, max_iter=1000).fit(values, codes, weights))

    judged = [dask.delayed(_judge)(part, first, held, seed, dealt, chances) for part, first in zip(parts, firsts, strict=True)]
    judged = _engine.persisted(client, judged)
    try:
        k = len(classes)
        sums = np.sum(_engine.computed(client, [dask.delayed(_noise)(block) for block in judged]), axis=0)
        noise = sums[:, :k] / np.maximum(sums[:, k:], 1.0)
        tables = [dask.array.from_delayed(dask.delayed(_table)(block), (rows, 4), dtype=np.float64) for block, rows in zip(judged, part_rows, strict=True)]
        return Audit(dask.array.concatenate(tables), classes, noise, client)
    except BaseException:
        if client is not None:
            client.cancel(judged)
        raise


def _scattered(first: int, rows: int, seed: int) -> NDArray[np.uint64]:
    """64 bits for each row that depend on its number alone (SplitMix64)."""
    return _mixed(np.arange(first, first + rows, dtype=np.uint64), seed)


def _mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0x632BE59BD9B4E019)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _fold_of(first: int, rows: int, folds: int, seed: int, few: _Few | None = None) -> NDArray[np.uint64]:
    """The fold of each row, by its number alone, but for those of classes that have few."""
    found = _scattered(first, rows, seed) % np.uint64(folds)
    if few is not None:
        begin, end = np.searchsorted(few.rows, [first, first + rows])
        found[few.rows[begin:end] - first] = few.folds[begin:end]
    return found


def _kept(rows: _core.Partition, first: int, fold: int, folds: int, seed: int, few: _Few) -> _core.Partition:
    """The same rows, those of a fold without weight. Runs on a worker."""
    return rows.weighed((_fold_of(first, rows.rows, folds, seed, few) != fold).astype(np.float64))


def _decided(values: NDArray[Any], folds: NDArray[np.uint64], models: list[Any]) -> NDArray[np.float64]:
    """The decision values of each row by the fit made without it, of shape (rows, functions)."""
    out = np.zeros((len(values), models[0].coef_.shape[0]))
    for fold, model in enumerate(models):
        own = folds == fold
        out[own] = values[own] @ model.coef_.T + model.intercept_
    return out


def _codes(y: Any, models: list[Any]) -> NDArray[np.intp]:
    return np.searchsorted(models[0].classes_, np.asarray(y).ravel())


def _held_out(
    part: _parts.Rows, first: int, models: list[Any], seed: int, few: _Few, share: float, fewest: float
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Decision values, class and weight of some rows: that share of them, and of no class fewer than that. Runs on a worker.

    A row stands for as many as it was chosen from.
    """
    values, codes = _parts.numbers(part.x), _codes(part.y, models)
    counts = np.bincount(codes, minlength=len(models[0].classes_))
    chance = np.minimum(1.0, np.maximum(share, fewest / np.maximum(counts, 1)))[codes]
    chosen = (_scattered(first, len(codes), seed) >> np.uint64(11)) * 2.0**-53 < chance
    folds = _fold_of(first, len(codes), len(models), seed, few)
    return _decided(values[chosen], folds[chosen], models), codes[chosen], 1.0 / chance[chosen]


def _judge(part: _parts.Rows, first: int, models: list[Any], seed: int, few: _Few, chances: LogisticRegression) -> tuple[Any, Any]:
    """The table of a part, and its rows' chances summed up by the class they were given. Runs on a worker."""
    values, given = _parts.numbers(part.x), _codes(part.y, models)
    f = _decided(values, _fold_of(first, len(values), len(models), seed, few), models)
    k, n = len(models[0].classes_), len(given)
    table, sums = np.zeros((n, 4)), np.zeros((k, k + 1))
    if n == 0:
        return table, sums
    of_class = np.zeros((n, k))
    of_class[:, chances.classes_] = chances.predict_proba(f)
    table[:, _GIVEN] = given
    table[:, _SUGGESTED] = of_class.argmax(axis=1)
    table[:, _SCORE] = 1.0 - of_class[np.arange(n), given]
    if f.shape[1] == 1:
        table[:, _MARGIN] = np.where(given == 1, f[:, 0], -f[:, 0])
    else:
        own = f[np.arange(n), given]
        f[np.arange(n), given] = -np.inf
        table[:, _MARGIN] = own - f.max(axis=1)
    for code in range(k):
        sums[code, :k] = of_class[given == code].sum(axis=0)
        sums[code, k] = (given == code).sum()
    return table, sums


def _table(judged: tuple[Any, Any]) -> Any:
    return judged[0]


def _noise(judged: tuple[Any, Any]) -> Any:
    return judged[1]


def _worst(table: NDArray[np.float64], first: int, count: int) -> tuple[Any, Any]:
    """The most suspect rows of a part. Runs on a worker."""
    wrong = np.flatnonzero(table[:, _GIVEN] != table[:, _SUGGESTED])
    order = wrong[np.argsort(-table[wrong, _SCORE], kind="stable")[:count]]
    return first + order, table[order]
