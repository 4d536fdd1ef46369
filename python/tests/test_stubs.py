"""The stubs say what the compiled module has, and the package's types hold together."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments):
    result = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_stubs_match_the_module():
    run("mypy.stubtest", "outlast._core", "--mypy-config-file", "pyproject.toml")


def test_types_hold_together():
    run("mypy")
