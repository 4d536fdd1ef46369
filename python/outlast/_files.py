"""From a model file back to an estimator."""

from __future__ import annotations

import os

from . import _core
from ._ablation import AblationSVC
from ._baselines import CentroidSVC, LeaveOneOutSVC
from ._capped import CappedSVC
from ._estimator import KernelClassifier
from ._lq import LqSVC
from ._truncated import TruncatedSVC

_ESTIMATORS: dict[str, type[KernelClassifier]] = {
    "truncated": TruncatedSVC,
    "lq": LqSVC,
    "reh": AblationSVC,
    "rod": AblationSVC,
    "centroid": CentroidSVC,
    "loo": LeaveOneOutSVC,
    "capped": CappedSVC,
}


def load(path: str | os.PathLike[str]) -> KernelClassifier:
    """Read a model file.

    Nothing in a model file is ever executed, so a file from a stranger is safe to load.

    Parameters
    ----------
    path : str or path-like
        A file written by an estimator's ``save`` or by the command line.

    Returns
    -------
    TruncatedSVC, CappedSVC, LqSVC, AblationSVC, CentroidSVC or LeaveOneOutSVC
        Ready to predict, with every parameter that says which problem was solved and how exactly, so that a clone of it
        fits the same way. `truncation`, `gamma` and `class_weight` are the numbers that were used.

    Raises
    ------
    OSError
        The file can't be read.
    ValueError
        It is damaged, no model file, or written by a newer version.
    """
    fitted = _core.Fitted.load(os.fspath(path))
    return _ESTIMATORS[fitted.method]._from_file(fitted)
