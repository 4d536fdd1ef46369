"""Columns in which a linear machine is close to one with a kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem

from .. import _input
from . import _engine, _parts

#: Rows that the width of the kernel and the rows of the approximation are drawn from, for each column of it.
_DRAWN = 5
#: Draws that one task puts together.
_FAN_IN = 8


def of(estimator: Any, collection: _parts.Collection, client: Any) -> Nystroem | None:
    """The map that an estimator asks for, fitted to some rows of the collection."""
    asked = estimator.kernel_approximation
    if asked is None:
        return None
    if asked != "nystroem":
        raise ValueError(f"kernel_approximation = {asked!r} is not allowed: kernel_approximation must be \"nystroem\" or None")
    import dask

    count = _input.whole("n_components", estimator.n_components, 1, 4000)
    gamma = _input.name_or_real("gamma", estimator.gamma)
    if isinstance(gamma, str) and gamma != "scale" or not isinstance(gamma, str) and not gamma > 0:
        raise ValueError(f"gamma = {gamma!r} is not allowed: gamma must be a number > 0 or \"scale\"")
    seed = _input.seed(estimator.random_state)
    # How many rows a part has is not known. Every row draws a number, and the smallest of all count: each row is as likely as any other.
    drawn = [dask.delayed(_parts.some_rows)(number, part, _DRAWN * count, seed) for number, part in enumerate(collection.parts)]
    while len(drawn) > 1:
        drawn = [dask.delayed(_parts.smallest)(drawn[at : at + _FAN_IN], _DRAWN * count) for at in range(0, len(drawn), _FAN_IN)]
    rows = _engine.computed(client, drawn)[0].rows.astype(np.float64)
    if len(rows) == 0:
        raise ValueError("X has no rows, expected at least one of every class")
    if not np.isfinite(rows).all():
        raise ValueError("X holds values that are not finite")
    if len(rows) < count:
        warnings.warn(f"n_components = {count} is lowered to {len(rows)}: there are no more rows", UserWarning, stacklevel=5)
        count = len(rows)
    if isinstance(gamma, str):
        spread = rows.var()
        gamma = 1.0 / (rows.shape[1] * spread) if spread > 0 else 1.0
    return Nystroem(kernel="rbf", gamma=gamma, n_components=count, random_state=seed).fit(rows)
