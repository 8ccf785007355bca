"""Units that ran longer than their plan counts: then its bounds need not hold, also where all was met in this run.

A RAN record spans from the start to the end of an instance by the node's clock, so preemption is in it where the
runtime has no real-time class: a unit is told where more than one instance in a hundred took a tenth longer.
Instances of several tuples, which a policy may form in any plan, are left out, since a plan counts tuples: the records
of one share start and end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import groupby, islice
from math import ceil

from coordinator.report.facts.merged_plans import own
from coordinator.report.facts.reader import Incarnation, Run, records_of
from coordinator.report.report_document import CostOverrun
from coordinator.report.verdict import scan_trace
from coordinator.units import show_ns
from protos import records as rec
from protos.plan_document import Plan

MOST_RECORDS = 1_000_000  # of an incarnation that are looked at: the first ones
PERCENT = 1


def cost_overruns(run: Run) -> tuple[CostOverrun, ...]:
    """The units that ran longer than their plan counts, those with most time over first."""
    counted = _counted(run.plan.made)
    ran = dict.fromkeys(counted, 0)
    over: dict[int, tuple[int, int]] = {}  # how many, the longest
    for incarnation in run.incarnations:  # read twice: so many records take a lot of memory once they are unpacked
        plans = [each for each in _first(incarnation) if isinstance(each[1], rec.Plan)]
        epochs = scan_trace(incarnation, plans, run.plan).epochs
        instances = own((each for _, each in _first(incarnation) if isinstance(each, rec.Ran)), epochs, run.plan)
        for (unit, start_ns, end_ns), tuples in groupby(instances, key=lambda r: (r.unit, r.start_ns, r.end_ns)):
            if unit in counted and len(list(tuples)) == 1:
                ran[unit] += 1
                ns = end_ns - start_ns
                if ns * 10 > counted[unit] * 11:
                    longer, longest_ns = over.get(unit, (0, 0))
                    over[unit] = longer + 1, max(longest_ns, ns)
    found = [
        CostOverrun(
            node=run.plan.nodes[run.plan.units[unit].node],
            unit=unit,
            operators=run.plan.units[unit].operators,
            counted_ns=counted[unit],
            instances=ran[unit],
            longer=longer,
            longest_ns=longest_ns,
        )
        for unit, (longer, longest_ns) in over.items()
        if longer * 100 > ran[unit] * PERCENT
    ]
    return tuple(sorted(found, key=lambda one: (one.counted_ns - one.longest_ns, one.unit)))


def _first(incarnation: Incarnation) -> Iterator[tuple[int, rec.Record]]:
    return islice(records_of(incarnation), MOST_RECORDS)


def _counted(made: Plan) -> dict[int, int]:
    """What the last plan counts for an instance of each unit; of those that run a tuple at a time."""
    found = {}
    for name, local in made.nodes.items():
        if local.policy.largest_batch > 1:
            continue
        node, operators = made.cluster.nodes[name], {operator.id: operator for operator in local.operators}
        charges, speed = node.charges or made.analysis.charges, Fraction(str(node.speed))
        for unit in local.units:
            chain = [operators[id_] for id_ in unit.operators]
            if all(_mean(made, operator.name) <= 1 for operator in chain):
                costs = (max(ceil(operator.cost_ns / speed), node.emulate_cost_ns) for operator in chain)
                found[unit.id] = sum(costs) + charges.decision_ns
    return found


def _mean(made: Plan, operator: str) -> float:
    """Results per input, as declared."""
    known = made.graph.operators.get(operator)
    return 1 if known is None or known.selectivity is None else known.selectivity.mean


def sentences(found: Iterable[CostOverrun]) -> list[str]:
    """For people, the five worst."""
    lines = [
        f"{', '.join(one.operators[:4])}{', ...' if len(one.operators) > 4 else ''} on {one.node}: "
        f"{one.longer} of {one.instances} instances ran a tenth longer than the plan counts, "
        f"{show_ns(one.counted_ns)}: up to {show_ns(one.longest_ns)}"
        for one in islice(found, 5)
    ]
    if lines:
        lines.append(
            "that is by the clock, with preemption; where it is the operators themselves, bounds do not hold: "
            "'coordinator profile' measures their CPU time while they run, 'coordinator plan ... --costs costs.yaml' "
            "plans with it; of an operator that waits (a sleep, a file, a socket), declare a 'cost:' that has the wait"
        )
    return lines
