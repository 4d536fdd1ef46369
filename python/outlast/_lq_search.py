"""`LqSVCCV`: the L_q support vector machine that chooses C and q by the data."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._judging import Judging, listed

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_QS = (0.3, 0.5, 0.75, 1.0, 1.5, 2.0)


class LqSVCCV(Judging):
    r"""`LqSVC` with C and q chosen by cross-validation or on a tuning set.

    Every fold, and all rows together, are solved along the whole grid of (C, q), each point from its neighbours, folds in
    parallel. The pair with the least mean error is taken, of several the one that selects the fewest columns, and fitted to all rows.

    Requires scikit-learn 1.6 or later.

    Parameters
    ----------
    Cs : int or sequence of float, default=20
        The values of C; a number lets the data choose so many, from where the first column comes in to a thousand times that.
    qs : sequence of float, default=(0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
        The values of q, each in (0, 2].
    cv : int, splitter or iterable of (train, test) positions, default=5
        What is held out: so many stratified folds, or splits as scikit-learn makes them.
    cost : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision costs; see `LqSVC`. The error is then the mean cost.
    feature_map : {"identity", "squares"}, default="identity"
        What f is linear in: the columns, or the columns and their squares.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-6
        Relative duality gap at which a convex step stops; the search is looser than the final fit.
    max_iter : int, default=1000
        Most majorise-minimise steps.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    random_state : int, RandomState or None, default=None
        Seed of the folds. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with what it has.

    Attributes
    ----------
    C_, q_ : float
        The choice.
    Cs_, qs_ : ndarray
        The grid.
    errors_ : ndarray of shape (n_qs, n_Cs)
        Mean error of each point: the share of held-out weight decided wrongly, or the mean cost.
    fold_errors_ : ndarray of shape (n_splits, n_qs, n_Cs)
        The same for each split; one for a tuning set.
    sizes_ : ndarray of shape (n_qs, n_Cs)
        Columns with a coefficient that is not 0 in the fit to all rows.
    coefs_path_ : ndarray of shape (n_qs, n_Cs, n_functions, n_coefficients)
        The coefficients of the fits to all rows.
    intercepts_path_ : ndarray of shape (n_qs, n_Cs, n_functions)
        Their intercepts.
    selection_frequency_ : ndarray of shape (n_features,)
        Share of the splits in which each column is selected at the chosen point; all columns have NaN with a tuning set.
    classes_, coef_, intercept_, n_features_selected_, selected_features_, objective_, objective_trace_, n_iter_, status_, gap_,
    solver_, margins_, outlier_scores_, n_features_in_, feature_names_in_
        Of the model fitted with `C_` and `q_`; see `LqSVC`.

    See Also
    --------
    LqSVC : The estimator with C and q given.
    outlast.plot.tuning, outlast.plot.coefficient_path : Pictures of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from outlast import LqSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> y = X[:, 2] - 2 * X[:, 7] + rng.standard_normal(200) > 0
    >>> model = LqSVCCV(Cs=10, qs=[0.5, 1.0]).fit(X, y)
    >>> {2, 7} <= set(model.selected_features_), model.selection_frequency_[[2, 7]]
    (True, array([1., 1.]))
    """

    # the parameters that are searched, and those of kernels
    C = 1.0
    kernel = "linear"
    gamma = "scale"
    degree = 3
    coef0 = 0.0
    cache_size = 1000.0

    def __init__(
        self,
        Cs: int | Sequence[float] = 20,
        qs: Sequence[float] = DEFAULT_QS,
        *,
        cv: Any = 5,
        cost: Any = None,
        feature_map: str = "identity",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.qs = qs
        self.cv = cv
        self.cost = cost
        self.feature_map = feature_map
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, tuning: tuple[Any, Any] | None = None) -> Self:
        """Choose C and q, and fit to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The labels: two classes or more, numbers or text.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C by row, >= 0; held-out rows count with them.
        tuning : tuple of X and y, default=None
            Rows to choose by in place of cross-validation. The model is fitted to `X` alone.

        Returns
        -------
        self : LqSVCCV
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, partial(self._search, tuning))

    def _search(
        self,
        tuning: tuple[Any, Any] | None,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        codes: NDArray[np.uint32],
        sample_weight: Any,
        progress: Callable[..., object] | None,
    ) -> _core.Fitted:
        judge = self._splits(X, y) if tuning is None else self._tuning_set(classes, tuning)
        counted = isinstance(self.Cs, numbers.Integral)
        fitted, found = _core.search_lq(
            _input.matrix(X),
            codes,
            _input.class_names(classes),
            self._parameters(classes, y),
            _input.whole("Cs", self.Cs, 1, 10_000) if counted else _numbers("Cs", self.Cs),
            _numbers("qs", self.qs),
            judge,
            **self._request(sample_weight, progress),
        )
        self.C_, self.q_, self.Cs_, self.qs_ = found["c"], found["q"], found["cs"], found["qs"]
        grid = (len(self.qs_), len(self.Cs_))
        self.errors_ = found["mean_errors"].reshape(grid)
        self.fold_errors_ = found["fold_errors"].reshape(-1, *grid)
        self.sizes_ = found["sizes"].astype(np.intp).reshape(grid)
        self.coefs_path_ = found["weights"].reshape(*grid, fitted.functions, -1)
        self.intercepts_path_ = found["intercepts"].reshape(*grid, fitted.functions)
        known = len(found["stability"]) > 0
        self.selection_frequency_ = found["stability"] if known else np.full(X.shape[1], np.nan)
        return fitted

    def _method_name(self) -> str:
        return "lq"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {
            "q": 1.0,
            "cost": _input.payoff("cost", self.cost, classes),
            "solver": "auto",
            "feature_map": _input.text("feature_map", self.feature_map),
        }

    def _error_name(self) -> str:
        return "error" if self.cost is None else "mean cost"


def _numbers(name: str, values: Any) -> list[float]:
    allowed = "a whole number or a list of numbers" if name == "Cs" else "a list of numbers"
    return [_input.real(name, value) for value in listed(name, values, allowed)]
