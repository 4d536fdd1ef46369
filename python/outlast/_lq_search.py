"""`LqSVCCV`: the L_q support vector machine that chooses C and q by the data."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core, _input
from ._judging import listed
from ._lq import LqSVC
from ._tuning import Tuning

DEFAULT_QS = (0.3, 0.5, 0.75, 1.0, 1.5, 2.0)


class LqSVCCV(Tuning, LqSVC):
    r"""`LqSVC` with C and q chosen by cross-validation or on a tuning set.

    All rows together, and the training rows of every split, are solved along the whole grid of (C, q), each point from its neighbours, splits
    in parallel. The pair with the least mean error is taken, of several the one that selects the fewest columns, and fitted to all rows.

    Requires scikit-learn 1.6 or later.

    Parameters
    ----------
    Cs : int or sequence of float, default=20
        The values of C; a number lets the data choose so many, from where the first column comes in to a thousand times that.
    qs : sequence of float, default=(0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
        The values of q, each in (0, 2].
    cv : int, splitter or iterable of (train, test) positions, default=5
        What is held out: so many stratified folds, or splits as scikit-learn makes them.
    holdout : float or None, default=None
        In place of `cv`: the share of the rows of each class that is held out, once.
    standardize : bool, default=True
        Whether columns are brought to mean 0 and variance 1 as part of the model, by the training rows of each split. Values far outside the
        quartiles (five times their distance) have no part in mean and variance. Sparse columns are
        only divided by their deviation.
    rule : {"best", "one_se"}, default="best"
        Which point is taken: the one with the least mean error, or one whose mean error is within one standard error of the least. Of several
        the one that selects the fewest columns, then that of the smallest C.
    nested : int or None, default=None
        Folds of a cross-validation around the whole search, for an honest `nested_score_`; takes as many times as long.
    cost : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What decisions cost, as in `LqSVC`; points are then compared by the mean cost of their decisions.
    feature_map : {"identity", "squares"}, default="identity"
        What f is linear in: the columns, or the columns and their squares.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class; "balanced" by the training rows of each split.
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
        Seconds after which `fit` ends with the best choice so far; the search takes seven tenths of them at most.

    Attributes
    ----------
    C_, q_ : float
        The choice.
    Cs_, qs_ : ndarray
        The grid.
    best_params_ : dict
        The choice, by the names of `LqSVC`.
    best_index_ : int
        Its position in the lists of `cv_results_`.
    best_score_ : float
        Its mean score: the accuracy on held-out rows, or minus the mean cost. Chosen as the best of many, it is optimistic; `nested_score_` is not.
    best_estimator_ : LqSVC
        The chosen model with its parameters, fitted.
    cv_results_ : dict
        The whole grid, as `sklearn.model_selection.GridSearchCV` has it: ``params``, ``param_C``, ..., ``split0_test_score``, ...,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``; and ``se_test_score``, the standard errors of the means, and ``state``
        ("done"; "partly" or "not_reached" where the search ended before); and ``converged``, whether the fits to all rows and to every split
        met the tolerance of the search.
    grid_names_ : tuple of str
        ``("q", "C")``, the axes of `errors_`.
    errors_ : ndarray of shape (n_qs, n_Cs)
        Mean error of each point: the share of held-out weight decided wrongly, or the mean cost.
    standard_errors_ : ndarray of shape (n_qs, n_Cs)
        Their standard errors.
    fold_errors_ : ndarray of shape (n_splits, n_qs, n_Cs)
        The same as `errors_` for each split; one for a tuning set.
    n_splits_ : int
        How many splits there were.
    nested_score_, nested_standard_error_ : float
        With `nested`: the mean score of the whole procedure on rows that had no part in it, and its standard error.
    nested_scores_ : ndarray of shape (nested,)
        The scores by outer fold.
    nested_params_ : list of dict
        What was chosen in each outer fold.
    search_status_ : {"converged", "interrupted", "time_limit"}
        How the search ended.
    sizes_ : ndarray of shape (n_qs, n_Cs)
        Columns with a coefficient that is not 0 in the fit to all rows.
    coefs_path_ : ndarray of shape (n_qs, n_Cs, n_functions, n_coefficients)
        The coefficients of the fits to all rows, in the units of X; with ``feature_map="squares"`` they belong to the scaled columns.
    intercepts_path_ : ndarray of shape (n_qs, n_Cs, n_functions)
        Their intercepts.
    selection_frequency_ : ndarray of shape (n_features,)
        Share of the splits in which each column is selected at the chosen point; all columns have NaN with a tuning set.
    classes_, coef_, intercept_, n_features_selected_, selected_features_, objective_, objective_trace_, n_iter_, status_, gap_,
    solver_, margins_, outlier_scores_, n_features_in_, feature_names_in_
        Of the model fitted with `C_` and `q_`; see `LqSVC`. `coef_` and `intercept_` are in the units of X whether columns were put on one
        scale or not, unless ``feature_map="squares"``; `objective_`, the penalty in it, belongs to the scaled columns.

    See Also
    --------
    LqSVC : The estimator with C and q given.
    outlast.plot.tuning, outlast.plot.coefficient_path : Pictures of the search.

    Notes
    -----
    A saved model keeps the scaling of its columns and predicts from columns as they come. `outlast.load` makes an `LqSVC` of it; a clone
    of that does not scale columns when it is fitted anew.

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

    _GRID = {"qs": "q", "Cs": "C"}
    _ESTIMATOR = LqSVC

    # the parameter that is searched, the solver of the search, and what gives points up: all of a split are solved together
    q = 1.0
    solver = "auto"
    early_stopping = False
    halving = False
    exact = False

    def __init__(
        self,
        Cs: int | Sequence[float] = 20,
        qs: Sequence[float] = DEFAULT_QS,
        *,
        cv: Any = 5,
        holdout: float | None = None,
        standardize: bool = True,
        rule: str = "best",
        nested: int | None = None,
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
        self.holdout = holdout
        self.standardize = standardize
        self.rule = rule
        self.nested = nested
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

    def _searched(
        self, data: tuple[Any, Any, Any], parameters: dict[str, Any], judge: Any, request: dict[str, Any]
    ) -> tuple[_core.Fitted, dict[str, Any]]:
        qs = _numbers("qs", self.qs)
        fitted, found = _core.search_lq(data, parameters, self._values(), qs, judge, self._search_options(), request)
        functions, grid = fitted.functions, tuple(found["sizes"])
        self.qs_ = np.array(qs)
        self.Cs_ = np.array([point[1] for point in found["points"][: grid[1]]])
        self.sizes_ = found["selected"].astype(np.intp).reshape(grid)
        self.coefs_path_ = found["weights"].reshape(*grid, functions, -1)
        self.intercepts_path_ = found["intercepts"].reshape(*grid, functions)
        known = len(found["stability"]) > 0
        self.selection_frequency_ = found["stability"] if known else np.full(self.n_features_in_, np.nan)
        return fitted, found

    def _values(self) -> int | list[float]:
        """The values of C, or how many."""
        counted = isinstance(self.Cs, numbers.Integral)
        return _input.whole("Cs", self.Cs, 1, 10_000) if counted else _numbers("Cs", self.Cs)

    def _steps(self, X: Any) -> int | None:
        values, splits = self._values(), 0 if self._by_other_rows else self._split_count()
        if splits is None:
            return None
        count = values if isinstance(values, int) else len(values)
        return count * len(_numbers("qs", self.qs)) * (1 + splits) * (1 + (self.nested or 0))

    def _take_search(self, found: dict[str, Any]) -> None:
        super()._take_search(found)
        self.cv_results_["converged"] = np.array(found["converged"])
        self.q_ = self.best_params_["q"]


def _numbers(name: str, values: Any) -> list[float]:
    allowed = "a whole number or a list of numbers" if name == "Cs" else "a list of numbers"
    return [_input.real(name, value) for value in listed(name, values, allowed)]
