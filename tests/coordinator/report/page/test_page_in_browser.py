"""The page in headless Chromium, on a desk and on a phone: what is in sight is drawn, nothing overflows or is loaded.

`make test` looks at one run and at two side by side; `make soak` more closely, and at large ones.
"""

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
from tests.browser import MOST_BYTES, WIDTHS, complaints, open_page, overflow, scroll_through, started, until
from tests.coordinator.report.page.report_pages import judged, misses
from tests.sampling import sample

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

DRAWN = "document.querySelectorAll('figure.plot[data-drawn]').length"
VISIBLE = "[...document.querySelectorAll('figure.plot')].filter(one => one.checkVisibility()).length"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    """Of the system, with its driver; nothing is fetched."""
    with started(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


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


@pytest.mark.parametrize("width", sample(WIDTHS, 2))
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
