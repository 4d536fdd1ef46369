"""What is shown while a fit runs, and who is told: a bar, lines, scikit-learn's callbacks.

The core reports ``(stage, step, objective, gap)`` a few times a second. A convex problem begins with a relative duality gap of some 1 and
ends at the tolerance, so that log(gap) / log(tol) is how far it has come.
"""

from __future__ import annotations

import html
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO, TypeVar, cast

import numpy as np

from . import _input

try:  # scikit-learn 1.9 or later
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as _managed

    TO_THE_CALLER = 4
    """Frames from `_fit`, which scikit-learn has wrapped, to the caller of `fit`."""
except ImportError:
    TO_THE_CALLER = 3

    class CallbackSupport:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def _managed(method: Any) -> Any:
        return method


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """The method, after which callbacks are torn down where scikit-learn has any."""
    return cast(Method, _managed(method))


__all__ = ["CallbackSupport", "watch", "watch_task", "with_callbacks"]

_WIDTH = 24
_NEARLY = 0.95  # a fit whose last stage is not known is not done before it says so
_PAUSE = 0.1
"""Seconds between two pictures."""
_SELDOM = 1.0


class _Watcher(Protocol):
    def __call__(self, stage: str, step: int, objective: float, gap: float) -> bool:
        """Takes a report; whether the fit should end with what it has."""

    def close(self, result: str | None) -> None:
        """The fit has ended, with this result or, None, by an exception."""


class Bar:
    """One line that is drawn over again: a terminal's, or a notebook's output."""

    def __init__(
        self, name: str, tol: float, total: int | None, draw: Callable[[float, str], None], end: Callable[[], None]
    ) -> None:
        self._name = name
        self._total = total
        self._tol = min(max(tol, 1e-300), 0.5)
        self._draw = draw
        self._end = end
        self._began = time.monotonic()
        self._drawn = -math.inf
        self._last = (0.0, "")

    def __call__(self, stage: str, step: int, objective: float, gap: float) -> bool:
        if self._total:
            share = min(step / self._total, 1.0)
            self._last = (share, f"{stage}, {step}/{self._total}{self._pace(step)}")
        else:
            share = min(max(math.log(gap) / math.log(self._tol), 0.0), _NEARLY) if 0 < gap < math.inf else 0.0
            # a later stage begins with a larger gap
            share = max(share, self._last[0])
            self._last = (share, f"{stage}, step {step}{_numbers(objective, gap)}")
        if time.monotonic() - self._drawn >= _PAUSE:
            self._show(*self._last)
        return False

    def close(self, result: str | None) -> None:
        share, text = self._last
        self._show(*((share, f"{text}, stopped") if result is None else (1.0, result)))
        self._end()

    def _pace(self, step: int) -> str:
        """The rate, and the time left at that rate."""
        rate = step / max(time.monotonic() - self._began, 1e-9)
        return f", {rate:.1f}/s, {max((self._total or 0) - step, 0) / rate:.0f} s left" if step else ""

    def _show(self, share: float, text: str) -> None:
        self._drawn = time.monotonic()
        self._draw(share, f"{self._name}: {text} [{self._drawn - self._began:.1f} s]")


class Lines:
    """A line for each report, on standard output."""

    def __call__(self, stage: str, step: int, objective: float, gap: float) -> bool:
        print(f"[outlast] {stage}, step {step}{_numbers(objective, gap)}", file=sys.stdout, flush=True)
        return False

    def close(self, result: str | None) -> None:
        if result is not None:
            print(f"[outlast] {result}", file=sys.stdout, flush=True)


class Callbacks:
    """scikit-learn's callbacks: the fit is a task, and what passes between two reports is a task in it."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data: dict[str, Any] = {"X": X, "y": y, "metadata": metadata}
        self._fit = estimator._init_callback_context(max_subtasks=None)
        self._fit.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._step: Any = None

    def __call__(self, stage: str, step: int, objective: float, gap: float) -> bool:
        enough = self._end_step()
        self._step = self._fit.subcontext(task_name=stage)
        self._step.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        return enough

    def close(self, result: str | None) -> None:
        self._end_step()
        if result is not None:
            # by now the estimator is fitted: a copy of it is what callbacks get
            self._fit.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes={})

    def _end_step(self) -> bool:
        step, self._step = self._step, None
        return step is not None and bool(step.call_on_fit_task_end(estimator=self._estimator, **self._data))


class Watch:
    """Everybody who watches a fit."""

    def __init__(self, watchers: Iterable[_Watcher]) -> None:
        self._watchers = list(watchers)
        self.asked_to_end = False
        """Whether somebody had enough."""

    @property
    def report(self) -> Callable[[str, int, float, float], bool] | None:
        """What the core calls; None where nobody watches."""
        return self._tell if self._watchers else None

    @property
    def report_seldom(self) -> Callable[[str, int, float, float], bool] | None:
        """The same for steps that are many and alike: what comes within a second of the last is left out."""
        last = -math.inf

        def report(stage: str, step: int, objective: float, gap: float) -> bool:
            nonlocal last
            if time.monotonic() < last + _SELDOM:
                return self.asked_to_end
            last = time.monotonic()
            return self._tell(stage, step, objective, gap)

        return report if self._watchers else None

    def begin(self, stage: str) -> None:
        """Say what is done before the core has anything to report."""
        if self._watchers:
            self._tell(stage, 0, math.nan, math.nan)

    def _tell(self, stage: str, step: int, objective: float, gap: float) -> bool:
        answers = [watcher(stage, step, objective, gap) for watcher in self._watchers]
        self.asked_to_end |= any(answers)
        return self.asked_to_end

    def close(self, result: str | None) -> None:
        """The fit has ended."""
        for watcher in self._watchers:
            watcher.close(result)


@contextmanager
def watch(estimator: Any, tol: float, X: Any, y: Any, sample_weight: Any) -> Iterator[Watch]:
    """Those who watch the fit of an estimator."""
    watchers: list[_Watcher] = []
    if hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx"):
        watchers.append(Callbacks(estimator, X, y, sample_weight))
    if estimator.verbose:
        watchers.append(_shown(type(estimator).__name__, tol, estimator._steps(X), _loudness(estimator.verbose)))
    watching = Watch(watchers)
    try:
        yield watching
    except BaseException:
        watching.close(None)
        raise
    watching.close(f"{estimator.status_}{_numbers(estimator.objective_, estimator.gap_)}")


@contextmanager
def watch_task(name: str, total: int, verbose: Any) -> Iterator[Watch]:
    """Those who watch work of so many steps that is no estimator's."""
    loudness = _loudness(verbose)
    watching = Watch([_shown(name, 0.5, total, loudness)] if loudness else [])
    try:
        yield watching
    except BaseException:
        watching.close(None)
        raise
    watching.close("done")


def _shown(name: str, tol: float, total: int | None, verbose: int) -> _Watcher:
    """A bar in a notebook or on a terminal; lines elsewhere, or where they are asked for."""
    if verbose < 2 and (output := _notebook()) is not None:
        return Bar(name, tol, total, output, lambda: None)
    if verbose < 2 and _is_terminal(sys.stderr):
        return Bar(name, tol, total, _on_terminal(sys.stderr), lambda: print(file=sys.stderr))
    return Lines()


def _loudness(verbose: Any) -> int:
    if isinstance(verbose, (bool, np.bool_)):
        return int(verbose)
    return _input.whole("verbose", verbose, 0)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _on_terminal(stream: TextIO) -> Callable[[float, str], None]:
    def draw(share: float, text: str) -> None:
        full = round(_WIDTH * share)
        line = f"{'█' * full}{'░' * (_WIDTH - full)} {text}"
        # back to the start of the line, and away with what is left of a longer one; what does not fit would begin another
        stream.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        stream.flush()

    return draw


def _notebook() -> Callable[[float, str], None] | None:
    """Draws below the cell that runs, if this is a notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    shown: list[Any] = []

    def draw(share: float, text: str) -> None:
        picture = {
            "text/plain": f"{round(100 * share):3d} % {text}",
            "text/html": f'<progress value="{share:.3f}" max="1"></progress> <code>{html.escape(text)}</code>',
        }
        if shown:
            shown[0].update(picture, raw=True)
        else:
            shown.append(display(picture, raw=True, display_id=True))

    return draw


def _numbers(objective: float, gap: float) -> str:
    """What is known of the two."""
    known = "" if math.isnan(objective) else f", objective {objective:.8g}"
    return known if math.isnan(gap) else f"{known}, gap {gap:.1e}"
