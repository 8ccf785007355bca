"""The judge: contacts and gaps of moving boxes, computed by hand and by brute force, and what the verdict says."""

from dataclasses import replace
from math import pi
from random import Random
from typing import Any

import numpy as np
import pytest

from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.encounter.brake import AUTO, NONE, Brake
from sim_vehicles.encounter.braked_track import braked
from sim_vehicles.encounter.meeting import meet
from sim_vehicles.encounter.outcome import is_near, length
from sim_vehicles.encounter.swept_area import entry_m
from sim_vehicles.encounter.verdict import Driven, Judge, Warned
from sim_vehicles.world.motion import Motion, State, Track, wrap
from sim_vehicles.world.scene import Scenario, Scene
from tests.seeds import seeds
from tests.sentences import Wording
from tests.sim_vehicles.replayed import JUDGED

SAID = Wording("replay", "verdict")

NAMES = {1: "A", 2: "E", 3: "X"}
AT_ONCE = replace(AUTO, build_up_s=0.0)


def line(name: str, x_m: float, y_m: float, heading_rad: float, vx: float, vy: float, end_s: float = 10.0) -> Track:
    """A box of 4 m by 2 m in straight motion, a record every 50 ms."""
    speed = (vx * vx + vy * vy) ** 0.5
    steps = [i * 0.05 for i in range(round(end_s / 0.05) + 1)]
    return Track(name, "car", 4.0, 2.0, [State(t, x_m + vx * t, y_m + vy * t, heading_rad, speed) for t in steps])


# A drives north at 10 m/s, its front is at y = -48 at first. X comes from the east at 10 m/s; its strip is -1 < y < 1.
A = line("A", 0, -50, pi / 2, 0, 10)


def crossing(late_s: float) -> Track:
    """At late_s = 0, X's front reaches A's left-right extent (x = 1) at 4.7 s, just when A's front reaches y = -1."""
    return line("X", 50 + 10 * late_s, 0, pi, -10, 0)


def test_a_crossing_at_right_angles_by_hand() -> None:
    late = meet(A, crossing(0.1), 0, 10)  # A's front is inside from 4.7 s, X comes to x = 1 at 4.8 s
    assert (late.contact_s, late.gap_m) == (pytest.approx(4.8, abs=1e-3), 0)
    early = meet(A, crossing(-0.1), 0, 10)  # X is there at 4.6 s, A comes to y = -1 at 4.7 s
    assert early.contact_s == pytest.approx(4.7, abs=1e-3)
    # Past y = 1 with its rear at 5.3 s; X at x = 1 at 5.7 s: at 5.5 s both are 2 m away from the corner.
    missed = meet(A, crossing(1.0), 0, 10)
    assert missed.contact_s is None
    assert missed.gap_m == pytest.approx(8**0.5, abs=1e-3)
    assert missed.least_s == pytest.approx(5.5, abs=1e-2)


def test_touching_is_no_crash_and_never_together_has_no_gap() -> None:
    beside = line("B", 2.0 + 1e-9, -50, pi / 2, 0, 10)  # side by side, borders touching
    assert meet(A, beside, 0, 10)[:2] == (None, pytest.approx(0, abs=1e-8))
    assert meet(A, line("B", 1.99, -50, pi / 2, 0, 10), 0, 10).contact_s == 0
    away = Track("B", "car", 4.0, 2.0, [state._replace(t_s=state.t_s + 20) for state in A.states])
    assert meet(A, away, 0, 40) == (None, None, None)


def test_a_vehicle_that_vanishes_is_not_made_up_in_between() -> None:
    x = crossing(0.1)
    gone = Track("X", "car", 4.0, 2.0, [state for state in x.states if not 4.0 < state.t_s < 5.5])
    assert meet(A, gone, 0, 10).contact_s is None


def sampled(track: Track, times: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """x, y, heading at these times, straight between the records."""
    t = np.array([state.t_s for state in track.states])
    heading = np.unwrap([state.heading_rad for state in track.states])
    x, y = ([getattr(state, axis) for state in track.states] for axis in ("x_m", "y_m"))
    return np.interp(times, t, x), np.interp(times, t, y), np.interp(times, t, heading)


def brute_gap(a: Track, b: Track, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Distance of two rectangles at many instants, another way than the product's: in the frame of each, how far the
    other's corners are outside; crossing without a corner inside is found by projecting on the four axes."""
    poses = {track.id: sampled(track, times) for track in (a, b)}
    away, apart = np.full(times.shape, np.inf), np.zeros(times.shape, dtype=bool)
    for one, other in ((a, b), (b, a)):
        (x, y, h), (ox, oy, oh) = poses[one.id], poses[other.id]
        c, s = np.cos(h), np.sin(h)
        us, vs = [], []
        for du in (-0.5, 0.5):
            for dv in (-0.5, 0.5):
                px = ox + du * other.length_m * np.cos(oh) - dv * other.width_m * np.sin(oh) - x
                py = oy + du * other.length_m * np.sin(oh) + dv * other.width_m * np.cos(oh) - y
                u, v = px * c + py * s, -px * s + py * c
                us.append(u)
                vs.append(v)
                away = np.minimum(
                    away,
                    np.hypot(np.maximum(abs(u) - one.length_m / 2, 0), np.maximum(abs(v) - one.width_m / 2, 0)),
                )
        for found, half in ((np.array(us), one.length_m / 2), (np.array(vs), one.width_m / 2)):
            apart |= (found.min(axis=0) >= half) | (found.max(axis=0) <= -half)
    return np.where(apart, away, 0.0)


def wandering(draw: Random, name: str) -> Track:
    """Two seconds of turning at changing speed, through about the origin at about 1 s."""
    heading, speed = draw.uniform(-pi, pi), draw.uniform(0, 15)
    yaw_rate, acceleration = draw.uniform(-1.5, 1.5), draw.uniform(-4, 4)
    x, y, states = 0.0, 0.0, []
    for i in range(41):
        states.append(State(i * 0.05, x, y, wrap(heading), speed))
        heading, speed = heading + yaw_rate * 0.05, max(0.0, speed + acceleration * 0.05)
        x, y = x + speed * 0.05 * np.cos(heading), y + speed * 0.05 * np.sin(heading)
    dx, dy = draw.uniform(-6, 6) - states[20].x_m, draw.uniform(-6, 6) - states[20].y_m
    moved = [state._replace(x_m=state.x_m + dx, y_m=state.y_m + dy) for state in states]
    return Track(name, "car", draw.uniform(1, 8), draw.uniform(0.5, 3), moved)


@pytest.mark.parametrize("seed", seeds(range(40)))
def test_contacts_and_gaps_agree_with_brute_force_at_a_tenth_of_a_millisecond(seed: int) -> None:
    draw = Random(seed)
    a, b = wandering(draw, "a"), wandering(draw, "b")
    times = np.arange(20_001) * 1e-4
    gaps = brute_gap(a, b, times)
    met = meet(a, b, 0.0, 2.0)
    touching = np.flatnonzero(gaps == 0)
    if touching.size:
        assert met.contact_s == pytest.approx(times[touching[0]], abs=1e-3), f"seed {seed}"
    else:
        assert met.contact_s is None, f"seed {seed}"
        assert met.gap_m == pytest.approx(gaps.min(), abs=2e-3), f"seed {seed}"


def test_the_strip_begins_where_the_front_would_touch_it() -> None:
    assert entry_m(A, crossing(0.1)) == pytest.approx(47, abs=2e-3)
    # from the north-east along y = x: the nearer border of its strip is y = x - sqrt(2), which A's left front corner
    # (x = -1) meets first
    slanted = line("X", 60, 60, -3 * pi / 4, -7.0710678, -7.0710678, end_s=20)
    assert entry_m(A, slanted) == pytest.approx(50 - 2 - 1 - 2**0.5, abs=2e-3)
    assert entry_m(A, line("X", 20, -50, pi / 2, 0, 10)) is None  # beside A all the way
    assert entry_m(A, line("X", 0, -50, pi / 2, 0, 5)) is None  # where A begins


def scenario(x: Track, crossing_id: str | None = "X", **more: Track) -> Scenario:
    """A, X, and E, a station that stands with X in view all the time; a wall hides X from A until it is near."""
    e = line("E", 30, 20, 0, 0, 0)
    wall = ((4.0, -60.0), (60.0, -60.0), (60.0, -4.0), (4.0, -4.0))
    scene = Scene("by hand", "A", ("E",), crossing_id, occluders=(wall,))
    return Scenario(Motion({"A": A, "E": e, "X": x, **more}, "by hand"), scene)


def told(at_s: float, measured_s: float, object_id: int = 3, level: int = 2) -> Warned:
    warning = Told(object_id=object_id, station=2, measured_ms=round(measured_s * 1e3) % 65536, level=level)
    latency_ns = round((at_s - measured_s) * 1e9)
    return Warned(round(at_s * 1e9), warning, (latency_ns, latency_ns), (1, 1, 7, 0))


def driven(what: Scenario, log: list[Warned], brake: Brake = AT_ONCE, until_s: float = 10.0) -> Driven:
    """As a closed loop would drive it."""
    about = [one for one in log if one.on and one.warning.object_id == 3]
    if not about or brake.kind == "none":
        return Driven(A, brake, None, log, NAMES, 0.0, until_s)
    at_ns = about[0].at_ns
    return Driven(braked(A, brake, at_ns / 1e9), brake, at_ns, log, NAMES, 0.0, until_s)


def test_a_warning_in_time_is_credited_and_every_number_is_as_computed_by_hand() -> None:
    what = scenario(crossing(0.1))
    log = [told(2.3, 2.0, level=0), told(2.5, 2.2), told(2.6, 2.2)]
    verdict = Judge(what).verdict(driven(what, log)).document()
    # The brake bites at 2.7 s with the front at -21 m; 100/14 m later it stands, 12.857 m before the strip.
    assert verdict["outcome"] == "AVOIDED"
    assert verdict["gap_m"] == pytest.approx(20 - 100 / 14, abs=2e-3)
    assert (verdict["impact_kmh"], verdict["impact_s"], verdict["speed_kmh"]) == (None, None, 36.0)
    assert verdict["brake"] == {
        "by": {
            "kind": "auto", "deceleration_mps2": 7.0, "actuation_s": 0.2, "build_up_s": 0.0, "friction": 0.8,
            "reaction_s": 0.0, "reaction_sd_s": 0.0,
        },
        "commanded_s": 2.5, "begins_s": pytest.approx(2.7), "stopped_s": pytest.approx(2.7 + 10 / 7, abs=1e-3),
    }  # fmt: skip
    assert verdict["knew"] == {"at_s": 2.5, "left_m": pytest.approx(22, abs=0.01)}
    assert verdict["warnings"] == {"about_crossing": 2, "false": 0, "others": 0, "missed": False}
    assert verdict["closed_form"] == {
        "needed_m": round(10 * 0.5 + 100 / 14, 2), "left_m": pytest.approx(25, abs=0.01), "impact_kmh": 0.0,
    }  # fmt: skip
    assert verdict["deciding"] == {
        "source": 1, "epoch": 1, "seq": 7, "ordinal": 0, "station": "E", "object": "X", "measured_s": 2.2,
        "delivered_s": 2.5, "latency_ns": [300_000_000, 300_000_000], "split": None,
    }  # fmt: skip
    assert (verdict["crossing"], verdict["note"]) == ("X", None)
    assert verdict["stood"] == {"left_m": pytest.approx(22 - 10 * 0.2 - 100 / 14, abs=0.01), "in_way": False}


def test_where_the_ego_stands_in_the_way_of_who_has_passed_is_said() -> None:
    # X's rear leaves A's extent (x = -1) at 4.5 s, when A's front is still before the strip (unbraked: until 4.7 s).
    what = scenario(crossing(-0.8))
    verdict = Judge(what).verdict(driven(what, [told(3.63, 3.4)])).document()
    # It bites at 3.83 s with 47 - 38.3 = 8.7 m left; 50 / 7 m further it stands.
    assert (verdict["outcome"], verdict["stood"]["in_way"]) == ("AVOIDED", False)
    assert verdict["stood"]["left_m"] == pytest.approx(8.7 - 50 / 7, abs=0.01)
    late = Judge(what).verdict(driven(what, [told(4.0, 3.4)])).document()
    assert (late["outcome"], late["stood"]) == (
        "AVOIDED", {"left_m": pytest.approx(47 - 42 - 50 / 7, abs=0.01), "in_way": True},
    )  # fmt: skip
    past = Judge(what).verdict(driven(what, [told(4.8, 3.4)])).document()
    assert past["stood"] == {"left_m": pytest.approx(47 - 50 - 50 / 7, abs=0.01), "in_way": False}, "2 + 4 m beyond"


def test_a_brake_that_builds_up_stands_later_and_the_closed_form_says_so() -> None:
    what = scenario(crossing(0.1))
    verdict = Judge(what).verdict(driven(what, [told(2.5, 2.2)], AUTO)).document()
    more = 10 * 0.3 / 2 - 7 * 0.3**2 / 24  # v t_b / 2 - a t_b^2 / 24
    assert verdict["stood"]["left_m"] == pytest.approx(22 - 10 * 0.2 - 100 / 14 - more, abs=0.01)
    assert verdict["brake"]["stopped_s"] == pytest.approx(2.7 + 0.15 + 10 / 7, abs=1e-3)
    assert verdict["closed_form"]["needed_m"] == round(10 * 0.5 + 100 / 14 + more, 2)


@pytest.mark.parametrize(
    ("gap_m", "near", "said"),
    [(0.004, True, "under 1 cm"), (0.061, True, "6 cm"), (0.5, False, "0.50 m"), (2.345, False, "2.35 m")],
)
def test_a_small_gap_is_a_near_miss_and_said_in_centimetres(gap_m: float, near: bool, said: str) -> None:
    assert is_near(replace(JUDGED, gap_m=gap_m)) is near and length(gap_m) == said
    assert not is_near(replace(JUDGED, outcome="CRASH", gap_m=None))


def test_a_late_warning_is_a_crash_at_the_speed_that_is_left() -> None:
    what = scenario(crossing(0.0))
    # Commanded at 3.9 s, the brake bites at 4.1 s, 6 m before the strip, where v2 = 100 - 2 * 7 * 6 is left.
    verdict = Judge(what).verdict(driven(what, [told(3.9, 3.6)])).document()
    assert verdict["outcome"] == "CRASH"
    assert verdict["impact_kmh"] == pytest.approx(16**0.5 * 3.6, abs=0.06)
    assert verdict["impact_s"] == pytest.approx(4.1 + (10 - 4) / 7, abs=1e-3)
    assert (verdict["gap_m"], verdict["brake"]["stopped_s"]) == (None, None)
    assert verdict["closed_form"]["impact_kmh"] == pytest.approx(verdict["impact_kmh"], abs=0.1)


def test_a_warning_about_another_vehicle_is_false_and_not_credited() -> None:
    what = scenario(crossing(0.1))
    verdict = Judge(what).verdict(driven(what, [told(2.5, 2.2, object_id=2), told(2.6, 2.2, object_id=77)])).document()
    assert verdict["outcome"] == "CRASH"
    assert verdict["impact_kmh"] == 36.0
    assert verdict["warnings"] == {"about_crossing": 0, "false": 2, "others": 0, "missed": True}
    assert (verdict["brake"], verdict["knew"], verdict["closed_form"], verdict["deciding"]) == (None, None, None, None)


def test_who_does_not_brake_is_warned_all_the_same() -> None:
    what = scenario(crossing(0.1))
    verdict = Judge(what).verdict(driven(what, [told(2.5, 2.2)], NONE)).document()
    assert (verdict["outcome"], verdict["brake"], verdict["closed_form"]) == ("CRASH", None, None)
    assert (verdict["knew"]["at_s"], verdict["warnings"]["missed"]) == (2.5, False)


def test_a_warning_after_the_contact_was_missed() -> None:
    what = scenario(crossing(0.1))
    verdict = Judge(what).verdict(driven(what, [told(4.9, 3.0)])).document()
    assert (verdict["outcome"], verdict["impact_s"]) == ("CRASH", pytest.approx(4.8, abs=1e-3))
    assert verdict["warnings"] == {"about_crossing": 1, "false": 0, "others": 0, "missed": True}


def test_without_a_conflict_nothing_is_missed() -> None:
    what = scenario(crossing(1.0))
    verdict = Judge(what).verdict(driven(what, [])).document()
    assert (verdict["outcome"], verdict["gap_m"]) == ("AVOIDED", pytest.approx(8**0.5, abs=2e-3))
    assert verdict["warnings"]["missed"] is False


def test_who_could_perceive_the_crossing_vehicle_first() -> None:
    what = scenario(crossing(0.1))
    assert Judge(what).verdict(driven(what, [])).document()["first_perceivable"] == {
        "by": "E",
        "at_s": 0.0,
        "left_m": 47.0,
    }
    alone = Scenario(what.motion, Scene("by hand", "A", (), "X", occluders=what.scene.occluders))
    first = Judge(alone).first_perceivable
    assert first is not None
    # Two of five points of X past the corner (4, -4), seen from A's middle: X's upper corner and its centre.
    assert first.by == "A" and 3.5 < first.at_s < 4.8


def test_a_scene_without_a_crossing_vehicle_says_so() -> None:
    what = scenario(crossing(0.1), crossing_id=None)
    verdict = (
        Judge(what)
        .verdict(Driven(A, AUTO, None, [told(2.5, 2.2), told(2.6, 2.2, object_id=2)], NAMES, 0, 10))
        .document()
    )
    assert (verdict["outcome"], verdict["crossing"]) == ("CRASH", None)
    assert verdict["note"] == (
        "no crossing vehicle named: nothing to judge, and no warning makes the ego brake; contact with X"
    )
    assert verdict["warnings"] == {"about_crossing": 0, "false": 0, "others": 2, "missed": False}
    assert (verdict["first_perceivable"], verdict["knew"], verdict["deciding"]) == (None, None, None)


def test_the_measurement_is_found_across_the_turn_of_its_time() -> None:
    assert told(65.6, 65.5).measured_s == 65.5
    assert told(65.6, 65.536).measured_s == 65.536


def test_what_ends_before_the_contact_is_not_the_last_word() -> None:
    what = scenario(crossing(0.1))
    judge = Judge(what)
    assert judge.unfinished(driven(what, [], until_s=4.0)) == (
        "the replay ends at 4 s, before a contact at 4.80 s; play it for longer"
    )
    assert judge.unfinished(driven(what, [], until_s=4.9)) is None
    assert judge.unfinished(driven(what, [told(2.5, 2.2)], until_s=4.0)) is None


def test_what_begins_after_the_contact_is_judged_but_not_valid() -> None:
    what = scenario(crossing(0.1))
    late = Driven(A, AUTO, None, [], NAMES, 6.5, 10)
    assert Judge(what).unfinished(late) == (
        "the replay begins at 6.5 s, after the contact at 4.80 s; play it from earlier"
    )
    assert Judge(what).verdict(late).document()["warnings"]["missed"] is False


def test_a_crossing_vehicle_that_is_not_recorded_is_refused() -> None:
    with SAID.refuses("by hand unknown_vehicle Z"):
        Judge(scenario(crossing(0.1), crossing_id="Z"))
