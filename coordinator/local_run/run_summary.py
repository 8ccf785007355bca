"""The account of a local run: short for people, whole for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from rich.markup import escape
from rich.table import Table

from coordinator.explain import cost_lines, link_lines, source_lines
from coordinator.local_run import run_outcome
from coordinator.local_run.files import STEADY, Feed
from coordinator.local_run.listening import first
from coordinator.local_run.stages import Ran
from coordinator.plan import confidence_lines
from coordinator.plan.deadline_breakdown import beyond_caps, giving_way, guarantee_status, left_out, left_out_of_several
from coordinator.report import cost_overrun, missed_share
from coordinator.report.page import bound_violation
from coordinator.report.page.terminal import incomplete
from coordinator.report.report_document import Conservation, Offered, Output, Report, by_end
from coordinator.units import counted, show_ns
from protos import json_shape
from protos.json_shape import Json
from protos.plan.guarantee import Claim
from protos.plan.operators import ADD
from protos.plan_document import Plan

ENDS = ("met", "late", "shed", "lost", "undecidable")
SHOWN_RESULTS, SHOWN_CHARACTERS = 2, 160
CHECKED = (
    "operators were checked: each result was encoded and decoded, as between two nodes, and each input compared after "
    "the call; latencies have that time in them, measured costs do not; --no-check-operators leaves it out"
)
NO_REAL_TIME = "no real-time class here, which makes latencies longer; 'node-agent grant-rt' says how to get it"
SELDOM = ("shed", "lost", "undecidable")  # no column where there are none
SHOWN_OUTPUTS, LINE = 3, 80


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


def placement(plan: Plan) -> Iterator[str]:
    """Which operators run where, a line per node."""
    for node in plan.nodes:
        here = [name.removesuffix(ADD) for name, place in plan.placement.items() if place == node]
        yield f"node {node} runs {', '.join(dict.fromkeys(here)) or 'nothing'}"


def outputs(plan: Plan, report: Report) -> Table:
    """What was promised of each output, and what came; fits into 80 columns."""
    ends = [end for end in ENDS if end not in SELDOM or any(by_end(found)[end] for found in report.outputs.values())]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("output", "deadline", "bound", *ends, "missed", "p99"):
        named = column == "output"
        least = len(column) if named else None  # else a narrow terminal leaves nothing of the names
        table.add_column(
            column, justify="left" if named else "right", no_wrap=not named, min_width=least,
            overflow="fold",
        )  # fmt: skip
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


def problems(plan: Plan, ran: Ran) -> Iterator[str]:
    """What is not as it should be, before the tables; nothing where all went well."""
    report = ran.report
    for why, names in _alike(plan, holds=False).items():
        yield f"output {', '.join(names)}: {why}"
    hinted: set[str] = set()
    for name, found in report.outputs.items():
        yield from run_outcome.missed(name, found, run_outcome.ended(plan, ran, name), hinted)
    if not ran.real_time and any(found.late for found in report.outputs.values()):
        yield NO_REAL_TIME
    yield from bound_violation.sentences(report)
    yield from run_outcome.sentences(plan, ran)
    yield from beyond_caps(plan)
    yield from waiting_feeds(plan, [fed.feed for fed in ran.fed])
    yield from giving_way(plan)
    if not report.conservation.balanced:
        yield _balance(report.conservation)
    for fed in ran.fed:
        for why, number in fed.refused.items():
            yield f"source {fed.feed.source}: {counted(number, 'tuple')} refused: {why}"
        if bad := fed.counts.get("bad"):
            yield f"source {fed.feed.source}: {counted(bad, 'line')} could not be read"
    for name, source in plan.graph.sources.items():
        if source.pull is not None and name in report.offered:
            yield from _refused_by_node(name, report.offered[name])
    yield from incomplete([report])


def waiting_feeds(plan: Plan, feeds: Iterable[Feed]) -> Iterator[str]:
    """Feeds that an overloaded node slows down: fewer tuples are late than from a sensor, which does not wait."""
    for feed in feeds:
        if plan.graph.sources[feed.source].at in (plan.solver.over_caps or {}) and STEADY in feed.pace.options:
            rate = f"--rate {feed.source}={feed.pace.options[1]}"
            yield f"source {feed.source}: its feed waits while the node is behind; '{rate}' does not, like a sensor"


def results_and_balance(ran: Ran) -> Iterator[str]:
    """Below the tables: a result of each output, and the balance."""
    shown = {name: first(ran.run / "results" / f"{name}.jsonl", 1) for name in ran.report.outputs}
    came = [(name, values[0]) for name, values in shown.items() if values]
    for name, value in came[:SHOWN_OUTPUTS]:
        yield _cut(f"{name}: {json.dumps(value, ensure_ascii=False)}", LINE)
    if more := came[SHOWN_OUTPUTS:]:
        yield f"results of {counted(len(more), 'more output')}: {ran.run / 'results'}"
    if ran.report.conservation.balanced:
        yield _balance(ran.report.conservation)


def details(plan: Plan, ran: Ran) -> Iterator[str]:
    """What is the same in every run of the plan, or of no consequence where all went well."""
    yield from placement(plan)
    yield from _first_results(ran)
    several = left_out_of_several(plan.guarantee)
    for why, names in _alike(plan, holds=True).items():
        yield f"output {', '.join(names)}: {why}"
    for name in ran.report.outputs:
        if (claim := plan.guarantee.get(name)) is not None:
            told = (*confidence_lines.lines(claim), *left_out(claim, several))
            yield from (f"output {name}: {line}" for line in told)
    yield from several.values()
    yield from cost_overrun.sentences(run_outcome.by_clock_only(ran))
    yield from cost_lines.lines(plan)
    yield from source_lines.lines(plan)
    yield from link_lines.lines(plan)
    if ran.checked:
        yield CHECKED
    if not ran.real_time:
        yield NO_REAL_TIME
    for name, source in plan.graph.sources.items():
        if source.pull is not None and name in ran.report.offered:
            yield _made_by_node(name, source.at, ran.report.offered[name])


def _alike(plan: Plan, holds: bool) -> dict[str, list[str]]:
    """Outputs by what is said of their guarantee, of those where it holds or of the others."""
    found: dict[str, list[str]] = {}
    for name, claim in plan.guarantee.items():
        if claim.holds == holds:
            found.setdefault(f"{guarantee_status(claim)}: {claim.why}", []).append(name)
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _refused_by_node(name: str, offered: Offered) -> Iterator[str]:
    """Of a source that its node makes itself."""
    for why, number in offered.refused.items():
        yield f"source {name}: {counted(number, 'tuple')} refused: {why}"


def _made_by_node(name: str, node: str, offered: Offered) -> str:
    """Of a source that its node makes itself."""
    return f"source {name}: {offered.admitted} of {offered.offered} admitted on {node}"


def _first_results(ran: Ran) -> Iterator[str]:
    """The first few of each output."""
    shown = {name: first(ran.run / "results" / f"{name}.jsonl", SHOWN_RESULTS) for name in ran.report.outputs}
    if any(shown.values()):
        yield "first results:"
    for name, values in shown.items():
        for value in values:
            yield f"  {name}: {_cut(json.dumps(value, ensure_ascii=False), SHOWN_CHARACTERS)}"


def _balance(books: Conservation) -> str:
    what = counted(books.admitted - books.windows, "tuple")
    if books.windows:
        what += f" and {counted(books.windows, 'window')}"
    if books.word == "nothing admitted":
        return "nothing was admitted, so there is nothing to balance"
    if books.balanced:
        return f"balanced: {what} admitted, each accounted for"
    return f"NOT balanced: {what} admitted, {counted(books.problem_count, 'contradiction')}"
