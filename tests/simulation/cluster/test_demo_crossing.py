"""What README and docs say of the demo in virtual time: which burst phases crash, and how fast, under both plans."""

import json
from pathlib import Path

import pytest

from infra import demo

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def speeds(tmp_path_factory: pytest.TempPathFactory) -> list[list[float | None]]:
    """Per way and burst phase the impact speed in km/h; None: no crash."""
    found = []
    for way in demo.WAYS:
        plan: Path = tmp_path_factory.mktemp(way.allocator) / "plan.json"
        how = ("--allocator", way.allocator, "--model", "paper", "--policy", way.policy)
        demo.run("coordinator", "plan", demo.QUERY, demo.CLUSTER, *how, "-o", plan)
        told = demo.run(
            "sim-vehicles", "replay", demo.SCENARIO, "--virtual", plan, "--until", demo.UNTIL,
            "--phases", str(demo.PHASES), "--json", fine=(0, demo.CRASHED),
        )  # fmt: skip
        laps = json.loads(told)["laps"]
        assert all(lap["valid"] for lap in laps)
        found.append([lap["impact_kmh"] for lap in laps])
    return found


def test_the_readme_tells_crashes_and_speeds_as_they_are(speeds: list[list[float | None]]) -> None:
    cells = []
    for way in speeds:
        hit = [speed for speed in way if speed is not None]
        cells.append(f"{len(hit)}, at {min(hit):.0f} to {max(hit):.0f} km/h" if hit else "0")
    row = f"| virtual time, all {demo.PHASES} burst phases: crashes | {' | '.join(cells)} |"
    assert row in (demo.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_live_phase_is_one_in_which_the_plan_decides(speeds: list[list[float | None]]) -> None:
    ours, usual = speeds
    assert ours[demo.LIVE_PHASE] is None and usual[demo.LIVE_PHASE] is not None
    decides = sum(a is None and b is not None for a, b in zip(ours, usual, strict=True))
    neither = sum(a is not None and b is not None for a, b in zip(ours, usual, strict=True))
    either = demo.PHASES - decides - neither
    said = (demo.ROOT / "docs" / "explanation" / "demo.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"in {decides} of the {demo.PHASES} phases the plan decides, in {either} A stops either way" in said
    assert f"in {neither} no plan helps" in said
