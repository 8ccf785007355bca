"""The columns of landed records: one wide table, named as the fields are in protos/records.py.

Each record has `trace` (its incarnation's number in the seal), `place` (how many records of it came before), `kind` by
its name, `plan_epoch`, `source`, `epoch`, `seq` and `at_ns`. The other columns are the fields of the kinds, null where
a kind has none of that name, or has it in other circumstances only. What a kind calls otherwise (`latencies_ns` of
LOAD, which stands where others have `seq`) is null under the common name. Words of 64 bits without a sign are here the
same bits with one, as Spark and many others know no other; a kind's flag is a boolean of its own name. Rows of a kind
lie together in a row group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from coordinator.report.landing.record_array import Raw
from protos import records as rec
from protos.record_layout import CLASSES, Field, Flag
from protos.records import KINDS, RESET, Lost, Record, Shed

Mask = npt.NDArray[np.bool_]
LINEAGE = ("source", "epoch", "seq")
NAMES = tuple(name.lower() for name in KINDS[1:])  # of kinds, the first one's number is 1
_READ = CLASSES[1 : RESET + 1]


def _to(told: bool) -> Callable[[Raw], Mask]:
    return lambda raw: (raw["flags"] >= rec.FLAG) == told


def _arrival(raw: Raw) -> Mask:
    found: Mask = (raw["flags"] < rec.FLAG) & (raw["ref"] == rec.NO_REF)
    return found


def _in_unit(raw: Raw) -> Mask:
    found: Mask = (raw["flags"] < rec.FLAG) & (raw["ref"] != rec.NO_REF)
    return found


def _unit_known(raw: Raw) -> Mask:
    found: Mask = raw["ref"] != rec.NO_REF
    return found


def _skipped(told: bool) -> Callable[[Raw], Mask]:
    return lambda raw: (raw[rec.Window.state.column] == rec.WINDOW_SKIPPED) == told


# Fields that a kind has in some circumstances only.
WHEN: Mapping[Field, Callable[[Raw], Mask]] = {
    Shed.unit: _unit_known,
    Shed.operator: _unit_known,
    Shed.stream: lambda raw: ~_unit_known(raw),
    Lost.unit: _in_unit,
    Lost.policed_results: _in_unit,
    Lost.start_ns: _in_unit,
    Lost.outputs: _in_unit,
    Lost.peer: _to(True),
    Lost.stream: lambda raw: ~_in_unit(raw),
    rec.Clock.peer: _to(False),
    rec.Clock.offset_lo_ns: _to(False),
    rec.Clock.offset_hi_ns: _to(False),
    rec.Clock.rtt_ns: _to(False),
    rec.Clock.era: _to(False),
    rec.Clock.since_ns: _to(True),
    rec.Clock.slept_ns: _to(True),
    rec.Window.tuples: _skipped(False),
    rec.Window.last_number: _skipped(True),
}


def _fields(kind: type[Record]) -> dict[str, Field]:
    """The kind's columns, the common ones among them that it does not call otherwise."""
    named = {field.column for field in kind.fields.values() if field.whole}
    common = {name: Field(name) for name in LINEAGE if name not in named}
    return {"plan_epoch": Record.plan_epoch_low, **common, "at_ns": Record.at_ns, **kind.fields}


FIELDS: Mapping[int, Mapping[str, Field]] = {kind.number: _fields(kind) for kind in _READ}
FLAGS = tuple(
    dict.fromkeys(name for kind in _READ for name, field in kind.fields.items() if isinstance(field, Flag))
)  # fmt: skip
# `plan_epoch` is the low bits in every record, and the whole number in PLAN, which has it as a word.
WORDS = tuple(name for name in dict.fromkeys(each for found in FIELDS.values() for each in found) if name not in FLAGS)
