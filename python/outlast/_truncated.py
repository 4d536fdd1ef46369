"""`TruncatedSVC`: the support vector machine whose loss is cut off, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from . import _core, _input
from ._file_fits import FileFits


def _estimates_probabilities(model: TruncatedSVC) -> bool:
    """Whether there is a predict_proba: by what was fitted, else by what is asked for."""
    fitted: _core.Fitted | None = getattr(model, "_fitted", None)
    if model.probability is None if fitted is None else fitted.probability == "none":
        raise AttributeError("predict_proba is only available with probability=\"weighted\"")
    return True


Method = TypeVar("Method", bound=Callable[..., Any])


def _where_estimated(method: Method) -> Method:
    """A method of models with probabilities; of the same type, which scikit-learn's decorator does not tell."""
    return cast(Method, available_if(_estimates_probabilities)(method))


class TruncatedSVC(FileFits):
    r"""Support vector classifier whose loss stops growing, so that outliers lose their grip.

    Minimises

    .. math:: \mathrm{penalty}(f) + C \sum_i w_i \, \min(\ell(m_i), \ell(s))

    over functions of the kernel's space plus an intercept. With two classes :math:`m_i = y_i f(x_i)`, the functional
    margin of a row; with k classes there is a function for each, summing to 0, the largest wins, and
    :math:`m_i = f_{y_i}(x_i) - \max_{j \ne y_i} f_j(x_i)`. A row whose margin falls below the truncation :math:`s` costs
    the constant :math:`\ell(s)` wherever it lies: it is given up as an outlier (`outliers_`) and no longer pulls at the
    boundary. The problem is not convex; it is solved as a sequence of convex problems along which the objective never
    rises (Wu and Liu, JASA 2007). With a utility matrix U each row has a term for every class,
    :math:`U_{y_i j} \min(\ell(m_{ij}), \ell(s))` with the margin :math:`m_{ij}` of class j (Liu, Wu and He).

    Requires scikit-learn 1.6 or later.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty, > 0. The same C as in `sklearn.svm.SVC`.
    truncation : float <= 0, "auto" or None, default="auto"
        Where the loss is cut off, the paper's s. "auto" is the lowest Fisher-consistent point (-1/(k-1) for the hinge
        and k classes), 0 is psi-learning, None leaves the loss whole: the ordinary support vector machine.
    loss : {"hinge", "logistic", "exponential"}, default="hinge"
        The loss before truncation.
    penalty : {"l2", "l1", "adaptive_l1", "lq"}, default="l2"
        Half the squared norm; the sum of the absolute coefficients, which selects variables; that sum with each
        coefficient divided by its size in the l2 fit, which selects fewer and shrinks them less; or the sum of their powers
        `q`, likewise. All but the first need the linear kernel.
    q : float, default=0.5
        The power of the penalty "lq", in (0, 1].
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, as in `sklearn.svm.SVC`. A callable gets two matrices and returns the matrix of kernel values.
    gamma : float, "scale", "auto", "q1", "median" or "q3", default="scale"
        Width of the rbf, poly and sigmoid kernels. "scale" is 1 / (n_features * X.var()), with rows counted by their
        sample weight; "auto" is 1 / n_features; the others are 1 / (2 sigma^2) with sigma a quartile of the distances
        between rows of different classes.
    degree : int, default=3
        Power of the poly kernel.
    coef0 : float, default=0.0
        Constant of the poly and sigmoid kernels.
    utility : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision is worth, >= 0: row = true class, column = decision, in the order of `classes_`; a DataFrame goes
        by the names of its rows and columns. None: right decisions are worth 1, others nothing.
    cost : array-like or DataFrame of shape (n_classes, n_classes), default=None
        What a decision costs, >= 0, in place of `utility`.
    cost_form : {"utility", "direct"}, default="utility"
        How costs enter: as the utilities max(cost) - cost, or as they are, in a loss that is not convex even without
        truncation (hinge loss and l2 penalty only).
    utility_baseline : {"keep", "row_minimum"}, default="keep"
        What is subtracted from each utility: nothing, or the smallest of its row. The best decisions stay the same, the
        loss that stands in for them does not.
    class_weight : dict, "balanced" or None, default=None
        Factors on C by class.
    fit_intercept : bool, default=True
        Whether an intercept, which is not penalised, is fitted.
    tol : float, default=1e-4
        Relative duality gap at which a convex step stops.
    max_iter : int, default=100
        Most steps of the d.c. algorithm.
    warm_start : bool, default=False
        Start from the previous fit if it was of as many rows, columns and the same classes.
    n_jobs : int or None, default=None
        Threads of `fit` and of prediction. None takes all cores, or this process's share of them inside joblib's
        workers.
    cache_size : float, default=1000
        Megabytes the kernel solver may keep.
    random_state : int, RandomState or None, default=None
        Seed of whatever a solver draws at random. None draws the same every time.
    verbose : int, default=0
        1 shows a bar in terminals and notebooks, and lines elsewhere; 2 prints lines everywhere.
    global_search : bool, default=False
        Whether to look for the global optimum: two classes, the hinge, ``truncation=0`` and the l2 penalty. The d.c.
        algorithm is then also started from a convex relaxation, which gives `lower_bound_`, and on few rows a branch and
        bound goes on until the optimum is proved, the time is up or Ctrl-C is pressed; the best model so far is kept.
    time_limit : float or None, default=None
        Seconds after which `fit` ends with the best model so far.
    solver : {"auto", "kernel-smo", "linear-band", "linear-dcd", "newton", "interior-point", "proximal-newton"}, default="auto"
        The solver, or "auto" to choose it by the shape of the data; see `solver_`.
    probability : {"weighted"} or None, default=None
        "weighted" gives the model a `predict_proba`, from a family of weighted fits: 18 more with two classes, 19 on the rows of each pair
        of more. See the notes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. With two, positive decision values mean the second.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of a linear kernel's functions; one function for two classes, else one per class.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The intercepts.
    n_features_selected_ : int
        Columns with a coefficient that is not 0; linear kernel only.
    selected_features_ : ndarray of shape (n_selected,)
        Their names, where X had any, else their positions.
    support_ : ndarray of shape (n_SV,)
        Positions of the support vectors among the training rows, ascending.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel. Where the kernel is not linear they are copied out of the model when asked for.
    n_support_ : ndarray of shape (n_classes,)
        Support vectors of each class.
    dual_coef_ : ndarray of shape (1, n_SV) or (n_classes, n_SV)
        Their coefficients. With the l1 penalties they only certify: what predicts is `coef_`.
    objective_ : float
        The value of the full, non-convex objective.
    objective_trace_ : ndarray
        The objective at the start and after each step. It never rises.
    n_iter_ : int
        Steps of the d.c. algorithm, at least 1.
    status_ : {"converged", "inaccurate", "iteration_limit", "time_limit", "interrupted"}
        How the fit ended: at the tolerance; as near to it as rounding allowed; at `max_iter` or a solver's own limit; at
        `time_limit`; or, in a global search, by Ctrl-C. All but the first are also told by a `ConvergenceWarning`.
    gap_ : float
        Relative duality gap of the last convex problem.
    solver_ : str
        The solver that was taken.
    lower_bound_ : float
        After a global search: a certified lower bound of the global optimum, in the units of `objective_`.
    proved_ : bool
        After a global search: whether the model is proved to be globally optimal, to the tolerance.
    margins_ : ndarray of shape (n_samples,)
        The functional margin of each training row.
    outliers_ : ndarray of bool of shape (n_samples,)
        Rows whose margin is below the truncation.
    outlier_scores_ : ndarray of shape (n_samples,)
        Larger = more suspect.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had any.

    See Also
    --------
    sklearn.svm.SVC : What ``truncation=None`` amounts to.

    Notes
    -----
    Model files (`save`) keep what predicts and how it was made. What the fit says about each training row (`margins_`,
    `outliers_`, `outlier_scores_`, `n_support_`) is kept by pickling only.

    Probabilities (``probability="weighted"``) assume no curve. Where the rows of the second class count :math:`2 (1 - \pi)` and those of the
    first :math:`2 \pi`, the best decision is the sign of :math:`P(\mathrm{second} \mid x) - \pi`; fits at :math:`\pi = 0.05, \dots, 0.95`, each
    started at the one before, tell at which level the decision for x changes (Wang, Shen and Liu, Biometrika 2008). Each pair of more
    classes has its family, and the pairs are coupled (Wu, Lin and Weng, JMLR 2004). Utilities and costs do not enter: they tell
    what decisions are worth, not how probable classes are. `class_weight` and `sample_weight` do: the probabilities are those of
    the weighted rows. For the usual curve instead of these fits, wrap a model without them in
    `sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    Ten points on a line, two of which carry the wrong label:

    >>> import numpy as np
    >>> from outlast import TruncatedSVC
    >>> X = np.array([[-5.0], [-4.0], [-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array([1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    >>> model = TruncatedSVC(kernel="linear").fit(X, y)
    >>> np.flatnonzero(model.outliers_)
    array([0, 9])
    >>> model.predict([[-6.0], [6.0]])
    array([0, 1])

    Three classes, and a mistake that is worth half as much as being right:

    >>> X = np.array([[0.0, 0.0], [0.2, 0.1], [1.0, 0.0], [1.1, 0.2], [0.0, 1.0], [0.1, 1.2]])
    >>> y = np.array(["a", "a", "b", "b", "c", "c"])
    >>> model = TruncatedSVC(10.0, kernel="linear", utility=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]).fit(X, y)
    >>> model.coef_.shape, model.decision_function(X).shape, float(model.utility_score(X, y))
    ((3, 2), (6, 3), 1.0)

    Probabilities: at x the second class has the probability 1 / (1 + exp(-2 x)).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (4000, 1))
    >>> y = rng.uniform(size=4000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> model = TruncatedSVC(kernel="linear", probability="weighted").fit(X, y)
    >>> p = model.predict_proba([[-1.0], [0.0], [1.0]])
    >>> np.abs(p[:, 1] - [0.119, 0.5, 0.881]).max() < 0.05
    np.True_
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        truncation: float | str | None = "auto",
        loss: str = "hinge",
        penalty: str = "l2",
        q: float = 0.5,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        utility: Any = None,
        cost: Any = None,
        cost_form: str = "utility",
        utility_baseline: str = "keep",
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        cache_size: float = 1000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        global_search: bool = False,
        time_limit: float | None = None,
        solver: str = "auto",
        probability: str | None = None,
    ) -> None:
        self.C = C
        self.truncation = truncation
        self.loss = loss
        self.penalty = penalty
        self.q = q
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.utility = utility
        self.cost = cost
        self.cost_form = cost_form
        self.utility_baseline = utility_baseline
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.cache_size = cache_size
        self.random_state = random_state
        self.verbose = verbose
        self.global_search = global_search
        self.time_limit = time_limit
        self.solver = solver
        self.probability = probability

    def _method_name(self) -> str:
        return "truncated"

    def _probability_name(self) -> str:
        if self.probability not in (None, "weighted"):
            raise ValueError(
                f"probability = {self.probability!r} is not allowed: probability must be \"weighted\" or None; for other probabilities "
                "put the model into sklearn.calibration.CalibratedClassifierCV"
            )
        return self.probability or "none"

    def _own_parameters(self, classes: NDArray[Any]) -> dict[str, Any]:
        return {
            "truncation": None if self.truncation is None else _input.name_or_real("truncation", self.truncation),
            "loss": _input.text("loss", self.loss),
            "penalty": _input.text("penalty", self.penalty),
            "q": _input.real("q", self.q),
            "utility": _input.payoff("utility", self.utility, classes),
            "cost": _input.payoff("cost", self.cost, classes),
            "cost_form": _input.text("cost_form", self.cost_form),
            "utility_baseline": _input.text("utility_baseline", self.utility_baseline),
            "global_search": _input.flag("global_search", self.global_search),
            "probability": self._probability_name(),
            "solver": _input.text("solver", self.solver),
        }

    @classmethod
    def _stored_parameters(cls, fitted: _core.Fitted) -> dict[str, Any]:
        def square(matrix: list[float] | None) -> NDArray[np.float64] | None:
            return None if matrix is None else np.reshape(matrix, (len(fitted.classes), -1))

        return {
            "truncation": fitted.truncation,
            "loss": fitted.loss,
            "penalty": fitted.penalty,
            **({} if fitted.penalty != "lq" else {"q": fitted.detail("q")}),
            "utility": square(fitted.utility),
            "cost": square(fitted.cost),
            "cost_form": fitted.cost_form,
            "utility_baseline": fitted.utility_baseline,
            "global_search": fitted.detail("lower_bound") is not None,
            "solver": fitted.solver_asked,
            "probability": None if fitted.probability == "none" else fitted.probability,
        }

    def _take(self, fitted: _core.Fitted) -> None:
        super()._take(fitted)
        bound = fitted.detail("lower_bound")
        if bound is not None:
            self.lower_bound_ = bound
            self.proved_ = fitted.detail("proved") == 1.0

    def _complaints(self) -> list[str]:
        count = int(self._fitted.detail("probability_unconverged") or 0)
        family = f"{count} of the weighted fits behind predict_proba did not converge: raise max_iter or tol, or scale the columns of X"
        return super()._complaints() + ([family] if count else [])

    @_where_estimated
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, for a model with ``probability="weighted"``.

        They are read off a family of weighted fits, see the notes of the class, and not off the decision values: among rows of one
        predicted class the two may have another order. The most probable class is the one that `predict` decides for, unless the model has
        a `utility` or `cost`: the best decision is another matter then.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, as `predict` takes them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; every row sums to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from outlast import TruncatedSVC
        >>> X = np.repeat([[0.0], [1.0]], 10, axis=0)
        >>> y = np.array(10 * ["a"] + 3 * ["a"] + 7 * ["b"])
        >>> model = TruncatedSVC(10.0, kernel="linear", probability="weighted").fit(X, y)
        >>> np.abs(model.predict_proba([[1.0]]) - [0.3, 0.7]).max() < 0.05
        np.True_
        """
        rows = self._rows(X)
        return self._fitted.predict_proba(rows, _input.threads(self.n_jobs)).reshape(-1, len(self.classes_))

    @_where_estimated
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the probabilities, see `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def utility_score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The average utility of the decisions, or their average cost for a model fitted with costs.

        Without such a matrix a right decision is worth 1 and a wrong one nothing: the accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows, as `predict` takes them.
        y : array-like of shape (n_samples,)
            Their true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Higher is better with utilities, lower with costs.

        Examples
        --------
        >>> from outlast import TruncatedSVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["ham", "ham", "spam", "spam"]
        >>> model = TruncatedSVC(10.0, kernel="linear", cost=[[0, 5], [1, 0]]).fit(X, y)
        >>> model.utility_score(X, y), model.utility_score(X, ["ham", "ham", "spam", "ham"])
        (0.0, 1.25)
        """
        rows = self._rows(X)
        decided = self._fitted.predict_codes(rows, _input.threads(self.n_jobs))
        places = _input.codes_among(y, self.classes_)
        check_consistent_length(decided, places, sample_weight)
        matrix = self._fitted.cost if self._fitted.utility is None else self._fitted.utility
        k = len(self.classes_)
        payoff = np.eye(k) if matrix is None else np.reshape(matrix, (k, k))
        return float(np.average(payoff[places, decided], weights=sample_weight))
