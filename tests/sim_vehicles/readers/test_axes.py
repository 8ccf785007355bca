"""A recording with exchanged or turned axes, or with negated speeds, is refused as a whole with the likely cause."""

from collections.abc import Callable
from math import cos, pi, sin
from pathlib import Path
from random import Random

import pytest

from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.table import write_motion
from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.motion import State, Track, wrap
from tests.sentences import Wording
from tests.sim_vehicles.readers.test_bad_recordings import Record, fcd_xml

SAID = Wording("readers", "axes")

Change = Callable[[State], State]


def drive(name: str, heading: float, speed: float = 10.0, turn_rps: float = 0.0, backs_up: bool = False) -> Track:
    """20 s at constant speed; a vehicle that backs up has its front where it comes from, and a negative speed."""
    states, x, y = [], 0.0, 0.0
    for k in range(200):
        front = heading + turn_rps * k / 10
        states.append(State(k / 10, x, y, wrap(front), -speed if backs_up else speed))
        way = speed / 10 * (-1 if backs_up else 1)
        x, y = x + way * cos(front + turn_rps / 20), y + way * sin(front + turn_rps / 20)
    return Track(name, "car", 4.5, 1.8, states)


CROSSROADS = [drive(f"{k}", k * pi / 2, 8 + k) for k in range(4)]
TOWN = [*CROSSROADS, drive("bend", 0.3, 9, 0.2), drive("slanted", 2.5)]

WRONG: dict[str, tuple[list[Track], Change, str]] = {
    "swapped": (TOWN, lambda s: s._replace(x_m=s.y_m, y_m=s.x_m), "2 wrong_direction 0"),
    "swapped, on one road": (CROSSROADS[:1], lambda s: s._replace(x_m=s.y_m, y_m=s.x_m), "2 wrong_direction 0"),
    "y mirrored": (TOWN, lambda s: s._replace(y_m=-s.y_m), "202 wrong_direction 1"),
    "x mirrored": (TOWN, lambda s: s._replace(x_m=-s.x_m), "2 wrong_direction 0"),
    "from north": (TOWN, lambda s: s._replace(heading_rad=wrap(s.heading_rad - pi / 2)), "2 wrong_direction 0"),
    "from south": (TOWN, lambda s: s._replace(heading_rad=wrap(s.heading_rad + pi / 2)), "2 wrong_direction 0"),
    "half a turn": (TOWN, lambda s: s._replace(heading_rad=wrap(s.heading_rad + pi)), "2 wrong_direction 0"),
    "speeds negated": (TOWN, lambda s: s._replace(speed_mps=-s.speed_mps), "2 wrong_direction 0"),
}


def written(folder: Path, tracks: list[Track], change: Change = lambda state: state) -> Path:
    path = folder / "axes.csv.gz"
    write_motion(path, ((f"{one.t_s:.2f}", track, change(one)) for track in tracks for one in track.states))
    return path


@pytest.mark.parametrize("what", WRONG)
def test_most_vehicles_that_go_elsewhere_than_their_headings_are_the_files_fault(tmp_path: Path, what: str) -> None:
    tracks, change, said = WRONG[what]
    assert read_motion(written(tmp_path, tracks)).notes == []
    path = written(tmp_path, tracks, change)
    with SAID.refuses(f"axes.csv.gz:{said}"):
        read_motion(path)
    with SAID.refuses(f"axes.csv.gz:{said}"):
        read_motion(path, skip_bad_rows=True)


def test_axes_of_sumo_are_held_against_one_another_too(tmp_path: Path) -> None:
    path = tmp_path / "recording.xml"
    path.write_text(fcd_xml([Record(f"{k / 10:.1f}", str(k), angle="0") for k in range(100)]))
    with SAID.refuses("recording.xml:2 wrong_direction 7"):
        read_motion(path)


def test_a_vehicle_that_backs_up_is_no_fault(tmp_path: Path) -> None:
    assert read_motion(written(tmp_path, [drive("a", 1.0, 3, backs_up=True)])).notes == []


def test_some_vehicles_that_go_elsewhere_are_noted_with_the_likely_cause(tmp_path: Path) -> None:
    """One of five has the other sign; of twelve one is that vehicle's matter."""
    wrong = drive("wrong", 0.5)
    wrong.states = [state._replace(speed_mps=-10.0) for state in wrong.states]
    (note,) = read_motion(written(tmp_path, [*CROSSROADS, wrong])).notes
    assert note == (
        f"{tmp_path}/axes.csv.gz:802: the speeds look negated: 190 of the 950 rows of moving vehicles go another way"
        " than their heading (vehicle wrong: to -151, heading 29 degrees);"
        " change their sign (below 0 is a vehicle that backs up)"
    )
    many = [drive(f"{k}", k / 2) for k in range(11)]
    assert read_motion(written(tmp_path, [*many, wrong])).notes == []


def test_headings_without_any_meaning_are_noted_without_a_cause(tmp_path: Path) -> None:
    chance = Random(7)
    (note,) = read_motion(written(tmp_path, TOWN, lambda s: s._replace(heading_rad=chance.uniform(-pi, pi)))).notes
    assert "the headings do not go with the places" in note


def test_a_parked_vehicle_goes_nowhere(tmp_path: Path) -> None:
    """Its places wander by satellite noise, in all directions."""
    chance = Random(3)
    states = [State(k / 10, chance.gauss(0, 0.3), chance.gauss(0, 0.3), 1.0, 0.0) for k in range(600)]
    assert read_motion(written(tmp_path, [Track("parked", "car", 4.5, 1.8, states)])).notes == []


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("crossing_*.csv.gz")), ids=lambda path: path.name)
def test_our_recordings_with_exchanged_axes_are_refused(path: Path, tmp_path: Path) -> None:
    tracks = list(read_motion(path).tracks.values())
    for track in tracks:
        track.states = [state._replace(x_m=state.y_m, y_m=state.x_m) for state in track.states]
    with SAID.refuses("axes.csv.gz:2 wrong_direction A"):
        read_motion(written(tmp_path, tracks))
