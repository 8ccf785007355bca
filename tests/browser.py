"""Headless Chromium of the system for tests of pages, on a desk and on a phone; nothing is fetched."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.pictures import browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = (390, 1280)
MOST_BYTES = 1_500_000  # of a page
OWN_PAGES = ("chrome:", "chrome-untrusted:")  # of the browser


@contextmanager
def started(profile: Path) -> "Iterator[Chrome]":
    """With its driver; skips the test where there is none."""
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if browser.installed() is None:
        pytest.skip(browser.INSTALL)
    with browser.started(profile) as chromium:
        chromium.set_script_timeout(300)  # a hundred thousand elements, without a graphics card
        yield chromium


def open_page(chromium: "Chrome", path: Path, width: int) -> None:
    """At that width, and scrolled through once, so that all there is has been in sight."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    chromium.get_log("browser")
    chromium.get_log("performance")
    chromium.get(path.as_uri())
    scroll_through(chromium)


def scroll_through(chromium: "Chrome") -> None:
    """By steps of less than the height; each is shown before the next."""
    chromium.execute_async_script(
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


def until(chromium: "Chrome", condition: str) -> None:
    """Events come when they come."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(chromium, 60).until(lambda now: now.execute_script(f"return {condition}"))


def overflow(chromium: "Chrome") -> int:
    """By how many pixels the page is wider than the window."""
    return int(chromium.execute_script("return document.scrollingElement.scrollWidth - innerWidth"))


def complaints(chromium: "Chrome") -> list[str]:
    """Errors on the console, and addresses that the page loaded beside itself; the browser's own first page counts for
    nothing."""
    told = [json.loads(each["message"])["message"] for each in chromium.get_log("performance")]
    asked = [each["params"] for each in told if each["method"] == "Network.requestWillBeSent"]
    urls = [each["request"]["url"] for each in asked if not each["documentURL"].startswith(OWN_PAGES)]
    loaded = [url for url in urls if not url.startswith(("file:", "data:"))]
    return [*(each["message"] for each in chromium.get_log("browser")), *loaded]
