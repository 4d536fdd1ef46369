"""Writes reference/command.md from what the command says about itself.

    python docs/commands.py [OUTLAST]

OUTLAST is the command, by default target/release/outlast. A test of the command (tests/cli/reference.rs) checks that the page holds exactly
what the command prints.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent
HEAD = """\
# Command reference

What `outlast --help` and `outlast COMMAND --help` print; this page is written by `docs/commands.py`. Options carry the names of
the Python parameters, with dashes.
"""


def help_of(command: str, *words: str) -> str:
    wide = {**os.environ, "COLUMNS": "86"}
    printed = subprocess.run([command, *words, "--help"], env=wide, capture_output=True, text=True, check=True).stdout
    return "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())


def section(title: str, text: str) -> str:
    return f"\n## {title}\n\n```text\n{text}```\n"


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else str(DOCS.parent / "target" / "release" / "outlast")
    overview = help_of(command)
    listed = overview.split("Commands:\n")[1].split("\n\n")[0]
    names = [name for name in re.findall(r"^  (\S+)", listed, flags=re.MULTILINE) if name != "help"]
    page = HEAD + section("outlast", overview) + "".join(section(f"outlast {name}", help_of(command, name)) for name in names)
    (DOCS / "reference" / "command.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
