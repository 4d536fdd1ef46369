"""Pictures of fitted models. Needs matplotlib: ``pip install outlast[plot]``.

Every function draws on the axes it is given, or on new ones, and returns them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from . import _input
from ._estimator import KernelClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._lq_search import LqSVCCV
    from ._tuning import Tuning

__all__ = ["coefficient_path", "decision_boundary", "margins", "objective_trace", "tuning"]

_COLOURS = [f"C{number}" for number in range(10)]
_STYLES = ["-", "--", ":", "-."]
_NAMED = 10  # lines that a legend names


def _axes(count: int, width: float, height: float) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError("outlast.plot needs matplotlib: pip install matplotlib") from missing
    _, axes = pyplot.subplots(1, count, figsize=(width, height), layout="constrained")
    return axes


def tuning(model: LqSVCCV | Tuning, axes: Any = None) -> Any:
    """The error over C with its standard errors, a line for each choice of the other parameters; the choice is ringed.

    Of `LqSVCCV` also the number of selected columns.

    Parameters
    ----------
    model : TruncatedSVCCV, CappedSVCCV, AblationSVCCV or LqSVCCV
        A fitted search.
    axes : matplotlib axes, or for LqSVCCV a sequence of two, default=None
        Where to draw: the error; and on the second axes the model's size.

    Returns
    -------
    matplotlib axes, or a sequence of two
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from outlast import LqSVCCV, plot
    >>> X, y = make_classification(60, 4, random_state=0)
    >>> axes = plot.tuning(LqSVCCV(Cs=5, qs=[0.5, 1.0]).fit(X, y))
    >>> axes[0].get_xlabel(), len(axes[0].get_lines())
    ('C', 3)
    >>> from outlast import TruncatedSVCCV
    >>> plot.tuning(TruncatedSVCCV([0.1, 1.0, 10.0], gammas=["q1", "q3"], cv=3).fit(X, y)).get_ylabel()
    'error'
    """
    check_is_fitted(model)
    if not isinstance(model, KernelClassifier) or not hasattr(model, "cv_results_"):
        raise TypeError(f"model must be one of outlast that has searched a grid, like TruncatedSVCCV, not {type(model).__name__}")
    if not hasattr(model, "sizes_"):
        _count("axes", axes, 1)
        return _tuning_grid(model, _axes(1, 6.0, 4.0) if axes is None else axes)
    _count("axes", axes, 2)
    axes = _axes(2, 9.0, 3.6) if axes is None else axes
    error, size = axes
    chosen = np.unravel_index(model.best_index_, model.errors_.shape)
    order = np.argsort(model.Cs_)
    for at, q in enumerate(model.qs_):
        line = error.plot(model.Cs_[order], model.errors_[at, order], marker=".", label=f"q = {q:g}")[0]
        _bars(error, model.Cs_[order], model.errors_[at, order], model.standard_errors_[at, order], line.get_color())
        size.plot(model.Cs_[order], model.sizes_[at, order], marker=".", color=line.get_color())
    ring: dict[str, Any] = {"marker": "o", "markersize": 12, "fillstyle": "none", "color": "black", "linestyle": "none"}
    error.plot([model.C_], [model.errors_[chosen]], **ring)
    size.plot([model.C_], [model.sizes_[chosen]], **ring)
    for panel, label in ((error, model._error_name()), (size, "selected columns")):
        panel.set_xscale("log")
        panel.set_xlabel("C")
        panel.set_ylabel(label)
    error.legend()
    return axes


def _check(model: Any, also: str = "") -> None:
    """A model of ours, fitted."""
    if not isinstance(model, KernelClassifier):
        raise TypeError(f"model must be an estimator of outlast, not {type(model).__name__}: of a pipeline pass the last step{also}")
    check_is_fitted(model)


def _count(name: str, axes: Any, wanted: int) -> None:
    """Refuses another number of axes than there are pictures."""
    given = np.shape(axes)
    if axes is not None and given != (() if wanted == 1 else (wanted,)):
        expected = "one" if wanted == 1 else f"a sequence of {wanted}"
        raise ValueError(f"{name} must be {expected} of matplotlib's axes for this model, got {axes!r}")


def _tuning_grid(model: Any, ax: Any) -> Any:
    """The error over C, which is the last axis of the grid."""
    results = model.cv_results_
    Cs = np.array(results["param_C"].data, dtype=float).reshape(model.errors_.shape)
    size = Cs.shape[-1]
    several = [name for name, count in zip(model.grid_names_, Cs.shape, strict=True) if count > 1 and name != "C"]
    for first in range(0, Cs.size, size):
        order = first + np.argsort(Cs.reshape(-1)[first : first + size])
        x, y = Cs.reshape(-1)[order], model.errors_.reshape(-1)[order]
        point = results["params"][first]
        label = ", ".join(f"{name} = {point[name]:.3g}" if isinstance(point[name], float) else f"{name} = {point[name]}" for name in several)
        line = ax.plot(x, y, marker=".", label=label)[0]
        _bars(ax, x, y, model.standard_errors_.reshape(-1)[order], line.get_color())
    chosen = model.errors_.reshape(-1)[model.best_index_]
    ax.plot([model.C_], [chosen], marker="o", markersize=12, fillstyle="none", color="black", linestyle="none")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel(model._error_name())
    if several:
        ax.legend()
    return ax


def _bars(ax: Any, x: Any, y: Any, spread: Any, colour: str) -> None:
    """A standard error up and down."""
    ax.vlines(x, y - spread, y + spread, color=colour, alpha=0.4)


def coefficient_path(model: LqSVCCV, q: float | None = None, ax: Axes | None = None) -> Axes:
    """The coefficients of the fits to all rows along C; the chosen C is a dashed line, and the largest coefficients there are named.

    Parameters
    ----------
    model : LqSVCCV
        A fitted search.
    q : float, default=None
        Which of `qs_`; None for the chosen one.
    ax : matplotlib axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from outlast import LqSVCCV, plot
    >>> X, y = make_classification(60, 4, random_state=0)
    >>> plot.coefficient_path(LqSVCCV(Cs=5, qs=[0.5, 1.0]).fit(X, y), q=1.0).get_title()
    'q = 1'
    """
    check_is_fitted(model)
    if not hasattr(model, "coefs_path_"):
        raise TypeError(f"model must be an LqSVCCV, which has a path, not {type(model).__name__}")
    q = model.q_ if q is None else q
    at = np.flatnonzero(np.isclose(model.qs_, q))
    if len(at) == 0:
        raise ValueError(f"q = {q!r} is not allowed: q must be one of {model.qs_.tolist()}")
    ax = _axes(1, 6.0, 4.0) if ax is None else ax
    order = np.argsort(model.Cs_)
    paths = model.coefs_path_[at[0]][order]
    chosen = np.abs(paths[int(np.argmin(np.abs(model.Cs_[order] - model.C_)))])
    named = set(np.argsort(-chosen, axis=None, kind="stable")[: min(_NAMED, np.count_nonzero(chosen))].tolist())
    # a colour for each column, a style for each class
    used = np.flatnonzero(np.any(paths != 0, axis=(0, 1))).tolist()
    colours = {column: _COLOURS[at % len(_COLOURS)] for at, column in enumerate(used)}
    for line, (function, column) in enumerate(np.ndindex(chosen.shape)):
        path = paths[:, function, column]
        if np.any(path != 0):
            label = _coefficient_name(model, function, column) if line in named else None
            ax.plot(model.Cs_[order], path, linestyle=_STYLES[function % len(_STYLES)], color=colours[column], label=label)
    if named:
        ax.legend(fontsize="small")
    ax.axhline(0.0, color="grey", linewidth=0.5)
    ax.axvline(model.C_, color="grey", linestyle="--")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel("coefficient")
    ax.set_title(f"q = {q:g}")
    return ax


def _coefficient_name(model: LqSVCCV, function: int, column: int) -> str:
    """The column's name, squared or not, and the class, where each has coefficients of its own."""
    width = model.n_features_in_
    names = getattr(model, "feature_names_in_", [f"column {at}" for at in range(width)])
    name = f"{names[column % width]}{'²' if column >= width else ''}"
    return name if len(model.classes_) == 2 else f"{name}, class {model.classes_[function]}"


def decision_boundary(
    model: KernelClassifier,
    X: Any,
    y: Any = None,
    *,
    features: tuple[int, int] = (0, 1),
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Where a model decides for which class, over two columns of X; its support vectors are ringed, its outliers crossed out.

    Parameters
    ----------
    model : estimator of outlast
        Fitted to X, or to other rows: then support vectors and outliers are not marked.
    X : array-like of shape (n_samples, n_features)
        The rows to show.
    y : array-like of shape (n_samples,), default=None
        Their classes, which colour them; None: as predicted.
    features : tuple of two int, default=(0, 1)
        Which columns; the others are held at their medians.
    resolution : int, default=200
        Points of the picture in each direction.
    ax : matplotlib axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from outlast import TruncatedSVC, plot
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> ax = plot.decision_boundary(TruncatedSVC().fit(X, y), X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', 'support vector', 'outlier']
    """
    _check(model, ", and the rows as that step gets them")
    if sparse.issparse(X):
        raise TypeError("X is sparse; a picture needs dense rows: X.toarray()")
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {rows.shape}; the model has {model.n_features_in_} features")
    shown = [_input.whole("features", feature, 0, rows.shape[1] - 1) for feature in features]
    if len(shown) != 2 or shown[0] == shown[1]:
        raise ValueError(f"features = {features!r} is not allowed: features must be two different columns")
    if model.kernel == "precomputed":
        raise ValueError("of a precomputed kernel no points in between are known")
    ax = _axes(1, 6.0, 5.0) if ax is None else ax
    codes = model._fitted.predict_codes(model._rows(X)) if y is None else _codes(model, y, len(rows))
    _draw_regions(ax, model, rows, shown, _input.whole("resolution", resolution, 2, 5000))
    for code, label in enumerate(model.classes_):
        own = rows[codes == code]
        ax.scatter(own[:, shown[0]], own[:, shown[1]], s=14, color=_COLOURS[code % 10], label=str(label), zorder=2)
    out = getattr(model, "outliers_", None)
    if out is not None and _is_training(model, X):
        _mark(ax, rows[model.support_][:, shown], "support vector", facecolors="none", edgecolors="black", s=44, linewidths=0.6)
        _mark(ax, rows[out][:, shown], "outlier", marker="x", color="black", s=40, linewidths=1.2)
    names = getattr(model, "feature_names_in_", [f"column {column}" for column in range(rows.shape[1])])
    ax.set_xlabel(str(names[shown[0]]))
    ax.set_ylabel(str(names[shown[1]]))
    ax.legend()
    return ax


def _is_training(model: KernelClassifier, X: Any) -> bool:
    """Whether these are the rows the model was fitted to: their margins, for one class or another, are those of the fit."""
    margins = model.margins_
    if margins is None or len(X) != len(margins):
        return False
    scores = model.decision_function(X)
    if scores.ndim == 1:
        return np.allclose(np.abs(scores), np.abs(margins), rtol=1e-3, atol=1e-4)
    others = np.stack([np.delete(scores, code, axis=1).max(axis=1) for code in range(scores.shape[1])], axis=1)
    return bool(np.isclose(scores - others, margins[:, None], rtol=1e-3, atol=1e-4).any(axis=1).all())


def _draw_regions(ax: Any, model: KernelClassifier, rows: NDArray[Any], shown: list[int], resolution: int) -> None:
    """The classes' regions, and for two classes the lines f = -1, 0, 1."""
    low, high = rows[:, shown].min(axis=0), rows[:, shown].max(axis=0)
    edge = 0.05 * np.maximum(high - low, 1e-9)
    across = [np.linspace(low[at] - edge[at], high[at] + edge[at], resolution) for at in (0, 1)]
    grid = np.tile(np.median(rows, axis=0), (resolution**2, 1))
    first, second = np.meshgrid(*across)
    grid[:, shown[0]], grid[:, shown[1]] = first.ravel(), second.ravel()
    with warnings.catch_warnings():
        # a grid has no names of columns
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        values = model.decision_function(grid)
        decided = np.searchsorted(model.classes_, model.predict(grid))
    k = len(model.classes_)
    levels = np.arange(k + 1) - 0.5
    colours = [_COLOURS[code % 10] for code in range(k)]
    ax.contourf(first, second, decided.reshape(first.shape), levels=levels, colors=colours, alpha=0.15, zorder=0)
    if k == 2:
        lines = {"levels": [-1.0, 0.0, 1.0], "linestyles": ["--", "-", "--"], "linewidths": [0.7, 1.4, 0.7], "colors": "black"}
        ax.contour(first, second, values.reshape(first.shape), zorder=1, **lines)
        return
    for code in range(k):
        # where pairs of classes vote, there is no function of a class
        of_pairs = model._fitted.width < model._fitted.functions
        lead = (decided == code) - 0.5 if of_pairs else values[:, code] - np.delete(values, code, axis=1).max(axis=1)
        ax.contour(first, second, lead.reshape(first.shape), levels=[0.0], linewidths=1.2, colors="black", zorder=1)


def _mark(ax: Any, points: NDArray[Any], label: str, **style: Any) -> None:
    ax.scatter(points[:, 0], points[:, 1], label=label, zorder=3, **style)


def margins(model: KernelClassifier, *, bins: int = 40, ax: Axes | None = None) -> Axes:
    """How many training rows have which functional margin; the truncation is a dashed line, and the rows beyond it are outliers.

    Parameters
    ----------
    model : estimator of outlast
        Fitted in this process, or unpickled: model files do not keep the margins.
    bins : int, default=40
        Bars.
    ax : matplotlib axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from outlast import TruncatedSVC, plot
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> plot.margins(TruncatedSVC(kernel="linear").fit(X, y)).get_xlabel()
    'functional margin'
    """
    _check(model)
    found, out = getattr(model, "margins_", None), getattr(model, "outliers_", None)
    if found is None or out is None:
        raise ValueError("this model was loaded from a file or fitted to files, and does not keep the margins of the training rows")
    ax = _axes(1, 6.0, 3.6) if ax is None else ax
    edges = np.histogram_bin_edges(found, bins=_input.whole("bins", bins, 1, 100_000))
    stacked = [found[~out], found[out]]
    labels = [f"kept ({len(stacked[0])})", f"outliers ({len(stacked[1])})"]
    ax.hist(stacked, bins=edges.tolist(), stacked=True, color=[_COLOURS[0], _COLOURS[3]], label=labels)
    truncation = model._fitted.truncation
    if truncation is not None:
        ax.axvline(truncation, color="black", linestyle="--", linewidth=1.0, label=f"truncation at {truncation:g}")
    ax.axvline(0.0, color="grey", linewidth=0.5)
    ax.set_xlabel("functional margin")
    ax.set_ylabel("training rows")
    ax.legend()
    return ax


def objective_trace(model: KernelClassifier, *, ax: Axes | None = None) -> Axes:
    """The objective at the start and after each majorise-minimise step, which never rises.

    Parameters
    ----------
    model : estimator of outlast
        Fitted.
    ax : matplotlib axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from outlast import TruncatedSVC, plot
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> plot.objective_trace(TruncatedSVC().fit(X, y)).get_ylabel()
    'objective'
    """
    _check(model)
    if not hasattr(model, "objective_trace_"):
        raise ValueError("this model was read from a file of LIBSVM, which does not tell its objective")
    ax = _axes(1, 6.0, 3.6) if ax is None else ax
    ax.plot(np.arange(len(model.objective_trace_)), model.objective_trace_, marker="o", markersize=4)
    bound = model._fitted.detail("lower_bound")
    if bound is not None:
        ax.axhline(bound, color="black", linestyle="--", linewidth=1.0, label="lower bound of the optimum")
        ax.legend()
    locator: Any = ax.xaxis.get_major_locator()
    locator.set_params(integer=True)
    ax.set_xlabel("step")
    ax.set_ylabel("objective")
    return ax


def _codes(model: KernelClassifier, y: Any, rows: int) -> NDArray[Any]:
    """The position of each label among the classes."""
    labels = np.asarray(y)
    if labels.shape != (rows,):
        raise ValueError(f"y has shape {labels.shape}; X has {rows} rows")
    place = {label: at for at, label in enumerate(model.classes_.tolist())}
    if unknown := sorted({str(label) for label in labels.tolist() if label not in place}):
        raise ValueError(f"y holds classes that the model does not know: {unknown[:10]}")
    return np.array([place[label] for label in labels.tolist()])
