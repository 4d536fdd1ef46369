"""`CappedSVC`: a power of the residuals on the wrong side of the margin, capped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _input
from ._file_fits import FileFits


_CAPS = 'a number > 0, "auto", "cv", or None for no cap'


class CappedSVC(FileFits):
    r"""Support vector classifier with a capped l_p loss.

    Minimises

    .. math::
        \tfrac12 \sum_j \|f_j\|^2 + C \sum_i w_i \min(r_i^p, \mathrm{cap}), \qquad
        r_i = \Bigl(\sum_j [1 - y_{ij} f_j(x_i)]_+^2\Bigr)^{1/2}

    (Nie, Wang and Huang, AAAI 2017, with C = 1/(2 gamma)). Two classes have one function; of more, each has its own, with
    :math:`y_{ij} = 1` for the row's class and -1 else, and the largest wins. Rows beyond the cap have no pull on
    the functions.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0; 1 / (2 gamma) of the paper.
    p : float, default=1.0
        Power of the residuals, 0 < p <= 2. Only of ``loss="lp"``.
    cap : float, "auto", "cv" or None, default="auto"
        What a row costs at most: a number > 0, None or infinite for no cap. "auto" is the paper's heuristic: during the first five
        rounds it is put where `cap_fraction` of the rows lie beyond it, and then stays; never so low that a row of margin 0.9
        would lie beyond it. "cv" does so with the share, of 0, 0.05, 0.1, 0.2 and 0.3, that makes the fewest mistakes in
        five-fold cross-validation, which takes at most half of `time_limit`.
    cap_fraction : float, default=0.1
        The share of the rows' weight that "auto" puts beyond the cap, 0 <= cap_fraction < 1.
    loss : {"lp", "logistic", "geman_mcclure"}, default="lp"
        "lp" is the loss above. "logistic" is the logistic loss g, capped: min(g, cap). "geman_mcclure" is cap g / (cap + g) of
        the squared hinge g, which lets go of rows smoothly: a row at the cap pulls a quarter as much. With more than two classes g is the sum over the functions.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        The kernel, as in `sklearn.svm.SVC`; positive semidefinite. A callable gets two matrices and returns the matrix of
        kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels, as in `TruncatedSVC`.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    solver : {"exact", "alternating"}, default="exact"
        "exact" solves the convex problem of a round, from several starts, and keeps the best; with many rows the starts are
        tried on some of them, or only the first. "alternating" is the paper's algorithm 2, one linear system a round ("lp" only).
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether intercepts, which are not penalised, are fitted.
    tol : float, default=1e-4
        Relative duality gap at which the convex problem of a round counts as solved.
    max_iter : int, default=1000
        Most rounds from one start (with p < 2, of one floor; see the notes).
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes the kernel solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random, and of the folds of "cv". None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear kernel's functions; one function for two classes, else one per class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    support_, support_vectors_, n_support_, dual_coef_
        The rows that carry the decision functions and their coefficients, as in `TruncatedSVC`.
    objective_ : float
        The value of the objective, with the cap that was used.
    objective_trace_ : ndarray
        The objective of the start that was kept and after each of its rounds, for the cap that was used; it never rises.
        With p < 2 the values before the last are upper bounds, see the notes.
    cap_ : float
        The cap that was used; infinite for none.
    cap_fraction_ : float
        The share that "auto" or "cv" used.
    gap_ : float
        Relative duality gap of the last round's convex problem, certified.
    n_iter_ : int
        Rounds, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit", "time_limit", "all_capped"}
        How the fit ended. All but the first are also told by a `ConvergenceWarning`.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        Rows beyond the cap.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect: the loss of each row without the cap.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    See Also
    --------
    TruncatedSVC : The hinge cut off at a given margin; p = 1 with two classes is that with truncation 1 - cap.

    Notes
    -----
    "auto" gives up its share of the rows whether they are bad or not, if their margins are below 0.9. With p = 1 and many more columns than rows, where every
    row can be fitted, that takes away support for nothing: use a number, "cv", or p = 2 there.

    For p < 2 the loss has an infinite slope (in the squared residual) at 0. It is bounded from above by its tangent below a
    floor, which is lowered in turns; `objective_trace_` holds these bounds and ends with the objective itself.

    Examples
    --------
    >>> import numpy as np
    >>> from outlast import CappedSVC
    >>> X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0], [40.0]])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0])
    >>> model = CappedSVC(p=2.0, cap=4.0).fit(X, y)
    >>> np.flatnonzero(model.outliers_)
    array([6])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        p: float = 1.0,
        cap: float | str | None = "auto",
        cap_fraction: float = 0.1,
        loss: str = "lp",
        kernel: str | Callable[[Any, Any], Any] = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        solver: str = "exact",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.p = p
        self.cap = cap
        self.cap_fraction = cap_fraction
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose

    def _method_name(self) -> str:
        return "capped"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {
            "p": _input.real("p", self.p),
            "cap": math.inf if self.cap is None else _input.name_or_real("cap", self.cap, _CAPS),
            "cap_fraction": _input.real("cap_fraction", self.cap_fraction),
            "loss": _input.text("loss", self.loss),
            "solver": _input.text("solver", self.solver),
        }

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        power, cap = fitted.detail("power"), fitted.detail("cap")
        stored: dict[str, Any] = {
            "p": 1.0 if power is None else power,
            "cap": math.inf if cap is None else cap,
            "loss": fitted.loss,
            "solver": fitted.solver_asked,
        }
        share, unused = fitted.detail("cap_fraction"), fitted.detail("cap_fraction_unused")
        if share is not None:
            stored["cap"] = "auto" if unused is None else "cv"
        given = share if unused is None else unused
        return stored if given is None else {**stored, "cap_fraction": given}

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        cap, share = fitted.detail("cap"), fitted.detail("cap_fraction")
        self.cap_ = math.inf if cap is None else cap
        if share is not None:
            self.cap_fraction_ = share
