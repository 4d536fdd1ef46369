"""From a model file back to an estimator."""

from __future__ import annotations

import os

from . import _core, _input
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


def load(path: str | os.PathLike[str], *, n_features: int | None = None) -> KernelClassifier:
    """Read a model file, or a model file of LIBSVM.

    Nothing in a model file is ever executed, so a file from a stranger is safe to load.

    Parameters
    ----------
    path : str or path-like
        A file written by an estimator's ``save`` or by the command line, or a text file of LIBSVM: a classifier (c_svc or
        nu_svc) with the linear, polynomial, rbf or sigmoid kernel, or of two classes with a precomputed one.
    n_features : int, default=None
        Columns of X, where the file can't tell: LIBSVM's name those columns only that are not 0 in some support vector,
        and of a precomputed kernel those training rows only that are one.

    Returns
    -------
    TruncatedSVC, CappedSVC, LqSVC, AblationSVC, CentroidSVC or LeaveOneOutSVC
        Ready to predict, with every parameter that says which problem was solved and how exactly, so that a clone of it
        fits the same way. `truncation`, `gamma` and `class_weight` are the numbers that were used. A model of LIBSVM becomes a
        `TruncatedSVC` with ``truncation=None`` that decides as LIBSVM does; its C is unknown, and the default. Of more than two classes
        all pairs vote there: `decision_function` has a column for each pair (0, 1), (0, 2), ..., (1, 2), ... of `classes_`, positive for the first.

    Raises
    ------
    OSError
        The file can't be read.
    ValueError
        It is damaged, no model file, written by a newer version, or a model of LIBSVM of another kind. The message names the
        file, and of LIBSVM's the line.

    Examples
    --------
    >>> import os, tempfile
    >>> from outlast import TruncatedSVC, load
    >>> model = TruncatedSVC(C=3.0, gamma=0.5).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.outlast"))
    ...     again = load(os.path.join(folder, "model.outlast"))
    >>> again.predict([[3.0]]).tolist(), again.C, again.gamma
    (['b'], 3.0, 0.5)
    """
    features = None if n_features is None else _input.whole("n_features", n_features, 1, 2**32 - 1)
    fitted = _core.Fitted.load(os.fspath(path), features)
    return _ESTIMATORS[fitted.method]._from_file(fitted)
