"""How far a model may be from the global optimum of its own problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from . import _input
from ._estimator import KernelClassifier


@dataclass(frozen=True)
class Certificate:
    """A model's objective and a certified lower bound of the global optimum: what `certify` returns.

    Parameters
    ----------
    lower_bound : float
        No function of the model's space has a smaller objective on these rows.
    objective : float
        The model's objective on these rows.
    gap : float
        (objective - lower_bound) / objective: 0.05 means that the optimum is at most 5 per cent lower.
    proved : bool
        Whether the model is proved to be globally optimal, to the tolerance.

    Examples
    --------
    >>> from outlast import Certificate
    >>> Certificate(lower_bound=1.9, objective=2.0, gap=0.05, proved=False).gap
    0.05
    """

    lower_bound: float
    """No function of the model's space has a smaller objective on these rows."""
    objective: float
    """The model's objective on these rows."""
    gap: float
    """(objective - lower_bound) / objective: 0.05 means that the optimum is at most 5 per cent lower."""
    proved: bool
    """Whether the model is proved to be globally optimal, to the tolerance."""


def certify(model: KernelClassifier, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """How far a model may be from the global optimum of its own, non-convex problem.

    Parameters
    ----------
    model : TruncatedSVC or AblationSVC
        Fitted, with two classes, the hinge truncated at 0 (or ``method="reh"``), the l2 penalty and no utilities or costs.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows it was fitted to.
    y : array-like of shape (n_samples,)
        Their labels.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights it was fitted with.

    Returns
    -------
    Certificate
        With ``lower_bound``, ``objective``, ``gap`` and ``proved``. The bound holds whatever the solver did: it is the value of
        a dual, evaluated with a margin for rounding. It is close for small C or classes that are nearly separable; for
        large C it falls towards 0 and says little.

    Examples
    --------
    >>> import outlast
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [30.0]], [0, 0, 1, 1, 0]
    >>> model = outlast.TruncatedSVC(0.1, truncation=0, kernel="linear", fit_intercept=False).fit(X, y)
    >>> certificate = outlast.certify(model, X, y)
    >>> certificate.lower_bound <= certificate.objective
    True
    """
    if not isinstance(model, KernelClassifier):
        raise TypeError(f"model must be an estimator of outlast, not {type(model).__name__}")
    check_is_fitted(model)
    rows = model._rows(X)
    check_consistent_length(X, y, sample_weight)
    codes = _input.codes_among(y, model.classes_)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
    found = model._fitted.certify(rows, codes, sample_weight, _input.threads(model.n_jobs))
    return Certificate(*found)
