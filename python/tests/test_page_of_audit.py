"""From a table to its audit, its page, what a reader decides there, and the corrected table: nothing in between is made up."""

import csv
import io
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest

import outlast
from page import HOSTILE, browser, decisions, listed, parsed, press, session  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
KINDS = [HOSTILE[0], HOSTILE[3], HOSTILE[4], HOSTILE[6]]
WRONG = {4: 1, 21: 2, 50: 3, 83: 0}
"""Row, counted from 1, and the class it is given by mistake."""


def command():
    """The command as it was built last."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in (target / "debug" / "outlast", target / "release" / "outlast") if path.is_file()]
    if not built:
        pytest.skip("the command is not built: cargo build -p outlast-cli")
    return max(built, key=lambda path: path.stat().st_mtime)


def table():
    """Four clouds; every name and text is an attack."""
    rng = random.Random(0)
    rows = []
    for row in range(1, 121):
        kind = row % 4
        values = [f"{8 * (kind % 2) + rng.gauss(0, 1):.3f}", f"{8 * (kind // 2) + rng.gauss(0, 1):.3f}"]
        rows.append([*values, HOSTILE[row % len(HOSTILE)], KINDS[WRONG.get(row, kind)]])
    return [[HOSTILE[1], HOSTILE[2], "note", "kind"], *rows]


def written(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def open_new(browser, path):
    browser.open(path)
    browser.run("localStorage.clear()")
    browser.reload()


def decide(browser):
    """Takes the first suspect's suggestion, gives the second another class, drops the third, keeps the fourth."""
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "r")
    second = listed(browser)[1]
    press(browser, "1")
    if decisions(browser)[second] == "keep":  # it has that class
        press(browser, "p", "2")
    press(browser, "d", "k")
    assert len(decisions(browser)) == 4


def test_what_is_decided_on_the_page_is_what_the_command_applies(browser, tmp_path):
    outlast_command = command()
    (tmp_path / "pets.csv").write_text(written(table()), encoding="utf-8", newline="")
    run = lambda *arguments: subprocess.run([outlast_command, *arguments], cwd=tmp_path, check=True, capture_output=True)  # noqa: E731
    # the text is no feature, but a part of the table
    run("audit", "pets.csv", "--target", "kind", "--ignore", "note", "--html", "page.html", "--csv", "suspects.csv")
    open_new(browser, tmp_path / "page.html")
    assert set(WRONG) == set(listed(browser)[: len(WRONG)]), "the wrong labels are the first suspects"
    assert browser.value("window.hacked") is None
    decide(browser)
    browser.click("#download-decisions")
    decided = browser.downloaded("pets-decisions.csv")
    assert len(parsed(decided)) == 5
    browser.click("#download-table")
    corrected = parsed(browser.downloaded("pets-corrected.csv"))
    (tmp_path / "decisions.csv").write_text(decided, encoding="utf-8", newline="")
    run("apply-decisions", "pets.csv", "decisions.csv", "--target", "kind", "-o", "corrected.csv")
    applied = parsed((tmp_path / "corrected.csv").read_bytes().decode("utf-8"))
    # readers take the end of a line within a cell for a line feed; the command leaves every byte alone
    applied = [[cell.replace("\r\n", "\n") for cell in row] for row in applied]
    assert corrected == applied
    # and both are what Python makes of the decisions
    rows = table()
    for row, decision, label in parsed(decided)[1:]:
        if decision == "relabel":
            rows[int(row)][3] = label
    dropped = {int(row) for row, decision, _ in parsed(decided)[1:] if decision == "drop"}
    assert len(dropped) == 1
    rows = [[cell.replace("\r\n", "\n") for cell in row] for row in rows]
    assert applied == [cells for row, cells in enumerate(rows) if row not in dropped]


def test_the_page_of_a_frame_gives_the_frame_back(browser, tmp_path):
    rows = table()
    frame = pandas.DataFrame([[float(value) for value in row[:2]] for row in rows[1:]], columns=rows[0][:2])
    kind = pandas.Series([row[3] for row in rows[1:]], name="kind")
    found = outlast.audit(frame, kind, random_state=0)
    found.to_html(tmp_path / "page.html", source="frame")
    open_new(browser, tmp_path / "page.html")
    assert listed(browser) == (found.suspects.index + 1).tolist()
    assert set(WRONG) == set(listed(browser)[: len(WRONG)])
    assert browser.texts("#headline dd")[:2] == ["120", str(len(found.suspects))]
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "r", "r", "d")
    browser.click("#download-table")
    header, *cells = parsed(browser.downloaded("frame-corrected.csv"))
    assert header == [*frame.columns, "kind"]
    first, second, third = found.suspects.index[:3]
    kind[[first, second]] = found.suspects["suggested"][:2].to_numpy()
    expected, labels = frame.drop(index=third), kind.drop(index=third)
    np.testing.assert_array_equal(np.array([row[:2] for row in cells], dtype=float), expected.to_numpy())
    assert [row[2] for row in cells] == labels.tolist()
