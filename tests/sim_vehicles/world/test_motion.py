import gzip
from math import pi
from pathlib import Path

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.table import COLUMNS, write_motion
from sim_vehicles.world.motion import State, Track
from tests.sentences import Wording

SAID = Wording("readers", "motion")

HEAD = ",".join(COLUMNS)
GOOD = ["0.0,7,car,4.5,1.8,0,0,0.1,10", "0.1,7,car,4.5,1.8,1,0,0.1,11", "0.2,7,car,4.5,1.8,2,0,0.1,12"]


def table(tmp_path: Path, *rows: str, head: str = HEAD) -> Path:
    path = tmp_path / "motion.csv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_reads_and_interpolates(tmp_path: Path) -> None:
    track = read_motion(table(tmp_path, *GOOD)).tracks["7"]
    state = track.at(0.15)
    assert state is not None
    assert state.x_m == pytest.approx(1.5)
    assert state.speed_mps == pytest.approx(11.5)
    assert state.acceleration_mps2 == pytest.approx(10)
    assert track.at(0.2) == State(0.2, 2, 0, track.states[2].heading_rad, 12)
    assert track.at(0.21) is None, "never beyond the last record"
    assert track.at(-0.01) is None


def test_heading_goes_the_short_way_round() -> None:
    track = Track("1", "car", 4, 2, [State(0, 0, 0, pi - 0.1, 5), State(1, 0, 0, -pi + 0.1, 5)])
    state = track.at(0.5)
    assert state is not None
    assert abs(state.heading_rad) == pytest.approx(pi)
    assert state.yaw_rate_rps == pytest.approx(0.2)


def test_a_vanished_vehicle_has_no_state() -> None:
    track = Track("1", "car", 4, 2, [State(0, 0, 0, 0, 5), State(3, 15, 0, 0, 5)])
    assert track.at(1.5) is None
    assert track.at(0) == track.states[0]
    assert track.at(3) == track.states[1]


def test_rows_may_be_ordered_by_vehicle_and_columns_in_any_order(tmp_path: Path) -> None:
    rows = ["5,a,car,4,2,0,0,0,1", "6,a,car,4,2,1,0,0,1", "5,b,car,4,2,0,9,0,1"]
    assert set(read_motion(table(tmp_path, *rows)).at(5)) == {"a", "b"}
    swapped = table(
        tmp_path, "a,0.5,car,4,2,0,0,0,1,x", head="id,t_s,type,length_m,width_m,x_m,y_m,heading_rad,speed_mps,lane"
    )
    assert read_motion(swapped).tracks["a"].states[0].t_s == 0.5


BAD_ROWS = [
    "0.3,7,car,4.5,1.8,3,0,nan,12",
    "0.3,7,car,4.5,1.8,inf,0,0,12",
    "0.1,7,car,4.5,1.8,3,0,0,12",
    "0.2,7,car,4.5,1.8,3,0,0,12",
    "0.3,7,car,4.5,1.8,3,0,0,300",
    "0.3,7,car,4.5,1.8,900,0,0,12",
    "0.3,7,car,0,1.8,3,0,0,12",
    "0.3,7,car,4.5,180,3,0,0,12",
    "0.3,7,car,4.5,1.8,three,0,0,12",
    "0.3,7,car,4.5,1.8,3,0,0",
    "0.3,,car,4.5,1.8,3,0,0,12",
]


@pytest.mark.parametrize("row", BAD_ROWS)
def test_bad_rows_are_refused_with_their_line_or_left_out(tmp_path: Path, row: str) -> None:
    path = table(tmp_path, *GOOD, row, "0.4,7,car,4.5,1.8,4,0,0,12")
    with SAID.refuses(f"{path.name}:5 bad_row", kind=BadInputError):
        read_motion(path)
    motion = read_motion(path, skip_bad_rows=True)
    assert len(motion.skipped) == 1
    assert f"{path}:5: " in motion.skipped[0]
    assert [state.t_s for state in motion.tracks["7"].states] == [0.0, 0.1, 0.2, 0.4]


def test_what_is_no_table_is_always_refused(tmp_path: Path) -> None:
    cases = {
        "empty": (b"", "empty.csv:1 empty_file"),
        "columns": (b"t_s,id\n0,1\n", "columns.csv:1 missing_column type"),
        "no rows": (f"{HEAD}\n".encode(), "no rows.csv:1 no_usable_row"),
        "bytes": (b"\xff\xfe\x00", "bytes.csv not_csv"),
        "gzip": (gzip.compress(b"x" * 100)[:-9], "gzip.csv unreadable"),
        "quotes": (f'{HEAD}\n"a'.encode(), "quotes.csv not_csv"),
    }
    for name, (data, said) in cases.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(data)
        with SAID.refuses(said):
            read_motion(path, skip_bad_rows=True)
    with SAID.refuses("nowhere.csv no_file"):
        read_motion(tmp_path / "nowhere.csv")


def test_written_bytes_depend_on_the_rows_alone(tmp_path: Path) -> None:
    track = Track("1", "car", 4.5, 1.8)
    rows = [("0.00", track, State(0, 1, 2, 3, 4)), ("0.05", track, State(0.05, 1.2, 2, 3, 4))]
    write_motion(tmp_path / "a.csv.gz", rows)
    write_motion(tmp_path / "b.csv.gz", rows)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    state = read_motion(tmp_path / "a.csv.gz").tracks["1"].at(0.05)
    assert state is not None
    assert state.x_m == 1.2
