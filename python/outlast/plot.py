"""Pictures of fitted models. Needs matplotlib: ``pip install outlast[plot]``.

Every function draws on the axes it is given, or on new ones, and returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._lq_search import LqSVCCV

__all__ = ["coefficient_path", "tuning"]


def _axes(count: int, width: float, height: float) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError("outlast.plot needs matplotlib: pip install matplotlib") from missing
    _, axes = pyplot.subplots(1, count, figsize=(width, height), layout="constrained")
    return axes


def tuning(model: LqSVCCV, axes: Any = None) -> Any:
    """The error and the number of selected columns over C, a line for each q; the choice is ringed.

    Parameters
    ----------
    model : LqSVCCV
        A fitted search.
    axes : sequence of two matplotlib axes, default=None
        Where to draw: the error on the first, the model's size on the second.

    Returns
    -------
    sequence of two matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from outlast import LqSVCCV, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 4))
    >>> y = X[:, 0] > 0
    >>> axes = plot.tuning(LqSVCCV(Cs=5, qs=[0.5, 1.0]).fit(X, y))
    >>> axes[0].get_xlabel(), len(axes[0].get_lines())
    ('C', 3)
    """
    axes = _axes(2, 9.0, 3.6) if axes is None else axes
    error, size = axes
    chosen = (int(np.flatnonzero(model.qs_ == model.q_)[0]), int(np.flatnonzero(model.Cs_ == model.C_)[0]))
    order = np.argsort(model.Cs_)
    for at, q in enumerate(model.qs_):
        line = error.plot(model.Cs_[order], model.errors_[at, order], marker=".", label=f"q = {q:g}")[0]
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


def coefficient_path(model: LqSVCCV, q: float | None = None, ax: Any = None) -> Any:
    """The coefficients of the fits to all rows along C; the chosen C is a dashed line.

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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from outlast import LqSVCCV, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 4))
    >>> y = X[:, 0] > 0
    >>> plot.coefficient_path(LqSVCCV(Cs=5, qs=[0.5, 1.0]).fit(X, y), q=1.0).get_title()
    'q = 1'
    """
    q = model.q_ if q is None else q
    at = np.flatnonzero(np.isclose(model.qs_, q))
    if len(at) == 0:
        raise ValueError(f"q = {q!r} is not allowed: q must be one of {model.qs_.tolist()}")
    ax = _axes(1, 6.0, 4.0) if ax is None else ax
    order = np.argsort(model.Cs_)
    paths = model.coefs_path_[at[0]][order].reshape(len(model.Cs_), -1)
    ax.plot(model.Cs_[order], paths[:, np.any(paths != 0, axis=0)])
    ax.axhline(0.0, color="grey", linewidth=0.5)
    ax.axvline(model.C_, color="grey", linestyle="--")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel("coefficient")
    ax.set_title(f"q = {q:g}")
    return ax
