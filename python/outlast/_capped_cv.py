"""`CappedSVCCV`: the capped machine that tunes itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ._capped import CappedSVC
from ._tuning import DEFAULT_CS, Tuning


class CappedSVCCV(Tuning, CappedSVC):
    r"""`CappedSVC` with C, the power, the cap and the kernel's width chosen by the data.

    Every point of the grid is judged on rows that its fit has not seen; splits and widths run on all cores. The chosen point is fitted to
    all rows.

    Parameters
    ----------
    Cs : sequence of float, default=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
        The values of C.
    gammas : sequence of float or str, default=None
        Widths of the rbf, poly and sigmoid kernels: numbers, or the rules "scale", "auto", "q1", "median" and "q3" of `TruncatedSVC`, by the training rows
        of each split. None takes a quarter of, once and four times what "scale" says: with columns on one scale, 1 / n_features.
    ps : sequence of float, default=(1.0,)
        The powers of the residuals, 0 < p <= 2.
    caps : sequence of float, "auto", "cv" or None, default=("auto",)
        What a row costs at most; None is no cap.
    cap_fractions : sequence of float, default=(0.0, 0.1, 0.2)
        The shares of the rows that "auto" puts beyond the cap; 0 is none. Other caps do not look at them: give one value then.
    cv : int, splitter or iterable of (train, test) positions, default=5
        What is held out: so many stratified folds, or splits as scikit-learn makes them.
    holdout : float or None, default=None
        In place of `cv`: the share of the rows of each class that is held out, once.
    standardize : bool, default=True
        Whether columns are brought to mean 0 and variance 1 as part of the model, by the training rows of each split. Values far outside the
        quartiles (five times their distance) have no part in mean and variance. Sparse columns are
        only divided by their deviation; kernel values (``kernel="precomputed"`` or a callable) are left as they are.
    rule : {"best", "one_se"}, default="best"
        Which point is taken: the one with the least mean error, of equals that of the smallest C; or that of the smallest C whose mean error
        is within one standard error of the least.
    early_stopping : bool, default=True
        Whether points that are clearly behind are given up after two splits, and with more than five splits again half-way: those behind
        the best by more than three standard errors of the difference on the rows held out of both.
    halving : bool, default=False
        Whether points are first compared on a ninth of the training rows; the best third goes on to a third of the rows, and the best
        third of these to all.
    nested : int or None, default=None
        Folds of a cross-validation around the whole search, for an honest `nested_score_`; takes as many times as long.
    exact : bool, default=False
        Whether every fit of the search is made as the estimator makes it, with its tolerance and from all its starts. Otherwise the relative
        gap is 1e-3 at least, and there is one start.
    loss : {"lp", "logistic", "geman_mcclure"}, default="lp"
        The loss that is capped, as in `CappedSVC`.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        The kernel, as in `CappedSVC`.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    solver : {"exact", "alternating"}, default="exact"
        The solver, as in `CappedSVC`.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class; "balanced" by the training rows of each split.
    fit_intercept : bool, default=True
        Whether intercepts, which are not penalised, are fitted.
    tol : float, default=1e-4
        Relative duality gap at which the convex problem of a round counts as solved.
    max_iter : int, default=1000
        Most rounds from one start.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes a solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best choice so far; the search takes seven tenths of them at most.

    Attributes
    ----------
    best_params_ : dict
        The choice, by the names of `CappedSVC`.
    best_index_ : int
        Its position in the lists of `cv_results_`.
    best_score_ : float
        Its mean score: the accuracy on held-out rows. Chosen as the best of many, it is optimistic;
        `nested_score_` is not.
    best_estimator_ : CappedSVC
        The chosen model with its parameters, fitted.
    C_ : float
        The chosen C.
    cv_results_ : dict
        The whole grid, as `sklearn.model_selection.GridSearchCV` has it: ``params``, ``param_C``, ..., ``split0_test_score``, ...,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``; and ``se_test_score``, the standard errors of the means, ``state``
        ("done"; "stopped" where the point was given up; "partly" or "not_reached" where the search ended before), and ``train_share``, the share of the
        training rows that was fitted.
    grid_names_ : tuple of str
        The parameters of the grid, in the order of the axes of `errors_`.
    errors_ : ndarray
        Mean error of each point: an axis for each of `grid_names_`.
    standard_errors_ : ndarray
        Their standard errors.
    fold_errors_ : ndarray
        The errors of each split, which is the first axis; NaN where the point was given up.
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
    classes_, coef_, intercept_, cap_, objective_, status_, margins_, outliers_, outlier_scores_, n_features_in_, ...
        Of the chosen model, see `CappedSVC`; `coef_` and `intercept_` are in the units of X.

    See Also
    --------
    CappedSVC : The estimator with the parameters given.
    outlast.plot.tuning : A picture of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from outlast import CappedSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> truth = X[:, 0] > X[:, 1]
    >>> y = truth ^ (rng.uniform(size=200) < 0.1)
    >>> model = CappedSVCCV(Cs=[0.01, 0.1, 1.0], ps=[1.0, 2.0], cv=3).fit(X, y)
    >>> model.grid_names_, model.errors_.shape
    (('p', 'cap', 'cap_fraction', 'C'), (2, 1, 3, 3))
    >>> bool((model.predict(X) == truth).mean() > 0.9)
    True
    """

    _GRID = {"ps": "p", "caps": "cap", "cap_fractions": "cap_fraction", "gammas": "gamma", "Cs": "C"}
    _ESTIMATOR = CappedSVC

    # the parameters that are searched
    p = 1.0
    cap = "auto"
    cap_fraction = 0.1

    def __init__(
        self,
        Cs: Sequence[float] = DEFAULT_CS,
        *,
        gammas: Sequence[float | str] | None = None,
        ps: Sequence[float] = (1.0,),
        caps: Sequence[float | str | None] = ("auto",),
        cap_fractions: Sequence[float] = (0.0, 0.1, 0.2),
        cv: Any = 5,
        holdout: float | None = None,
        standardize: bool = True,
        rule: str = "best",
        early_stopping: bool = True,
        halving: bool = False,
        nested: int | None = None,
        exact: bool = False,
        loss: str = "lp",
        kernel: str | Callable[[Any, Any], Any] = "linear",
        degree: int = 3,
        coef0: float = 0.0,
        solver: str = "exact",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.ps = ps
        self.caps = caps
        self.cap_fractions = cap_fractions
        self.cv = cv
        self.holdout = holdout
        self.standardize = standardize
        self.rule = rule
        self.early_stopping = early_stopping
        self.halving = halving
        self.nested = nested
        self.exact = exact
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose
        self.time_limit = time_limit
