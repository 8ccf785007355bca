"""A run directory as the story needs it: the plan's units and streams, and trace records found by lineage.

Layouts come from protos/records.py and the local plans in plan.json. Damage makes a trace poorer, never the reading
fail: a segment that cannot be read is left out, and the reader of a record that is missing names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from node_agent.virtual import plan_file
from protos import records as rec
from protos.plan_document import Plan
from protos.records import RECORD_BYTES, Ran, Record, stamp_of, unpack_header
from protos.segments import Block, Flaw, bodies, scan
from sim_vehicles.errors import bad_input

Lineage = tuple[int, int, int]  # source, epoch, seq
CLOCKS: Lineage = (-1, -1, -1)
TOLD = frozenset({rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.OUTPUT, rec.SHED, rec.LOST, rec.CLOCK})


@dataclass(frozen=True)
class UnitView:
    """A task unit. costs_ns: of each operator on this node; streams: what each operator gives; inputs: of the first."""

    id: int
    node: str
    operators: tuple[str, ...]
    costs_ns: tuple[int, ...]
    streams: tuple[int, ...]
    inputs: tuple[int, ...]
    exits: tuple[int, ...]
    join: bool

    @property
    def label(self) -> str:
        """First and last operator."""
        return self.operators[0] if len(self.operators) == 1 else f"{self.operators[0]}–{self.operators[-1]}"


@dataclass(frozen=True)
class PlanView:
    """A plan by the numbers that trace records carry; nodes by name."""

    hash: str
    nodes: dict[int, str]
    sources: dict[int, tuple[str, str, int]]  # id -> name, node, stream
    units: dict[int, UnitView]
    outputs: dict[int, tuple[str, str, int]]  # id -> name, node, stream
    names: dict[int, str]  # stream -> name

    @cached_property
    def index(self) -> dict[str, int]:
        """Node name -> number."""
        return {name: number for number, name in self.nodes.items()}

    @cached_property
    def makers(self) -> dict[int, UnitView]:
        """Stream -> the unit that it leaves; a source's stream has none."""
        return {stream: unit for unit in self.units.values() for stream in unit.exits}

    @cached_property
    def admitted(self) -> dict[int, str]:
        """Stream of a source -> its node."""
        return {stream: node for _, node, stream in self.sources.values()}


@dataclass(frozen=True)
class Incarnation:
    """The trace of one process: whole records, headers cut off. clock: its clock domain."""

    node: str
    clock: str
    chunks: tuple[bytes, ...]

    def records(self) -> Iterator[Record]:
        """All, in order."""
        return chain.from_iterable(map(rec.unpack_records, self.chunks))

    @cached_property
    def plans(self) -> dict[int, int]:
        """Plan numbers in flags -> what the PLAN records here say of the plan's hash."""
        return {record.plan_epoch_low: record.stamp for chunk in self.chunks for record in rec.plans_in(chunk)}

    def under(self, record: Record, hash_u64: int) -> bool:
        """Whether it was written under that plan; a trace without any PLAN record is taken to be the plan's."""
        return not self.plans or self.plans.get(record.plan_epoch_low) == hash_u64


@dataclass(frozen=True)
class RunTrace:
    """plan.json and all segments. damage: one sentence per segment that could not be read."""

    plan: PlanView
    incarnations: tuple[Incarnation, ...]
    damage: tuple[str, ...] = ()

    def of(self, lineage: Lineage) -> list[tuple[Incarnation, Record]]:
        """Every record about the tuples of one lineage, and every CLOCK record."""
        return [
            (self.incarnations[which], record)
            for which, chunk, offset in [*self._places.get(lineage, ()), *self._places.get(CLOCKS, ())]
            for record in [rec.unpack_record(self.incarnations[which].chunks[chunk], offset)]
            if self.incarnations[which].under(record, self.hash_u64)
        ]

    def ran(self, windows: Mapping[str, tuple[int, int]]) -> Iterator[tuple[Incarnation, Ran]]:
        """Every stretch of running in its node's window (since, until), of units that the plan knows."""
        for one in self.incarnations:
            since, until = windows.get(one.node, (0, 0))
            for record in one.records():
                if not isinstance(record, Ran) or record.end_ns <= since or record.start_ns >= until:
                    continue
                if record.unit in self.plan.units and one.under(record, self.hash_u64):
                    yield one, record

    @property
    def hash_u64(self) -> int:
        """The plan's hash as in PLAN records."""
        return stamp_of(self.plan.hash)

    @cached_property
    def _places(self) -> dict[Lineage, list[tuple[int, int, int]]]:
        """Lineage -> (incarnation, chunk, offset) of its records; CLOCK records under `CLOCKS`."""
        found: dict[Lineage, list[tuple[int, int, int]]] = {}
        for which, one in enumerate(self.incarnations):
            for number, chunk in enumerate(one.chunks):
                for place, record in enumerate(rec.unpack_records(chunk)):
                    if record.kind in TOLD:
                        key = CLOCKS if isinstance(record, rec.Clock) else (record.source, record.epoch, record.seq)
                        found.setdefault(key, []).append((which, number, place * RECORD_BYTES))
        return found


def read_trace(run: Path) -> RunTrace:
    """The trace of the run in that directory. Raises BadInputError where it has no plan that can be read."""
    plan = _planned(run / "plan.json")
    found, damage = [], []
    for directory in sorted((run / "trace" / "raw").glob("*/*")):
        clock, chunks = "", []
        for path in sorted(directory.glob("*.trace")):
            try:
                data = path.read_bytes()
                clock = unpack_header(data).clock
            except (OSError, ValueError) as error:
                damage.append(f"{path}: left out: {error}")
                continue
            parts = [part for _, part in scan(data)]
            damage.extend(f"{path}: {flaw.text}" for flaw in parts if isinstance(flaw, Flaw))
            chunks.append(bodies(block for block in parts if isinstance(block, Block)))
        if chunks and directory.parent.name in plan.index:
            found.append(Incarnation(directory.parent.name, clock, tuple(chunks)))
    return RunTrace(plan, tuple(found), tuple(damage))


def plan_of(run: Path, plan_hash: str) -> Plan:
    """The plan.json of a run. plan_hash: of what was replayed. Raises BadInputError where it is another plan's."""
    path = run / "plan.json"
    plan = plan_file.read_plan(path)
    if plan.hash != plan_hash:
        raise bad_input(
            "other_plan",
            f"is plan {plan.hash[:8]}, but replay.json is of plan {plan_hash[:8]}",
            "put the plan that was replayed beside it",
            subject="hash",
            file=path,
        )
    return plan


def _planned(path: Path) -> PlanView:
    try:
        return _view(plan_file.read_plan(path))
    except KeyError as error:
        raise bad_input("not_a_plan", f"is no plan: {error} is missing", plan_file.MEND, file=path) from None


def _view(made: Plan) -> PlanView:
    sources: dict[int, tuple[str, str, int]] = {}
    units: dict[int, UnitView] = {}
    outputs: dict[int, tuple[str, str, int]] = {}
    names: dict[int, str] = {}
    for node, local in made.nodes.items():
        speed = made.cluster.nodes[node].speed
        names.update({stream.id: stream.name for stream in local.streams})
        sources.update({source.id: (source.name, node, source.stream) for source in local.sources})
        outputs.update({output.id: (output.name, node, output.stream) for output in local.outputs})
        operators = {operator.id: operator for operator in local.operators}
        for unit in local.units:
            chain = [operators[each] for each in unit.operators]
            units[unit.id] = UnitView(
                id=unit.id,
                node=node,
                operators=tuple(each.name for each in chain),
                costs_ns=tuple(max(round(each.cost_ns / speed), local.emulate_cost_ns) for each in chain),
                streams=tuple(each.output for each in chain),
                inputs=tuple(chain[0].inputs),
                exits=tuple(unit.exits),
                join=chain[0].join,
            )
    nodes = {node.index: name for name, node in made.cluster.nodes.items()}
    return PlanView(made.hash, nodes, sources, units, outputs, names)
