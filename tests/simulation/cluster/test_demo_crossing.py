"""What the docs say of the demo in virtual time: in which burst phases who crashes, and how near the others come.

Impact speeds and gaps of all phases are kept beside this file. `make test` plays every fourth phase again, the live one
among them; `make soak` all. `SHIMEKIRI_GOLDEN=write` and `-m ''` write the file again.
"""

import json
import os
from pathlib import Path

import pytest

from infra import demo
from tests.sampling import sample

pytestmark = pytest.mark.long

KEPT = Path(__file__).with_name("demo_phases.json")
PAGE = demo.ROOT / "docs" / "explanation" / "demo.md"
EVERY = (4, 1)  # every fourth: every kind of phase that there is


Phases = dict[str, list[float | None]]  # impact_kmh (None: no crash) and gap_m (None: a crash), a value per burst phase


def kept(way: demo.Way) -> Phases:
    found: Phases = json.loads(KEPT.read_text(encoding="utf-8"))[way.name]
    assert {len(each) for each in found.values()} == {demo.PHASES}
    return found


def crashes(way: demo.Way) -> list[bool]:
    return [speed is not None for speed in kept(way)["impact_kmh"]]


@pytest.mark.parametrize("every", sample(EVERY, len(EVERY)))
@pytest.mark.parametrize("way", demo.WAYS, ids=lambda way: way.allocator)
def test_runs_end_as_is_kept(way: demo.Way, every: int, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    how = ("--allocator", way.allocator, "--model", "paper", "--policy", way.policy)
    demo.run("coordinator", "plan", demo.QUERY, demo.CLUSTER, *how, "-o", plan)
    told = demo.run(
        "sim-vehicles", "replay", demo.SCENARIO, "--virtual", plan, "--until", demo.UNTIL,
        "--phases", str(demo.PHASES // every), "--json", fine=(0, demo.CRASHED),
    )  # fmt: skip
    laps = json.loads(told)["laps"]
    assert all(lap["valid"] for lap in laps)
    found = {name: [lap[name] for lap in laps] for name in ("impact_kmh", "gap_m")}
    if os.environ.get("SHIMEKIRI_GOLDEN") == "write" and every == 1:
        before = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        KEPT.write_text(json.dumps(before | {way.name: found}) + "\n", encoding="utf-8")
    assert found == {name: each[::every] for name, each in kept(way).items()}


def test_every_kind_of_phase_and_the_live_one_are_in_the_sample() -> None:
    both = list(zip(*(crashes(way) for way in demo.WAYS), strict=True))
    assert set(both[:: EVERY[0]]) == set(both) and demo.LIVE_PHASE % EVERY[0] == 0


def test_the_page_of_the_demo_tells_crashes_and_gaps_as_they_are() -> None:
    cells = []
    for way in demo.WAYS:
        hit = [speed for speed in kept(way)["impact_kmh"] if speed is not None]
        gaps = [gap for gap in kept(way)["gap_m"] if gap is not None]
        at = f", at {min(hit):.0f} to {max(hit):.0f} km/h" if hit else ""
        cells.append(f"{len(hit)}{at}; {min(gaps):.1f} m" if gaps else f"{len(hit)}{at}")
    row = f"| virtual time, all {demo.PHASES} burst phases: crashes; least gap | {' | '.join(cells)} |"
    assert row in PAGE.read_text(encoding="utf-8")


def test_the_page_of_the_demo_says_in_how_many_phases_the_plan_decides() -> None:
    ours, usual = (crashes(way) for way in demo.WAYS)
    decides = sum(b and not a for a, b in zip(ours, usual, strict=True))
    neither = sum(a and b for a, b in zip(ours, usual, strict=True))
    either = demo.PHASES - decides - neither
    said = PAGE.read_text(encoding="utf-8").replace("\n", " ")
    assert f"in {decides} of the {demo.PHASES} phases the plan decides, in {either} A stops either way" in said
    assert f"in {neither} no plan helps" in said
