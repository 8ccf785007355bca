"""A recording is read in batches of any size as row by row, and holds numbers, no object per row."""

import pickle
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from sim_vehicles.errors import BadInputError
from sim_vehicles.readers import batches
from sim_vehicles.readers.batches import Bad, Row, in_batches
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.rules import gather
from sim_vehicles.readers.table import COLUMNS
from sim_vehicles.world.column_track import ColumnTrack, StateColumns, columns_of
from sim_vehicles.world.motion import State, Track
from tests.sim_vehicles.readers.test_bad_recordings import WRITERS, Record

HEAD = ",".join(COLUMNS)
ODD = {  # a column and what may stand in it; most of it is wrong
    0: ("0.0", "-1", "5e9", "x", ""),
    1: ("", " ", "b", "a "),
    3: ("0", "61", "nan"),
    5: ("1e7", "9999", "inf", " 3 ", "1_0"),
    7: ("7", "-13", "1,5"),
    8: ("200", "-3", "--"),
}


def rows(seed: int, faults: float) -> list[str]:
    """Three vehicles in turn, some of the rows with something odd in one field, cut short, quoted or empty."""
    chance, found = Random(seed), []
    for k in range(60):
        cells = [f"{k / 10:.1f}", "abc"[k % 3], "car", "4", "2", f"{k / 2:.2f}", f"{k % 3}", "0.1", "5"]
        if chance.random() < faults:
            column = chance.choice(list(ODD))
            cells[column] = chance.choice(ODD[column])
        line = ",".join(cells[: chance.choice((9,) * 30 + (8, 0))])
        found.append(line + chance.choice(("\n",) * 8 + ("\r\n",)))
    return found


def outcome(path: Path, skip: bool) -> object:
    try:
        motion = read_motion(path, skip)
    except BadInputError as bad:
        return str(bad)
    return motion.tracks, motion.skipped, motion.notes


@pytest.mark.parametrize("seed", range(40))
def test_batches_of_any_size_give_what_one_row_after_another_gives(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + "\n" + "".join(rows(seed, 0.0 if seed % 4 == 0 else 0.15))
    if seed % 5 == 0:
        text = text.replace(",car,", ',"car",', 3)
    path = tmp_path / "odd.csv"
    path.write_bytes(text.encode())
    found = []
    for size in (1, 7, 16_384):
        monkeypatch.setattr(batches, "SIZE", size)
        found.append([outcome(path, skip) for skip in (False, True)])
    assert found[0] == found[1] == found[2], f"seed {seed}"


def test_what_stands_before_a_broken_end_is_checked_first(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(f"{HEAD}\n0,a,car,4,2,0,0,0,nan\n".encode() + b"\xff" * 200_000)
    with pytest.raises(BadInputError) as refused:
        read_motion(path)
    assert (refused.value.problem.mistake.code, refused.value.problem.line) == ("not_csv", 0)
    path.write_bytes(f"{HEAD}\n0,a,car,4,2,0,0,0,nan\n{'#' * 100_000}\n".encode() + b"\xff" * 200_000)
    with pytest.raises(BadInputError) as refused:
        read_motion(path)
    assert (refused.value.problem.mistake.code, refused.value.problem.line) == ("bad_row", 2)


def test_rows_of_a_reader_that_makes_them_one_by_one_are_batches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SIZE", 2)
    rows = [Row(k, "a", "car", k / 10, 4, 2, k, 0, 0, 10) for k in range(5)]
    given = [*rows[:3], Bad(3, "it has no speed"), *rows[3:]]
    found = list(in_batches(given))
    assert [len(one) for one in found] == [2, 2, 2]
    assert [one.row(k) for one in found for k in range(2)] == given
    motion = gather(Path("made"), found, skip_bad_rows=True)
    assert motion.skipped == ["made:3: it has no speed"]
    assert [state.x_m for state in motion.tracks["a"].states] == [0, 1, 2, 3, 4]


def drives(n: int) -> Iterable[Record]:
    return (Record(f"{k / 10:.1f}", f"{k}", id=f"{v}") for v in range(20) for k in range(n))


@pytest.mark.parametrize("form", ["csv", "fcd csv", "fcd xml"])
def test_a_recording_in_memory_is_five_numbers_a_row(tmp_path: Path, form: str) -> None:
    path = tmp_path / "recording"
    path.write_text(WRITERS[form](list(drives(1000))))
    read_motion(path)  # loads what is loaded once
    tracemalloc.start()
    try:
        motion = read_motion(path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(columns_of(track)) for track in motion.tracks.values()) == 20_000
    assert held < 60 * 20_000  # bytes; an object per row takes some 200


def test_a_track_makes_its_states_where_they_are_asked_for() -> None:
    states = [State(k / 10, k, -k, 0.1 * k, 3.0) for k in range(7)]
    columns = StateColumns.of(states)
    track = ColumnTrack("a", "car", 4.0, 2.0, columns)
    assert columns_of(track) is columns
    again = pickle.loads(pickle.dumps(track))
    assert again.columns == columns, "what is sent to another process is numbers"
    assert [track.at(k / 33) for k in range(-2, 30)] == [
        Track("a", "car", 4.0, 2.0, states).at(k / 33) for k in range(-2, 30)
    ]
    assert track.states == states and track.states is track.states and track.columns is None
    assert track == again and columns_of(track) == columns
    longer = replace(track, length_m=5.0)
    assert (longer.length_m, longer.states) == (5.0, states) and columns_of(longer) == columns
    track.states = states[:3]
    assert len(columns_of(track)) == 3
    assert not hasattr(track, "colour")
