"""A run of which one record was changed, taken out or doubled, with every count that tells of it put right again."""

import dataclasses
import json
import random
from pathlib import Path

from coordinator.report.facts.reader import Incarnation, Run, read_run
from protos import records as rec
from protos.record_layout import COLUMNS
from protos.records import RECORD_BYTES, Record
from tests import traces

MS = 1_000_000
STEPS_NS = (1, 1000, MS // 10, MS, 5 * MS, 10 * MS, 100 * MS, 5000 * MS)
WORDS, ORIGIN = COLUMNS[6:11], (rec.Output.origin_lo_ns.column, rec.Output.origin_hi_ns.column)
LEDGER = (
    rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.OUTPUT, rec.SHED, rec.LOST, rec.MERGED, rec.ABSORBED,
)  # fmt: skip


def records(incarnation: Incarnation) -> list[Record]:
    """All records of an incarnation."""
    return list(rec.unpack_records(b"".join(incarnation.chunks)))


def rewritten(run: Run, number: int, found: list[Record]) -> Run:
    """With these records in place of an incarnation's; its count, and what LOAD says of places, agree with them."""
    placed = [
        each._replace(last=place) if each.kind == rec.LOAD else each for place, each in enumerate(found)
    ]  # fmt: skip
    data = b"".join(rec.RECORD.pack(*each) for each in placed)
    old = run.incarnations[number]
    new = dataclasses.replace(
        old, chunks=(data,), declared=dataclasses.replace(old.declared, records=len(data) // RECORD_BYTES)
    )
    incarnations = [new if each.number == number else each for each in run.incarnations]
    return dataclasses.replace(run, incarnations=tuple(incarnations))


def saved(run: Run, path: Path) -> Run:
    """The same in a directory of its own, its checksums and counts put right."""
    path.mkdir(parents=True)
    document = json.loads((run.path / "run.json").read_text())
    for each in run.incarnations:
        node = run.plan.nodes[each.node]
        header, _ = traces.read(run.path / "trace" / "raw" / node / each.boot_hex)
        traces.write(path / "trace" / "raw" / node / each.boot_hex, header, _packed(each), rec.STATE_ENDED)
        for entry in document["traces"]:
            if (entry["node"], entry["boot"]) == (node, each.boot_hex):
                entry["records"] = each.declared.records
    (path / "plan.json").write_bytes((run.path / "plan.json").read_bytes())
    (path / "run.json").write_text(json.dumps(document))
    return read_run(path)


def _packed(incarnation: Incarnation) -> list[bytes]:
    return [each.packed() for each in records(incarnation)]


def replaced(run: Run, number: int, place: int, **fields: int) -> Run:
    """With other fields in one record."""
    found = records(run.incarnations[number])
    found[place] = found[place].changed(**fields)
    return rewritten(run, number, found)


def altered(run: Run, dice: random.Random) -> tuple[str, Run]:
    """What was done, and the run with it: to a record of the ledger, three times in four."""
    number = dice.choice([each.number for each in run.incarnations if each.chunks])
    found = records(run.incarnations[number])
    kinds = LEDGER if dice.random() < 0.75 else range(len(rec.KINDS))
    kind = dice.choice(sorted({each.kind for each in found if each.kind in kinds}))
    place = dice.choice([at for at, each in enumerate(found) if each.kind == kind])
    before = found[place]
    match dice.randrange(10):
        case 0:
            what = "removed"
            del found[place]
        case 1:
            what = "doubled"
            found.insert(dice.randrange(len(found) + 1), before)
        case 2:
            what = "bit"
            bit = dice.randrange(8 * RECORD_BYTES)
            number_of_bits = int.from_bytes(rec.RECORD.pack(*before), "little") ^ 1 << bit
            found[place] = rec.unpack_record(number_of_bits.to_bytes(RECORD_BYTES, "little"))
        case 3:
            what = "kind"
            found[place] = before._replace(kind=dice.randrange(1, len(rec.KINDS)))
        case 4 | 5:
            what = "another's field"
            other = dice.choice(found)
            name = dice.choice(COLUMNS[1:])
            found[place] = before._replace(**{name: getattr(other, name)})
        case 6:
            what = "origin moved"
            by_ns = dice.choice((-1, 1)) * dice.choice(STEPS_NS)
            found[place] = before._replace(**{name: getattr(before, name) + by_ns for name in ORIGIN})
        case _:
            what = "word moved"
            name = dice.choice(WORDS)
            found[place] = before._replace(
                **{name: getattr(before, name) + dice.choice((-1, 1)) * dice.choice(STEPS_NS)}
            )
    after = found[place] if place < len(found) else None
    story = f"{run.incarnations[number].node}: {rec.KINDS[kind]} at {place}: {what}: {before} -> {after}"
    return story, rewritten(run, number, found)
