"""Robust linear machines on dask arrays and dataframes, which may lie on many machines.

The rows stay where they are. Each part of a collection is turned once, on its worker, into a compact object of the Rust core; a fit asks all parts
the same question again and again (a point in; sums of as many numbers as there are coefficients, or their square, out), and what is between
the questions is done here, by the solver that fits files larger than memory. Needs ``pip install "outlast[dask]"``; a
`distributed.Client` is used if there is one, else dask's own threads, whatever other scheduler is configured.
"""

from __future__ import annotations

from ._audit import Audit, audit
from ._estimators import CappedSVC, LqSVC, TruncatedSVC
from ._tune import Tuned, tune

__all__ = ["Audit", "CappedSVC", "LqSVC", "TruncatedSVC", "Tuned", "audit", "tune"]
