"""Our side of the comparison: which pairs are handed over, what is said of them, the table. The witness where it is."""

from __future__ import annotations

from dataclasses import replace
from math import inf, pi
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from infra.second_witness import witness_process
from infra.second_witness.agreement import agreement, compared
from infra.second_witness.near_pairs import AROUND_S, NEAR_M, STEP_S, near_pairs
from infra.second_witness.pair_file import (
    Encroachment,
    NearPair,
    Statement,
    read_pairs,
    read_statements,
    write_pairs,
    write_statements,
)
from infra.second_witness.witness_table import markdown, show
from sim_vehicles.traffic.truth import Limits
from sim_vehicles.world.motion import Motion, State, Track

CROSSES_S = 4.0


def straight(name: str, heading_rad: float, there_s: float, until_s: float = 8.0, y_m: float = 0.0) -> Track:
    """10 m/s; the centre comes over (0, y_m) at there_s. A box of 4 m x 2 m."""
    east, north = np.cos(heading_rad), np.sin(heading_rad)
    ways = [(k / 10, 10 * (k / 10 - there_s)) for k in range(round(until_s * 10) + 1)]
    states = [State(t_s, way * east, y_m + way * north, heading_rad, 10.0) for t_s, way in ways]
    return Track(name, "car", 4.0, 2.0, states)


def motion(*tracks: Track) -> Motion:
    return Motion({one.id: one for one in tracks}, "made")


CROSSING = motion(straight("a", 0, CROSSES_S), straight("b", pi / 2, CROSSES_S + 1.1))  # PET 0.5 s
BESIDE = motion(straight("a", 0, CROSSES_S), straight("b", 0, CROSSES_S, y_m=NEAR_M + 1))
FOLLOWING = motion(straight("a", 0, CROSSES_S), straight("b", 0, CROSSES_S + 1))


def said_of(pair: NearPair, pet_s: float = 0.4, ttc_s: float = inf) -> Statement:
    never = [inf] * min(len(pair.one.x_m), len(pair.other.x_m))
    area = Encroachment(pet_s, "time" if pet_s < inf else "no area")
    return Statement(area, area, 1.0, [ttc_s, *never[1:]], never, [])


def test_a_pair_is_its_motion_around_where_it_came_close() -> None:
    (pair,) = near_pairs(CROSSING)
    assert (pair.one.id, pair.other.id, pair.begins_s) == ("a", "b", 0.0)
    assert (pair.one.length_m, pair.one.width_m) == (4.0, 2.0)
    assert len(pair.one.x_m) == len(pair.other.speed_mps) == 81
    assert pair.one.x_m[round(CROSSES_S / STEP_S)] == pytest.approx(0.0, abs=1e-9)
    assert pair.other.heading_rad == pytest.approx([pi / 2] * 81)
    late = motion(*(straight(name, heading, 20, 40) for name, heading in (("a", 0.0), ("b", pi / 2))))
    (pair,) = near_pairs(late)
    assert pair.begins_s == pytest.approx(20 - AROUND_S, abs=STEP_S + 1e-9)
    assert len(pair.one.x_m) == 2 * round(AROUND_S / STEP_S) + 1


def test_followers_are_near_and_those_in_the_next_lane_are_not() -> None:
    assert [(one.one.id, one.other.id) for one in near_pairs(FOLLOWING)] == [("a", "b")]
    assert near_pairs(BESIDE) == []


def test_pairs_that_no_instant_has_both_of_are_not_handed_over() -> None:
    gone = straight("a", 0, 2, until_s=2.5)
    late = straight("b", pi / 2, 4)
    late.states = [state for state in late.states if state.t_s >= 3.0]
    assert near_pairs(motion(gone, late)) == []


def test_files_say_what_was_written(tmp_path: Path) -> None:
    pairs = near_pairs(CROSSING)
    said = [said_of(pairs[0], inf), replace(said_of(pairs[0]), across=None, failed=["PET: AssertionError"])]
    write_pairs(pairs, tmp_path / "pairs.json")
    write_statements(said, tmp_path / "said.json")
    assert read_pairs(tmp_path / "pairs.json") == pairs
    assert read_statements(tmp_path / "said.json") == said


def test_both_have_a_conflict() -> None:
    (pair,) = near_pairs(CROSSING)
    (one,) = compared(CROSSING, [(pair, said_of(pair))])
    assert one.ours and one.theirs
    assert not one.ours_critical and not one.theirs_critical
    assert one.our_pet_s == pytest.approx(0.5, abs=2 * Limits().step_s + 1e-9)
    assert one.angle_deg == pytest.approx(90)
    all_of_them = agreement([one])
    assert (all_of_them.ours, all_of_them.both, all_of_them.pet.number) == (1, 1, 1)
    assert all_of_them.pet.worst == pytest.approx(one.our_pet_s - 0.4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"across": Encroachment(inf, "no area")}, "no area"),
        ({"across": Encroachment(2.0, "time")}, "PET above 1.5 s"),
        ({"across": None, "joint": Encroachment(inf, "both within")}, "lanes do not cross"),
    ],
)
def test_what_is_ours_alone_says_why(change: dict[str, Encroachment | None], why: str) -> None:
    (pair,) = near_pairs(CROSSING)
    (one,) = compared(CROSSING, [(pair, replace(said_of(pair), **change))])  # type: ignore[arg-type]
    assert agreement([one]).only_ours == {why: 1}


def test_two_within_the_crossing_area_at_once_confirm_a_conflict_without_a_time() -> None:
    (pair,) = near_pairs(CROSSING)
    said = replace(said_of(pair), across=Encroachment(inf, "both within"))
    all_of_them = agreement(compared(CROSSING, [(pair, said)]))
    assert (all_of_them.both, all_of_them.pet.number) == (1, 0)


def test_what_is_theirs_alone_says_why() -> None:
    (pair,) = near_pairs(FOLLOWING)
    (one,) = compared(FOLLOWING, [(pair, said_of(pair, ttc_s=1.0))])
    all_of_them = agreement([one])
    assert all_of_them.only_theirs == all_of_them.critical_only_theirs == {"following or merging": 1}
    assert all_of_them.ttc_of_one_side == 1


def test_a_ttc_is_compared_at_instants_that_have_both() -> None:
    tracks = motion(straight("a", 0, CROSSES_S), straight("b", pi / 2, CROSSES_S))  # touch at 3.7 s
    (pair,) = near_pairs(tracks)
    touch = [3.7 - k * STEP_S if k <= 37 else inf for k in range(81)]
    said = replace(said_of(pair), ttc_of_one_s=touch, ttc_of_other_s=touch)
    (one,) = compared(tracks, [(pair, said)])
    assert one.ours_critical and one.theirs_critical
    assert len(one.ttc_differences_s) >= 30
    assert max(map(abs, one.ttc_differences_s)) <= 2 * Limits().step_s + 1e-9


def test_the_table_has_a_line_for_each_recording_and_one_for_all() -> None:
    (pair,) = near_pairs(CROSSING)
    found = {"x": compared(CROSSING, [(pair, said_of(pair, inf))]), "y": compared(CROSSING, [(pair, said_of(pair))])}
    lines = markdown(found).splitlines()
    assert lines[2:5] == [
        "| x | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| y | 1 | 1 | 1 | 0 | 0 | 0 |",
        "| all | 2 | 2 | 1 | 0 | 0 | 0 |",
    ]
    assert "Ours alone: no area 1." in lines
    console = Console(record=True, width=200)
    show(found, console)
    assert "no area" in console.export_text()


def test_what_was_said_of_the_same_pairs_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def says(_: Path, *words: str) -> None:
        asked.append(words[0])
        write_statements([said_of(pair) for pair in read_pairs(Path(words[3]))], Path(words[4]))

    monkeypatch.setattr(witness_process, "_run", says)
    for made in (CROSSING, CROSSING, FOLLOWING):
        assert len(witness_process.heard("made", made, Path("python"), tmp_path)) == 1
    assert asked == ["testify", "testify"]


def test_the_witness_confirms_a_straight_crossing(tmp_path: Path) -> None:
    if not witness_process.ENVIRONMENT.is_ready:
        pytest.skip("commonroad-crime is not installed; `make witness` does that")
    heard = witness_process.heard("made", CROSSING, witness_process.ENVIRONMENT.interpreter, tmp_path)
    (one,) = compared(CROSSING, heard)
    assert one.ours and one.theirs
    assert one.our_pet_s - one.their_pet_s == pytest.approx(0.15, abs=0.2)  # two of its steps too small, ours too large
    assert heard[0][1].failed == []
