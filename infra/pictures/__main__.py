"""`make pictures`: the pictures of the docs, from the demo's two ways at its live phase, replayed in virtual time.

`docs/crossing.svg` is drawn from the two replays. `docs/pictures` has parts of the pages that the commands write, as
the system's Chromium shows them; without one, the drawing is all that is made.
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from infra.demo import CRASHED, ROOT, SCENARIO, STREETS, CommandFailedError, planned, run
from infra.pictures import browser
from sim_vehicles.story.picture.crossing_svg import write

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

DOCS = ROOT / "docs"
DRAWING = DOCS / "crossing.svg"
SHOTS = DOCS / "pictures"
WIDTH = 1200


@dataclass(frozen=True)
class Shot:
    """A part of a page. before: JavaScript that runs first; first, last: selectors of its upper and lower edge;
    height: pixels at most."""

    name: str
    page: Path
    first: str
    last: str
    height: int
    before: str = ""


def replayed(folder: Path) -> list[Path]:
    """The run directories of both ways. Raises CommandFailedError."""
    runs = []
    for way in STREETS.variants:
        here = folder / way.folder
        here.mkdir(parents=True)
        plan, virtual = planned(STREETS, way, here), here / "virtual"
        phase = f"{STREETS.live_phase}/{STREETS.phases}"
        run(
            "sim-vehicles", "replay", SCENARIO, "--virtual", plan, *STREETS.replay, "--phase", phase,
            "--out", virtual, fine=(0, CRASHED),
        )  # fmt: skip
        runs.append(virtual)
    return runs


def pages(runs: Sequence[Path], folder: Path) -> list[Shot]:
    """Writes the pages about the runs, and says which parts of them are shown. Raises CommandFailedError."""
    late = runs[-1].parent / "report"
    run("sim-vehicles", "page", *runs, "-o", folder)
    run("coordinator", "report", *runs, "-o", folder)
    run("coordinator", "report", runs[-1], "-o", late)
    return [
        Shot("crossing_page", folder / "scene.html", "section.scene", "section.scene", 612, "Play.set(10.0);"),
        Shot("report_overview", folder / "comparison.html", "h1", "main > section:nth-of-type(2)", 552),
        Shot(
            "report_missed", late / "report.html", "#missed-results", "#missed-results", 640,
            "document.querySelector('#missed-results .misses > details:nth-of-type(2)').open = true;",
        ),
    ]  # fmt: skip


def shoot(shots: Sequence[Shot], folder: Path) -> None:
    """Writes a PNG for each, as on a light desk."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, browser.started(Path(profile)) as chromium:
        for shot in shots:
            path = folder / f"{shot.name}.png"
            path.write_bytes(_captured(chromium, shot))
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB", flush=True)


def _captured(chromium: Chrome, shot: Shot) -> bytes:
    screen = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    light = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", light)
    chromium.get(shot.page.as_uri())
    chromium.execute_script(shot.before)
    chromium.execute_async_script(DRAWN, shot.first)
    top, bottom = chromium.execute_script(EDGES, shot.first, shot.last)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": min(bottom - top, shot.height), "scale": 1}
    given = {"format": "png", "clip": clip, "captureBeyondViewport": True}
    return b64decode(chromium.execute_cdp_cmd("Page.captureScreenshot", given)["data"])


DRAWN = """
    const done = arguments[1];
    document.querySelector(arguments[0]).scrollIntoView();
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 1500);
"""
EDGES = """
    const box = (selector) => document.querySelector(selector).getBoundingClientRect();
    return [box(arguments[0]).top + scrollY - 8, box(arguments[1]).bottom + scrollY + 8];
"""


def main() -> int:
    """Draws all pictures."""
    folder = ROOT / "runs" / f"pictures-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        runs = replayed(folder)
        print(f"{write(runs, DRAWING).relative_to(ROOT)}: {DRAWING.stat().st_size / 1000:.0f} kB")
        if browser.installed() is None or find_spec("selenium") is None:
            print(f"pictures: {browser.INSTALL}; {SHOTS.relative_to(ROOT)} stays as it is", file=sys.stderr)
            return 0
        shoot(pages(runs, folder), SHOTS)
    except CommandFailedError as error:
        print(f"pictures: {error}", file=sys.stderr)
        return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
