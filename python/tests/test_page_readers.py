"""The audit's page for every reader: light and dark, on any screen, on paper, without a mouse, with many rows."""

import time

import pytest
from selenium.webdriver.common.keys import Keys

from page import browser, hostile, make, press, session, show  # noqa: F401


# A tenth of a second feels immediate; the rest is room for slow machines without a graphics card.
FLUID_MILLISECONDS = 300
OPEN_SECONDS = 30


CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const over = (top, under) => top.slice(0, 3).map((value, i) => value * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)));
const light = (rgb) => { const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b };
const ground = (element) => { if (!element) return [255, 255, 255];
    const own = channels(getComputedStyle(element).backgroundColor); return own[3] === 0 ? ground(element.parentElement) : over(own, ground(element.parentElement)) };
const poor = [];
for (const element of document.querySelectorAll('body *')) {
    if (element.closest('#map-axes, #margins, .unseen, script') || !element.checkVisibility()) continue;
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const under = ground(element);
    const [a, b] = [light(over(channels(getComputedStyle(element).color), under)), light(under)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push([element.tagName, element.className, element.textContent.slice(0, 30), (a + 0.05) / (b + 0.05)]);
}
return poor;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(browser, show, scheme):
    show(make(classes=5))
    browser.click("#body tr:nth-child(1) [data-mark=keep]")
    browser.click("#body tr:nth-child(2) [data-mark=relabel]")
    browser.click("#body tr:nth-child(3) [data-mark=drop]")
    browser.colours(scheme)
    font = "#1a1d21" if scheme == "light" else "#e8eaed"
    browser.wait(f"document.getElementById('map-axes')._fullLayout.font.color === '{font}'")
    ground = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    assert browser.run(CONTRAST) == []


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1920])
def test_fits_the_window(browser, show, width):
    page = hostile()
    page["cells"][5][30] = page["classes"][2] = "w" * 300
    browser.window(width, 800, phone=width < 700)
    show(page)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.body.scrollWidth") <= width
    edges = browser.run("return [...document.querySelectorAll('#body tr:first-child [data-mark]')].map((b) => b.getBoundingClientRect().right)")
    assert max(edges) <= width, "every row can be decided without scrolling sideways"


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_the_score(browser, show, width):
    browser.window(width, 800, phone=True)
    show(make())
    boxes = browser.run("""const box = (name) => document.querySelector('#body tr ' + name).getBoundingClientRect();
        return ['.row', '.score', '.given'].map(box).map((b) => [b.left, b.top, b.right, b.bottom, b.width])""")
    row, score, given = boxes
    assert browser.find("#body td.score").text == "0.9000" and score[4] > 30
    assert score[1] >= row[3] - 1 and score[2] <= given[0] + 1, "below the number of the row, beside the classes"
    tops = browser.run("return [...document.querySelectorAll('#body tr')].slice(0, 4).map((r) => [r.getBoundingClientRect().top, r.getBoundingClientRect().bottom])")
    assert all(above[1] <= below[0] + 1 for above, below in zip(tops, tops[1:]))
    browser.click("#heads th.score button")
    assert browser.value("document.querySelector('#heads th.score').ariaSort") == "ascending"


def test_a_long_legend_is_cut_between_its_lines(browser, show):
    show(make(rows=400, classes=60))
    cut = """const legend = document.getElementById('legend'), box = legend.getBoundingClientRect();
        return [...legend.children].map((b) => b.getBoundingClientRect())
            .filter((b) => b.top < box.bottom - 1 && b.bottom > box.bottom || b.bottom > box.top + 1 && b.top < box.top).length"""
    assert browser.value("legend.scrollHeight > legend.clientHeight")
    assert browser.run(cut) == 0
    for _ in range(3):
        browser.run("legend.scrollBy(0, 40)")
        time.sleep(0.3)
        assert browser.run(cut) == 0


def test_prints_every_suspect(browser, show):
    show(make(rows=200, suspects=100))
    browser.colours("dark")
    assert browser.pdf().startswith(b"%PDF")
    browser.tell("Emulation.setEmulatedMedia", media="print")
    assert browser.value("document.getElementById('scroll').clientHeight >= document.getElementById('table').clientHeight")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find("#download-table").is_displayed()
    # the rows are drawn once, with the suspects, on the canvas that has the size of the paper's chart
    assert not browser.find("#map-rows").is_displayed() and browser.find("#map-suspects").is_displayed()
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.wait("document.getElementById('map-suspects').width === 1280")
    inked = """const canvas = document.getElementById('map-suspects');
        const drawn = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const { xaxis, yaxis, _size: size } = document.getElementById('map-axes')._fullLayout;
        const [across, up] = JSON.parse(document.getElementById('data').textContent).components;
        const at = (value, [low, high], from, length) => Math.round(2 * (from + (value - low) / (high - low) * length));
        return across.slice(0, 100).filter((x, row) => {
            const place = [at(x, xaxis.range, size.l, size.w), at(up[row], [...yaxis.range].reverse(), size.t, size.h)];
            return drawn[4 * (place[1] * canvas.width + place[0]) + 3] > 0;
        }).length"""
    assert browser.run(inked) == 100, "each of the 100 rows that are no suspects"
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    browser.tell("Emulation.setEmulatedMedia", media="")


def test_everything_has_a_name_for_a_screen_reader(browser, show):
    show(make())
    nodes = browser.tell("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "searchbox", "spinbutton", "checkbox", "region", "table", "img", "columnheader"}
    wanted = [node for node in nodes if not node["ignored"] and node.get("role", {}).get("value") in roles]
    assert len(wanted) > 50
    assert [node for node in wanted if not node.get("name", {}).get("value")] == []


def test_the_keyboard_reaches_everything(browser, show):
    show(make())
    reached = set()
    browser.run("document.body.focus()")
    for _ in range(80):
        press(browser, Keys.TAB)
        reached.add(browser.value("document.activeElement.id || document.activeElement.tagName"))
    assert {"find", "given", "suggested", "decided", "least", "scroll", "TR", "across", "up", "relabel", "log", "download-table"} <= reached


def timed(browser, script):
    """Milliseconds of its own time that the page's thread needs for a script and what follows from it."""

    def spent():
        metrics = {metric["name"]: metric["value"] for metric in browser.tell("Performance.getMetrics")["metrics"]}
        return 1000 * metrics["TaskDuration"]

    before = spent()
    wait = "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 200))"
    browser.driver.execute_async_script(f"{script}; {wait}")
    return spent() - before


def test_twenty_thousand_rows_stay_fluid(browser, show):
    # thread time: what others do on the machine does not count
    browser.tell("Performance.enable", timeDomain="threadTicks")
    path = show(make(rows=20000, classes=4, suspects=500, columns=10))
    start = time.monotonic()
    browser.open(path)
    opened = time.monotonic() - start
    click = "document.querySelector('{}').click()"
    key = "document.querySelector('#body tr[aria-current]').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{}', bubbles: true }}))"
    find = "const f = document.getElementById('find'); f.value = '{}'; f.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    actions = {
        "sort by row": click.format("th.row button"),
        "sort by value": click.format("th.value button"),
        "keep": key.format("k"),
        "relabel": key.format("r"),
        "move": key.format("j"),
        "filter": find.format("reason 4"),
        "unfilter": find.format(""),
        "undo": key.format("u"),
        "axis": "const a = document.getElementById('across'); a.selectedIndex = 5; a.dispatchEvent(new Event('change'))",
    }
    times = {name: timed(browser, script) for name, script in actions.items()}
    print(f"open: {opened:.2f} s; milliseconds: " + ", ".join(f"{name} {value:.0f}" for name, value in times.items()))
    assert opened < OPEN_SECONDS
    assert all(value < FLUID_MILLISECONDS for value in times.values()), times
