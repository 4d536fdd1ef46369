"""Decisions on the audit's page: by key and by mouse, kept and downloaded."""

import json

from outlast._core import write_page
from selenium.webdriver.common.keys import Keys

from page import browser, chosen, corrected, decisions, listed, make, parsed, pick, press, session, show  # noqa: F401


def test_decisions_by_key(browser, show):
    show(make())
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k")
    assert decisions(browser) == {29: "keep"}
    assert chosen(browser) == 30
    assert browser.text("#live") == "Row 29: keep. 1 of 12 decided."
    press(browser, "r", "d", Keys.ARROW_DOWN, "n", "j", Keys.ARROW_UP, "p")
    assert decisions(browser) == {29: "keep", 30: "relabel to class a", 31: "drop"}
    assert chosen(browser) == 33
    press(browser, "1")
    press(browser, "3")
    marked = {29: "keep", 30: "relabel to class a", 31: "drop", 33: "relabel to class a", 34: "relabel to class c"}
    assert decisions(browser) == marked
    press(browser, "u", "u", "u")
    assert decisions(browser) == {29: "keep", 30: "relabel to class a"}
    assert chosen(browser) == 31
    assert browser.text("#live").startswith("Undone. Row 31: no decision.")
    assert "2 of 12 decided: 1 keep, 1 relabel, 0 drop" in browser.text("#progress")


def test_the_chosen_row_is_in_sight(browser, show):
    show(make(rows=400, suspects=200))
    browser.run("document.querySelector('#body tr').focus()")
    inside = """const [row, box] = ['#body tr[aria-current]', '#scroll'].map((s) => document.querySelector(s).getBoundingClientRect());
        const head = document.getElementById('heads').getBoundingClientRect();
        return row.top >= head.bottom - 1 && row.bottom <= box.bottom + 1"""
    for key, row in [(Keys.END, 400), (Keys.ARROW_UP, 399), (Keys.HOME, 201), (Keys.PAGE_DOWN, 211), ("n", 212)]:
        press(browser, key)
        assert chosen(browser) == row
        assert browser.run(inside), key


def test_keys_leave_typing_alone(browser, show):
    show(make())
    browser.find("#find").send_keys("kdr1")
    press(browser, Keys.ESCAPE)
    assert decisions(browser) == {}
    browser.click("#filters [type=reset]")
    browser.wait("document.querySelectorAll('#body tr').length === 12")
    browser.click(".keys summary")
    browser.click("#shortcuts")
    press(browser, "k", "d")
    assert decisions(browser) == {}


def test_decisions_under_a_filter_step_on(browser, show):
    show(make())
    pick(browser, "#decided", "none yet")
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "k")
    assert listed(browser) == list(range(31, 41))
    assert chosen(browser) == 31


def test_decisions_by_mouse(browser, show):
    show(make())
    browser.click("#body tr:nth-child(2) [data-mark=drop]")
    browser.click("#body tr:nth-child(3) [data-mark=relabel]")
    assert decisions(browser) == {30: "drop", 31: "relabel to class b"}
    assert browser.value("document.querySelector('#body tr:nth-child(3) [data-mark=relabel]').ariaPressed") == "true"
    browser.click("#body tr:nth-child(2) [data-mark=drop]")
    assert decisions(browser) == {31: "relabel to class b"}
    browser.click("#body tr:nth-child(4) td.given")
    assert browser.text("#detail-title") == "Row 32"
    pick(browser, "#relabel", "class a")
    assert browser.text("#body tr:nth-child(4) td.suggested") == "→ class a class c"
    browser.click("#body tr:nth-child(5) td.given")
    browser.click(".detail [data-mark=keep]")
    assert decisions(browser) == {31: "relabel to class b", 32: "relabel to class a", 33: "keep"}
    browser.click("#undo")
    assert decisions(browser) == {31: "relabel to class b", 32: "relabel to class a"}


def test_keys_on_other_buttons_decide_nothing(browser, show):
    show(make())
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k")
    for selector in ("#undo", "#legend button", "#heads button", "#log", ".keys summary", "#confusion button", "#download-table"):
        before = decisions(browser)
        browser.run("const e = document.querySelector(arguments[0]); e.focus(); if (document.activeElement !== e) throw new Error(arguments[0])", selector)
        press(browser, "d", "k", "r", "u", "1")
        assert decisions(browser) == before, selector
        assert "when the list has the focus" in browser.text("#live")
    # on the buttons that decide about a row they do what they say
    browser.run("document.querySelector('.detail [data-mark=keep]').focus()")
    press(browser, "d")
    assert decisions(browser) == {29: "keep", 30: "drop"}
    browser.click("#body tr:nth-child(3) [data-mark=keep]")
    press(browser, "d")
    assert decisions(browser)[31] == "drop"
    browser.run("document.activeElement.blur()")
    press(browser, "u")
    assert decisions(browser)[31] == "keep"


def test_a_row_that_looks_like_its_class_asks_for_another(browser, show):
    page = make()
    page["suspects"][0]["suggested"] = page["labels"][28]
    show(page)
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "r")
    assert decisions(browser) == {}
    assert browser.value("document.activeElement.id") == "relabel"


def test_decisions_survive_a_reload(browser, show):
    path = show(make(), "one.html")
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "1", "d")
    before = decisions(browser)
    assert len(before) == 3
    browser.reload()
    assert decisions(browser) == before
    assert "3 of 12 decided" in browser.text("#progress")
    # another audit has decisions of its own
    other = path.parent / "other.html"
    write_page(json.dumps(make(seed=1)), str(other))
    browser.open(other)
    assert decisions(browser) == {}
    browser.open(path)
    assert decisions(browser) == before


def test_damaged_memory_is_not_believed(browser, show):
    show(make())
    stored = '[[28, "relabel", 99], [29, "explode", 0], [2, "drop", null], [30, "drop", null], 7, null, [{}]]'
    browser.run("localStorage.setItem('outlast-audit-' + data.dataset.key, arguments[0])", stored)
    browser.reload()
    assert decisions(browser) == {31: "drop"}


def test_a_browser_that_keeps_nothing_says_so(browser, show):
    path = show(make())
    refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })"
    script = browser.tell("Page.addScriptToEvaluateOnNewDocument", source=refuse)
    try:
        browser.open(path)
        assert "keeps nothing" in browser.text("#warning")
        assert browser.find("#warning").is_displayed()
        browser.run("document.querySelector('#body tr').focus()")
        press(browser, "k")
        assert decisions(browser) == {29: "keep"}
    finally:
        browser.tell("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_downloads(browser, show):
    page = make()
    page["cells"][1][0] = 'a "quoted", cell\nof two lines'
    page["header"][0] = "x, y"
    show(page)
    browser.click("#download-table")
    assert parsed(browser.downloaded("people-corrected.csv")) == parsed(corrected(page))
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "r", "d", "1")
    browser.click("#download-decisions")
    text = browser.downloaded("people-decisions.csv")
    assert text == "row,decision,label\n29,keep,\n30,relabel,class a\n31,drop,\n32,relabel,class a\n"
    browser.click("#download-table")
    assert browser.downloaded("people-corrected.csv") == corrected(page, drop={31}, relabel={30: "class a", 32: "class a"})


def test_download_without_header_and_target(browser, show):
    page = make()
    page["cells"].pop()
    page["numeric"].pop()
    page.update(header=None, target_column=None, source="people.svm.gz")
    show(page)
    browser.click("#body tr:nth-child(1) [data-mark=drop]")
    browser.click("#body tr:nth-child(2) [data-mark=relabel]")
    browser.click("#download-table")
    rows = parsed(browser.downloaded("people-corrected.csv"))
    expected = [[*cells, page["classes"][label]] for *cells, label in zip(*page["cells"], page["labels"])]
    expected[29][-1] = "class a"
    del expected[28]
    assert rows == expected


def test_a_table_too_large_to_carry(browser, show):
    show(make() | {"cells": [], "numeric": [], "header": None})
    assert not browser.find("#download-table").is_displayed()
    assert "outlast apply-decisions" in browser.text("#no-table")
    assert browser.find("#no-table").is_displayed()
    browser.click("#body tr:nth-child(1) [data-mark=keep]")
    browser.click("#download-decisions")
    assert browser.downloaded("people-decisions.csv") == "row,decision,label\n29,keep,\n"
