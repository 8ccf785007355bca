"""Reads what the reference system is judged by from the traces of a run, virtual or live on one machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Run, read_run, records_of
from coordinator.report.verdict import verdict
from infra.reference_system.kpis import HotResult, Observed
from infra.reference_system.reference_graph import DRIVE, FRONT, HOT_PATH, PLANNER, REAR, SINK
from protos.records import (
    NO_REF,
    POLICY_UNMATCHED,
    Admitted,
    Lost,
    Merged,
    Output,
    Ran,
    Record,
    Refused,
    Shed,
)

Lineage = tuple[int, int, int]


def observed(path: Path) -> Observed:
    """Of a run directory. Raises NoRunError, and ValueError for a plan that is none of the reference system's."""
    run = read_run(path)
    found = _Facts(run.plan)
    for record in _records(run):
        found.take(record)
    return found.observed()


def with_ages(path: Path, found: Observed) -> Observed:
    """With the age of the oldest datum behind a command to drive, as reports measure it."""
    age = verdict(read_run(path)).freshness[DRIVE].age
    return replace(found, oldest_ns=(age and age.age_ns.max) or 0)


def _records(run: Run) -> Iterator[Record]:
    """Of all nodes, whose clock is one: nodes of one machine, or of virtual time."""
    for incarnation in run.incarnations:
        for _, record in records_of(incarnation):
            yield record


def _lineage(record: Record) -> Lineage:
    return record.source, record.epoch, record.seq


@dataclass
class _Facts:
    plan: PlanView
    origins: dict[Lineage, int] = field(default_factory=dict)
    merged: dict[Lineage, list[Lineage]] = field(default_factory=dict)
    estimated_ns: dict[Lineage, int] = field(default_factory=dict)
    delivered_ns: dict[Lineage, int] = field(default_factory=dict)
    planner_ns: list[int] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    until_ns: int = 0

    def __post_init__(self) -> None:
        """What the ids of the plan mean."""
        graph = self.plan.made.graph
        self.front, self.rear = graph.sources[FRONT].id, graph.sources[REAR].id
        self.output = next(each.id for each in self.plan.outputs.values() if each.name == HOT_PATH)
        self.sink = self._unit(SINK, last=True)
        self.planner = self._unit(PLANNER, last=False)
        self.cost_ns = graph.operators[SINK].cost_ns
        self.names = {source.id: name for name, source in graph.sources.items()}

    def _unit(self, operator: str, last: bool) -> int:
        """The unit that ends, or begins, with it: only of those is its own instant on record."""
        for each in self.plan.units.values():
            if operator == each.operators[-1 if last else 0]:
                return each.id
        raise ValueError(f"{operator} is in the middle of a task unit; plan it with '--units operator'")

    def take(self, record: Record) -> None:
        """One record."""
        match record:
            case Admitted():
                self.origins[_lineage(record)] = record.origin_lo_ns
            case Merged():
                parent = record.parent_source, record.parent_epoch, record.parent_seq
                self.merged.setdefault(parent, []).append(_lineage(record))
            case Ran():
                self.until_ns = max(self.until_ns, record.end_ns)
                if record.unit == self.sink:
                    self.estimated_ns[_lineage(record)] = record.end_ns - self.cost_ns
                elif record.unit == self.planner:
                    self.planner_ns.append(record.start_ns)
            case Output() if record.output == self.output:
                self.delivered_ns[_lineage(record)] = record.at_ns
            case Shed() if record.policy != POLICY_UNMATCHED:  # those are what is left when the sources end
                self.dropped[self._at(record.unit)] += 1
            case Lost():
                self.dropped[self._at(record.unit)] += 1
            case Refused():
                self.dropped[self.names.get(record.source_id, "?")] += record.tuples
            case _:
                pass

    def _at(self, unit: int) -> str:
        view = self.plan.units.get(unit)
        return "arrival" if unit == NO_REF or view is None else view.operators[0]

    def observed(self) -> Observed:
        """What the records say together."""
        front = sorted(at_ns for (source, _, _), at_ns in self.origins.items() if source == self.front)
        hot = sorted(self._results(), key=lambda each: each.end_ns)
        return Observed(front, hot, sorted(self.planner_ns), dict(self.dropped), self.until_ns)

    def _results(self) -> Iterable[HotResult]:
        for lineage, end_ns in self.delivered_ns.items():
            made_of = [lineage, *self.merged.get(lineage, ())]
            stamps = {each[0]: self.origins[each] for each in made_of if each[0] in (self.front, self.rear)}
            older_ns, younger_ns = min(stamps.values()), max(stamps.values())
            yield HotResult(stamps[self.front], older_ns, younger_ns, self.estimated_ns[lineage], end_ns)
