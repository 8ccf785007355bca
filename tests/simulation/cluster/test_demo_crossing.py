"""What the docs say of the demo in virtual time: in which phases who crashes, and how near the others come.

Impact speeds and gaps of all phases are recorded beside this file. `make test` plays some phases again, those of the
paper's case with the live one among them; `make soak` all. `SHIMEKIRI_GOLDEN=write` and `-m ''` write the file again.
"""

import json
import os
from pathlib import Path

import pytest

from infra import demo
from tests.sampling import sample

pytestmark = pytest.mark.long

RECORDED = Path(__file__).with_name("demo_phases.json")
PAGE = demo.ROOT / "docs" / "explanation" / "demo.md"
EVERY = {"paper": 4, "streets": 5}  # every fourth: every kind of phase that there is; the first


Phases = dict[str, list[float | None]]  # impact_kmh (None: no crash) and gap_m (None: a crash), a value per burst phase


OF_SOAK = {("streets", "sqpr"), ("paper", "deadline")}
WAYS = [
    pytest.param(name, way, id=f"{name}-{way.allocator}", marks=[pytest.mark.soak] * ((name, way.allocator) in OF_SOAK))
    for name, case in demo.CASES.items()
    for way in case.variants
]


def recorded(case: str, way: demo.Way) -> Phases:
    found: Phases = json.loads(RECORDED.read_text(encoding="utf-8"))[case][way.name]
    assert {len(each) for each in found.values()} == {demo.CASES[case].phases}
    return found


def crashes(case: str, way: demo.Way) -> list[bool]:
    return [speed is not None for speed in recorded(case, way)["impact_kmh"]]


@pytest.mark.parametrize("whole", sample((False, True), 2))
@pytest.mark.parametrize(("name", "way"), WAYS)
def test_runs_end_as_is_recorded(name: str, way: demo.Way, whole: bool, tmp_path: Path) -> None:
    case, every = demo.CASES[name], 1 if whole else EVERY[name]
    plan = demo.planned(case, way, tmp_path)
    told = demo.run(
        "sim-vehicles", "replay", demo.SCENARIO, "--virtual", plan, *case.replay,
        "--phases", str(case.phases // every), "--json", fine=(0, demo.CRASHED),
    )  # fmt: skip
    laps = json.loads(told)["laps"]
    assert all(lap["valid"] for lap in laps)
    found = {figure: [lap[figure] for lap in laps] for figure in ("impact_kmh", "gap_m")}
    if os.environ.get("SHIMEKIRI_GOLDEN") == "write" and whole:
        before = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
        of_case = before.get(name, {}) | {way.name: found}
        RECORDED.write_text(json.dumps(before | {name: of_case}) + "\n", encoding="utf-8")
    assert found == {figure: each[::every] for figure, each in recorded(name, way).items()}


def test_every_kind_of_phase_and_the_live_one_of_the_papers_case_are_in_the_sample() -> None:
    both = list(zip(*(crashes("paper", way) for way in demo.PAPER.variants), strict=True))
    every = EVERY["paper"]
    assert set(both[::every]) == set(both) and demo.PAPER.live_phase % every == 0


def test_the_page_of_the_demo_tells_crashes_and_gaps_as_they_are() -> None:
    paper, streets = [], []
    for way in demo.PAPER.variants:
        hit, gaps = _told("paper", way)
        cell = f"{len(hit)}, at {min(hit):.0f} to {max(hit):.0f} km/h" if hit else "0"
        paper.append(f"{cell}; {min(gaps):.1f} m" if gaps else cell)
    for way in demo.STREETS.variants:
        hit, gaps = _told("streets", way)
        streets.append(
            f"{len(hit)}, at {min(hit):.0f} to {max(hit):.0f} km/h" if hit else f"0, at least {min(gaps):.1f} m apart"
        )
    page = PAGE.read_text(encoding="utf-8")
    assert f"| virtual time, all {demo.PAPER.phases} burst phases: crashes; least gap | {' | '.join(paper)} |" in page
    assert f"| crashes of {demo.STREETS.phases} phases | {' | '.join(streets)} |" in page


def test_the_page_of_the_demo_says_in_how_many_phases_the_plan_decides() -> None:
    ours, usual = (crashes("paper", way) for way in demo.PAPER.variants)
    decides = sum(b and not a for a, b in zip(ours, usual, strict=True))
    neither = sum(a and b for a, b in zip(ours, usual, strict=True))
    phases = demo.PAPER.phases
    said = PAGE.read_text(encoding="utf-8").replace("\n", " ")
    assert (
        f"in {decides} of the {phases} phases the plan decides, in {phases - decides - neither} A stops either way"
        in said
    )
    assert f"in {neither} no plan helps" in said


def test_the_readme_says_how_the_demo_ends() -> None:
    (_, gaps), (hit, _) = (_told("streets", way) for way in demo.STREETS.variants)
    said = (demo.ROOT / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"at least {min(gaps):.1f} m from X" in said and f"at {min(hit):.0f} to {max(hit):.0f} km/h" in said


def _told(case: str, way: demo.Way) -> tuple[list[float], list[float]]:
    """Impact speeds of those that crash, gaps of the others."""
    found = recorded(case, way)
    return tuple([each for each in found[name] if each is not None] for name in ("impact_kmh", "gap_m"))  # type: ignore[return-value]
