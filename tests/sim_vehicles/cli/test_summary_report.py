"""What a replay came to, in words for a terminal."""

from dataclasses import replace
from typing import Any

import pytest
from rich.table import Table

from sim_vehicles.cli.summary_report import crashes, outcome, phases, rows
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.recorded import Record, read_laps
from sim_vehicles.replay.replay_document import LiveSummary
from tests.sim_vehicles.replayed import SCENE, live


def verdict(**more: Any) -> Verdict:
    deciding = {
        "source": 1, "epoch": 1, "seq": 7, "ordinal": 0, "station": "E", "object": "X", "measured_s": 10.0,
        "delivered_s": 10.48, "latency_ns": [196_100_000, 196_100_000], "split": None,
    }  # fmt: skip
    document = {
        "outcome": "AVOIDED", "valid": True, "why_not_valid": None, "burst_phase": 0, "burst_phases": 20,
        "burst_phase_ns": 0, "crashes": 0, "laps": 1, "gap_m": 2.345, "impact_kmh": None, "impact_s": None,
        "speed_kmh": 50.0, "crossing": "X", "note": None, "first_perceivable": None,
        "knew": {"at_s": 10.48, "left_m": 17.0}, "brake": None, "stood": None,
        "warnings": {"about_crossing": 1, "false": 2, "others": 0, "missed": False}, "closed_form": None,
        "deciding": deciding, **more,
    }  # fmt: skip
    (found,) = read_laps([document], "laps")
    return found


def replay(*laps: Verdict, rate: float | str = 1) -> LiveSummary:
    top = replace(laps[0], laps=len(laps), crashes=sum(lap.crashed for lap in laps))
    return live(Record(top, laps, (), SCENE), rate=rate)


def by_lap(*laps: Verdict, rate: float | str = 1) -> Table:
    what = replay(*laps, rate=rate)
    assert what.verdict is not None
    return phases(what.verdict, what.laps, what.rate)


def crashed(*laps: Verdict) -> str:
    what = replay(*laps)
    assert what.verdict is not None
    return crashes(what.verdict, what.laps)


def test_an_outcome_in_one_line() -> None:
    assert outcome(verdict()) == "AVOIDED, least gap 2.35 m"
    assert outcome(verdict(gap_m=0.012)) == "AVOIDED, least gap 1 cm: a near miss, decided by milliseconds"
    assert outcome(verdict(valid=False, why_not_valid="rate 4")) == "AVOIDED, least gap 2.35 m; not valid: rate 4"
    crash = {"outcome": "CRASH", "gap_m": None, "impact_kmh": 31.4, "impact_s": 12.3}
    assert outcome(verdict(**crash)) == "CRASH at 31.4 km/h, at 12.30 s of the recording"


@pytest.mark.parametrize("laps", [1, 3])
def test_without_a_crossing_vehicle_there_is_nothing_to_judge(laps: int) -> None:
    counts = {"about_crossing": 0, "false": 0, "others": 9, "missed": False}
    one = verdict(crossing=None, knew=None, deciding=None, warnings=counts)
    told = dict(rows(replay(*[one] * laps)))
    assert "no crossing vehicle named: nothing to judge (no contact, least gap 2.35 m)" in told["verdict"]
    assert told["warnings"].startswith("9 about others; ") and "crashes" not in told
    columns = {str(column.header): list(column.cells) for column in by_lap(*[one] * laps).columns}
    assert columns["about others"] == ["9"] * laps and columns["outcome"] == ["no contact"] * laps
    assert "false" not in columns


@pytest.mark.parametrize("rate", [4.0, "max"])
def test_at_another_rate_wall_time_is_called_that(rate: float | str) -> None:
    assert dict(rows(replay(verdict())))["told by"].endswith("at 10.000 s: 196.1 ms before")
    said = dict(rows(replay(verdict(), rate=rate)))["told by"]
    assert said.endswith("at 10.000 s: 480.0 ms before in the recording, 196.1 ms in wall time")
    assert "wall ms" in [column.header for column in by_lap(verdict(), rate=rate).columns]


def test_impact_speeds_of_many_laps_are_least_median_and_most() -> None:
    laps = [verdict(outcome="CRASH", gap_m=None, impact_kmh=speed, impact_s=12.0) for speed in (9.0, 31.4, 20.0, 10.0)]
    assert crashed(*laps) == "4 of 4; impact speed min 9.0, median 15.0, max 31.4 km/h"
    assert crashed(laps[0], verdict()) == "1 of 2; impact speed 9.0 km/h"
    assert crashed(verdict(), verdict()) == "0 of 2"
