"""Which rows have a label, or values, that look wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_X_y
from sklearn.utils.validation import _get_feature_names

from . import _core, _input, _progress

if TYPE_CHECKING:
    from pandas import DataFrame


#: Most cells that a page carries along.
_MOST_CELLS = 5_000_000


#: What the core counts by: rows a class needs to be judged, most classes fitted in pairs, and how many C are tried.
_FEWEST, _MOST_IN_PAIRS, _CS = 3, 30, 3


def _texts(column: NDArray[Any]) -> list[str]:
    """The shortest texts that are read back as the same numbers, in the precision they have."""
    texts = map(repr, column.tolist()) if column.dtype == np.float64 else map(str, column)
    return [text.removesuffix(".0") for text in texts]


class Audit:
    """What `audit` found. Rows are counted from 0, except in files.

    Made by `audit`, not by hand.

    Parameters
    ----------
    found : _core.Audited
        The findings.
    classes : array
        The classes, sorted.
    names : list of str or None
        The names of the columns.
    target : str
        The name of the labels.
    rows : array or sparse matrix
        The rows looked at.
    codes : array of int
        Each row's class as its place in `classes`.
    index : pandas.Index or None
        The rows' own names, if they have any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import outlast
    >>> X, y = load_iris(return_X_y=True)
    >>> y[0] = 2
    >>> found = outlast.audit(X, y, random_state=0)
    >>> int(found.scores.argmax())
    0
    """

    classes: NDArray[Any]
    """The classes, sorted; matrices are in their order."""

    def __init__(
        self, found: _core.Audited, classes: NDArray[Any], names: list[str] | None, target: str, rows: Any, codes: Any, index: Any = None
    ) -> None:
        self._found = found
        self.classes = classes
        self._names = names
        self._target = target
        self._rows = rows
        self._codes = codes
        self._index = index

    def __repr__(self) -> str:
        suspects = len(self._found.suspects()["row"])
        found = f"{suspects} suspect{'' if suspects == 1 else 's'}"
        return f"Audit({len(self.scores)} rows, {found}, an estimated {100.0 * self.wrong_share:.1f} % of the labels wrong)"

    @property
    def scores(self) -> NDArray[np.float64]:
        """How suspect each row is, 0 to 1: one minus the chance of its label in fits made without it.

        A third of the chance of classes that are neither its own nor the likeliest other is not counted. At least 0.5 for rows far from all others.
        """
        return self._found.scores

    @property
    def suggested(self) -> NDArray[Any]:
        """The likeliest class of each row."""
        return self.classes[self._found.suggested]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The chance of that class."""
        return self._found.confidence

    @property
    def agreement(self) -> NDArray[np.float64]:
        """Share of the fits without the row in which that class is the likeliest."""
        return self._found.agreement

    @property
    def margins(self) -> NDArray[np.float64]:
        """Mean functional margin of each row in fits made without it."""
        return self._found.margins

    @property
    def chances(self) -> NDArray[np.float64]:
        """Chances of the classes, of shape (n_samples, n_classes)."""
        return self._found.chances.reshape(-1, len(self.classes))

    @property
    def noise_matrix(self) -> NDArray[np.float64]:
        """Of the rows given a class (row), the estimated share that truly is of a class (column)."""
        return self._found.noise.reshape(len(self.classes), -1)

    @property
    def confusion(self) -> NDArray[np.int64]:
        """Rows by given class (row) and likeliest class (column)."""
        return self._found.confusion.reshape(len(self.classes), -1)

    @property
    def wrong_share(self) -> float:
        """Estimated share of wrong labels."""
        return self._found.wrong_share

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Rows that the robust fit to all rows gives up."""
        return self._found.truncated

    @property
    def far(self) -> NDArray[np.bool_]:
        """Rows whose values are far from those of all others."""
        return self._found.far

    @property
    def conflicts(self) -> list[list[int]]:
        """Groups of rows with the same values and different labels."""
        return self._found.conflicts

    @property
    def small_classes(self) -> NDArray[Any]:
        """Classes with hardly any rows."""
        return self.classes[self._found.small_classes]

    @property
    def chosen(self) -> list[tuple[str, float]]:
        """The kernels, and the C chosen for each."""
        return self._found.chosen

    @property
    def suspects(self) -> DataFrame:
        """The rows to look at, most suspect first: a pandas DataFrame whose index is the row's position, counted from 0.

        Columns ``given``, ``suggested``, ``score``, ``confidence``, ``agreement``, ``margin`` and ``reasons`` (text). If X was a DataFrame, a
        column ``index`` comes first with what its own index calls the row: ``X.loc[found.suspects["index"]]`` and
        ``X.iloc[found.suspects.index]`` are the same rows (the first needs an index without repetitions).
        """
        try:
            import pandas
        except ImportError as missing:
            raise ImportError("Audit.suspects is a DataFrame and needs pandas: pip install pandas; scores, suggested and "
                              "to_csv work without") from missing
        columns = self._found.suspects()
        for name in ("given", "suggested"):
            columns[name] = self.classes[columns[name]]
        suspects = pandas.DataFrame(columns).set_index("row")
        if self._index is not None:
            suspects.insert(0, "index", self._index.take(suspects.index).to_numpy())
        return suspects

    def to_html(self, path: str | os.PathLike[str], *, source: str = "data") -> None:
        """Write a page to work with: one HTML file that needs no network.

        It ranks and shows the suspects; rows can be marked as keep, relabel or drop, and the decisions downloaded.

        Parameters
        ----------
        path : str or path
            The file.
        source : str, default="data"
            What the page calls the table.
        """
        columns = self._rows[3] if isinstance(self._rows, tuple) else self._rows.shape[1]
        names = self._names or [f"x{column + 1}" for column in range(columns)]
        header = [*names, self._target]
        cells: list[list[str]] = []
        if not isinstance(self._rows, tuple) and self._rows.size <= _MOST_CELLS:
            cells = [_texts(column) for column in self._rows.T]
            cells.append([str(name) for name in self.classes[self._codes].tolist()])
        self._found.write_page(os.fspath(path), self._rows, header, cells, source)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the suspects as CSV, rows counted from 1.

        Text that a spreadsheet would take for a formula gets an apostrophe in front.

        Parameters
        ----------
        path : str or path
            The file.
        """
        self._found.write_csv(os.fspath(path))


def audit(
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    repeats: int = 3,
    kernel: str = "both",
    gamma: float | str = "scale",
    C: float | str = "auto",
    truncation: float | str | None = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Audit:
    """Rank the rows whose label, or whose values, look wrong.

    Every row is judged by robust fits (truncated hinge) that were made without it: cross-validation, repeated, with an rbf and a
    linear kernel on columns brought to one scale. What they say is turned into chances of the classes; the score of a row is one
    minus the chance of the label it was given, a little less where the rest is spread over several classes.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels.
    folds : int, default=5
        Folds of each cross-validation.
    repeats : int, default=3
        How often the rows are split anew.
    kernel : {"both", "rbf", "linear"}, default="both"
        The kernels of the fits; what both say is pooled.
    gamma : float or str, default="scale"
        Width of the rbf kernel, as in `TruncatedSVC`, for columns of variance 1.
    C : float or "auto", default="auto"
        Weight of the losses; "auto" chooses from 0.1, 1 and 10 for each kernel, by the likelihood of held-out labels, and ends with the first
        that is worse than the one before.
    truncation : float, "auto" or None, default="auto"
        Margin at which the loss is cut off, "auto" for -1.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, RandomState instance or None, default=None
        Seed of the splits. The same seed gives the same scores.
    verbose : int, default=0
        1 shows a bar with the rate and the time left, on a terminal or in a notebook, and lines elsewhere; 2 shows lines everywhere.

    Returns
    -------
    Audit
        With ``scores``, ``suspects``, ``noise_matrix``, ``to_csv``, ``to_html`` and more.

    Examples
    --------
    >>> import numpy as np
    >>> import outlast
    >>> X = np.array([[i % 2 * 4 + i % 7 / 7, i % 5] for i in range(60)])
    >>> y = np.where(np.arange(60) % 2 == 0, "cat", "dog")
    >>> y[10] = "dog"  # looks like a cat
    >>> found = outlast.audit(X, y)
    >>> int(found.scores.argmax()), str(found.suggested[10])
    (10, 'cat')
    """
    names = _get_feature_names(X)
    target = getattr(y, "name", None)
    index = X.index if hasattr(X, "iloc") and hasattr(X, "columns") else None
    _input.intact(X)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=_input.precision(X))
    classes, codes = _input.encode(y)
    rows = _input.matrix(X)
    chosen: dict[str, Any] = {
        "folds": _input.whole("folds", folds, 2),
        "repeats": _input.whole("repeats", repeats, 1, 1000),
        "seed": _input.seed(random_state),
        "kernel": _input.text("kernel", kernel),
        "gamma": _input.name_or_real("gamma", gamma),
        "c": None if isinstance(C, str) and C == "auto" else _input.real("C", C),
        "truncation": None if truncation is None else _input.name_or_real("truncation", truncation),
        "threads": _input.threads(n_jobs),
    }
    with _progress.watch_task("audit", _steps(codes, **chosen), verbose) as watch:
        found = _core.audit(rows, codes, _input.class_names(classes), **chosen, progress=watch.report)
    names = None if names is None else [_input.unicode("feature names", str(name)) for name in names]
    return Audit(found, classes, names, target if isinstance(target, str) else "label", rows, codes, index)


def _steps(codes: NDArray[Any], *, folds: int, repeats: int, kernel: str, c: float | None, **_: Any) -> int:
    """How many binary fits an audit tells of."""
    judged = max(2, int(np.sum(np.bincount(codes) >= _FEWEST)))
    problems = judged * (judged - 1) // 2 if judged <= _MOST_IN_PAIRS else judged
    rounds = (_CS if c is None else 1) + repeats - 1
    return problems * (2 if kernel == "both" else 1) * min(folds, len(codes)) * rounds
