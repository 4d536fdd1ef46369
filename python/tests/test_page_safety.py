"""Whatever the data hold, the audit's page runs nothing of it."""

import re
import time

from selenium.webdriver.common.action_chains import ActionChains

from page import HOSTILE, browser, corrected, hostile, make, parsed, pick, press, seen, session, show  # noqa: F401


def test_hostile_text_runs_nothing_and_is_shown(browser, show):
    page = hostile()
    show(page)
    for index in range(8):
        pick(browser, "#across", index)
        pick(browser, "#up", 7 - index)
    for row in range(1, 13):
        browser.click(f"#body tr:nth-child({row}) td.given")
        ActionChains(browser.driver).move_to_element(browser.find(f"#body tr:nth-child({row}) td.suggested")).perform()
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "r", "d", "4")
    time.sleep(0.3)
    assert browser.value("window.hacked") is None
    assert browser.driver.get_log("browser") == [], "no dialog, no script, nothing refused"
    counts = browser.run("return ['script', 'img', 'b', 'a', 'iframe', 'i'].map((tag) => document.querySelectorAll(tag).length)")
    assert counts == [3, 0, 0, 1, 0, 0]
    # the last choice: a column named like a script across, the first component up
    assert browser.texts("#map-axes .xtitle, #map-axes .ytitle") == [HOSTILE[3], "Component 1"]
    for index, name in enumerate(HOSTILE[:4]):
        pick(browser, "#across", 4 + index)
        assert browser.texts("#map-axes .xtitle") == [name if len(name) <= 48 else name[:48] + "…"]
    assert browser.texts("#reasons bdi") == [seen(text) for text in HOSTILE]
    assert browser.texts("#headline dd bdi") == [seen(value) for _, value in page["headline"]]
    assert browser.texts("#target, #version") == [HOSTILE[0], HOSTILE[2]]
    assert browser.text("#source") == page["source"]
    browser.click("#download-table")
    [name] = [path.name for path in wait_for_file(browser)]
    assert re.fullmatch(r"[\w.-]+-corrected\.csv", name)
    relabelled = {30: HOSTILE[page["suspects"][1]["suggested"]], 32: HOSTILE[3]}
    assert parsed(browser.downloaded(name)) == parsed(corrected(page, drop={31}, relabel=relabelled))


def test_nothing_turns_the_direction_of_text(browser, show):
    """A class named after another, spelt backwards behind an override, does not look like it."""
    page = make()
    page["classes"][1] = turned = "\u202ea ssalc\u202c"
    page["source"] = page["target"] = page["header"][0] = page["suspects"][0]["reasons"][0] = turned
    page["cells"][3] = [page["classes"][label] for label in page["labels"]]
    show(page)
    assert seen(turned) == "\\u{202e}a ssalc\\u{202c}"
    for selector in ("#source", "#target", "#body td.given", "#relabel option", "#given option", "#across option", "#legend bdi", "#confusion th", "#reasons li"):
        assert any(seen(turned) in text for text in browser.texts(selector)), selector
    pick(browser, "#across", 4)
    assert browser.texts("#map-axes .xtitle") == [seen(turned)]
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "2")
    left = """const parts = [document.title, ...[...document.querySelectorAll('body *')].flatMap((e) => [e.title || '', e.ariaLabel || ''])];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('script')) parts.push(walker.currentNode.data);
        return parts.filter((text) => /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text))"""
    assert browser.run(left) == []
    # what leaves the page is what came in
    browser.click("#download-decisions")
    assert browser.downloaded("_a_ssalc_-decisions.csv") == f"row,decision,label\n29,keep,\n30,relabel,{turned}\n"


def wait_for_file(browser):
    end = time.monotonic() + 30
    while not (files := [path for path in browser.downloads.iterdir() if path.suffix == ".csv"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    return files


def test_the_policy_stops_a_script_that_found_a_way_in(browser, show):
    show(make())
    browser.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    browser.run("const i = document.createElement('div'); i.innerHTML = '<img src=x onerror=\"window.hacked = 2\">'; document.body.append(i)")
    time.sleep(0.2)
    assert browser.value("window.hacked") is None
    complaints = browser.complaints()
    assert complaints and all("Content Security Policy" in complaint for complaint in complaints)
