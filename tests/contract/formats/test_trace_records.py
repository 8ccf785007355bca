"""Traces are kept and read by other programs: the layout of their bytes is fixed here, number by number."""

import pytest

from protos import records as rec
from protos.record_layout import RecordError
from tests.sentences import refused

HEADER = rec.Header("belt", 3, 0x0123456789ABCDEF, "c" * 32, 50, 1_000, 2_000, rec.VIRTUAL)


def test_a_record_is_64_bytes_in_this_order() -> None:
    data = rec.RECORD.pack(
        rec.RAN, rec.FLAG | 5, 0x0102, 0x0304, 0x0506, 0x0708090A0B0C0D0E, -1, 2, 3, 4, 5, 7 << 32 | 6
    )
    assert len(data) == rec.RECORD_BYTES == 64
    assert data[:16] == bytes.fromhex("03 85 02 01 04 03 06 05 0e 0d 0c 0b 0a 09 08 07")
    assert data[16:24] == b"\xff" * 8 and data[24:32] == b"\2" + bytes(7)
    assert data[56:] == bytes.fromhex("06 00 00 00 07 00 00 00")
    (record,) = rec.unpack_records(data)
    assert isinstance(record, rec.Ran) and record.plan_epoch_low == 5 and record.unfinished
    assert (record.unit, record.source, record.epoch, record.seq) == (0x0102, 0x0304, 0x0506, 0x0708090A0B0C0D0E)
    assert (record.release_ns, record.start_ns, record.end_ns, record.due_ns) == (-1, 2, 3, 4)
    assert (record.decision_ns, record.policed_results, record.ordinal, record.outputs) == (5, 0, 7, 6)


def test_outputs_are_counted_per_exit_in_bytes() -> None:
    assert rec.per_exit(0xFF000201, 4) == (1, 2, 0, 255)


def test_a_decision_and_the_results_that_were_shed_share_a_word() -> None:
    record = rec.Ran.make(decision_ns=12_345, policed_results=0xFFFF)
    assert (record.decision_ns, record.policed_results) == (12_345, 0xFFFF)
    (read,) = rec.unpack_records(record.packed())
    assert read == record and read.changed(policed_results=0) == rec.Ran.make(decision_ns=12_345)
    with refused("out_of_range", RecordError):
        rec.Ran.make(policed_results=1 << 16)


def constant(kind: str, name: str) -> str:
    """What stands for a name in records.py."""
    return f"{kind}_{name.upper().replace('-', '_')}"


def test_numbers_never_change() -> None:
    """A trace holds them: a kind, state or cause is added at the end, and none is given out again."""
    assert rec.VERSION == 2 and rec.MAGIC == b"SHIMETRC" and rec.NO_REF == 0xFFFF
    assert [getattr(rec, name) for name in rec.KINDS[1:]] == list(range(1, 20))
    assert [getattr(rec, f"STATE_{name.upper()}") for name in rec.STATES[1:]] == list(range(1, 7))
    assert [getattr(rec, f"CAUSE_{name.upper()}") for name in rec.CAUSES[1:]] == list(range(1, 11))
    assert [getattr(rec, constant("REASON", name)) for name in rec.REASONS[1:]] == list(range(1, 13))
    assert [getattr(rec, constant("POLICY", name)) for name in rec.SHED_POLICIES[1:]] == list(range(1, 16))
    assert [getattr(rec, constant("WINDOW", name)) for name in rec.WINDOW_STATES[1:]] == list(range(1, 5))
    assert rec.KINDS[:9] == ("-", "PLAN", "ADMITTED", "RAN", "SENT", "RECEIVED", "ACKED", "GAVE_UP", "OUTPUT")
    assert rec.KINDS[9:] == (
        "SHED",
        "LOST",
        "MERGED",
        "ABSORBED",
        "WINDOW",
        "CLOCK",
        "LOAD",
        "GAP",
        "DEGRADED",
        "REFUSED",
        "RESET",
    )


def test_a_header_comes_back() -> None:
    data = rec.pack_header(HEADER)
    assert len(data) == rec.HEADER_BYTES == 128 and data[:8] == rec.MAGIC
    assert rec.unpack_header(data) == HEADER


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "no_header"),
        (rec.pack_header(HEADER)[:127], "no_header"),
        (b"X" + rec.pack_header(HEADER)[1:], "not_a_segment"),
        (rec.MAGIC + b"\1" + rec.pack_header(HEADER)[9:], "other_version"),
        (rec.pack_header(HEADER)[:40] + b"?" + rec.pack_header(HEADER)[41:], "damaged"),
    ],
)
def test_what_is_no_header_is_refused(data: bytes, code: str) -> None:
    with refused(code, RecordError):
        rec.unpack_header(data)


def test_part_of_a_record_and_names_that_do_not_fit_are_refused() -> None:
    with refused("part_of_a_record", RecordError):
        rec.unpack_records(bytes(65))
    with refused("name_too_long", RecordError):
        rec.pack_header(HEADER._replace(node="n" * 33))
