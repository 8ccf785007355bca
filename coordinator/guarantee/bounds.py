"""Worst-case end-to-end bounds per output, or no guarantee with the reason in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.calculus.curves import Time
from coordinator.calculus.demand import DemandTestResult
from coordinator.calculus.response import ahead
from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.facts import Facts
from coordinator.guarantee.freshness import side_limits
from coordinator.guarantee.freshness.judgement import Fresh
from coordinator.guarantee.losses import losses
from coordinator.guarantee.propagate import Late, Part, Trail, age
from coordinator.guarantee.quality_checks import Check, checked, checks
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED, RuntimeOverhead
from coordinator.units import counted, show_ns
from protos.plan.analysis import Analysis as PlanAnalysis
from protos.plan.analysis import Blocker, NodeAnalysis, Tightest
from protos.plan.charges import NodeCharged
from protos.plan.guarantee import Ahead, DataPath, Step
from protos.plan.guarantee import Claim as PlanClaim
from protos.plan_document import Plan


@dataclass(frozen=True)
class Claim:
    """About one output. `bound_ns`: from the tuple's origin to the result, None: none; `from_admission_ns`: without
    the age that tuples may have on admission, None: none; `parts`: where that time goes; `ahead`: per part of a unit,
    who runs before the tuple at worst (unit, jobs, ns) and how much of that has run when it comes; `why`: one
    sentence; `qos`, `fresh`: what the output asks beyond its deadline, all of which `guaranteed` needs; `missing`: why
    tuples or windows may be left out, a sentence each: what is given is in time all the same."""

    deadline_ns: int
    bound_ns: int | None
    from_admission_ns: int | None
    guaranteed: bool
    why: str
    parts: tuple[Part, ...]
    ahead: Mapping[int, tuple[int, Sequence[tuple[str, int, int]]]] = field(default_factory=dict)
    qos: tuple[Check, ...] = ()
    missing: tuple[str, ...] = ()
    fresh: tuple[Fresh, ...] = ()

    @property
    def trail(self) -> Trail:
        """What and how long, of each part."""
        return tuple((part.what, part.ns) for part in self.parts)

    def document(self) -> PlanClaim:
        """For plan.json."""
        fresh = {each.name: each for each in self.fresh}
        age, reaction = fresh.get("age"), fresh.get("reaction")
        return PlanClaim(
            deadline_ns=self.deadline_ns,
            bound_ns=self.bound_ns,
            guaranteed=self.guaranteed,
            why=self.why,
            from_admission_ns=self.from_admission_ns,
            trail=tuple(self._step(part) for part in self.parts),
            qos=checked(self.qos),
            missing=self.missing,
            age_ns=age.limit_ns if age else None,
            age_bound_ns=age.bound_ns if age else None,
            reaction_ns=reaction.limit_ns if reaction else None,
            reaction_bound_ns=reaction.bound_ns if reaction else None,
            data_paths=tuple(path for each in self.fresh for path in _data_paths(each)),
        )

    def _step(self, part: Part) -> Step:
        step = _step(part)
        if part.kind != "unit" or part.unit not in self.ahead:
            return step
        done_ns, before = self.ahead[part.unit]
        first = tuple(Ahead(what=what, jobs=jobs, ns=ns) for what, jobs, ns in before)
        return replace(step, unit=part.unit, ahead=first, done_before_ns=done_ns)


def _step(part: Part) -> Step:
    return Step(
        what=part.what,
        ns=part.ns,
        kind=part.kind,
        node=part.node,
        work_ns=part.work_ns,
        waiting_ns=part.waiting_ns,
        blocking_ns=part.blocking_ns,
    )


def _data_paths(fresh: Fresh) -> tuple[DataPath, ...]:
    return tuple(
        DataPath(
            of=fresh.name,
            source=source,
            bound_ns=path.ns,
            steps=() if path.ns is None else tuple(_step(part) for part in path.parts),
            why=path.why,
        )
        for source, path in fresh.paths.items()
    )


def bounds(plan: Facts, charges: RuntimeOverhead = MEASURED) -> dict[str, Claim]:
    """Every output of a plan."""
    return claims(analyse(read(plan), charges))


def documents(plan: Facts, charges: RuntimeOverhead = MEASURED) -> tuple[dict[str, PlanClaim], PlanAnalysis]:
    """Of a plan, as `analysed`."""
    return analysed(analyse(read(plan), charges))


def analysed(analysis: Analysis) -> tuple[dict[str, PlanClaim], PlanAnalysis]:
    """For plan.json: `guarantee`, an entry per output, and `analysis`: charges, per node its utilisation and the test
    of its sub-deadlines, per unit its response bound in ns."""
    nodes = {
        name: NodeAnalysis(bounded=False, why=why, charges=_charged(analysis, name))
        for name, why in analysis.delays.broken.items()
    }
    for name, verdict in analysis.verdicts.items():
        nodes[name] = NodeAnalysis(
            bounded=True,
            utilisation=round(float(verdict.utilisation), 6),
            sub_deadlines_hold=verdict.holds,
            why="every unit meets its sub-deadline" if verdict.holds else failure(verdict),
            tightest=_tightest(verdict) if verdict.terms else None,
            charges=_charged(analysis, name),
        )
    units = {str(number): int(-(-each.end // 1)) for number, each in sorted(analysis.delays.units.items())}
    guarantee = {name: claim.document() for name, claim in claims(analysis).items()}
    return guarantee, PlanAnalysis(
        charges=analysis.charges.document(), nodes=dict(sorted(nodes.items())), units_ns=units
    )


def _charged(analysis: Analysis, node: str) -> NodeCharged:
    own = analysis.system.nodes[node].charges
    on = analysis.charges.on(own)
    said = analysis.charges.said(own)
    return NodeCharged(said=said, decision_ns=on.decision_ns, drain_ns=on.drain_ns, side_ns=on.side_ns)


def assumed(plan: Plan) -> str:
    """Which nodes of a plan have charges that were not measured there, and how to; nothing where there is none."""
    found = {name: facts.charges for name, facts in plan.analysis.nodes.items() if plan.tasks.get(name)}
    names = [name for name, each in found.items() if each.said == "assumed"]
    if not names:
        return ""
    each = found[names[0]]
    per = [(each.decision_ns, "decision"), (each.drain_ns, "tuple read"), (each.side_ns, "side input updated")]
    where = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    told = ", ".join(f"{show_ns(ns)} per {what}" for ns, what in per)
    return (
        f"what the runtime costs on {where} is assumed ({told}); measure it there with 'node-agent charges' and put "
        "the line that it prints under the node"
    )


def _tightest(verdict: DemandTestResult) -> Tightest:
    """The demand inequality with the least room, or the first that fails."""
    return Tightest(
        u_ns=_whole(verdict.u),
        demand_ns=_whole(verdict.demand),
        of=tuple(Ahead(what=name, jobs=jobs, ns=_whole(time)) for name, jobs, time in verdict.terms if time),
        blocker=Blocker(what=verdict.blocker[0], ns=_whole(verdict.blocker[1])) if verdict.blocker else None,
    )


def _whole(time: Time) -> int:
    return int(-(-time // 1))


def claims(analysis: Analysis) -> dict[str, Claim]:
    """Every output of an analysis."""
    fresh = side_limits.checks(analysis)
    return {
        name: replace(
            _asked(analysis, name, deadline_claim(analysis, name), fresh.get(name, ())), missing=losses(analysis, name)
        )
        for name in analysis.system.outputs
    }


def _asked(analysis: Analysis, name: str, claim: Claim, fresh: tuple[Fresh, ...]) -> Claim:
    """With what the output asks beyond its deadline: a deadline alone that holds is then not enough."""
    qos = checks(analysis, name) if analysis.system.outputs[name].qos else ()
    failing = [f"{check.sentence}; {check.why}" for check in qos if not check.holds]
    failing += [each.sentence for each in fresh if not each.holds]
    why = claim.why
    if claim.guaranteed and failing:
        why = f"the deadline holds, but not its {', its '.join(failing)}"
    return replace(claim, guaranteed=claim.guaranteed and not failing, why=why, qos=qos, fresh=fresh)


def deadline_claim(analysis: Analysis, name: str) -> Claim:
    """About the deadline of an output alone."""
    system = analysis.system
    output = system.outputs[name]
    at = (output.stream, output.node)
    flow = analysis.streams.flows.get(at)
    if flow is None:
        why = analysis.streams.why.get(at, f"stream {output.stream} never reaches node {output.node}")
        return Claim(output.deadline_ns, None, None, False, why, ())
    if not flow.late:
        return Claim(output.deadline_ns, None, None, False, "no tuple ever gets there", ())
    slowest = max(flow.late.values(), key=lambda late: late.most_ns)
    ages = {source: age(system, analysis.streams, source) for source in flow.late}
    ageless = sorted(source for source, found in ages.items() if found is None)
    if windows := [source for source in ageless if source in system.windows]:
        why = (
            f"{analysis.streams.window_closings[windows[0]].why}; {show_ns(slowest.most_ns)} from when a window closes"
        )
        return _with_blockers(
            analysis, Claim(output.deadline_ns, None, slowest.most_ns, False, why, _parts_shown(slowest))
        )
    if ageless:
        admits = f"{' and '.join(ageless)} {'admits' if len(ageless) == 1 else 'admit'}"
        why = (
            f"{admits} tuples of any age; {show_ns(slowest.most_ns)} from admission, so "
            f"declare a 'max_age' of at most {show_ns(max(1, output.deadline_ns - slowest.most_ns))}"
            if slowest.most_ns < output.deadline_ns
            else f"the bound is {show_ns(slowest.most_ns)} from admission alone{_where(analysis, slowest)}"
        )
        return _with_blockers(
            analysis, Claim(output.deadline_ns, None, slowest.most_ns, False, why, _parts_shown(slowest))
        )
    known = {source: found for source, found in ages.items() if found is not None}
    aged = {source: late.most_ns + known[source].most_ns for source, late in flow.late.items()}
    source = max(aged, key=lambda each: aged[each])
    late, bound_ns, age_ns = flow.late[source], aged[source], known[source].most_ns
    parts = (*known[source].parts, *_parts_shown(late))
    held = bound_ns <= output.deadline_ns
    if held:
        why = "holds for edf, the declared arrivals, costs and selectivities, and links without loss"
    elif age_ns >= output.deadline_ns and source in system.windows:
        complete = f"windows of {system.windows[source].name} may take {show_ns(age_ns)} until they are complete"
        longest = max(known[source].parts, key=lambda part: part.ns)
        most = f"{show_ns(longest.ns)} of it {longest.what}"
        why = f"{complete}, beyond the deadline, {most}; {show_ns(late.most_ns)} from then on"
    elif age_ns >= output.deadline_ns:
        aged_out = f"{source} admits tuples of up to {show_ns(age_ns)}, beyond the deadline"
        why = f"{aged_out}; {show_ns(late.most_ns)} from admission"
    else:
        over = show_ns(bound_ns - output.deadline_ns)
        why = f"the bound exceeds the deadline by {over}{_where(analysis, late)}"
    return _with_blockers(analysis, Claim(output.deadline_ns, bound_ns, late.most_ns, held, why, parts))


def _parts_shown(late: Late) -> tuple[Part, ...]:
    """Parts that take some time."""
    return tuple(part for part in late.parts if part.ns)


def _with_blockers(analysis: Analysis, claim: Claim) -> Claim:
    """With who is waited for, unit by unit."""
    found = {}
    for part in claim.parts:
        response = analysis.delays.units.get(part.unit)
        if part.kind == "unit" and response is not None and response.moments and part.node in analysis.loads:
            moment = response.moments[part.stage]
            before = ahead(analysis.loads[part.node], analysis.system.units[part.unit].name, moment)
            found[part.unit] = (
                _whole(moment.released) + part.sooner_ns,
                [(what, jobs, _whole(ns)) for what, jobs, ns in before],
            )
    return replace(claim, ahead=found)


def _where(analysis: Analysis, late: Late) -> str:
    """The first failing test among the nodes on the way, in words."""
    for node, verdict in analysis.verdicts.items():
        if not verdict.holds and any(what.endswith(f" on {node}") for what, _ in late.trail):
            return f"; on node {node} {failure(verdict)}"
    return ""


def failure(verdict: DemandTestResult) -> str:
    """A verdict that does not hold, in words: u*, who demands what by then, who blocks."""
    terms = [f"{name} {counted(jobs, 'job')} {show_ns(time)}" for name, jobs, time in verdict.terms if time]
    if verdict.blocker:
        terms.append(f"{verdict.blocker[0]} blocks for {show_ns(verdict.blocker[1])}")
    return (
        f"demand by {show_ns(verdict.u)} is {show_ns(verdict.demand)}, exceeds it by {show_ns(verdict.excess)} "
        f"({', '.join(terms)})"
    )
