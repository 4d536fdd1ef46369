"""The compiled core. Private: use the estimators of `outlast`."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Audited",
    "FileRows",
    "Fitted",
    "audit",
    "fit",
    "fit_files",
    "gamma_quartiles",
    "open_files",
    "search_lq",
    "tune",
    "write_page",
]

_Dense = NDArray[np.float64] | NDArray[np.float32]
_Sparse = tuple[NDArray[np.uintp], NDArray[np.uint32], NDArray[np.float64] | NDArray[np.float32], int]
_Matrix = _Dense | _Sparse
_Path = str | os.PathLike[str]

@final
class Fitted:
    @property
    def c(self) -> float: ...
    @property
    def class_weight(self) -> list[float] | None: ...
    @property
    def classes(self) -> list[int | str]: ...
    @property
    def coef(self) -> NDArray[np.float64] | None: ...
    @property
    def coef0(self) -> float | None: ...
    @property
    def cost(self) -> list[float] | None: ...
    @property
    def cost_form(self) -> str: ...
    @property
    def degree(self) -> int | None: ...
    @property
    def dual_coef(self) -> NDArray[np.float64]: ...
    @property
    def eta(self) -> NDArray[np.float64] | None: ...
    @property
    def feature_map(self) -> str: ...
    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def features(self) -> int: ...
    @property
    def fit_intercept(self) -> bool: ...
    @property
    def functions(self) -> int: ...
    @property
    def gamma(self) -> float | None: ...
    @property
    def gap(self) -> float: ...
    @property
    def intercept(self) -> NDArray[np.float64]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def kernel(self) -> str: ...
    @property
    def loss(self) -> str: ...
    @property
    def margins(self) -> NDArray[np.float64] | None: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def objective(self) -> float: ...
    @property
    def outlier_scores(self) -> NDArray[np.float64] | None: ...
    @property
    def outliers(self) -> NDArray[np.bool_] | None: ...
    @property
    def penalty(self) -> str: ...
    @property
    def probability(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def selected(self) -> NDArray[np.uintp] | None: ...
    @property
    def solver(self) -> str: ...
    @property
    def solver_asked(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def support(self) -> NDArray[np.uint32]: ...
    @property
    def support_vectors(self) -> NDArray[np.float64] | None: ...
    @property
    def sparse_support_vectors(self) -> tuple[NDArray[np.uintp], NDArray[np.uint32], NDArray[np.float64]] | None: ...
    @property
    def tol(self) -> float: ...
    @property
    def trace(self) -> NDArray[np.float64]: ...
    @property
    def truncation(self) -> float | None: ...
    @property
    def utility(self) -> list[float] | None: ...
    @property
    def utility_baseline(self) -> str: ...
    @property
    def width(self) -> int: ...
    def decision_function(self, x: _Matrix, threads: int | None = None) -> NDArray[np.float64]: ...
    def certify(
        self,
        x: _Matrix,
        codes: NDArray[np.uint32],
        sample_weight: NDArray[np.float64] | None = None,
        threads: int | None = None,
    ) -> tuple[float, float, float, bool]: ...
    def export(self, path: _Path, format: str) -> list[str]: ...
    def detail(self, name: str) -> float | None: ...
    def predict_codes(self, x: _Matrix, threads: int | None = None) -> NDArray[np.uint32]: ...
    def predict_proba(self, x: _Matrix, threads: int | None = None) -> NDArray[np.float64]: ...
    def save(self, path: _Path) -> None: ...
    @staticmethod
    def load(path: _Path, features: int | None = None) -> Fitted: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(
        data: bytes,
        margins: NDArray[np.float64] | None = None,
        outliers: NDArray[np.bool_] | None = None,
        expansion: NDArray[np.float64] | None = None,
        eta: NDArray[np.float64] | None = None,
        scores: NDArray[np.float64] | None = None,
    ) -> Fitted: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Audited:
    @property
    def scores(self) -> NDArray[np.float64]: ...
    @property
    def suggested(self) -> NDArray[np.uint32]: ...
    @property
    def confidence(self) -> NDArray[np.float64]: ...
    @property
    def agreement(self) -> NDArray[np.float64]: ...
    @property
    def margins(self) -> NDArray[np.float64]: ...
    @property
    def chances(self) -> NDArray[np.float64]: ...
    @property
    def noise(self) -> NDArray[np.float64]: ...
    @property
    def confusion(self) -> NDArray[np.int64]: ...
    @property
    def truncated(self) -> NDArray[np.bool_]: ...
    @property
    def far(self) -> NDArray[np.bool_]: ...
    @property
    def conflicts(self) -> list[list[int]]: ...
    @property
    def small_classes(self) -> list[int]: ...
    @property
    def wrong_share(self) -> float: ...
    @property
    def chosen(self) -> list[tuple[str, float]]: ...
    def suspects(self) -> dict[str, Any]: ...
    def write_page(
        self, path: _Path, x: _Matrix, header: Sequence[str], cells: Sequence[Sequence[str]], source: str
    ) -> None: ...
    def write_csv(self, path: _Path) -> None: ...

def audit(
    x: _Matrix,
    codes: NDArray[np.uint32],
    classes: Sequence[int | str],
    *,
    folds: int,
    repeats: int,
    seed: int,
    kernel: str,
    gamma: float | str,
    c: float | None,
    truncation: float | str | None,
    threads: int | None = None,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> Audited: ...
@final
class FileRows:
    @property
    def classes(self) -> list[int | str]: ...
    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def in_memory(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...

def open_files(
    files: Sequence[_Path],
    *,
    target: str | None = None,
    weight_column: str | None = None,
    ignore: Sequence[str] = ...,
    memory: int,
    cache: _Path | None = None,
    shift: bool = True,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> FileRows: ...
def fit_files(
    rows: FileRows,
    method: str,
    parameters: Mapping[str, Any],
    *,
    balanced: bool = False,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> Fitted: ...
def fit(
    x: _Matrix,
    codes: NDArray[np.uint32],
    classes: Sequence[int | str],
    method: str,
    parameters: Mapping[str, Any],
    *,
    threads: int | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    feature_names: Sequence[str] | None = None,
    start: Fitted | None = None,
    time_limit: float | None = None,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> Fitted: ...
def gamma_quartiles(
    x: _Matrix,
    codes: NDArray[np.uint32],
    classes: Sequence[int | str],
    sample_weight: NDArray[np.float64] | None = None,
    threads: int | None = None,
) -> tuple[float, float, float]: ...
def search_lq(
    x: _Matrix,
    codes: NDArray[np.uint32],
    classes: Sequence[int | str],
    parameters: Mapping[str, Any],
    cs: int | Sequence[float],
    qs: Sequence[float],
    judge: int | Sequence[tuple[Sequence[int], Sequence[int]]] | tuple[_Matrix, NDArray[np.uint32]],
    options: Mapping[str, Any],
    *,
    threads: int | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    feature_names: Sequence[str] | None = None,
    time_limit: float | None = None,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> tuple[Fitted, dict[str, Any]]: ...

def tune(
    x: _Matrix,
    codes: NDArray[np.uint32],
    classes: Sequence[int | str],
    method: str,
    parameters: Mapping[str, Any],
    grid: Sequence[tuple[str, Sequence[float | str | None]]],
    judge: int | Sequence[tuple[Sequence[int], Sequence[int]]] | tuple[_Matrix, NDArray[np.uint32]],
    options: Mapping[str, Any],
    *,
    threads: int | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    feature_names: Sequence[str] | None = None,
    time_limit: float | None = None,
    progress: Callable[[str, int, float, float], object] | None = None,
) -> tuple[Fitted, dict[str, Any]]: ...

def write_page(json: str, path: _Path) -> None: ...
