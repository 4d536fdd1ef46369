"""Whatever the data hold, the audit's page runs nothing of it."""

import re
import time

from selenium.webdriver.common.action_chains import ActionChains

from page import HOSTILE, browser, corrected, hostile, make, parsed, pick, press, session, show  # noqa: F401


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
    assert browser.texts("#reasons bdi") == HOSTILE
    assert browser.texts("#headline dd bdi") == [value for _, value in page["headline"]]
    assert browser.texts("#target, #version") == [HOSTILE[0], HOSTILE[2]]
    assert browser.text("#source") == page["source"]
    browser.click("#download-table")
    [name] = [path.name for path in wait_for_file(browser)]
    assert re.fullmatch(r"[\w.-]+-corrected\.csv", name)
    relabelled = {30: HOSTILE[page["suspects"][1]["suggested"]], 32: HOSTILE[3]}
    assert parsed(browser.downloaded(name)) == parsed(corrected(page, drop={31}, relabel=relabelled))


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
