"""The audit's page in a real browser: it opens, sorts, filters, and the map and the table belong together."""

import json

import pytest
from outlast._core import write_page
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from page import browser, chosen, head, listed, make, pick, press, session, show  # noqa: F401


def test_opens_and_loads_nothing(browser, show):
    show(make())
    assert browser.driver.title == "Label audit of data/people.csv"
    assert browser.texts("#headline dd") == ["40", "12"]
    assert listed(browser) == list(range(29, 41))
    assert browser.value("performance.getEntriesByType('resource').length") == 0
    assert "0 of 12 decided" in browser.text("#progress")
    assert browser.texts("#model dd") == ["truncated", "10"]
    assert browser.value("document.querySelectorAll('#confusion td').length") == 10


@pytest.mark.parametrize("classes", [2, 12, 30])
def test_any_number_of_classes(browser, show, classes):
    show(make(rows=120, classes=classes))
    assert len(browser.texts("#legend button")) == classes
    assert len(listed(browser)) == 12


def test_gaps_in_everything(browser, show):
    page = make()
    page["margins"] = [None] * 40
    page["components"][0][3] = None
    page["scores"][0] = page["suspects"][0]["score"] = page["suspects"][0]["confidence"] = None
    page["cells"][0][5] = "n/a"
    page.update(truncation=None, noise=[], confusion=[], header=None, model=[], headline=[], first_line=0)
    show(page)
    assert listed(browser)[-1] == 29, "a row without a score comes last"
    pick(browser, "#across", "column 1")
    assert "1 row without a number here is not drawn" in browser.text("#map-note")


def test_nothing_suspect(browser, show):
    show(make(suspects=0))
    assert browser.text("#nothing") == "No row of this table looks wrong."
    press(browser, "k", "r", "d", "u", "j", "1")
    assert "0 of 0 decided" in browser.text("#progress")


def test_sorts(browser, show):
    page = make()
    page["cells"][0][30] = "n/a"
    show(page)
    button = head(browser, "Row")
    button.click()
    assert listed(browser) == list(range(29, 41))
    button.click()
    assert listed(browser) == list(range(40, 28, -1))
    assert browser.value("document.querySelector('th.row').getAttribute('aria-sort')") == "descending"
    assert browser.value("document.querySelectorAll('[aria-sort]').length") == 1
    for descending in (False, True):
        head(browser, "x0").click()
        values = {row: float(page["cells"][0][row - 1]) for row in range(29, 41) if row != 31}
        assert listed(browser) == [*sorted(values, key=values.get, reverse=descending), 31]
    head(browser, "Given").send_keys(Keys.ENTER)
    names = [page["cells"][3][row - 1] for row in listed(browser)]
    assert names == sorted(names)


def test_filters(browser, show):
    page = make()
    show(page)
    given = {row: page["labels"][row - 1] for row in range(29, 41)}
    browser.find("#find").send_keys("REASON 1")
    assert listed(browser) == [30, 39, 40], "reason 1, 10 and 11"
    browser.click("#filters [type=reset]")
    browser.wait("document.querySelectorAll('#body tr').length === 12")
    pick(browser, "#given", "class b")
    assert listed(browser) == [row for row in given if given[row] == 1]
    pick(browser, "#suggested", "class b")
    assert listed(browser) == []
    assert browser.text("#nothing") == "No row passes the filter."
    browser.click("#filters [type=reset]")
    browser.wait("document.querySelectorAll('#body tr').length === 12")
    browser.find("#least").send_keys("0.8")
    assert listed(browser) == [29, 30, 31]
    browser.click("#filters [type=reset]")
    browser.wait("document.querySelectorAll('#body tr').length === 12")
    press(browser, Keys.ESCAPE)
    browser.run("document.querySelector('#body tr').focus()")
    press(browser, "k", "d")
    for choice, rows in {"none yet": list(range(31, 41)), "some": [29, 30], "keep": [29], "relabel": [], "drop": [30]}.items():
        pick(browser, "#decided", choice)
        assert listed(browser) == rows, choice


def test_a_cell_of_the_matrix_lists_its_suspects(browser, show):
    page = make()
    show(page)
    browser.click("#confusion tbody tr:nth-child(2) button")
    assert listed(browser) == [row for row in range(29, 41) if page["labels"][row - 1] == 1]


def spot(browser, page, row):
    """Where a row (counted from 0) lies on the screen."""
    script = """const full = document.getElementById('map-axes')._fullLayout;
        const box = document.getElementById('map-plot').getBoundingClientRect();
        const [x, y] = arguments;
        const share = (value, [low, high]) => (value - low) / (high - low);
        return [box.left + full._size.l + full._size.w * share(x, full.xaxis.range),
                box.top + full._size.t + full._size.h * (1 - share(y, full.yaxis.range))]"""
    return browser.run(script, *[component[row] for component in page["components"]])


def move_to(browser, position):
    actions = ActionChains(browser.driver)
    actions.w3c_actions.pointer_action.move_to_location(*[round(value) for value in position])
    actions.perform()
    return actions


def test_map_and_table_are_linked(browser, show):
    page = make()
    for place, row in enumerate(range(28, 40)):
        page["components"][0][row], page["components"][1][row] = 5 + place, 5 + place % 3
    show(page)
    browser.run("scrollTo(0, 0)")
    move_to(browser, spot(browser, page, 33))
    assert browser.texts("#body tr.near th") == ["34"]
    assert browser.text("#tip").startswith("Row 34, given class a, looks like class b")
    ActionChains(browser.driver).click().perform()
    assert chosen(browser) == 34
    browser.find("#find").send_keys("reason 1")
    move_to(browser, spot(browser, page, 33))
    ActionChains(browser.driver).click().perform()
    assert chosen(browser) == 34
    assert len(listed(browser)) == 12, "a row that the filter hides brings the whole list back"
    before = browser.value("document.getElementById('map-rows').toDataURL()")
    browser.click("#legend button")
    assert browser.value("document.getElementById('map-rows').toDataURL()") != before


def test_zoom_moves_the_points(browser, show):
    page = make()
    show(page)
    before = browser.value("document.getElementById('map-rows').toDataURL()")
    left, top = spot(browser, page, 30)
    actions = ActionChains(browser.driver)
    pointer = actions.w3c_actions.pointer_action
    pointer.move_to_location(round(left) - 40, round(top) - 40)
    pointer.pointer_down()
    pointer.move_to_location(round(left), round(top))
    pointer.move_to_location(round(left) + 40, round(top) + 40)
    pointer.pointer_up()
    actions.perform()
    browser.wait(f"document.getElementById('map-rows').toDataURL() !== '{before}'")


def test_lists_that_do_not_fit_are_refused(tmp_path):
    page = make()
    page["margins"].pop()
    with pytest.raises(ValueError, match="margins of the page has 39 values, expected 40"):
        write_page(json.dumps(page), str(tmp_path / "page.html"))
    with pytest.raises(ValueError, match="unknown field"):
        write_page(json.dumps(make() | {"more": 1}), str(tmp_path / "page.html"))
    assert list(tmp_path.iterdir()) == []
