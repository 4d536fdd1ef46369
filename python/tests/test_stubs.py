"""The stubs say what the compiled module has, the package's types hold together and at runtime, and everything public is explained."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import outlast
from outlast import plot

ROOT = Path(__file__).parents[2]
PUBLIC = [(module, name) for module in (outlast, plot) for name in module.__all__ if not inspect.ismodule(getattr(module, name))]


def run(*arguments):
    result = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_stubs_match_the_modules():
    allowed = ["--allowlist", "python/tests/stubtest.txt", "--ignore-unused-allowlist"]
    run("mypy.stubtest", "outlast", "--mypy-config-file", "pyproject.toml", *allowed)


def test_types_hold_together():
    run("mypy")


SEEN = {
    "TruncatedSVC().predict_proba([[1.0]])": "ndarray",
    "TruncatedSVC().predict_log_proba([[1.0]])": "ndarray",
    "TruncatedSVC().predict([[1.0]])": "ndarray",
    "TruncatedSVCCV().fit([[1.0]], [1], groups=[0])": "TruncatedSVCCV",
    "plot.margins(TruncatedSVC())": "Axes",
    "load('model').status_": "str",
}
"""Expressions, and the types that a type checker sees, without what they are made of."""


def test_a_type_checker_sees_types(tmp_path):
    lines = ["from outlast import TruncatedSVC, TruncatedSVCCV, load, plot", *(f"reveal_type({code})" for code in SEEN)]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n")
    found = subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)],
                           capture_output=True, text=True, cwd=ROOT / "python")
    revealed = [line.split('"')[1] for line in found.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == len(SEEN), found.stdout + found.stderr
    for expected, line in zip(SEEN.values(), revealed, strict=True):
        assert re.sub(r"[a-z_]+\.", "", line).split("[")[0] == expected


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda value: getattr(value, "__name__", value))
def test_everything_public_is_explained_with_an_example(module, name):
    thing = getattr(module, name)
    text = inspect.getdoc(thing)
    assert ">>>" in text and "Examples\n--------" in text, f"{name} has no example"
    parameters = [name for name in inspect.signature(thing).parameters]
    for parameter in parameters:
        assert f"\n{parameter} : " in text or f"\n{parameter}, " in text, f"{name} does not explain {parameter}"
    if not inspect.isclass(thing):
        assert "Returns\n-------" in text, f"{name} does not say what it returns"
        return
    for method_name, method in inspect.getmembers(thing, inspect.isfunction):
        if method_name.startswith("_") or not method.__module__.startswith("outlast"):
            continue
        own = inspect.getdoc(method)
        assert own, f"{name}.{method_name} is not explained"
        for parameter in inspect.signature(method).parameters:
            assert parameter == "self" or f"\n{parameter} : " in own, f"{name}.{method_name} does not explain {parameter}"


def entries(text):
    """The entries of a docstring in numpydoc's form: name and what follows it."""
    found, name = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" ") and " : " in line:
            name = line
            found[name] = []
        elif not line.startswith(" "):
            name = None
        elif name is not None:
            found[name].append(line.strip())
    return {name: " ".join(lines) for name, lines in found.items()}


@pytest.mark.parametrize("name", ["CappedSVCCV", "AblationSVCCV"])
def test_searches_explain_alike_what_they_have_alike(name):
    """Docstrings are written out, for those who read them in an editor; what is the same must read the same."""
    ours = entries(inspect.getdoc(getattr(outlast, name)).replace(name.removesuffix("CV"), "TruncatedSVC"))
    model = entries(inspect.getdoc(outlast.TruncatedSVCCV))
    # what a payoff matrix or another kernel changes
    payoffs = {"best_score_ : float", "errors_ : ndarray"}
    same = set(ours) & set(model) - payoffs
    assert {"cv_results_ : dict", "cv : int, splitter or iterable of (train, test) positions, default=5", "n_splits_ : int"} <= same and len(same) > 20
    for entry in same:
        if ours[entry] != model[entry]:
            assert entry.startswith(("solver", "loss", "kernel", "tol", "max_iter", "fit_intercept", "cache_size")), (entry, ours[entry], model[entry])
