"""Kernel widths worth trying."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_X_y
from sklearn.utils.validation import _check_sample_weight

from . import _core, _input


def gamma_quartiles(X: Any, y: Any, sample_weight: Any = None) -> NDArray[np.float64]:
    r"""The quartiles of the distances between classes, as values of `gamma`.

    What ``gamma="q1"``, ``"median"`` and ``"q3"`` stand for: :math:`1 / (2 \sigma^2)` with :math:`\sigma` a quartile of the
    distances between rows of different classes, whichever the two classes are. Of more than some 1,450 rows an even
    sample is taken.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        The labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; a row of weight 2 counts as two rows.

    Returns
    -------
    ndarray of shape (3,)
        gamma by the lower quartile, the median and the upper quartile; :math:`\sigma` is ``1 / np.sqrt(2 * gamma)``.

    Examples
    --------
    >>> import numpy as np
    >>> from outlast import gamma_quartiles
    >>> gammas = gamma_quartiles([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "c", "c"])
    >>> np.round(1 / np.sqrt(2 * gammas), 6)  # of 1, 1, 2, 2, 3
    array([1., 2., 2.])
    """
    _input.intact(X)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=_input.precision(X))
    classes, codes = _input.encode(y)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        _input.check_positive_weights(codes, sample_weight)
    names = _input.class_names(classes)
    return np.array(_core.gamma_quartiles(_input.matrix(X), codes, names, sample_weight, _input.threads(None)))
