"""Results and how they are printed."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version


WORSE = 1e-6
"""Relative amount by which our objective may lie above the peer's before speed counts for nothing."""


@dataclass
class Result:
    """One row of the table."""

    name: str
    peer: str
    ours: float
    theirs: float | None
    """None where there is no one to compare with."""
    must: float | None = None
    want: float | None = None
    value: float | None = None
    gap: float | None = None
    peer_gap: float | None = None
    unit: str = "s"
    note: str = ""
    series: str = ""
    size: int = 0
    stopped: bool = False
    """Whether the peer ran into the limit: its time is more than `theirs`, the ratio less than `ratio`."""
    converged: bool = True

    @property
    def ratio(self):
        return self.ours / self.theirs if self.theirs else float("nan")

    @property
    def verdict(self):
        if self.must is None and self.want is None:
            return ""
        if not self.converged or (self.value is not None and not self.value <= 1.0 + WORSE):
            return "MISSED"
        if self.want is not None and self.ratio <= self.want:
            return "want"
        if self.must is None:
            return "not yet"
        if self.ratio <= self.must:
            return "must"
        # of a stopped peer only a bound of the ratio is known
        return "unknown" if self.stopped else "MISSED"


def _number(value, digits=3):
    return "" if value is None else f"{value:.{digits}g}"


def _power(value):
    return "" if value is None else f"{value:.0e}"


def _time(value):
    if value is None:
        return ""
    return f"{value:.4f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def table(results):
    head = ("work", "peer", "ours", "peer's", "unit", "ratio", "must", "want", "reached", "value", "gap", "peer's gap",
            "note")
    lines = [head]
    for row in results:
        lines.append((
            row.name, row.peer, _time(row.ours), "> " * row.stopped + _time(row.theirs), row.unit,
            "< " * row.stopped + _number(row.theirs and row.ratio), _number(row.must), _number(row.want), row.verdict,
            _number(row.value, 6), _power(row.gap), _power(row.peer_gap), row.note,
        ))
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    left = {0, 1, 4, 8, 12}
    text = []
    for line in lines:
        cells = (cell.ljust(width) if column in left else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(line, widths, strict=True)))
        text.append("  ".join(cells).rstrip())
    text.insert(1, "-" * max(map(len, text)))
    return "\n".join(text)


def short(row):
    """A row in a few words, for whoever waits."""
    if not row.theirs:
        return f"{_time(row.ours)} {row.unit}"
    return f"{_time(row.ours)} / {_time(row.theirs)} {row.unit} = {_number(row.ratio)} {row.verdict}".rstrip()


def growth(results):
    """How the time grows when n doubles, for each series of sizes."""
    lines = []
    for series in dict.fromkeys(row.series for row in results if row.series):
        sizes = sorted((row for row in results if row.series == series), key=lambda row: row.size)
        for small, large in zip(sizes, sizes[1:]):
            line = f"  {series}: n {small.size} -> {large.size}: ours x {large.ours / small.ours:.2f}"
            if small.theirs and large.theirs and not (small.stopped or large.stopped):
                line += f", {large.peer} x {large.theirs / small.theirs:.2f}"
            lines.append(line)
    return "\n".join(["", "growth of the time with n:", *lines]) if lines else ""


def machine():
    packages = {}
    for name in ("outlast", "numpy", "scikit-learn", "scikit-learn-intelex", "rehline"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "packages": packages}
