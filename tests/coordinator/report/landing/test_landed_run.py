"""Landed once: sealed, complete, and the same run to every reader; bad input changes completeness and nothing else."""

import errno
import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from coordinator.report.facts import reader
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import NoRunError, Run, read_run
from coordinator.report.landing import parquet_files, seal
from coordinator.report.landing.landed_run import drop_raw, find, land
from coordinator.report.landing.record_array import usable_records
from coordinator.report.landing.record_columns import SCHEMA
from coordinator.report.landing.record_fields import FIELDS
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.alterations import altered, saved
from tests.coordinator.report.synthetic import everything, play
from tests.coordinator.report.synthetic_windows import overloaded, play_windows


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(play(everything(), 3, tuples=40, mishaps=0.1, policed=0.1).save(tmp_path / "run"))


def without_raw(run: Run) -> Run:
    """The same, read from what was landed of it."""
    land(run.path, run.firsts)
    assert drop_raw(run.path, run.firsts)
    return read_run(run.path)


@pytest.mark.parametrize("seed", range(4))
def test_the_sealed_parquet_is_the_same_run(seed: int, tmp_path: Path) -> None:
    """Also where records hold anything at all."""
    if seed == 0:
        made = read_run(play_windows(overloaded(), seed, tuples=30, mishaps=0.1).save(tmp_path / "run"))
    else:
        made = read_run(play(everything(), seed, tuples=20, mishaps=0.1, policed=0.1).save(tmp_path / "run"))
        made = saved(altered(made, random.Random(seed))[1], tmp_path / "altered")
    expected = verdict(made)
    assert verdict(without_raw(made)) == expected


def test_each_field_has_its_name_and_is_null_where_a_record_has_none(run: Run) -> None:
    landed = land(run.path, run.firsts)
    rows = [row for path in landed.paths() for row in pq.ParquetFile(path).read().to_pylist()]
    kinds = {row["kind"] for row in rows}
    assert {"admitted", "ran", "shed", "lost", "output", "clock", "load", "plan"} <= kinds
    ran = next(row for row in rows if row["kind"] == "ran")
    assert set(SCHEMA.names) == set(ran)
    held = {name for name, value in ran.items() if value is not None}
    assert held == {"trace", "place", "kind", *FIELDS[rec.RAN]}
    assert ran["unfinished"] is False and ran["start_ns"] <= ran["end_ns"]
    load = next(row for row in rows if row["kind"] == "load")
    assert load["seq"] is None and load["latencies_ns"] is not None
    for row in (row for row in rows if row["kind"] == "lost"):
        in_unit, on_link = row["unit"] is not None, row["peer"] is not None
        assert row["never_left"] == on_link and not (in_unit and on_link)
        assert (row["start_ns"] is not None) == in_unit == (row["stream"] is None)


def test_records_come_back_as_they_were(run: Run) -> None:
    landed = land(run.path, run.firsts)
    for each, sealed in zip(run.incarnations, landed.seal.traces, strict=True):
        raw = np.concatenate([records for _, records in raw_pieces(each)])
        again = np.frombuffer(b"".join(landed.stored(sealed)), raw.dtype)
        kept = usable_records(raw)
        assert len(again) == len(raw) == sealed.places
        for name in ("kind", rec.Record.at_ns.column):
            assert (again[name] == raw[name])[kept].all()


def test_what_is_landed_is_not_landed_again(run: Run) -> None:
    files = {path: Path(path).stat().st_mtime_ns for path in land(run.path, run.firsts).paths()}
    assert files
    assert {path: Path(path).stat().st_mtime_ns for path in land(run.path, run.firsts).paths()} == files
    assert not list((run.path / "trace").glob(".land*"))


@pytest.mark.parametrize("how", ["cut", "gone", "one more", "bit", "counted from elsewhere", "version"])
def test_other_raw_segments_are_landed_anew(run: Run, how: str) -> None:
    before = land(run.path, run.firsts)
    segment = next(run.path.glob("trace/raw/a/*/0001.trace"))
    firsts = dict(run.firsts)
    match how:
        case "cut":
            segment.write_bytes(segment.read_bytes()[:-64])
        case "gone":
            segment.unlink()
        case "one more":
            shutil.copyfile(segment, segment.with_name("9999.trace"))
        case "bit":
            data = bytearray(segment.read_bytes())
            data[200] ^= 1
            segment.write_bytes(data)
        case "counted from elsewhere":
            firsts = {key: first + 5 for key, first in firsts.items()}
        case _:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(seal, "SCHEMA_VERSION", 0)
                before.seal.write(before.folder)
    assert find(run.path, firsts) is None
    assert land(run.path, firsts).seal.is_of(run.path / "trace" / "raw", firsts)
    again = read_run(run.path)
    if how != "counted from elsewhere":
        expected = verdict(again)
        assert verdict(without_raw(again)) == expected


def test_two_that_land_at_once_do_not_disturb_each_other(run: Run) -> None:
    with ThreadPoolExecutor(4) as pool:
        landed = list(pool.map(lambda _: land(run.path, run.firsts), range(8)))
    assert all(each.seal == landed[0].seal for each in landed)
    assert landed[0].seal.holds(landed[0].folder)


def test_a_full_disk_leaves_what_was_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = land(run.path, run.firsts)
    segment = next(run.path.glob("trace/raw/a/*/0001.trace"))
    segment.write_bytes(segment.read_bytes()[:-64])
    held = {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet_files, "_synced", full)
    with pytest.raises(OSError) as raised:
        land(run.path, run.firsts)
    assert raised.value.errno == errno.ENOSPC
    assert {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()} == held
    assert not list((run.path / "trace").glob(".land*"))


def test_parquet_that_is_not_as_it_was_sealed_is_no_evidence(run: Run) -> None:
    landed = land(run.path, run.firsts)
    path = Path(landed.paths()[0])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert not drop_raw(run.path, run.firsts) and (run.path / "trace" / "raw").is_dir()
    shutil.rmtree(run.path / "trace" / "raw")
    with pytest.raises(NoRunError):
        read_run(run.path)
    with pytest.raises(FileNotFoundError):
        land(run.path, run.firsts)


@pytest.mark.parametrize("how", ["places", "damage", "left_out", "nesting"])
def test_a_seal_that_was_changed_is_none(run: Run, how: str) -> None:
    """Not even where nothing but it says so, as of damage to segments that are gone."""
    landed = land(run.path, run.firsts)
    path = landed.folder / seal.NAME
    document = json.loads(path.read_text())
    match how:
        case "places":
            document["traces"][0]["places"] = 10**12
        case "damage":
            document["traces"][0]["damage"] = ["all is well"]
        case "left_out":
            document["left_out"] = [["a", "0" * 16]]
    path.write_text("[" * 100_000 if how == "nesting" else json.dumps(document))
    assert find(run.path, run.firsts) is None
    shutil.rmtree(run.path / "trace" / "raw")
    with pytest.raises(NoRunError) as raised:
        read_run(run.path)
    assert "trace/parquet: is not as it was sealed" in str(raised.value)


def test_a_link_to_nowhere_among_segments_is_damage(run: Run) -> None:
    segment = next(run.path.glob("trace/raw/a/*/0001.trace"))
    segment.with_name("9999.trace").symlink_to("nowhere")
    assert any("9999.trace: left out" in each for each in read_run(run.path).damage)


def test_large_runs_are_read_anew_and_said_the_same_of(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = verdict(run)
    monkeypatch.setattr(reader, "MOST_HELD", 50)
    assert verdict(read_run(run.path)) == expected
    land(run.path, run.firsts)
    monkeypatch.setattr(reader, "MOST_READ", 0)
    assert verdict(read_run(run.path)) == expected
