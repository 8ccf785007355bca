"""What README and docs say of the demo in virtual time: which burst phases crash, and how fast, under both plans.

The speeds of all phases are kept beside this file. `make test` plays every fourth phase again, the live one among them;
`make soak` all. `SHIMEKIRI_GOLDEN=write` and `-m ''` write the file again.
"""

import json
import os
from pathlib import Path

import pytest

from infra import demo
from tests.sampling import sample

pytestmark = pytest.mark.long

KEPT = Path(__file__).with_name("demo_speeds.json")
EVERY = (4, 1)  # every fourth: a phase in which the plan decides, one in which no plan helps, one in which A stops


def kept(way: demo.Way) -> list[float | None]:
    """Per burst phase the impact speed in km/h; None: no crash."""
    speeds: list[float | None] = json.loads(KEPT.read_text(encoding="utf-8"))[way.name]
    assert len(speeds) == demo.PHASES
    return speeds


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
    speeds = [lap["impact_kmh"] for lap in laps]
    if os.environ.get("SHIMEKIRI_GOLDEN") == "write" and every == 1:
        before = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        KEPT.write_text(json.dumps(before | {way.name: speeds}) + "\n", encoding="utf-8")
    assert speeds == kept(way)[::every]


def test_every_kind_of_phase_and_the_live_one_are_in_the_sample() -> None:
    ours, usual = (kept(way) for way in demo.WAYS)
    crashes = [(a is not None, b is not None) for a, b in zip(ours, usual, strict=True)]
    assert set(crashes[:: EVERY[0]]) == set(crashes) and demo.LIVE_PHASE % EVERY[0] == 0


def test_the_page_of_the_demo_tells_crashes_and_speeds_as_they_are() -> None:
    cells = []
    for way in demo.WAYS:
        hit = [speed for speed in kept(way) if speed is not None]
        cells.append(f"{len(hit)}, at {min(hit):.0f} to {max(hit):.0f} km/h" if hit else "0")
    row = f"| virtual time, all {demo.PHASES} burst phases: crashes | {' | '.join(cells)} |"
    assert row in (demo.ROOT / "docs" / "explanation" / "demo.md").read_text(encoding="utf-8")


def test_the_live_phase_is_one_in_which_the_plan_decides() -> None:
    ours, usual = (kept(way) for way in demo.WAYS)
    assert ours[demo.LIVE_PHASE] is None and usual[demo.LIVE_PHASE] is not None
    decides = sum(a is None and b is not None for a, b in zip(ours, usual, strict=True))
    neither = sum(a is not None and b is not None for a, b in zip(ours, usual, strict=True))
    either = demo.PHASES - decides - neither
    said = (demo.ROOT / "docs" / "explanation" / "demo.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"in {decides} of the {demo.PHASES} phases the plan decides, in {either} A stops either way" in said
    assert f"in {neither} no plan helps" in said
