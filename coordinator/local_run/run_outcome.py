"""Causes of missed results, in sentences: shed and lost anywhere, what agents said of it, costs
beyond the plan's, sources that nothing fed; each with what mends it where that is known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coordinator.fleet.addresses import host_of
from coordinator.local_run import agent_logs
from coordinator.local_run.stages import Ran
from coordinator.monitoring import wording
from coordinator.report import cost_overrun, missed_share
from coordinator.report.facts import began_anew
from coordinator.report.page.overload_tables import AWAY, away
from coordinator.report.report_document import CostOverrun, Output, Report, by_end
from coordinator.spec.files.costs_file import DEGRADED
from coordinator.units import counted
from protos import json_shape
from protos.json_shape import Json
from protos.plan_document import Plan

MOST = 8  # lines of one sort
MISSING = ("late", "shed", "lost")  # ends of a missed result
SOURCES_OWN = ("arrivals", "rate")  # shed as a source declares
SHED_MENDS = {
    "arrivals": "raise its 'arrival:' or 'tolerance:' in the query, or feed it slower",
    "rate": "raise its 'max_rate:' in the query, or feed it slower",
    "memory": "raise 'memory:' of the node in the cluster file, or feed slower",
    "selectivity": "raise 'selectivity:' of the operator in the query, or return less",
    "late": "the node was behind: cheaper operators, fewer tuples or a longer deadline",
}
TICKS_MEND = (
    "its node was kept from its ticks, which came together then: make what runs there cheaper, or 'every:' longer"
)
LOST_MENDS = {
    "operator_hung": "raise its 'hang:' in the query if it may take so long",
    "queue_full": SHED_MENDS["memory"],
    "link_full": "feed slower, or place the two operators on one node",
    "no_route": "its agent was gone or not ready; its log says why",
    "encode": "return what the type of the output can carry",
    "decode": "both nodes need the same operators and codecs",
    "ordinals": "return fewer results for one tuple",
}
INFERRED = {
    "link": "sent to another node, and never seen there",
    "restart": "in a runtime that ended, and was started again or not",
}
RAISED = "operator_error"
SOURCE_RAISED = "source_error"
TOLD_OTHERWISE = {RAISED, "policing_told", "shedding_begins", "peer_unreachable"}
NUMBERED = re.compile(r"\b(unit|stream) \d+\b")


def sentences(plan: Plan, ran: Ran) -> Iterator[str]:
    """All of it; nothing where all went well."""
    report = ran.report
    yield from unfed(plan, ran)
    yield from _first(list(_shed(plan, report)), "more kinds of shed tuples: report.json")
    yield from _windows(report)
    yield from _lost(ran, report)
    yield from _first(list(_said(plan, ran)), "more kinds of warnings: logs/ of the run")
    yield from began_anew.sentences(report.began_anew or ())
    yield from _cost_overruns(ran, report.cost_overruns or ())


def by_clock_only(ran: Ran) -> list[CostOverrun]:
    """Units that took longer than their plan counts where none of their operators waits, and the dearest calls together
    took no more CPU time than that: preemption and the checks of operators took the rest."""
    return [one for one in ran.report.cost_overruns or () if _is_by_clock(ran, one)]


def _is_by_clock(ran: Ran, one: CostOverrun) -> bool:
    keys = [(name, host_of(one.node)) for name in one.operators]
    if any((name.removesuffix(DEGRADED), node) in ran.waits for name, node in keys):
        return False
    return all(key in ran.worst_cpu_ns for key in keys) and sum(ran.worst_cpu_ns[key] for key in keys) <= one.counted_ns


def _cost_overruns(ran: Ran, found: Sequence[CostOverrun]) -> Iterator[str]:
    """Units whose operators took longer than their plan counts; measuring CPU time helps with those that compute."""
    found = [one for one in found if not _is_by_clock(ran, one)]
    waiting = {(name.removesuffix(DEGRADED), node): text for (name, node), text in ran.waits.items()}
    computing = []
    for one in found:
        here = [waiting[name, host_of(one.node)] for name in one.operators if (name, host_of(one.node)) in waiting]
        if here:
            yield cost_overrun.sentences([one])[0]
            yield from (f"  {text}" for text in here)
        else:
            computing.append(one)
    if computing:
        yield from cost_overrun.sentences(computing)
        yield "to measure them here: run with --keep, feed again, 'coordinator profile', run with --costs costs.yaml"


def missed(name: str, found: Output, ended: int, hinted: set[str]) -> Iterator[str]:
    """Of one output: the share of what was offered, what lies between its ends, and where to look. ended: tuples that
    were shed or lost on ways that lead to it. hinted: where to look as it was said of other outputs; grows."""
    share = found.missed_of_offered
    if found.missed:
        ends = [end for end, n in by_end(found).items() if n and end in MISSING]
        look = ["the page says which hop spent the time"] if found.late else []
        look += ["below is why tuples were shed or lost"] if found.shed or found.lost else []
        hints = "".join(f"; {each}" for each in look if each not in hinted)
        hinted.update(look)
        yield f"output {name}: {missed_share.text(share)} missed ({', '.join(ends)}){hints}"
    elif not found.delivered and ended:
        yield f"output {name}: nothing came: {counted(ended, 'tuple')} ended on the way to it; below is why"
    elif not found.delivered:
        yield f"output {name}: nothing came: no tuple led to a result, or the feed was too short for one"
    if share is not None and share[0] != share[1]:
        yield (
            f"output {name}: missed {missed_share.text(share)} of what was offered: between lie "
            f"{missed_share.reasons(found.between)}"
        )


def ended(plan: Plan, ran: Ran, output: str) -> int:
    """Tuples that were shed or lost where they might have led to that output. Where several operators are on one way, a
    tuple is lost at one of them."""
    operators, before = plan.graph.operators, {plan.graph.outputs[output].origin}
    for _ in operators:
        before |= {name for each in before & operators.keys() for name in operators[each].inputs}
    lost = sum(one.tuples for one in ran.lost if not one.operators or before & {*one.operators})
    sheds = ran.report.shed.sources.items()
    shed = sum(n.tuples for name, one in sheds if name in before for n in one.policies.values())
    return lost + shed


def unfed(plan: Plan, ran: Ran) -> list[str]:
    """Sources without a feed, and the outputs that hang on them."""
    found = []
    for source in sources_unfed(plan, ran):
        reached = {source}
        operators = plan.graph.operators
        for _ in operators:
            reached |= {name for name, one in operators.items() if reached & {*one.inputs, *one.side.values()}}
        outputs = [name for name, one in plan.graph.outputs.items() if one.origin in reached]
        needing = f"; output {', '.join(outputs)} may need it" if outputs else ""
        found.append(f"source {source}: nothing fed it (--feed {source}=FILE would){needing}")
    return found


def sources_unfed(plan: Plan, ran: Ran) -> list[str]:
    """By name."""
    fed = {each.feed.source for each in ran.fed}
    by_client = [
        name for name, source in plan.graph.sources.items() if source.pull is None and source.connector is None
    ]
    return [name for name in by_client if name not in fed]


def _first(lines: Sequence[str], more: str) -> Iterator[str]:
    yield from lines[:MOST]
    if len(lines) > MOST:
        yield f"and {len(lines) - MOST} {more}"


def _shed(plan: Plan, report: Report) -> Iterator[str]:
    """By policy and place: a source's own policies at the source, others at the unit that shed, if it was one."""
    units = {(place, policy) for place, one in report.shed.units.items() for policy in one.policies}
    for place, one in report.shed.units.items():
        none_ran = sum(n.tuples for n in one.policies.values()) >= one.came
        asked = () if none_ran else ("replaced",)  # a fusion that runs leaves out what it is to leave out
        for policy, n in one.policies.items():
            if policy not in (*SOURCES_OWN, "window", *asked):
                yield _line("shed", n.tuples, f"at {place}", policy, one.came)
    for name, admitted in report.shed.sources.items():
        for policy, n in admitted.policies.items():
            at_units = any(policy == each for _, each in units)
            if policy != "window" and (policy in SOURCES_OWN or not at_units):
                source = plan.graph.sources.get(name)
                where = f"of source {name}{f' on {source.at}' if source else ''}"
                own = source is not None and source.pull is not None and source.pull.every_ns
                mends = {**SHED_MENDS, "arrivals": TICKS_MEND} if own else SHED_MENDS
                yield _line("shed", n.tuples, where, policy, admitted.admitted, mends)


def _line(end: str, tuples: int, where: str, why: str, of: int = 0, sheds: Mapping[str, str] = SHED_MENDS) -> str:
    meant, repairs = (wording.SHED, sheds) if end == "shed" else (wording.LOST, LOST_MENDS)
    number = f"{tuples:,} of {counted(of, 'tuple')}" if of else counted(tuples, "tuple")
    mend = f"; {repairs[why]}" if why in repairs else ""
    return f"{end}: {number} {where}{',' if end == 'lost' else ':'} {meant.get(why, why)}{mend}"


def _windows(report: Report) -> Iterator[str]:
    """Windows without a result, and why, once per operator."""
    found = {name: one for output in report.outputs.values() for name, one in output.windows.items()}
    for name, one in found.items():
        causes = [f"{n:,} because {wording.WITHOUT.get(why, why)}" for why, n in one.abandoned.items() if n]
        gone = {"never begun": one.skipped, **{AWAY[kind]: n for kind, n in away(one).items()}}
        causes += [f"{n:,} {meant}" for meant, n in gone.items() if n]
        if causes:
            yield f"windows of {name}: without a result, of {one.all:,}: {', '.join(causes)}"


def _lost(ran: Ran, report: Report) -> Iterator[str]:
    raised: dict[tuple[str, str], str] = {}  # the first of each operator on each place
    for each in ran.said:
        if each.event == RAISED:
            raised.setdefault((each.node, str(each.fields.get("operator"))), agent_logs.exception(each.text))
    for one in ran.lost[:MOST]:
        line = _line("lost", one.tuples, one.where, one.cause)
        here = [operator for operator in one.operators if (one.node, operator) in raised]
        if one.cause == RAISED:
            yield f"{line}; the trace back is in {ran.log(one.node)}"
            yield from (f"  {name} raised first: {raised[one.node, name] or 'see there'}" for name in here)
        else:
            yield line
    if more := ran.lost[MOST:]:
        yield f"lost: {counted(sum(one.tuples for one in more), 'tuple')} at {counted(len(more), 'more place')}"
    for cause, text in INFERRED.items():
        if n := report.conservation.by_cause.get(f"lost({cause})"):
            yield f"lost: {counted(n, 'tuple')}, {text}"


def _said(plan: Plan, ran: Ran) -> Iterator[str]:
    """The first of each kind of trouble that agents told of, and how many lines there are."""
    warnings = [each for each in ran.said if each.event not in TOLD_OTHERWISE]
    names = _names(plan)
    keys = [(each.node, each.event, str(each.fields.get("source", ""))) for each in warnings]
    number, first = Counter(keys), dict(reversed(list(zip(keys, warnings, strict=True))))
    for key in sorted(number, key=lambda key: warnings.index(first[key])):
        said = first[key].text
        text = NUMBERED.sub(lambda found: names.get(found[0], found[0]), said.partition("\n")[0])
        if first[key].event == SOURCE_RAISED:
            text += f": {agent_logs.exception(said) or said.rpartition(chr(10))[2].strip()}"
        again = f" ({number[key]} such lines in {ran.log(key[0])})" if number[key] > 1 else ""
        yield f"node {key[0]}: {agent_logs.plain(text)}{again}"


def _names(plan: Plan) -> dict[str, str]:
    """Of `unit 3` its operators, of `stream 6` its name: agents know numbers only."""
    found: dict[str, str] = {}
    for local in plan.nodes.values():
        names = {one.id: one.name for one in local.operators}
        found |= {f"unit {one.id}": ", ".join(names[id_] for id_ in one.operators) for one in local.units}
        found |= {f"stream {one.id}": f"stream {one.name}" for one in local.streams}
    return found


def document(plan: Plan, ran: Ran) -> dict[str, Json]:
    """For --json."""
    report = ran.report
    return {
        "shed": json_shape.write(report.shed),
        "lost": [one.document() for one in ran.lost],
        "said": [
            {"node": each.node, "level": each.level, "event": each.event, "text": each.text, "fields": each.fields}
            for each in ran.said
        ],
        "dearer": json_shape.write(report.cost_overruns),
        "began_anew": json_shape.write(report.began_anew),
        "unfed": sources_unfed(plan, ran),
    }
