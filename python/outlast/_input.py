"""What users pass in, turned into what the core takes: arrays, classes, weights, plain numbers."""

from __future__ import annotations

import math
import numbers
import os
import time
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from . import _core

_LARGEST_COLUMN = np.iinfo(np.uint32).max


def matrix(X: Any) -> Any:
    """A validated X in the core's form: the array itself, in C or Fortran order, or the parts of a CSR matrix."""
    if not sparse.issparse(X):
        if not X.flags.aligned:
            # as arrays may be that came over a network
            X = X.copy()
        return X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)
    if not X.has_canonical_format:
        # on a copy: the caller's matrix stays as it is
        X = X.copy()
        X.sum_duplicates()
    if X.shape[1] > _LARGEST_COLUMN:
        raise ValueError(f"X has {X.shape[1]} columns; sparse matrices may have at most {_LARGEST_COLUMN}")
    # a negative number wraps to a huge one, which the core refuses as out of range
    indices = X.indices.view(np.uint32) if X.indices.dtype == np.int32 else X.indices.astype(np.uint32)
    starts = X.indptr.view(np.uintp) if X.indptr.dtype.itemsize == np.dtype(np.uintp).itemsize else X.indptr.astype(np.uintp)
    return starts, indices, X.data, X.shape[1]


def intact(X: Any) -> None:
    """Refuses a sparse matrix whose parts contradict each other: scipy would follow them out of its arrays, and the process would end."""
    if not sparse.issparse(X):
        return
    if X.format in ("csr", "csc", "bsr"):
        _intact_compressed(X)
    elif X.format == "coo":
        for name, places, size in zip(("row", "col"), (X.row, X.col), X.shape, strict=True):
            if len(places) != len(X.data):
                raise ValueError(f"Sparse matrix X is damaged: {name} has {len(places)} entries, data has {len(X.data)}.")
            _in_range(name, places, size)


def _intact_compressed(X: Any) -> None:
    lines, across = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        lines, across = lines // X.blocksize[0], across // X.blocksize[1]
    starts, count = X.indptr, min(len(X.indices), len(X.data))
    wrong = None
    if len(starts) != lines + 1:
        wrong = f"has {len(starts)} entries, expected {lines + 1}"
    elif starts[0] != 0:
        wrong = f"starts with {starts[0]}, expected 0"
    elif np.any(starts[1:] < starts[:-1]):
        wrong = "falls somewhere, expected entries that never fall"
    elif starts[-1] > count:
        wrong = f"ends with {starts[-1]}, but there are {count} values"
    if wrong is not None:
        raise ValueError(f"Sparse matrix X is damaged: indptr {wrong}.")
    _in_range("indices", X.indices[: starts[-1]], across)


def _in_range(name: str, places: NDArray[Any], size: int) -> None:
    if places.size and not (0 <= places.min() and places.max() < size):
        raise ValueError(f"Sparse matrix X is damaged: {name} must be from 0 to {size - 1}, got {places.min()} to {places.max()}.")


def kept_rows(fitted: _core.Fitted) -> Any:
    """The support vectors that a model keeps for prediction, copied out of the core; None where it predicts without."""
    if fitted.kernel == "precomputed":
        return np.empty((0, 0))
    parts = fitted.sparse_support_vectors
    if parts is not None:
        starts, columns, values = parts
        # the core's numbers are unsigned, scipy's are not
        index = np.int32 if max(len(values), fitted.features) <= np.iinfo(np.int32).max else np.int64
        return sparse.csr_matrix((values, columns.astype(index), starts.astype(index)), shape=(len(starts) - 1, fitted.features))
    rows = fitted.support_vectors
    return None if rows is None else rows.reshape(-1, fitted.features)


def precision(X: Any) -> Any:
    """The dtypes that X may keep. Of frames that list their dtypes (polars) scikit-learn would make float64."""
    dtypes = getattr(X, "dtypes", None)
    if isinstance(dtypes, (list, tuple)) and dtypes and all(str(dtype) == "Float32" for dtype in dtypes):
        return np.float32
    return [np.float64, np.float32]


def encode(y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sorted classes of y and each row's position among them."""
    check_labels(y)
    classes, codes = _sorted_classes(y)
    if len(classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got 1 class: {classes.tolist()[0]!r}")
    return classes, codes.astype(np.uint32)


def _sorted_classes(y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """What ``np.unique`` finds, by counting instead of sorting where labels are whole numbers that lie close together."""
    if isinstance(y, np.ndarray) and y.dtype.kind == "i" and len(y):
        least, most = int(y.min()), int(y.max())
        if most - least <= len(y):
            shifted = np.subtract(y, least, dtype=np.int64)
            there = np.bincount(shifted) > 0
            return (np.flatnonzero(there) + least).astype(y.dtype), (np.cumsum(there) - 1)[shifted]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def check_labels(y: Any) -> None:
    """Refuses what is no label, as scikit-learn does, and labels that have no order among each other."""
    try:
        check_classification_targets(y)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in np.asarray(y, dtype=object).ravel()})
        if len(kinds) < 2:
            raise
        raise TypeError(f"y must be uniformly strings or numbers. Got {kinds}") from error


def codes_among(y: Any, classes: NDArray[Any], unknown: str = "y holds classes that the model does not know") -> NDArray[np.uint32]:
    """The position of each label among known classes."""
    y = column_or_1d(y)
    check_labels(y)
    place = {label: at for at, label in enumerate(classes.tolist())}
    if strangers := [label for label in np.unique(y).tolist() if label not in place]:
        raise ValueError(f"{unknown}: {strangers[:10]!r}")
    return np.array([place[label] for label in y.tolist()], dtype=np.uint32)


def class_names(classes: NDArray[Any]) -> list[int | str]:
    """The classes as a model file can keep them: whole numbers or text."""
    names: list[Any] = classes.tolist()
    if all(isinstance(name, (bool, int, float)) and float(name).is_integer() and abs(name) < 2**63 for name in names):
        return [int(name) for name in names]
    return [unicode("class names", str(name)) for name in names]


def check_positive_weights(codes: NDArray[Any], weights: NDArray[Any]) -> None:
    """More than one class must be left when the rows of weight 0 are taken away; that all are is checked by the core."""
    left = np.unique(codes[weights > 0])
    if len(left) == 0:
        raise ValueError("every sample_weight is zero: at least one row of each class must have a positive weight")
    if len(left) == 1:
        raise ValueError("the rows of positive sample_weight are of one class only; at least two are needed")


def payoff(name: str, value: Any, classes: NDArray[Any]) -> list[list[float]] | None:
    """A utility or cost matrix as rows, in the order of the classes; what is in it is the core's business.

    A DataFrame with an index goes by the names of its rows and columns, everything else by position.
    """
    if value is None:
        return None
    if hasattr(value, "index") and hasattr(value, "columns"):
        rows, columns = (_order(name, what, labels, classes) for what, labels in
                         (("rows", value.index), ("columns", value.columns)))
        value = value.to_numpy()[np.ix_(rows, columns)]
    elif not isinstance(value, (list, tuple)):
        # other frames iterate over columns; as arrays they don't
        value = np.asarray(value)
    try:
        return [[_float(entry) for entry in row] for row in value]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a matrix of numbers, a row and a column per class") from None


def _order(name: str, what: str, labels: Any, classes: NDArray[Any]) -> list[int]:
    """Where each class stands among the labels of a DataFrame."""
    found = list(labels)
    if len(set(found)) != len(found):
        raise ValueError(f"the {what} of {name} name a class twice: {found!r}")
    places = {label: place for place, label in enumerate(found)}
    known = classes.tolist()
    missing = [label for label in known if label not in places]
    unknown = [label for label in found if label not in set(known)]
    if missing or unknown:
        raise ValueError(
            f"the {what} of {name} must be named as the classes are; missing: {missing!r}; unknown: {unknown!r}"
        )
    return [places[label] for label in known]


def real(name: str, value: Any, allowed: str = "a number") -> float:
    """A number as float; its range is the core's business."""
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        return _float(value)
    raise InvalidParameterError(f"{name} = {value!r} is not allowed: {name} must be {allowed}")


def _float(value: Any) -> float:
    """The nearest float, which is infinite for whole numbers beyond them all."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole(name: str, value: Any, lowest: int, highest: int = 2**31 - 1) -> int:
    """A whole number in a range."""
    if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"{name} = {value!r} is not allowed: {name} must be a whole number")
    number = int(value)
    if not lowest <= number <= highest:
        raise ValueError(f"{name} = {number} is not allowed: {name} must be a whole number from {lowest} to {highest}")
    return number


def name_or_real(name: str, value: Any, allowed: str = "a number") -> float | str:
    """The name of a rule, or a number; `allowed` says what there is to choose from."""
    return unicode(name, value) if isinstance(value, str) else real(name, value, allowed)


def text(name: str, value: Any) -> str:
    """A name; which names there are is the core's business."""
    if isinstance(value, str):
        return unicode(name, value)
    raise InvalidParameterError(f"{name} = {value!r} is not allowed: {name} must be a text")


def unicode(name: str, value: str) -> str:
    """A text that can be written down; Python's may hold halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidParameterError(f"{name} = {value!r} is not allowed: it holds half a character, which no file can keep") from None
    return value


def flag(name: str, value: Any) -> bool:
    """Yes or no."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidParameterError(f"{name} = {value!r} is not allowed: {name} must be True or False")


def limit(value: Any) -> float | None:
    """Seconds, or None for no limit."""
    return None if value is None else real("time_limit", value)


def time_left(limit: float | None, begun: float) -> float | None:
    """What is left of a time limit that counts from `begun`, by `time.monotonic`; a moment where nothing is."""
    return None if limit is None else max(limit - (time.monotonic() - begun), min(limit, 1e-6))


_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def memory(value: Any) -> int:
    """Bytes: a number, or a text like "512MB"."""
    if isinstance(value, str):
        text = value.strip().upper()
        number, unit = text[:-2].strip(), text[-2:]
        try:
            bytes_ = float(number) * _UNITS[unit]
        except (KeyError, ValueError):
            raise ValueError(f"memory = {value!r} is not allowed: memory must be a number of bytes, or a text like \"512MB\"") from None
        value = int(bytes_) if np.isfinite(bytes_) else -1
    return whole("memory", value, 64 * 10**6, 2**62)


def seed(random_state: Any) -> int:
    """A seed for the core. None draws the same numbers every time."""
    if random_state is None:
        return 0
    if isinstance(random_state, numbers.Integral):
        return whole("random_state", random_state, 0, 2**32 - 1)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def threads(n_jobs: Any) -> int | None:
    """Threads for the core; None means all cores.

    In a worker process of joblib, OMP_NUM_THREADS says how many cores are this worker's share.
    """
    if n_jobs is not None:
        return max(1, int(effective_n_jobs(whole("n_jobs", n_jobs, -(2**31)))))
    share = os.environ.get("OMP_NUM_THREADS", "")
    return int(share) if share.isdecimal() and int(share) > 0 else None
