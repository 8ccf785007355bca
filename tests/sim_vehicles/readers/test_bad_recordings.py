"""Bad input, the same in every format: refused with file and line and the mend, or left out with --skip-bad-rows."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.readers import content
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.readers.sizes import routes_of
from sim_vehicles.readers.table import COLUMNS
from tests.sentences import Wording

SAID = Wording("readers", "recordings")

try:
    import commonroad  # noqa: F401

    NO_LIBRARY = False
except ImportError:
    NO_LIBRARY = True


@dataclass(frozen=True)
class Record:
    """One record of a vehicle that drives east, as texts; every format writes its own way of it."""

    t: str
    x: str = "0"
    v: str = "10"
    id: str = "7"
    angle: str | None = None  # in the format's own unit; None: east


def csv(records: list[Record]) -> str:
    rows = [f"{r.t},{r.id},car,4,2,{r.x},0,{r.angle or '0'},{r.v}" for r in records]
    return "\n".join([",".join(COLUMNS), *rows]) + "\n"


def fcd_csv(records: list[Record]) -> str:
    head = "timestep_time;vehicle_id;vehicle_x;vehicle_y;vehicle_angle;vehicle_type;vehicle_speed"
    return "\n".join([head, *(f"{r.t};{r.id};{r.x};0;{r.angle or '90'};T;{r.v}" for r in records)]) + "\n"


def fcd_xml(records: list[Record]) -> str:
    steps = [
        f'<timestep time="{r.t}"><vehicle id="{r.id}" type="T" x="{r.x}" y="0" angle="{r.angle or "90"}" '
        f'speed="{r.v}"/></timestep>'
        for r in records
    ]
    return "\n".join(["<fcd-export>", *steps]) + "\n</fcd-export>\n"


def commonroad_xml(records: list[Record]) -> str:
    """Time steps of 0.1 s; states in the order of the records."""
    shape = "<shape><rectangle><length>4</length><width>2</width></rectangle></shape>"
    head = '<commonRoad timeStepSize="0.1" commonRoadVersion="2020a">'
    lines = [f'{head}<dynamicObstacle id="{records[0].id}"><type>car</type>{shape}']
    for i, r in enumerate(records):
        tag = "state" if i else "initialState"
        step = f"{float(r.t) * 10:.0f}"
        position = f"<position><point><x>{r.x}</x><y>0</y></point></position>"
        values = (("orientation", r.angle or "0"), ("time", step), ("velocity", r.v))
        rest = "".join(f"<{name}><exact>{value}</exact></{name}>" for name, value in values)
        lines.append(f"{'<trajectory>' if i == 1 else ''}<{tag}>{position}{rest}</{tag}>")
    return "\n".join(lines) + "</trajectory></dynamicObstacle></commonRoad>\n"


WRITERS: dict[str, Callable[[list[Record]], str]] = {
    "csv": csv,
    "fcd csv": fcd_csv,
    "fcd xml": fcd_xml,
    "commonroad": commonroad_xml,
}
FORMATS = [
    pytest.param(
        name, marks=pytest.mark.skipif(name == "commonroad" and NO_LIBRARY, reason="commonroad-io is not installed")
    )
    for name in WRITERS
]
GOOD = [Record("0.0", "0"), Record("0.1", "1"), Record("0.2", "2")]
AFTER = Record("0.4", "4")
BAD: dict[str, tuple[Record, str]] = {
    "300 m/s": (Record("0.3", "3", "300"), "speed_mps is 300; over 100 m/s is a wrong unit"),
    "a jump": (Record("0.3", "900"), "vehicle 7 jumps 898 m in 0.1 s; that is a wrong unit or another vehicle"),
    "another planet": (Record("0.3", "3e7"), "x_m is 3e+07; over 6e+06 m from the origin, which must be nearer"),
    "time stands": (Record("0.2", "3"), "time does not grow for vehicle 7: 0.2 s after 0.2 s"),
    "time runs backwards": (Record("0.1", "3"), "time does not grow for vehicle 7: 0.1 s after 0.2 s"),
    "no number": (Record("0.3", "three"), "x"),
    "not finite": (Record("0.3", "3", "nan"), "is nan, which is not finite"),
    "no angle": (Record("0.3", "3", angle="inf"), "is inf, which is not finite"),
}


def written(tmp_path: Path, form: str, records: list[Record]) -> Path:
    path = tmp_path / "recording"  # no suffix: the content tells the format
    path.write_text(WRITERS[form](records))
    return path


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("what", BAD)
def test_a_record_that_cannot_be(tmp_path: Path, form: str, what: str) -> None:
    bad, _ = BAD[what]
    path = written(tmp_path, form, [*GOOD, bad, AFTER])
    with SAID.refuses("recording:5 bad_row", worded=form != "commonroad"):
        read_motion(path)
    motion = read_motion(path, skip_bad_rows=True)
    assert [line.split(": ")[0] for line in motion.skipped] == [f"{path}:5"]
    assert [state.t_s for state in motion.tracks["7"].states] == pytest.approx([0.0, 0.1, 0.2, 0.4])


@pytest.mark.parametrize("t_s", [1.7e12, 1.7e18])
def test_time_in_milliseconds_or_nanoseconds_is_refused(tmp_path: Path, t_s: float) -> None:
    path = written(tmp_path, "csv", [Record(f"{t_s + i}") for i in range(3)])
    with SAID.refuses("recording:2 bad_row"):
        read_motion(path)
    assert read_motion(written(tmp_path, "csv", [Record("1.7e9")])).start_s == 1.7e9


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_usable(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, form, [Record("0.0", v="300"), Record("0.1", v="400")])
    with pytest.raises(BadInputError) as refused:
        read_motion(path, skip_bad_rows=True)
    assert refused.value.problem.mistake.code == "no_usable_row"


@pytest.mark.parametrize("form", FORMATS)
def test_a_vehicle_that_vanishes_and_comes_back_has_no_state_in_between(tmp_path: Path, form: str) -> None:
    """A gap of more than 1 s is no mistake, wherever the vehicle comes back; up to 1 s it is bridged."""
    path = written(tmp_path, form, [Record("0.0"), Record("0.9", "9"), Record("3.0", "800"), Record("3.1", "801")])
    motion = read_motion(path)
    track = motion.tracks["7"]
    assert motion.skipped == []
    assert track.at(0.45) is not None
    assert track.at(2.0) is None
    assert track.at(3.05) is not None
    assert track.at(3.2) is None, "nothing after the last record"


@pytest.mark.parametrize("form", FORMATS)
def test_a_scenario_needs_an_ego_that_is_there(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, form, GOOD)
    with SAID.refuses("recording no_scene_file --ego", worded=form != "commonroad"):
        load_scenario(str(path))
    with SAID.refuses("recording unknown_vehicle A", worded=form != "commonroad"):
        load_scenario(str(path), ego="A")
    assert load_scenario(str(path), ego="7").scene.stations == ()


ALONE = 'x="0" y="0" angle="0" speed="0"/>'
BROKEN: dict[str, tuple[bytes, str]] = {
    "no recording": (b"<html><body/></html>", "broken:1 unknown_format html"),
    "cut": (fcd_xml(GOOD).encode()[:-20], "broken:4 not_xml"),
    "mismatched": (b"<fcd-export>\n</timestep>", "broken:2 not_xml"),
    "xml alone": (b"<?xml version='1.0'?>\n", "broken:2 not_xml"),
    "encoding": (b"<?xml version='1.0' encoding='runes'?><fcd-export/>", "broken:1 not_xml"),
    "no vehicle": (b"<fcd-export>\n</fcd-export>", "broken:1 no_usable_row"),
    "parquet": (b"PAR1....PAR1", "broken parquet"),
    "missing column": (b"timestep_time;vehicle_id;vehicle_x;vehicle_y\n", "broken:1 missing_column vehicle_angle"),
    "fields": (fcd_csv(GOOD).encode() + b"0.3;7;3\n", "broken:5 bad_row"),
    "no id": (f'<fcd-export>\n<timestep time="0"><vehicle {ALONE}'.encode(), "broken:2 bad_row"),
    "no time": (f'<fcd-export>\n<vehicle id="a" {ALONE}'.encode(), "broken:2 bad_row"),
    "compass": (fcd_xml([Record("0", angle="900")]).encode(), "broken:2 wrong_unit"),
    "deep": (b"<fcd-export>" + b"<a>" * 100, "broken:1 too_deep"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_no_recording(tmp_path: Path, what: str) -> None:
    data, said = BROKEN[what]
    path = tmp_path / "broken"
    path.write_bytes(data)
    with SAID.refuses(said):
        read_motion(path)


BOMB = """<?xml version="1.0"?>
<!DOCTYPE fcd-export [
  <!ENTITY a "aaaaaaaaaa">
  <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
]>
<fcd-export>&b;</fcd-export>
"""
OUTSIDE = (
    '<!DOCTYPE commonRoad SYSTEM "file:///etc/passwd">\n<commonRoad timeStepSize="0.1" commonRoadVersion="2020a"/>'
)


@pytest.mark.parametrize(
    ("text", "told"), [(BOMB, "bomb.xml:2 document_type fcd-export"), (OUTSIDE, "bomb.xml:1 document_type commonRoad")]
)
def test_document_types_are_refused_before_anything_is_expanded(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bomb.xml"
    path.write_text(text)
    with SAID.refuses(told):
        read_motion(path, skip_bad_rows=True)
    recording = tmp_path / "good.xml"
    recording.write_text(fcd_xml(GOOD))
    routes_of(recording).write_text(BOMB)
    with SAID.refuses("good.rou.xml:2 document_type fcd-export"):
        read_motion(recording)


@pytest.mark.parametrize("form", WRITERS)
def test_a_small_file_that_unpacks_to_a_huge_one(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_BYTES", 1_000_000)
    path = tmp_path / "huge.gz"
    path.write_bytes(gzip.compress(WRITERS[form](GOOD).replace("\n", "\n" + " " * 2_000_000, 1).encode()))
    with SAID.refuses("huge.gz too_large"):
        read_motion(path)
