"""Chromium without a window, for pages that are to be tested as their readers see them."""

import base64
import os
import shutil
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

NO_BROWSER = os.environ.get("OUTLAST_NO_BROWSER") == "1"
MISSING = """Chromium or its driver is not installed, and the audit page can't be tested without them.
    Debian, Ubuntu: apt-get install chromium chromium-driver (`make browser` does it for root)
    To go without this test, on your own responsibility: OUTLAST_NO_BROWSER=1"""


def first(*names):
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    def __init__(self, downloads):
        chromium = first("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        driver = first("chromedriver")
        if chromium is None or driver is None:
            raise RuntimeError(MISSING)
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        # root may not use the sandbox, containers have little shared memory, and servers no graphics card
        flags = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1400,1000"]
        for flag in flags:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.set_capability("unhandledPromptBehavior", "ignore")
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(120)
        self.driver.set_script_timeout(120)
        self.downloads = downloads
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def tell(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def open(self, path):
        self.driver.get(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")

    def reload(self):
        self.driver.refresh()
        self.wait("document.documentElement.dataset.ready === 'true'")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def value(self, expression):
        return self.run(f"return {expression}")

    def wait(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < end, f"waited {seconds} s for {expression}"
            time.sleep(0.02)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def click(self, selector):
        self.find(selector).click()

    def downloaded(self, name, seconds=30):
        """The file of that name, once it is complete; gone from the folder afterwards."""
        path = self.downloads / name
        end = time.monotonic() + seconds
        while not path.exists() or list(self.downloads.glob("*.crdownload")):
            assert time.monotonic() < end, f"{name} was not downloaded: {list(self.downloads.iterdir())}"
            time.sleep(0.05)
        content = path.read_bytes().decode("utf-8")
        path.unlink()
        return content

    def complaints(self):
        """What the browser's console has said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def window(self, width, height, phone=False):
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.tell("Emulation.setTouchEmulationEnabled", enabled=phone)

    def colours(self, scheme):
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def pdf(self):
        return base64.b64decode(self.tell("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.driver.quit()
