"""Every Python example of the README runs."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_examples_of_the_readme(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert blocks, "README.md has no ```python block"
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(README), "exec"), {"__name__": "readme"})
