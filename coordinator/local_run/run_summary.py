"""The account of a local run: short for people, whole for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from coordinator.explain import cost_lines, source_lines
from coordinator.local_run import run_outcome
from coordinator.local_run.listening import first
from coordinator.local_run.stages import Ran
from coordinator.plan import confidence_lines
from coordinator.plan.deadline_breakdown import beyond_caps, giving_way, guarantee_status, left_out
from coordinator.report import missed_share
from coordinator.report.page import bound_violation
from coordinator.report.page.terminal import incomplete
from coordinator.report.report_document import Conservation, Offered, Output, Report, by_end
from coordinator.units import counted, show_ns
from protos import json_shape
from protos.json_shape import Json
from protos.plan_document import ADD, Claim, Plan

ENDS = ("met", "late", "shed", "lost", "undecidable")
SHOWN_RESULTS, SHOWN_CHARACTERS = 2, 160
CHECKED = (
    "operators were checked: each result was encoded and decoded, as between two nodes, and each input compared after "
    "the call; latencies have that time in them, measured costs do not; --no-check-operators leaves it out"
)
SELDOM = ("undecidable",)  # no column where there are none


def document(plan: Plan, ran: Ran) -> Json:
    """For --json."""
    report = ran.report
    return {
        "run": str(ran.run),
        "plan_hash": plan.hash,
        "placement": dict(plan.placement),
        "outputs": {name: _output(found, plan.guarantee.get(name)) for name, found in report.outputs.items()},
        "offered": json_shape.write(report.offered),
        "conservation": json_shape.write(report.conservation),
        **run_outcome.document(plan, ran),
        "complete": report.completeness.complete,
        "feeds": [fed.document() for fed in ran.fed],
        "missing": ran.missing + ran.left,
        "interrupted": ran.interrupted,
        "real_time": ran.real_time,
        "checked": ran.checked,
        "waits": [{"operator": name, "node": node, "told": text} for (name, node), text in ran.waits.items()],
        "report": str(ran.run / "report.json"),
        "page": str(ran.page),
        "addresses": str(ran.agents_left) if ran.agents_left else None,
    }


def _output(found: Output, claim: Claim | None) -> Json:
    """Without the quantiles, of which report.json has all."""
    values = {key: value for key, value in json_shape.write(found).items() if key != "quantiles_ns"}
    if claim is not None:
        values |= {"bound_ns": claim.bound_ns, "guaranteed": claim.guaranteed, "why": claim.why}
        values |= {"confident": json_shape.write(claim.confident)} if claim.confident else {}
    return values


def placement(plan: Plan) -> Table:
    """Which operators run where."""
    table = Table(title="placement", title_justify="left")
    table.add_column("node")
    table.add_column("operators")
    for node in plan.nodes:
        here = [name.removesuffix(ADD) for name, place in plan.placement.items() if place == node]
        table.add_row(escape(node), escape(", ".join(dict.fromkeys(here))) or "-")
    return table


def outputs(plan: Plan, report: Report) -> Table:
    """What was promised of each output, and what came; fits into 80 columns where nothing is wrong."""
    ends = [end for end in ENDS if end not in SELDOM or any(by_end(found)[end] for found in report.outputs.values())]
    table = Table(title="outputs", title_justify="left")
    for column in ("output", "deadline", "bound", *ends, "missed", "p99"):
        named = column == "output"
        least = len(column) if named else None  # else a narrow terminal leaves nothing of the names
        table.add_column(column, justify="left" if named else "right", no_wrap=not named, min_width=least)
    for name, found in report.outputs.items():
        claim, p99 = plan.guarantee.get(name), found.latency_ns.p99
        bound, ended = None if claim is None else claim.bound_ns, by_end(found)
        table.add_row(
            escape(name),
            show_ns(found.deadline_ns),
            "none" if bound is None else show_ns(bound),
            *(f"[red]{ended[end]}[/]" if end != "met" and ended[end] else str(ended[end]) for end in ends),
            missed_share.markup(found.missed_of_offered),
            "-" if p99 is None else f"{p99 / 1e6:.2f} ms",
        )
    return table


def sentences(plan: Plan, ran: Ran) -> Iterator[str]:
    """What the tables do not say."""
    report = ran.report
    yield from _first_results(ran)
    for name, found in report.outputs.items():
        if name in plan.guarantee:
            claim = plan.guarantee[name]
            yield f"output {name}: {guarantee_status(claim)}: {claim.why}"
            yield from (f"  {line}" for line in (*confidence_lines.lines(claim), *left_out(claim)))
        yield from run_outcome.missed(name, found, run_outcome.ended(plan, ran, name))
    yield from bound_violation.sentences(report)
    yield from run_outcome.sentences(plan, ran)
    yield from beyond_caps(plan)
    yield from giving_way(plan)
    yield from cost_lines.lines(plan)
    yield from source_lines.lines(plan)
    yield _balance(report.conservation)
    if ran.checked:
        yield CHECKED
    for fed in ran.fed:
        for why, number in fed.refused.items():
            yield f"source {fed.feed.source}: {counted(number, 'tuple')} refused: {why}"
        if bad := fed.counts.get("bad"):
            yield f"source {fed.feed.source}: {counted(bad, 'line')} could not be read"
    for name, source in plan.graph.sources.items():
        if source.pull is not None and name in report.offered:
            yield _made_by_node(name, source.at, report.offered[name])
    yield from incomplete([report])


def _made_by_node(name: str, node: str, offered: Offered) -> str:
    """Of a source that its node makes itself."""
    refused = [f"{counted(number, 'tuple')} refused: {why}" for why, number in offered.refused.items()]
    return f"source {name}: {'; '.join([f'{offered.admitted} of {offered.offered} admitted on {node}', *refused])}"


def _first_results(ran: Ran) -> Iterator[str]:
    shown = {name: first(ran.run / "results" / f"{name}.jsonl", SHOWN_RESULTS) for name in ran.report.outputs}
    if any(shown.values()):
        yield "first results:"
    for name, values in shown.items():
        for value in values:
            text = json.dumps(value, ensure_ascii=False)
            yield f"  {name}: {text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + ' ...'}"


def _balance(books: Conservation) -> str:
    what = counted(books.admitted - books.windows, "tuple")
    if books.windows:
        what += f" and {counted(books.windows, 'window')}"
    if books.word == "nothing admitted":
        return "nothing was admitted, so there is nothing to balance"
    if books.balanced:
        return f"balanced: {what} admitted, each accounted for"
    return f"NOT balanced: {what} admitted, {counted(books.problem_count, 'contradiction')}"
