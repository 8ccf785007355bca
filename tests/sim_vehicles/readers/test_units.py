"""A recording in wrong units is refused as a whole, in every format, with line and mend; a good one never is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_vehicles.errors import BadInputError
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.table import write_motion
from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.motion import Motion, State, Track
from tests.sentences import Wording
from tests.sim_vehicles.readers.test_bad_recordings import FORMATS, WRITERS, Record, written
from tests.sim_vehicles.recorded_data import LANKERSHIM, recordings

SAID = Wording("readers", "units")

FACTORS = (3.6, 1 / 3.6, 0.3048, 57.3, 1000.0)


def drive(
    v_mps: float, id: str = "7", n: int = 80, step_s: float = 0.1, angle: str | None = None, noise: Random | None = None
) -> list[Record]:
    """Straight on; with noise, speeds up to 5 % off."""
    return [
        Record(
            f"{i * step_s:.6f}",
            f"{v_mps * i * step_s:.6f}",
            f"{v_mps * (1 if noise is None else noise.uniform(0.95, 1.05)):.6f}",
            id,
            angle,
        )
        for i in range(n)
    ]


def scaled(records: list[Record], column: str, factor: float) -> list[Record]:
    return [replace(one, **{column: f"{float(getattr(one, column)) * factor:.9f}"}) for one in records]


WRONG = {
    "km/h": ("v", 3.6, "recording:2 wrong_unit 7"),
    "mph": ("v", 2.236936, "recording:2 wrong_unit 7"),
    "ft/s": ("v", 3.28084, "recording:2 wrong_unit 7"),
    "km/h from km/h": ("v", 1 / 3.6, "recording:2 wrong_unit 7"),
    "no speeds": ("v", 0.0, "recording:2 wrong_unit 7"),
    "feet": ("x", 3.28084, "recording:2 wrong_unit 7"),
    "km": ("x", 1e-3, "recording:2 wrong_unit 7"),
    "degrees": (
        "x",
        1e-5,
        "recording:2 wrong_unit 7",
    ),
    "no places": ("x", 0.0, "recording:2 wrong_unit 7"),
    "ms": ("t", 1e3, "recording:2 wrong_unit 7"),
    "us": ("t", 1e6, "recording:2 wrong_unit 7"),
}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("form", FORMATS)
def test_speeds_places_and_times_in_other_units(tmp_path: Path, form: str, what: str, skip: bool) -> None:
    column, factor, said = WRONG[what]
    path = written(tmp_path, form, scaled(drive(10), column, factor))
    with SAID.refuses(said, worded=form != "commonroad"):
        read_motion(path, skip)


# Off the scale in most rows, after 20 good ones: without --skip-bad-rows the first such row is named.
HUGE = {"cm": ("x", 100.0), "mm/s": ("v", 1000.0)}


@pytest.mark.parametrize("what", HUGE)
@pytest.mark.parametrize("form", FORMATS)
def test_rows_off_the_scale_cannot_be_left_out_where_they_are_most(tmp_path: Path, form: str, what: str) -> None:
    column, factor = HUGE[what]
    parked = [replace(one, x="0", v="0") for one in drive(15)[:20]]
    path = written(tmp_path, form, [*parked, *scaled(drive(15)[20:], column, factor)])
    with SAID.refuses("recording:22 bad_row", worded=form != "commonroad"):
        read_motion(path)
    with SAID.refuses("recording:22 wrong_unit", worded=form != "commonroad"):
        read_motion(path, skip_bad_rows=True)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_headings_that_cannot_be(tmp_path: Path, form: str, skip: bool) -> None:
    """Degrees where radians are due; of SUMO's degrees what is over two turns as well."""
    sumo = form.startswith("fcd")
    possible, impossible = ("60", "-721") if sumo else ("0.5", "90")
    bad = written(
        tmp_path, form, [replace(one, angle=impossible) if i == 3 else one for i, one in enumerate(drive(10))]
    )
    with SAID.refuses("recording:5 wrong_unit", worded=form != "commonroad"):
        read_motion(bad, skip)
    good = [replace(one, angle=possible) for one in drive(10)]
    assert len(read_motion(written(tmp_path, form, good), skip).tracks["7"].states) == 80


def test_two_turns_are_still_a_heading(tmp_path: Path) -> None:
    assert read_motion(written(tmp_path, "csv", [replace(one, angle="12.56") for one in drive(10)])).tracks


@pytest.mark.parametrize("form", FORMATS)
def test_knots_are_noted(tmp_path: Path, form: str) -> None:
    """1.94: too near to the factor of two to refuse, too far from 1 to keep silent."""
    motion = read_motion(written(tmp_path, form, scaled(drive(10), "v", 1.943844)))
    (note,) = [one for one in motion.notes if "speeds" in one]
    assert "recording:2: the vehicles drive 0.514 times what their speeds say" in note
    assert note.endswith("the speeds look like knots; divide them by 1.944")


def test_the_line_is_that_of_the_first_vehicle_that_disagrees(tmp_path: Path) -> None:
    """One of three in another unit is that vehicle's matter; two of three are the file's."""
    good, kmh = drive(10, "a"), [scaled(drive(10, name), "v", 3.6) for name in ("b", "c")]
    assert len(read_motion(written(tmp_path, "csv", [*good, *kmh[0], *drive(9, "d")])).tracks) == 3
    assert len(read_motion(written(tmp_path, "csv", [*good, *kmh[0]])).tracks) == 2, "a half is not most"
    with SAID.refuses("recording:82 wrong_unit b"):
        read_motion(written(tmp_path, "csv", [*good, *kmh[0], *kmh[1]]))


def near_standing(seed: int) -> Track:
    """A parked vehicle as a satellite receiver sees it: 0.3 m of noise ten times a second, speeds of some dm/s."""
    chance = Random(seed)
    where = [(chance.gauss(0, 0.3), chance.gauss(0, 0.3)) for _ in range(600)]
    return Track("a", "car", 4, 2, [State(i / 10, x, y, 0, chance.uniform(0, 0.5)) for i, (x, y) in enumerate(where)])


def slow(step_s: float) -> Track:
    """Records further apart than a state is bridged, in seconds nevertheless."""
    return Track("a", "car", 4, 2, [State(i * step_s, 12 * i * step_s, 0, 0, 12) for i in range(20)])


def returning() -> Track:
    """Leaves the picture and comes back elsewhere, over and over."""
    spells = [(spell * 100 + i / 10, spell * -300 + i) for spell in range(8) for i in range(30)]
    return Track("a", "car", 4, 2, [State(t, x, 0, 0, 10) for t, x in spells])


def reversing() -> Track:
    return Track("a", "car", 4, 2, [State(i / 10, -0.3 * i, 0, 0, -3) for i in range(100)])


def held() -> Track:
    """Places once a second, speeds ten times."""
    return Track("a", "car", 4, 2, [State(i / 10, 8.0 * (i // 10), 0, 0, 8) for i in range(100)])


FINE = {
    **{f"near standing {seed}": near_standing(seed) for seed in range(5)},
    "a record each 5 s": slow(5),
    "a record each 60 s": slow(60),
    "returning": returning(),
    "reversing": reversing(),
    "places held": held(),
    "one record": Track("a", "car", 4, 2, [State(0, 0, 0, 0, 30)]),
}


@pytest.mark.parametrize("what", FINE)
def test_odd_recordings_that_are_no_wrong_unit(tmp_path: Path, what: str) -> None:
    path = tmp_path / "odd.csv.gz"
    write_motion(path, ((f"{state.t_s:.3f}", FINE[what], state) for state in FINE[what].states))
    motion = read_motion(path)
    assert motion.notes == []
    assert len(motion.tracks["a"].states) == len(FINE[what].states)


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.csv.gz")), ids=lambda path: path.name)
def test_our_recordings_pass(path: Path) -> None:
    assert read_motion(path).notes == []


@pytest.mark.skipif(not LANKERSHIM.is_dir(), reason="the NGSIM recordings are not here")
def test_recorded_traffic_passes_and_is_refused_in_other_units(tmp_path: Path) -> None:
    for path in recordings():
        motion = read_motion(path)
        assert motion.notes == []
        kmh, feet = (
            _changed(motion, lambda one: one._replace(speed_mps=one.speed_mps * 3.6)),
            _changed(motion, lambda one: one._replace(x_m=one.x_m / 0.3048, y_m=one.y_m / 0.3048)),
        )
        for changed, unit in ((kmh, "km/h"), (feet, "feet")):
            write_motion(tmp_path / "changed.csv.gz", changed)
            with pytest.raises(BadInputError) as refused:
                read_motion(tmp_path / "changed.csv.gz", skip_bad_rows=True)
            assert refused.value.problem.mistake.code == "wrong_unit" and f"look like {unit}" in str(refused.value)


def _changed(motion: Motion, change: Callable[[State], State]) -> list[tuple[str, Track, State]]:
    return [(f"{one.t_s:.3f}", track, change(one)) for track in motion.tracks.values() for one in track.states]


SCALES = [(column, factor) for column in ("t", "x", "v") for factor in FACTORS] + [("angle", 57.3), ("angle", 1000.0)]


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=40, deadline=None)
@given(
    speeds=st.lists(st.floats(3, 25), min_size=1, max_size=3),
    heading=st.floats(0.25, 0.75),  # of vehicles that drive east: their axes are no wrong ones yet
    step_s=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from(SCALES),
    skip=st.booleans(),
)
def test_a_good_recording_is_never_refused_and_one_in_another_unit_always(
    form: str,
    speeds: list[float],
    heading: float,
    step_s: float,
    seed: int,
    scale: tuple[str, float],
    skip: bool,
) -> None:
    noise = Random(seed)
    angle = f"{90 - heading * 57.29578 if form.startswith('fcd') else heading:.6f}"
    vehicles = speeds[:1] if form == "commonroad" else speeds  # its writer has one obstacle
    records = [
        one
        for i, v_mps in enumerate(vehicles)
        for one in drive(v_mps, str(i + 1), round(12 / step_s), step_s, angle, noise)
    ]
    with TemporaryDirectory() as folder:
        good = Path(folder) / "good"
        good.write_text(WRITERS[form](records))
        assert len(read_motion(good).tracks) == len(vehicles)
        bad = Path(folder) / "bad"
        bad.write_text(WRITERS[form](scaled(records, *scale)))
        with pytest.raises(BadInputError):
            read_motion(bad, skip)
