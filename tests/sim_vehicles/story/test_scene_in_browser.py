"""The page of two runs in headless Chromium: one clock, no label over another, nothing cut on a desk and on a phone."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sim_vehicles.story.page.scene_html import write
from tests.browser import MOST_BYTES, WIDTHS, complaints, open_page, overflow, started, until
from tests.sampling import sample
from tests.sim_vehicles.story.warned_crossing import written

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FIRST = "document.querySelector('figure, canvas').closest('section').className"
DRAWN = "[...document.querySelectorAll('.plot')].every(one => !one.checkVisibility() || 'drawn' in one.dataset)"
CLOCKS = "[...document.querySelectorAll('.clock')].map(one => one.textContent)"
SHOWN = """
    const frame = () => new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)));
    const done = arguments[arguments.length - 1], t = arguments[0];
    (async () => { Play.playing = false; Play.set(t); await frame(); done(); })();
"""
COVERED = """
    const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const found = [];
    for (const whole of document.querySelectorAll(arguments[0])) {
      const texts = [...whole.querySelectorAll('text')].filter(one => one.textContent.trim() && one.checkVisibility());
      const boxes = texts.map(one => one.getBoundingClientRect());
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
        if (over(a, b)) found.push([texts[i].textContent, texts[i + j + 1].textContent]);
      }));
    }
    return found;
"""
MARKED = """[...document.querySelectorAll('.scroll')].every(
    one => one.classList.contains('wide') === one.scrollWidth > one.clientWidth + 1)"""
LABELLED = """
    const texts = (one) => [...one.querySelectorAll('text')].map(text => text.textContent);
    return [...document.querySelectorAll('.labels')].map(texts);
"""
CUT = """
    return [...document.querySelectorAll('.scroll')].filter(one => one.checkVisibility()).flatMap(one => {
      const says = getComputedStyle(one, '::before').content.includes('scroll');
      const cells = [...one.querySelectorAll('th, td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1);
      const wide = one.scrollWidth > one.clientWidth + 1 && (innerWidth > 1000 || !says);
      return [...(wide ? ['cut: ' + one.textContent.slice(0, 80)] : []), ...cells.map(cell => cell.textContent)];
    });
"""
STATE = """
    return DATA.runs.map((run, i) => [document.querySelectorAll('.panel .speed')[i].textContent,
      (sampleOf(run.ego, Math.min(Play.t, run.impact_s ?? Play.t), DATA.scene.step_s).speed * 3.6).toFixed(0)]);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    with started(tmp_path_factory.mktemp("chromium")) as chromium:
        yield chromium


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One warned in time, one too late."""
    folder = tmp_path_factory.mktemp("both")
    path = write([written(folder / "early", 120), written(folder / "late", 900)], folder)
    assert path.stat().st_size < MOST_BYTES
    return path


def shown(browser: "Chrome", t_s: float) -> list[list[str]]:
    """The labels of each panel at that instant, in which all is as it has to be."""
    browser.execute_async_script(SHOWN, t_s)
    clocks = browser.execute_script(f"return {CLOCKS}")
    assert len(clocks) == 3 and set(clocks) == {f"{t_s:.2f} s"}
    for selector in (".labels", "#times"):
        assert browser.execute_script(COVERED, selector) == [], (selector, t_s)
    for said, kmh in browser.execute_script(STATE):
        assert f"A {kmh} km/h" in said
    labels: list[list[str]] = browser.execute_script(LABELLED)
    return labels


@pytest.mark.parametrize("width", sample(WIDTHS, 2))
def test_both_runs_play_on_one_clock_and_nothing_covers_or_is_cut(browser: "Chrome", both: Path, width: int) -> None:
    open_page(browser, both, width)
    until(browser, DRAWN)
    assert overflow(browser) <= 0
    assert browser.execute_script(f"return {FIRST}") == "contest"
    runs: list[dict[str, Any]] = browser.execute_script("return DATA.runs")
    instants = sorted({round(event["at_s"] + 0.05, 2) for run in runs for event in run["events"]})
    for t_s in instants:
        early, late = shown(browser, t_s)
        for labels, run in ((early, runs[0]), (late, runs[1])):
            assert any(label.startswith("A ") for label in labels) and any(label.startswith("X ") for label in labels)
            knew = run["knew_s"] is not None and t_s >= run["knew_s"]
            assert any(label.startswith("warned ") for label in labels) is knew
    assert any(label.startswith("stands ") for label in early) and any(label.startswith("contact ") for label in late)
    for selector in (".plot", "#times"):
        assert browser.execute_script(COVERED, selector) == []
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    until(browser, f"document.querySelectorAll('details[open]').length > 3 && {DRAWN} && {MARKED}")
    assert browser.execute_script(CUT) == [] and overflow(browser) <= 0
    assert browser.execute_script(COVERED, ".plot") == []
    assert complaints(browser) == []


def test_the_keyboard_plays_and_steps_both(browser: "Chrome", both: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    open_page(browser, both, 1280)
    seek = browser.find_element("id", "seek")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", seek)
    begin = browser.execute_script("return Play.t")
    play = browser.find_element("id", "play")
    play.send_keys(Keys.ENTER)
    until(browser, f"Play.t > {begin} + 0.1")
    play.send_keys(Keys.ENTER)
    until(browser, f"!Play.playing && new Set({CLOCKS}).size === 1 && {CLOCKS}[0] === Play.t.toFixed(2) + ' s'")
    paused = browser.execute_script("return Play.t")
    seek.send_keys(Keys.ARROW_RIGHT)
    until(browser, f"Math.abs(Play.t - {paused} - 0.05) < 1e-6 && {CLOCKS}.every(c => c === Play.t.toFixed(2) + ' s')")
    browser.find_element("css selector", ".chips button:last-of-type").click()
    until(browser, f"document.querySelector('.chips .now') && new Set({CLOCKS}).size === 1")
