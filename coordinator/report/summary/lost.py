"""Losses within units, for either engine, and where an agent's log says why an operator raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from coordinator.errors import CoordinatorError
from coordinator.fleet import addresses
from coordinator.fleet.addresses import host_of
from coordinator.report.counts import Counts
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Run
from coordinator.report.report_document import LostInUnit
from coordinator.units import counted
from protos.records import CAUSE_OPERATOR_ERROR, CAUSE_OPERATOR_HUNG, CAUSES, LOST

UNIT_BITS = 0xFFFF  # of an id, without the number of its plan
LOGGED = {CAUSES[CAUSE_OPERATOR_ERROR]: "raised an exception", CAUSES[CAUSE_OPERATOR_HUNG]: "hung"}
SHOWN = 10


def lost_in_units(plan: PlanView, counts: Counts) -> tuple[LostInUnit, ...]:
    """Tuples that ended in a unit as LOST; the most first.

    A unit that several plans of a run have is one.
    """
    found: dict[tuple[str, tuple[str, ...], str], tuple[int, int]] = {}
    for (_, kind, ref, _, cause), count in sorted(counts.aggregated.items()):
        if kind == LOST and ref in plan.units:
            view, word = plan.units[ref], CAUSES[cause] if 0 < cause < len(CAUSES) else f"number {cause}"
            key = plan.nodes[view.node], view.operators, word
            unit, n = found.get(key, (ref, 0))
            found[key] = min(unit, ref), n + count.n
    return tuple(
        LostInUnit(node, unit & UNIT_BITS, operators, word, n)
        for (node, operators, word), (unit, n) in sorted(found.items(), key=lambda one: (-one[1][1], one))
    )


def with_logs(run: Run, rows: Sequence[LostInUnit]) -> tuple[LostInUnit, ...]:
    """The rows with `log`: where the agent's log is, of causes that it gives the reason of; else None."""
    where = _Logs(run)
    return tuple(replace(row, log=where.of(row.node) if row.cause in LOGGED else None) for row in rows)


class _Logs:
    """Of one run: copied beside it, of agents that were started here, or of services."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._agents: Mapping[str, addresses.AgentAddress] | None = None
        with suppress(CoordinatorError):  # a copy of a run need not have it
            self._agents = addresses.load(run.path / "addresses.json").nodes

    def of(self, place: str) -> str | None:
        """None: in virtual time nobody wrote one."""
        node = host_of(place)
        copied = self._run.path / "logs" / f"{node}.log"
        if self._run.virtual:
            return None
        if copied.is_file():
            return str(copied)
        agent = (self._agents or {}).get(node)
        if agent is not None:
            return f"{agent.state}/agent.log" if agent.state else self._there(node)
        return self._there(node)

    def _there(self, node: str) -> str:
        return f"the log of {node}'s agent (as a service: journalctl -u shimekiri-agent@{node})"


def sentences(rows: Sequence[LostInUnit]) -> list[str]:
    """For people: which unit, on which node, how many, and where the reason stands. rows: of `with_logs`."""
    lines = []
    for row in rows[:SHOWN]:
        names = f"{', '.join(row.operators[:4])}{', ...' if len(row.operators) > 4 else ''}"
        why = LOGGED.get(row.cause)
        line = f"{counted(row.lost, 'tuple')} lost in {names} (unit {row.unit}) on {row.node}: "
        line += f"an operator {why}" if why else row.cause
        lines.append(f"{line}; the reason stands in {row.log}" if row.log else line)
    if len(rows) > SHOWN:
        lines.append(f"tuples were lost in {counted(len(rows) - SHOWN, 'other unit')}: lost_in_units in report.json")
    return lines
