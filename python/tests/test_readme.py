"""Every Python example of the README and of the documentation runs, and prints what the page says.

The blocks of a page are run one after the other and see each other's names. A block of language `output` right after one of
Python holds what that prints.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

import outlast
import outlast.plot

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:```output\n(?P<printed>.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)


def blocks(path):
    """The blocks of a page: code, on the lines it has there, and what it prints if the page tells."""
    text = path.read_text(encoding="utf-8")
    return [("\n" * text.count("\n", 0, found.start("code")) + found["code"], found["printed"]) for found in BLOCK.finditer(text)]


PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if blocks(path)]


def test_there_are_examples():
    assert len(PAGES) >= 10


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_examples_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for code, expected in blocks(path):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), names)
        assert expected is None or printed.getvalue() == expected


def test_reference_lists_every_name():
    listed = set((ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8").split())
    missing = {*outlast.__all__, *outlast.plot.__all__} - listed
    assert not missing, f"docs/reference/python.md lacks {sorted(missing)}"
