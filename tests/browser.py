"""Headless Chromium of the system for tests of pages, on a desk and on a phone; nothing is fetched."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (390, 1280)
MOST_BYTES = 1_500_000  # of a page
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


@contextmanager
def started(profile: Path) -> "Iterator[Chrome]":
    """With its driver; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    if found is None or driver is None:
        pytest.skip("no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for each in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("no_proxy", "localhost,127.0.0.1")  # the driver is here
        with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as browser:
            browser.set_script_timeout(300)  # a hundred thousand elements, without a graphics card
            yield browser


def open_page(browser: "Chrome", path: Path, width: int) -> None:
    """At that width, and scrolled through once, so that all there is has been in sight."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    scroll_through(browser)


def scroll_through(browser: "Chrome") -> None:
    """By steps of less than the height; each is shown before the next."""
    browser.execute_async_script(
        """
        const done = arguments[0];
        const frame = () => new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)));
        (async () => {
          for (let y = 0; y < document.documentElement.scrollHeight; y += 700) {
            scrollTo(0, y);
            await frame();
          }
          await frame();
          done();
        })();
        """
    )


def until(browser: "Chrome", condition: str) -> None:
    """Events come when they come."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(lambda now: now.execute_script(f"return {condition}"))


def overflow(browser: "Chrome") -> int:
    """By how many pixels the page is wider than the window."""
    return int(browser.execute_script("return document.scrollingElement.scrollWidth - innerWidth"))


def complaints(browser: "Chrome") -> list[str]:
    """Errors on the console, and addresses that the page loaded beside itself; the browser's own first page counts for
    nothing."""
    told = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    asked = [each["params"] for each in told if each["method"] == "Network.requestWillBeSent"]
    urls = [each["request"]["url"] for each in asked if not each["documentURL"].startswith("chrome:")]
    loaded = [url for url in urls if not url.startswith(("file:", "data:"))]
    return [*(each["message"] for each in browser.get_log("browser")), *loaded]
