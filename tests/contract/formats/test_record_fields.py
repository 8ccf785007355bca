"""Fields of trace records have names, and who packs records by position packs what the table says."""

import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import record_reference
from node_agent.core import plan as plans
from node_agent.core.engine.events import Admitted, Ended, Failed, Finished, ScenarioRunner
from node_agent.core.facts import HEADED, MemoryFacts, heading
from node_agent.core.policies import policy
from protos import records as rec
from protos.record_layout import CLASSES, COLUMNS

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra", "tests")
WORDS = re.compile(r"w[0-9]")
BY_POSITION = {ROOT / "protos/record_layout.py", ROOT / "node_agent/core/facts.py"}

# What is written at the columns ref, w0 to w4 and last, by kind, as the writers of node_agent have it.
WRITTEN: dict[type[rec.Record], tuple[str, ...]] = {
    rec.Plan: ("state", "at_ns", "plan_epoch", "", "", "", "stamp"),
    rec.Admitted: ("source_id", "at_ns", "origin_lo_ns", "origin_hi_ns", "sent_ns", "", "payload_bytes"),
    rec.Ran: (
        "unit", "release_ns", "start_ns", "end_ns", "due_ns", "decision_ns|policed_results<<48", "outputs|ordinal<<32",
    ),
    rec.Sent: ("peer", "at_ns", "link_seq", "stream", "ordinal", "", ""),
    rec.Received: ("peer", "at_ns", "link_seq", "sent_ns", "stream", "ordinal", ""),
    rec.Acked: ("peer", "at_ns", "acknowledged_through", "", "", "", ""),
    rec.GaveUp: ("peer", "at_ns", "link_seq", "stream", "ordinal", "", ""),
    rec.Output: ("output", "at_ns", "origin_lo_ns", "origin_hi_ns", "deadline_ns", "ordinal", ""),
    rec.Shed: ("unit", "at_ns", "policy", "ordinal", "stream", "operator", ""),
    rec.Lost: ("unit", "at_ns", "cause", "ordinal", "stream", "start_ns", "outputs"),
    rec.Merged: ("unit", "at_ns", "parent_source", "parent_epoch", "ordinal", "partner_absent", "parent_seq"),
    rec.Absorbed: ("operator", "at_ns", "stream", "ordinal", "", "", ""),
    rec.Window: ("operator", "at_ns", "state", "start", "end", "cause", "tuples"),
    rec.Clock: ("peer", "at_ns", "offset_lo_ns", "offset_hi_ns", "rtt_ns", "era", ""),
    rec.Load: ("", "at_ns", "queue_bytes", "ready", "busy_ns", "overhead_ns", "records_before"),
    rec.Gap: ("", "at_ns", "dropped", "", "", "", ""),
    rec.Degraded: ("unit", "at_ns", "operator", "ordinal", "", "", ""),
    rec.Refused: ("source_id", "at_ns", "reason", "tuples", "age_lo_ns", "age_hi_ns", "first_at_ns"),
    rec.Reset: ("operator", "at_ns", "", "", "", "", ""),
}  # fmt: skip
OTHER_NAMES = {  # of the same places
    rec.Lost: {"peer", "policed_results"}, rec.Window: {"last_number"}, rec.Clock: {"since_ns", "slept_ns"},
    rec.Load: {"refused", "admitted", "latencies_ns"}, rec.Refused: {"refused_before"},
}  # fmt: skip


def sources() -> Iterator[Path]:
    """Every module that has a word's name somewhere."""
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        if path not in BY_POSITION and path != Path(__file__) and WORDS.search(path.read_text(encoding="utf-8")):
            yield path


def words_named(path: Path) -> Iterator[int]:
    """Lines that say `.w0`, `w0=` or "w0"."""
    where = {ast.Attribute: "attr", ast.keyword: "arg", ast.Constant: "value"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(node, where.get(type(node), ""), None)
        if isinstance(name, str) and WORDS.fullmatch(name):
            yield node.lineno


def test_words_have_names() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in sources() for line in words_named(path)]
    assert not found, "a record's fields are called by their names (protos/records.py)"


def test_every_kind_is_in_the_table_and_on_the_page() -> None:
    assert list(CLASSES[1 : len(rec.KINDS)]) == list(WRITTEN)
    assert set(CLASSES[len(rec.KINDS) :]) == {CLASSES[0]} == {rec.Record}
    page = (ROOT / record_reference.PAGE).read_text(encoding="utf-8")
    for kind in WRITTEN:
        assert not hasattr(kind.make(), "__dict__"), "a record is a tuple and nothing more"
        assert f"## {kind.number}: {kind.name}\n" in page
        assert all(f"| `{name}` |" in page for name in kind.fields)


def parts(said: str) -> list[tuple[str, int]]:
    """Name and place in the word, of each field in it."""
    return [(name, int(shift or 0)) for name, _, shift in (each.partition("<<") for each in said.split("|")) if name]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_records_packed_by_position_and_by_name_are_the_same_bytes(kind: type[rec.Record]) -> None:
    dice = random.Random(kind.number)
    named = {name for said in WRITTEN[kind] for name, _ in parts(said)}
    flags = {name for name, each in kind.fields.items() if each.column == "flags"}
    assert named | flags | OTHER_NAMES.get(kind, set()) == {*kind.fields, "at_ns"} - (
        {"at_ns"} if kind is rec.Ran else set()
    )
    for _ in range(20):
        values = {name: value_of(kind, name, dice) for name in named}
        flag, low = dice.randrange(2) if flags else 0, dice.randrange(128)
        source, epoch, seq = dice.randrange(1 << 16), dice.randrange(1 << 16), dice.randrange(1 << 64)
        ref, *words = (sum(values[name] << shift for name, shift in parts(said)) for said in WRITTEN[kind])
        facts = MemoryFacts()
        facts.write(kind.number, flag << 7 | low, ref, source, epoch, seq, *words)
        made = kind.make(
            plan_epoch_low=low, source=source, epoch=epoch, seq=seq, **values, **dict.fromkeys(flags, flag)
        )
        headed = HEADED.pack(heading(kind.number, made.flags, ref), source, epoch, seq, *words)
        assert facts.data() == headed == made.packed()
        (read,) = rec.unpack_records(facts.data())
        assert type(read) is kind and read == made and all(getattr(read, name) == values[name] for name in named)


def value_of(kind: type[rec.Record], name: str, dice: random.Random) -> int:
    """Anything that has room there."""
    field = kind.fields.get(name) or kind.at_ns
    bits = field.bits - 1 if field.signed or name == "policed_results" else field.bits  # above it is the word's sign
    return dice.choice((0, 1, (1 << bits) - 1, dice.randrange(1 << bits)))


def test_the_engine_writes_what_the_table_says() -> None:
    """A story, each of its records by name: source 1 (also a side input) -> unit 1 -> output; source 2 -> unit 2."""
    plan = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=3, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json") for i in range(1, 5)),
        sources=(plans.Source(1, "one", 1), plans.Source(2, "two", 2)),
        operators=(
            plans.Operator(11, "O1", "pass", (1,), 3, 1),
            plans.Operator(12, "O2", "pass", (2,), 4, 1, sides=(("p", 1),)),
        ),
        units=(plans.Unit(21, (11,), 10, 100, exits=(3,)), plans.Unit(22, (12,), 4, 500, exits=(4,))),
        outputs=(plans.Output(31, "out", 3, 100),),
    )  # fmt: skip
    story = ScenarioRunner(plan, policy("edf"))
    story.handle(Admitted(1000, 1, (1, 5, 7, 0, 940, 960), size=77))
    story.handle(Ended(1040, 0), Finished(1003, 1050))
    story.handle(Admitted(2000, 2, (2, 5, 8, 0, 1990, 1991)))
    story.handle(Failed(2001, 2030, rec.CAUSE_OPERATOR_ERROR))
    first, second = {"source": 1, "epoch": 5, "seq": 7}, {"source": 2, "epoch": 5, "seq": 8}
    under = {"plan_epoch_low": 3}
    assert list(rec.unpack_records(story.facts.data())) == [
        rec.Admitted.make(
            **under, **first, source_id=1, at_ns=1000, origin_lo_ns=940, origin_hi_ns=960, payload_bytes=77
        ),
        rec.Absorbed.make(**under, **first, operator=12, at_ns=1000, stream=1),
        rec.Output.make(**under, **first, output=31, at_ns=1040, origin_lo_ns=940, origin_hi_ns=960, deadline_ns=100),
        rec.Ran.make(
            **under, **first, unit=21, release_ns=1000, start_ns=1003, end_ns=1050, due_ns=1010, decision_ns=3,
            outputs=1,
        ),
        rec.Admitted.make(**under, **second, source_id=2, at_ns=2000, origin_lo_ns=1990, origin_hi_ns=1991),
        rec.Lost.make(
            **under, **second, unit=22, at_ns=2030, cause=rec.CAUSE_OPERATOR_ERROR, start_ns=2001
        ),
    ]  # fmt: skip


def calls_that_write(path: Path) -> Iterator[tuple[type[rec.Record], list[ast.expr]]]:
    """Of each call with a kind among its arguments: the kind, and what stands at the columns, in order."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and called(node.func) in {"write", "pack"}:
            for place, each in enumerate(node.args):
                if called(each) in rec.KINDS[1:]:
                    yield CLASSES[rec.KINDS.index(called(each))], node.args[place:]


def called(node: ast.expr) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_who_writes_a_field_by_its_name_writes_it_where_it_is_read() -> None:
    found: set[type[rec.Record]] = set()
    for path in (path for room in ("node_agent", "sim_vehicles") for path in (ROOT / room).rglob("*.py")):
        if "facts" not in path.read_text(encoding="utf-8"):
            continue
        for kind, arguments in calls_that_write(path):
            found.add(kind)
            fields = {"at_ns": kind.at_ns, **kind.fields}
            for column, each in zip(COLUMNS, arguments, strict=False):
                field = fields.get(called(each))
                assert field is None or field.column == column, (
                    f"{path.name}:{each.lineno}: {called(each)} of {kind.name}"
                )
    assert found == {*WRITTEN} - {rec.Gap}, "whose writers say its fields' names"


def test_columns_are_those_of_the_struct() -> None:
    assert len(COLUMNS) == len(rec.RECORD.unpack(bytes(rec.RECORD_BYTES))) == 12
