"""From a dask collection to parts that the core can ask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core, _input

#: A column whose mean is so many standard deviations from 0 has it taken off before it is rounded to 32 bits.
_FAR = 8.0
#: Rows that can tell, and as many as are asked.
_ENOUGH = 100
_GUESSED = 10_000
#: Classes that a fit takes, as in the core.
_MOST_CLASSES = 1000
#: Whole numbers that lie within so many, or within the number of rows, are counted and not sorted.
_COUNTED = 1 << 16


class Block(NamedTuple):
    """The rows of one part, on its worker."""

    rows: _core.Partition
    classes: NDArray[Any]
    """The classes met here, sorted; the rows' codes are places in it."""
    mean: NDArray[np.float64]
    """Of every column, as it was kept."""
    spread: NDArray[np.float64]
    """The sum of squares around it."""


class About(NamedTuple):
    """What the client wants to know of a block."""

    rows: int
    classes: NDArray[Any]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """What all parts have in common."""

    number: int
    names: list[str] | None
    map: Any = None
    """What makes other columns of them before they are fitted: an object with `transform`."""


class Rows(NamedTuple):
    """One part of a collection."""

    x: Any
    y: Any
    weights: Any = None


class Collection(NamedTuple):
    """What is fitted, not yet computed."""

    parts: list[Any]
    """Tasks that make `Rows`. What rows and labels come from is computed once for both: made apart, they need not belong together."""
    columns: Columns


def collect(X: Any, y: Any, sample_weight: Any) -> Collection:
    """The parts of X with the labels and weights of their rows."""
    if is_frame(X):
        return _of_frame(X, y, sample_weight)
    if is_array(X):
        return _of_array(X, y, sample_weight)
    raise TypeError(f"X is a {type(X).__name__}; outlast.dask takes dask arrays and dask dataframes, outlast itself everything else")


def is_array(value: Any) -> bool:
    """Whether it is a dask array."""
    import dask.array

    return isinstance(value, dask.array.Array)


def is_frame(value: Any) -> bool:
    """Whether it is a dask dataframe or series."""
    return hasattr(value, "npartitions") and hasattr(value, "map_partitions") and hasattr(value, "_meta") and not is_array(value)


def _of_array(X: Any, y: Any, sample_weight: Any) -> Collection:
    import dask.array

    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, expected 2: rows and columns")
    _check_known("X", X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X has the dtype {X.dtype}, expected numbers")
    X = X.rechunk({1: -1})
    rows = X.chunks[0]
    beside = [_aligned("y", y, rows)]
    if sample_weight is not None:
        beside.append(_aligned("sample_weight", sample_weight, rows))
    vectors = [given for vector in beside for given in (vector, "i")]
    parts = dask.array.blockwise(Rows, "ij", X, "ij", *vectors, dtype=X.dtype, meta=X._meta, align_arrays=False)
    return Collection(list(parts.to_delayed().ravel()), Columns(X.shape[1], None))


def _check_known(name: str, array: Any) -> None:
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(
            f"{name} has unknown chunk sizes: call {name}.compute_chunk_sizes() first, or hand over the dask dataframe it comes from"
        )


def _aligned(name: str, values: Any, rows: Sequence[int]) -> Any:
    """A vector, cut as the rows are."""
    import dask.array

    if is_frame(values):
        raise TypeError(f"{name} is a dask {type(values).__name__}, but X is a dask array: hand over both as arrays or both as dataframes")
    if not is_array(values):
        values = np.asarray(values)
        # each part gets its own and not all of them
        cut = (tuple(rows), *values.shape[1:]) if values.ndim and len(values) == sum(rows) else -1
        values = dask.array.from_array(values, chunks=cut)
    _check_known(name, values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.shape[0] != sum(rows):
        raise ValueError(f"{name} has the shape {values.shape}, but X has {sum(rows)} rows")
    return values.rechunk((tuple(rows),))


def _of_frame(X: Any, y: Any, sample_weight: Any) -> Collection:
    if X.ndim != 2:
        raise ValueError("X is a dask series, expected a dataframe")
    for name, dtype in X.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            raise ValueError(f"column {name!r} of X has the dtype {dtype}, expected numbers")
    beside = [_beside("y", y, X)]
    if sample_weight is not None:
        beside.append(_beside("sample_weight", sample_weight, X))
    # part by part: the indices of rows and labels need not agree
    parts = X.map_partitions(Rows, *beside, meta=X._meta, enforce_metadata=False, clear_divisions=True, align_dataframes=False)
    names = list(X.columns)
    return Collection(list(parts.to_delayed()), Columns(len(names), names if all(isinstance(name, str) for name in names) else None))


def _beside(name: str, values: Any, X: Any) -> Any:
    """A series beside a dataframe."""
    if not is_frame(values):
        raise TypeError(f"{name} is a {type(values).__name__}, but X is a dask dataframe: {name} must be a dask series with the same partitions")
    if values.ndim == 2 and len(values.columns) == 1:
        values = values[values.columns[0]]
    if values.ndim != 1:
        raise ValueError(f"{name} has {len(values.columns)} columns, expected 1")
    if values.npartitions != X.npartitions:
        raise ValueError(f"{name} has {values.npartitions} partitions, but X has {X.npartitions}: repartition one as the other")
    return values


def numbers(block: Any) -> Any:
    """The values of a block as the core takes them: C order, float64 or float32."""
    if hasattr(block, "tocsr"):
        block = block.toarray()
    values = _of_columns(block) if hasattr(block, "dtypes") else np.asarray(block)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"dtype {values.dtype}, expected numbers")
    # what came over the network need not be aligned
    return np.require(values, dtype=np.float32 if values.dtype == np.float32 else np.float64, requirements=["C", "ALIGNED"])


def _of_columns(frame: Any) -> NDArray[Any]:
    """The values of a dataframe; as an array of their own, truth values beside numbers would be objects."""
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            raise ValueError(f"column {name!r} has the dtype {dtype}, expected numbers")
    short = all(dtype == np.float32 for dtype in frame.dtypes)
    values: NDArray[Any] = frame.to_numpy(dtype=np.float32 if short else np.float64)
    return values


def guessed_centre(part: Rows) -> NDArray[np.float64] | None:
    """The means of columns that seem to lie far from 0; None where the rows are too few to tell. Runs on a worker, while all others wait."""
    block = part.x
    rows = block.tocsr() if hasattr(block, "tocsr") else getattr(block, "iloc", block)
    values = numbers(rows[:: max(1, block.shape[0] // _GUESSED)])
    if len(values) < _ENOUGH:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        mean = values.mean(axis=0, dtype=np.float64)
        return _far(mean, ((values - mean) ** 2).sum(axis=0), len(values))


def centre(found: Sequence[About]) -> NDArray[np.float64]:
    """The means of columns that lie far from 0 in all parts together, else 0."""
    rows = sum(part.rows for part in found)
    mean = sum(part.rows * part.mean for part in found) / max(rows, 1)
    spread = sum(part.spread + part.rows * (part.mean - mean) ** 2 for part in found)
    return _far(np.asarray(mean), np.asarray(spread), rows)


def _far(mean: NDArray[np.float64], spread: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        far = (np.abs(mean) > _FAR * np.sqrt(spread / max(rows, 1))) & np.isfinite(mean)
        return np.where(far, mean.astype(np.float32).astype(np.float64), 0.0)


class Drawn(NamedTuple):
    """Rows, and the number that each drew."""

    lots: NDArray[np.float64]
    rows: NDArray[Any]


def some_rows(number: int, part: Rows, rows: int, seed: int) -> Drawn:
    """The rows of a part that draw the smallest numbers. Runs on a worker."""
    values = numbers(part.x)
    lots = np.random.default_rng([seed, number]).random(len(values))
    chosen = np.sort(np.argsort(lots, kind="stable")[:rows])
    return Drawn(lots[chosen], values[chosen])


def smallest(drawn: Sequence[Drawn], rows: int) -> Drawn:
    """Those of several blocks together. Runs on a worker."""
    lots, values = np.concatenate([part.lots for part in drawn]), np.concatenate([part.rows for part in drawn])
    chosen = np.sort(np.argsort(lots, kind="stable")[:rows])
    return Drawn(lots[chosen], values[chosen])


def convert(number: int, part: Rows, shift: NDArray[np.float64] | None, columns: Columns) -> Block:
    """A part of the collection as one of the core. Runs on the worker that has it."""
    where = f"partition {number}"
    try:
        values = numbers(part.x)
        if values.ndim != 2 or values.shape[1] != columns.number:
            raise ValueError(f"X has the shape {values.shape}, expected {columns.number} columns")
        if columns.map is not None and len(values):
            values = np.ascontiguousarray(columns.map.transform(values))
        elif columns.map is not None:
            values = np.empty((0, len(columns.map.components_)))
        classes, codes = _encoded(labels(part.y, len(values)))
        _check_few(len(classes))
        weights = None if part.weights is None else checked_weights(part.weights, len(values))
        if shift is not None:
            shift = np.require(shift, requirements=["C", "ALIGNED"])
        rows = _core.Partition(values, codes, weights, shift)
    except (ValueError, TypeError) as problem:
        names = "" if columns.names is None else f"; the columns are {', '.join(columns.names[:20])}"
        raise ValueError(f"{where}: {problem}{names if 'column' in str(problem) else ''}") from None
    return Block(rows, classes, *rows.moments())


def labels(y: Any, rows: int) -> NDArray[Any]:
    """The labels of so many rows: whole numbers or text, none of them missing."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if len(values) != rows:
        raise ValueError(f"{rows} rows, but {len(values)} labels")
    if values.dtype.kind == "f":
        bad = ~(np.isfinite(values) & (values == np.round(values)))
        if bad.any():
            row = int(np.argmax(bad))
            what = "the label is missing" if np.isnan(values[row]) else f"{values[row]} is not a class; labels are whole numbers or text"
            raise ValueError(f"y, row {row}: {what}")
    elif values.dtype.kind not in "iubUSO":
        raise ValueError(f"y has the dtype {values.dtype}, expected whole numbers or text")
    return _of_one_type(values.tolist()) if values.dtype.kind == "O" else values


def checked_weights(weights: Any, rows: int) -> NDArray[np.float64]:
    """The weights of so many rows, finite and not negative."""
    values = np.asarray(weights).ravel()
    if len(values) != rows:
        raise ValueError(f"{rows} rows, but {len(values)} weights")
    if values.dtype.kind == "O" and (row := _first_missing(values.tolist())) is not None:
        raise ValueError(f"sample_weight, row {row}: the weight is missing")
    # what came over the network need not be aligned
    values = np.require(values, dtype=np.float64, requirements=["C", "ALIGNED"])
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight, row {row}: a weight of {values[row]} is not allowed: weights must be finite and >= 0")
    return values


def is_text(values: NDArray[Any]) -> bool:
    """Whether labels are text and not numbers."""
    return values.dtype.kind in "USO"


def _check_few(classes: int) -> None:
    if classes > _MOST_CLASSES:
        raise ValueError(f"y has {classes} distinct values; a classifier takes at most {_MOST_CLASSES} classes (is y a number to predict?)")


def _encoded(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The classes met, sorted, and the place of each label among them."""
    if values.dtype.kind in "iu" and len(values):
        least = int(values.min())
        if int(values.max()) - least < max(_COUNTED, len(values)):
            return _counted(values, least)
    classes, codes = np.unique(values, return_inverse=True)
    return classes, np.asarray(codes, dtype=np.uint32).ravel()


def _counted(values: NDArray[Any], least: int) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """What `np.unique` says of whole numbers that lie close together, without sorting them."""
    # differences of small types may not fit them
    wide = np.int64 if values.dtype.kind == "i" else np.uint64
    places = (values.astype(wide) - wide(least)).astype(np.int64)
    met = np.flatnonzero(np.bincount(places))
    codes = np.zeros(met[-1] + 1, dtype=np.uint32)
    codes[met] = np.arange(len(met))
    return (met.astype(wide) + wide(least)).astype(values.dtype), codes[places]


def _of_one_type(labels: list[Any]) -> NDArray[Any]:
    if (row := _first_missing(labels)) is not None:
        raise ValueError(f"y, row {row}: the label is missing")
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("y holds labels of several types: text and numbers")
    values = np.array(labels)
    if values.dtype.kind == "O":
        raise ValueError(f"y holds labels like {labels[0]!r}, expected whole numbers or text")
    return values


def _first_missing(values: list[Any]) -> int | None:
    return next((row for row, value in enumerate(values) if _is_missing(value)), None)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        # pandas' NA is neither equal to itself nor not
        return True


def about(block: Block) -> About:
    """What the client wants to know of a block. Runs on its worker."""
    return About(block.rows.rows, block.classes, block.mean, block.spread)


def renumber(block: Block, codes: list[int], first: int) -> _core.Partition:
    """The rows of a block with the classes' common numbers. Runs on its worker."""
    return block.rows.renumbered(codes, first)


def all_classes(found: Sequence[About]) -> NDArray[Any]:
    """The classes of all parts, sorted."""
    kinds = {"text" if is_text(part.classes) else "numbers": number for number, part in enumerate(found) if part.rows}
    if len(kinds) > 1:
        raise ValueError(f"y holds text in partition {kinds['text']} and numbers in partition {kinds['numbers']}: labels must be of one type")
    met = [part.classes for part in found if part.rows]
    if not met:
        raise ValueError("X has no rows, expected at least one of every class")
    if np.result_type(*met).kind == "f" and all(labels.dtype.kind in "iu" for labels in met):
        # the common type of int64 and uint64 does not know all of their numbers
        largest = max(int(labels.max()) for labels in met)
        if largest > np.iinfo(np.int64).max:
            raise ValueError(f"y holds {largest} and labels of a signed type, which no type of whole numbers holds together: give labels one type")
        met = [labels.astype(np.int64) for labels in met]
    classes: NDArray[Any] = np.unique(np.concatenate(met))
    if len(classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got 1 class: {classes.tolist()[0]!r}")
    _check_few(len(classes))
    _input.class_names(classes)
    return classes
