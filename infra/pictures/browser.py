"""The system's Chromium, headless and with its driver: for tests of pages and for pictures of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)"
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


def installed() -> tuple[str, str] | None:
    """Paths of browser and driver; None where one of them is missing."""
    browser, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def started(profile: Path) -> Iterator[Chrome]:
    """A browser that ends with the block; it is `installed`. Its logs have what pages ask for and complain of."""
    from selenium import webdriver

    found = installed()
    assert found is not None
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for each in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with _without_proxy(), webdriver.Chrome(options=options, service=webdriver.ChromeService(found[1])) as browser:
        yield browser


@contextmanager
def _without_proxy() -> Iterator[None]:
    """The driver is on this machine."""
    before = os.environ.get("no_proxy")
    os.environ["no_proxy"] = "localhost,127.0.0.1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["no_proxy"]
        else:
            os.environ["no_proxy"] = before
