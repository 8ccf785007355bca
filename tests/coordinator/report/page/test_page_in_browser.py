"""The page in headless Chromium, on a desk and on a phone: what is in sight is drawn, nothing overflows or is loaded.

`make test` looks at one run and at two side by side; `make soak` more closely, and at large ones.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.page.page import page
from coordinator.report.verdict import verdict
from infra.bench.report.pairs_query import template
from infra.bench.report.tiled_run import tiled
from tests.coordinator.report.page.report_pages import judged, misses
from tests.sampling import sample

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (390, 1280)
MOST_BYTES = 1_500_000
QUIET = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip
DRAWN = "document.querySelectorAll('figure.plot[data-drawn]').length"
VISIBLE = "[...document.querySelectorAll('figure.plot')].filter(one => one.checkVisibility()).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    """Of the system, with its driver; nothing is fetched."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    if found is None or driver is None:
        pytest.skip("no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for each in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(each)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("no_proxy", "localhost,127.0.0.1")  # the driver is here
        with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as started:
            started.set_script_timeout(300)  # a hundred thousand elements, without a graphics card
            yield started


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
    """Errors on the console, and addresses that were loaded beside the page itself."""
    asked = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    urls = [each["params"]["request"]["url"] for each in asked if each["method"] == "Network.requestWillBeSent"]
    loaded = [url for url in urls if not url.startswith(("file:", "data:"))]
    return [*(each["message"] for each in browser.get_log("browser")), *loaded]


def look(browser: "Chrome", path: Path, width: int) -> None:
    """All that holds for every page."""
    open_page(browser, path, width)
    assert overflow(browser) <= 0
    until(browser, f"{DRAWN} === {VISIBLE}")
    assert browser.execute_script(f"return {DRAWN}") > 0
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    scroll_through(browser)
    every = "document.querySelectorAll('figure.plot').length"
    until(browser, f"{DRAWN} === {every}")
    until(browser, f"document.querySelectorAll('details.made table').length === {every}")  # a table behind each
    assert overflow(browser) <= 0
    assert complaints(browser) == []


def written(path: Path, *entries: Any) -> Path:
    text = page(entries)
    assert len(text.encode()) < MOST_BYTES
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    return written(folder / "report.html", judged(folder / "run"))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report(browser: "Chrome", alone: Path, width: int) -> None:
    look(browser, alone, width)


@pytest.mark.parametrize("width", sample(WIDTHS, 2))
def test_two_runs_side_by_side(browser: "Chrome", tmp_path: Path, width: int) -> None:
    entries = [judged(tmp_path / name, seed) for seed, name in enumerate(("one", "two"), start=3)]
    look(browser, written(tmp_path / "comparison.html", *entries), width)


@pytest.mark.parametrize("width", sample(WIDTHS, 2))
def test_a_click_on_a_miss_opens_its_timeline_which_zooms(browser: "Chrome", alone: Path, width: int) -> None:
    from selenium.webdriver.common.keys import Keys

    open_page(browser, alone, width)
    miss = browser.find_element("css selector", "#missed-results .misses > details:has(figure)")
    assert not miss.find_elements("css selector", "svg")
    miss.find_element("css selector", "summary").click()
    until(browser, "document.querySelector('#missed-results details[open] > figure[data-drawn]')")
    drawing = miss.find_element("css selector", "svg")
    assert "the way of this tuple" in drawing.get_attribute("textContent")
    shown = drawing.get_attribute("innerHTML")
    miss.find_element("css selector", 'button[aria-label="Zoom in"]').click()
    assert drawing.get_attribute("innerHTML") != shown
    zoomed = drawing.get_attribute("innerHTML")
    drawing.send_keys(Keys.ARROW_LEFT)
    assert drawing.get_attribute("innerHTML") != zoomed
    drawing.send_keys("0")
    assert drawing.get_attribute("innerHTML") == shown
    assert complaints(browser) == []


def test_a_link_to_an_output_opens_it(browser: "Chrome", alone: Path) -> None:
    open_page(browser, alone, 390)
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = false; })")
    browser.find_element("css selector", ".verdicts a").click()
    until(browser, "document.querySelector(`${location.hash} > details`).open")


@pytest.mark.soak
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("nodes", "records"), [(2, 1_000_000), (20, 0)])
def test_large_runs(browser: "Chrome", tmp_path: Path, width: int, nodes: int, records: int) -> None:
    """A million records; and thirty outputs on twenty nodes."""
    path = template(nodes, tmp_path)
    report = verdict(read_run(path))
    if records:
        tiled(path, tmp_path / "run", records)
        path = tmp_path / "run"
    run = read_run(path)
    look(browser, written(tmp_path / "page.html", (run, replace(report, misses=misses(run)))), width)
