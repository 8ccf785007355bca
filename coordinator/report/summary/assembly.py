"""The one place where the counts of either engine become a report. Parts of it are made beside it."""

from collections import Counter
from collections.abc import Mapping

from coordinator.report.counts import (
    INFERRED,
    INSTANT_LIMIT,
    PROBLEMS_SHOWN,
    QUANTILES,
    Above,
    Counts,
    Hop,
    Outcome,
    Rank,
    StageTime,
    nearest_rank,
)
from coordinator.report.facts.completeness import completeness
from coordinator.report.facts.lacking import lacking
from coordinator.report.facts.plan_view import OutputView, PlanView
from coordinator.report.facts.problems import Problem, grouped, sentence, summary
from coordinator.report.facts.reader import Run
from coordinator.report.ledger.missing_windows import MissingWindows
from coordinator.report.ledger.witnesses import Witnesses
from coordinator.report.report_document import (
    Conservation,
    HopTime,
    Latencies,
    LatencyBreakdown,
    Missed,
    Output,
    Query,
    Report,
    by_end,
)
from coordinator.report.summary.age_summary import freshness
from coordinator.report.summary.confidence_counts import held_share
from coordinator.report.summary.lost import lost_in_units
from coordinator.report.summary.offered import Offered, summed
from coordinator.report.summary.overload import Overload
from protos.records import CAUSES, SHED_POLICIES


def assemble(run: Run, counts: Counts) -> Report:
    """The verdict: what a ledger tells of report.json."""
    plan, missing = run.plan, MissingWindows(run.plan, counts)
    witnesses = Witnesses(run, counts, missing)
    _lose(plan, counts, missing)
    for output in plan.outputs:
        if n := witnesses.undecidable(output):
            _count(counts, output, Rank.UNDECIDABLE, n)
    overload, offered = Overload(plan, counts, missing, witnesses), Offered(plan, counts)
    _contradict(counts, offered.problems())
    views = sorted(plan.outputs.values(), key=lambda output: output.id)
    outputs = {view.name: _output(view, plan, counts, overload, offered.output(view.id)) for view in views}
    return Report(
        run=run.name,
        plan_hash=plan.hash,
        earlier=tuple(run.earlier),
        lacking=tuple(lacking(run, counts.traces)),
        completeness=completeness(run, counts.traces),
        outputs=outputs,
        offered=offered.sources(),
        queries={name: _query(plan, name, outputs) for name in plan.queries},
        conservation=_conservation(run, counts, overload),
        shed=overload.shed(),
        degraded=overload.degraded(),
        lost_in_units=lost_in_units(plan, counts),
        latency_breakdowns={view.name: _latency_breakdown(view, plan, counts, overload) for view in views},
        freshness=freshness(plan, counts),
    )


def _lose(plan: PlanView, counts: Counts, missing: MissingWindows) -> None:
    """Windows that no ledger knows, into the expected results of the outputs behind them."""
    for output in plan.outputs:
        for rank, n in zip((Rank.LOST, Rank.LOST_UNSURE, Rank.UNDECIDABLE), missing.results(output), strict=True):
            if n:
                _count(counts, output, rank, n)


def _count(counts: Counts, output: int, rank: Rank, n: int) -> None:
    counts.results[output, rank] = counts.results.get((output, rank), 0) + n


def _contradict(counts: Counts, problems: list[Problem]) -> None:
    counts.problem_count += len(problems)
    for key, n in Counter(map(grouped, problems)).items():
        counts.contradictions[key] = counts.contradictions.get(key, 0) + n
    counts.problems = sorted(counts.problems + problems)[:PROBLEMS_SHOWN]


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _output(view: OutputView, plan: PlanView, counts: Counts, overload: Overload, offered: Missed) -> Output:
    def n(rank: Rank) -> int:
        return counts.results.get((view.id, rank), 0)

    met, late, lost, undecidable = (n(r) for r in (Rank.MET, Rank.LATE, Rank.LOST, Rank.UNDECIDABLE))
    shed, shed_unsure = n(Rank.SHED) + n(Rank.POLICED), n(Rank.SHED_UNSURE) + n(Rank.POLICED_UNSURE)
    unsure = n(Rank.LOST_UNSURE) + shed_unsure
    missed = late + shed + lost
    delivered = counts.delivered.get(view.id, 0)
    ranks = counts.ranks.get(view.id, {})
    bounds = [ns for (output, _), ns in sorted(plan.bounds.items()) if output == view.id]
    above = counts.above.get(view.id, Above(0, 0))

    def quantile(k: int) -> int | None:
        bound = ranks[nearest_rank(delivered, k)] if delivered else None
        return bound if bound is None or bound < INSTANT_LIMIT else None

    return Output(
        deadline_ns=view.deadline_ns,
        bound_ns=bounds[0] if bounds else None,  # of the last plan; results are held against that of their own
        above_bound=above.n if bounds else None,
        above_bound_by_ns=above.most_ns if above.n else None,
        met=met,
        late=late,
        shed=shed,
        lost=lost,
        undecidable=undecidable,
        shed_unsure=shed_unsure,
        lost_unsure=n(Rank.LOST_UNSURE),
        delivered=delivered,
        miss_ratio=_ratio(missed, met + missed),
        miss_ratio_hi=_ratio(missed + undecidable + unsure, met + missed + undecidable + unsure),
        miss_ratio_paper=_ratio(late, met + late),
        latency_ns=Latencies(quantile(100), quantile(190), quantile(198), quantile(QUANTILES)),
        latency_bound="upper",
        quantiles_ns=tuple(quantile(k) for k in range(1, QUANTILES + 1)) if delivered else (),
        windows=overload.windows(view),
        missed=offered.missed,
        met_idle=offered.met_idle,
        between=offered.between,
        missed_of_offered=offered.missed_of_offered,
        held=held_share(view.share, delivered, above.n) if view.share is not None and bounds else None,
    )


def _query(plan: PlanView, name: str, outputs: Mapping[str, Output]) -> Query:
    """The sum over a query's outputs."""
    names = [output for output in plan.queries[name] if output in outputs]
    mine = [outputs[output] for output in names]
    met, late, shed, lost = (sum(by_end(each)[end] for each in mine) for end in ("met", "late", "shed", "lost"))
    undecidable = sum(each.undecidable for each in mine)
    shed_unsure, lost_unsure = sum(each.shed_unsure for each in mine), sum(each.lost_unsure for each in mine)
    missed, unsure, offered = late + shed + lost, undecidable + shed_unsure + lost_unsure, summed(mine)
    return Query(
        outputs=tuple(names),
        met=met,
        late=late,
        shed=shed,
        lost=lost,
        undecidable=undecidable,
        shed_unsure=shed_unsure,
        lost_unsure=lost_unsure,
        delivered=sum(each.delivered for each in mine),
        miss_ratio=_ratio(missed, met + missed),
        miss_ratio_hi=_ratio(missed + unsure, met + missed + unsure),
        missed=offered.missed,
        met_idle=offered.met_idle,
        between=offered.between,
        missed_of_offered=offered.missed_of_offered,
    )


def _conservation(run: Run, counts: Counts, overload: Overload) -> Conservation:
    by_outcome = {outcome.name.lower(): 0 for outcome in Outcome}
    by_cause: dict[str, int] = {}
    for (outcome, cause), n in sorted(counts.outcomes.items()):
        by_outcome[Outcome(outcome).name.lower()] += n
        if outcome in (Outcome.SHED, Outcome.LOST):
            by_cause[_cause(outcome, cause)] = n
    faults = [fault for trace in counts.traces for fault in trace.faults]
    sentences = faults + [sentence(run, problem) for problem in counts.problems]
    return Conservation(
        admitted=counts.admitted,
        windows=overload.windows_admitted(),
        accounted=counts.accounted,
        obligations=counts.obligations,
        by_outcome=by_outcome,
        by_cause=by_cause,
        balanced=not faults and counts.problem_count == 0,
        problem_count=len(faults) + counts.problem_count,
        problems=tuple(sentences[:PROBLEMS_SHOWN]),
        contradictions=summary(run, counts.contradictions),
    )


CAUSE_WORDS = {
    "shed(late)": "shed: too late for every output",
    "shed(excess)": "shed: given up, as not all that waited could be in time",
    "shed(rate)": "shed: above its source's limit",
    "shed(memory)": "shed: the queue was full",
    "shed(arrivals)": "shed: beyond its source's declared arrivals",
    "shed(selectivity)": "shed: beyond its operator's declared selectivity",
    "shed(window)": "shed: windows without a result",
    **{
        f"shed({name})": f"shed: before windows, by {name}" for name in ("window-aware", "front", "random", "drop-tail")
    },
}


def cause_text(key: str) -> str:
    """A key of `by_cause` for people."""
    return CAUSE_WORDS.get(key, key)


def _cause(outcome: int, cause: int) -> str:
    if cause in INFERRED:
        return f"lost({INFERRED[cause]})"
    names = SHED_POLICIES if outcome == Outcome.SHED else CAUSES
    kind = "shed" if outcome == Outcome.SHED else "lost"
    return f"{kind}({names[cause]})" if 0 < cause < len(names) else f"{kind}(number {cause})"


def _latency_breakdown(view: OutputView, plan: PlanView, counts: Counts, overload: Overload) -> LatencyBreakdown:
    n, tail = counts.broken_down.get(view.id, (0, 0))
    latency, windows = counts.latency.get(view.id, StageTime(0, 0)), overload.only_windows(view)
    by_hop: dict[tuple[int, str], StageTime] = {}  # a hop that several plans of a run have is one
    for (output, hop, ref), time in sorted(counts.stage_times.items()):
        if output == view.id:
            key = (hop, WINDOW_AGE if hop == Hop.AGE and windows else _hop(plan, hop, ref))
            total_ns, tail_ns = by_hop.get(key, StageTime(0, 0))
            by_hop[key] = StageTime(total_ns + time.total_ns, tail_ns + time.tail_ns)
    hops = (
        HopTime(
            hop=name,
            kind=Hop(hop).name.lower(),
            mean_ns=time.total_ns // n if n else None,
            tail_mean_ns=time.tail_ns // tail if tail else None,
            share=_ratio(time.total_ns, latency.total_ns),
            tail_share=_ratio(time.tail_ns, latency.tail_ns),
        )
        for (hop, name), time in by_hop.items()
    )
    return LatencyBreakdown(n, tail, tuple(hops))


WINDOW_AGE = "age of a window as it closes"


def _hop(plan: PlanView, hop: int, ref: int) -> str:
    if hop == Hop.AGE:
        return "age before admission"
    if hop == Hop.LINK:
        return f"link to {plan.nodes.get(ref, ref)}"
    if hop == Hop.REST:
        return "rest"
    unit = plan.units[ref]
    doing = "queued for" if hop == Hop.QUEUE else "running"
    return f"{doing} {unit.label} at {plan.nodes[unit.node]}"
