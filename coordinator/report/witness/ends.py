"""Ends that only some places have: policies where they shed, operators in their unit, joins with their other half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Fault
from coordinator.report.witness.instants import Found, instances
from coordinator.report.witness.keys import Bools, Pairs
from coordinator.report.witness.rows import Rows, mapped
from protos import records as rec
from protos.records import Lost, Merged, Ran, Shed

ORDINAL_LIMIT = 1 << 32
AT_ENTRY = (rec.POLICY_RATE, rec.POLICY_MEMORY, rec.POLICY_ARRIVALS, rec.POLICY_WINDOW)  # with NO_REF
NEVER_IN_A_UNIT = (rec.POLICY_RATE, rec.POLICY_ARRIVALS, rec.POLICY_WINDOW)


def compare(plan: PlanView, traces: Sequence[Trace], found: Rows, merged: Rows) -> Iterator[Found]:
    """SHED, LOST and MERGED that cannot be. merged: those MERGED whose parents are among `found`."""
    shed, lost = found.of(rec.SHED), found.of(rec.LOST)
    yield Fault.IMPOSSIBLE_END, shed.where(_odd_policy(plan, shed))
    yield Fault.IMPOSSIBLE_END, lost.where((lost[Lost.cause] < 1) | (lost[Lost.cause] >= len(rec.CAUSES)))
    yield Fault.IMPOSSIBLE_END, merged.where(_odd_merger(plan, traces, merged, found))
    yield Fault.IMPOSSIBLE_END, _odd_operator(plan, shed, found)
    yield Fault.IMPOSSIBLE_END, found.where((found.ordinal < 0) | (found.ordinal >= ORDINAL_LIMIT))


def _odd_policy(plan: PlanView, shed: Rows) -> Bools:
    everywhere, policy = shed.ref == rec.NO_REF, shed[Shed.policy]
    windows = np.isin(shed.source, sorted(plan.windows))
    known = (policy >= 1) & (policy < len(rec.SHED_POLICIES))
    placed = np.where(everywhere, np.isin(policy, AT_ENTRY), ~np.isin(policy, NEVER_IN_A_UNIT))
    wrong: Bools = ~known | ~placed | ((policy == rec.POLICY_WINDOW) & ~windows)
    return wrong


def _odd_merger(plan: PlanView, traces: Sequence[Trace], merged: Rows, found: Rows) -> Bools:
    """Merged where nothing is joined, or into a tuple that the join knows nothing of."""
    joins = {unit.id: 1 for unit in plan.units.values() if unit.join}
    whole = {trace.incarnation.number: 1 for trace in traces if trace.status in (Status.CLEAN, Status.DAMAGED)}
    at_join = mapped(merged.ref, joins, 0) > 0
    source = merged[Merged.parent_source] | merged.number << 16
    parent = (source, merged[Merged.parent_epoch], merged[Merged.parent_seq])
    in_unit = np.isin(found.kind, (rec.RAN, rec.SHED, rec.MERGED)) | ((found.kind == rec.LOST) & (found.flagged == 0))
    ends = found.where(in_unit)
    known = Pairs((merged.inc, merged.ref, *parent), (ends.inc, ends.ref, ends.source, ends.epoch, ends.seq)).any()
    wrong: Bools = ~at_join | ((mapped(merged.inc, whole, 0) > 0) & ~known)
    return wrong


def _odd_operator(plan: PlanView, shed: Rows, found: Rows) -> Rows:
    """Results that were shed at an operator behind exits that had given nothing."""
    own = np.isin(shed[Shed.policy], rec.OWN_RESULT)
    results = shed.where((shed.ref != rec.NO_REF) & (own | (shed[Shed.operator] != 0)))
    if not len(results):
        return results
    ran = instances(found).rows
    place = results.ref << 24 | (results[Shed.operator] ^ results.number << 16) & 0xFFFFFF
    before, through = (
        mapped(place, {unit << 24 | operator: exits for (unit, operator), exits in table.items()}, 0)
        for table in (plan.before, plan.through)
    )
    claimed = np.where(np.isin(results[Shed.policy], rec.OWN_RESULT), before, through)
    given, known = np.zeros(len(results), np.int64), np.zeros(len(results), np.bool_)
    for bits in (0, 8, 16, 24, 32):
        pairs = Pairs(
            (results.inc, results.ref, results.lineage, results.ordinal >> bits),
            (ran.inc, ran.ref, ran.lineage, ran.ordinal),
        )
        known |= pairs.any()
        for exit_ in range(4):
            given |= np.where(pairs.most(ran[Ran.outputs] >> 8 * exit_ & 0xFF) > 0, 1 << exit_, 0)
    return results.where(known & (claimed & ~given != 0))
