"""Audit pages for the tests, and a browser that shows them.

The fixtures `browser` and `show` are used by the tests of every file that imports them, together with `session`."""

import csv
import io
import json
import random

import pytest
from outlast._core import write_page
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import Select

import browser as chromium

if chromium.NO_BROWSER:
    pytest.skip("OUTLAST_NO_BROWSER=1: THE AUDIT PAGE IS NOT TESTED IN A BROWSER", allow_module_level=True)


HOSTILE = [
    "</script><script>window.hacked=1;alert(1)</script>",
    '"><img src=x onerror="window.hacked=2">',
    "<b onmouseover=alert(3)>bold</b><a href='javascript:window.hacked=4'>link</a>",
    "=cmd|' /C calc'!A0",
    "\u202egnp.exe\u202c \u2066\u200f",
    "🎲👩‍👩‍👧 \u2028\u2029 ${window.hacked=5} {{script}} %{x} $x^2$ &lt;i&gt;",
    '",\r\n"; DROP',
    "",
]


def seen(text):
    """A text as the page shows it: what turns its direction is spelt out."""
    turns = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return "".join(f"\\u{{{ord(sign):x}}}" if ord(sign) in turns else sign for sign in text)


def make(rows=40, classes=3, suspects=12, seed=0, columns=3):
    """A page that fits together; suspects are the last rows, the most suspect first."""
    rng = random.Random(seed)
    names = [f"class {chr(97 + code)}" if classes <= 26 else f"class {code}" for code in range(classes)]
    labels = [row % classes for row in range(rows)]
    numbers = [[f"{rng.gauss(labels[row], 1):.3f}" for row in range(rows)] for _ in range(columns)]
    listed = [rows - suspects + place for place in range(suspects)]
    return {
        "version": "1.2.3",
        "source": "data/people.csv",
        "target": "label",
        "target_column": columns,
        "header": [f"x{column}" for column in range(columns)] + ["label"],
        "cells": [*numbers, [names[label] for label in labels]],
        "numeric": [True] * columns + [False],
        "classes": names,
        "labels": labels,
        "first_line": 2,
        "components": [[rng.gauss(label, 1) for label in labels] for _ in range(2)],
        "margins": [rng.gauss(-1 if row in listed else 1, 0.5) for row in range(rows)],
        "scores": [rng.random() for _ in range(rows)],
        "suspects": [
            {
                "row": row,
                "score": 0.9 - 0.5 * place / max(1, suspects),
                "suggested": (labels[row] + 1) % classes,
                "confidence": rng.random(),
                "agreement": 1.0,
                "reasons": [f"reason {place}", "truncated in the final fit"],
            }
            for place, row in enumerate(listed)
        ],
        "truncation": -0.5,
        "confusion": [[rng.randrange(50) for _ in names] for _ in names],
        "noise": [[1 / classes for _ in names] for _ in names],
        "model": [["method", "truncated"], ["C", "10"]],
        "headline": [["Rows", str(rows)], ["Rows to look at", str(suspects)]],
    }


def hostile():
    """Every text of the page is an attack."""
    page = make(rows=40, classes=len(HOSTILE), columns=len(HOSTILE))
    attack = lambda row: HOSTILE[row % len(HOSTILE)]  # noqa: E731
    page["classes"] = list(HOSTILE)
    page["header"] = [*HOSTILE, "label"]
    page["cells"] = [*page["cells"][:4], *[[attack(row) for row in range(40)] for _ in range(4)]]
    page["cells"].append([attack(label) for label in page["labels"]])
    page["numeric"] = [True] * 4 + [False] * 5
    page["headline"] = page["model"] = [[attack(row), attack(row + 1)] for row in range(len(HOSTILE))]
    page.update(source="a/" + HOSTILE[1] + ".csv", target=HOSTILE[0], version=HOSTILE[2])
    for suspect in page["suspects"]:
        suspect["reasons"] = list(HOSTILE)
    return page


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    session = chromium.Browser(tmp_path_factory.mktemp("downloads"))
    yield session
    session.close()


@pytest.fixture
def browser(session):
    """The browser as new; after the test its console must be empty."""
    session.window(1400, 1000)
    session.colours("light")
    session.driver.get("about:blank")
    session.complaints()
    yield session
    assert session.complaints() == []


@pytest.fixture
def show(browser, tmp_path):
    """Writes a page and opens it, with nothing decided yet."""

    def show(page, name="page.html"):
        path = tmp_path / name
        write_page(json.dumps(page), str(path))
        browser.open(path)
        browser.run("localStorage.clear()")
        browser.reload()
        return path

    return show


def listed(browser):
    """The rows of the table as they stand, counted from 1."""
    return [int(text) for text in browser.texts("#body th")]


def decisions(browser):
    """Row -> decision, as the table shows them."""
    script = """return [...document.querySelectorAll("#body tr[data-decision]")].map((row) =>
        [Number(row.dataset.row) + 1, row.querySelector(".said").textContent])"""
    return dict(browser.run(script))


def press(browser, *keys):
    ActionChains(browser.driver).send_keys(*keys).perform()


def pick(browser, selector, choice):
    """Chooses from a list by text or place."""
    select = Select(browser.find(selector))
    select.select_by_index(choice) if isinstance(choice, int) else select.select_by_visible_text(choice)


def chosen(browser):
    return int(browser.text("#body tr[aria-current] th"))


def head(browser, title):
    script = "return [...document.querySelectorAll('#heads button')].find((b) => b.textContent === arguments[0])"
    return browser.run(script, title)


def corrected(page, drop=(), relabel=None):
    """The table that must come out, by Python's own writer; rows counted from 1."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if page["header"]:
        writer.writerow(page["header"])
    for row, cells in enumerate(zip(*page["cells"]), start=1):
        cells = list(cells)
        if row in (relabel or {}):
            cells[page["target_column"]] = relabel[row]
        if row not in drop:
            writer.writerow(cells)
    return out.getvalue()


def parsed(text):
    return list(csv.reader(io.StringIO(text, newline="")))
