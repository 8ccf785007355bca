"""The verdict on a run in plain Python: the readable reference, and the engine for machines without Java.

The verdict on a single result, met, late or undecidable, is `protos.latency`.
"""

from collections import Counter
from collections.abc import Sequence

from coordinator.report.counts import Counts, Rank
from coordinator.report.facts.clock_intervals import run_clocks
from coordinator.report.facts.completeness import ADMITTED_UNDER, FACT_KINDS, LEDGER_KINDS, Scan, judge_all
from coordinator.report.facts.merged_plans import MOST_PLANS, own
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.reader import Incarnation, Run, records_of
from coordinator.report.ledger.aggregated_counts import aggregate
from coordinator.report.ledger.balance_sheet import Row
from coordinator.report.ledger.behind import look_behind
from coordinator.report.ledger.idle import idle_windows
from coordinator.report.ledger.interval_set import intervals
from coordinator.report.ledger.latency_breakdown import break_down
from coordinator.report.ledger.ledger import keep
from coordinator.report.ledger.reconciliation import seen_filtering
from coordinator.report.ledger.results import Key, ResultListener, expect
from coordinator.report.ledger.seen import see
from coordinator.report.ledger.witnesses import lacking_sources
from coordinator.report.report_document import Report
from coordinator.report.summary.assembly import assemble
from protos.latency import Latency
from protos.records import PLAN_EPOCH_MASK, STATE_CRASHED, STATE_DRAINING, Gap, Load, Plan, Record


def verdict(run: Run, told: ResultListener | None = None) -> Report:
    """Both ledgers and the latency breakdown of one run. told: hears of each expected result."""
    counts = Counts()
    scans: list[Scan] = []
    mine: list[Row] = []
    for incarnation in run.incarnations:
        records = list(records_of(incarnation))
        scan = scan_trace(incarnation, records, run.plan)
        scans.append(scan)
        kept = (record for _, record in records if record.kind in LEDGER_KINDS + FACT_KINDS)
        mine.extend((incarnation.number, record) for record in own(kept, scan.epochs, run.plan))
    counts.traces = judge_all(run, scans)
    rows = [row for row in mine if row[1].kind in LEDGER_KINDS]
    ledger = keep(run, counts.traces, rows, counts)
    idle = idle_windows(mine)
    latencies = _Latencies(run.plan, told)
    answers = expect(ledger, rows, counts, idle, latencies if run.plan.freshness else told)
    counts.idle = Counter(source for source, _, _ in idle)
    delivered = {key: upper for key, upper in answers.items() if upper is not None}
    see(rows, answers, lacking_sources(run, counts.traces), run.plan, counts)
    counts.filtering = frozenset(seen_filtering(ledger))
    break_down(ledger, rows, delivered, counts)
    aggregate(mine, counts)
    counts.intervals = intervals(mine)
    if run.plan.freshness:
        look_behind(mine, run.plan, run_clocks(run), latencies.delivered, counts)
    return assemble(run, counts)


class _Latencies:
    """Hears of the results of outputs that ask for the age of their data, and passes all on."""

    def __init__(self, plan: PlanView, told: ResultListener | None) -> None:
        self.delivered: dict[Key, Latency] = {}
        self._plan, self._told = plan, told

    def __call__(
        self, output: int, lineage: tuple[int, int, int], ordinal: int, rank: Rank, latency: Latency | None
    ) -> None:
        if latency is not None and output in self._plan.freshness:
            self.delivered[output, *lineage, ordinal] = latency
        if self._told is not None:
            self._told(output, lineage, ordinal, rank, latency)


def scan_trace(incarnation: Incarnation, records: Sequence[tuple[int, Record]], plan: PlanView) -> Scan:
    """What there is to know of a trace before any ledger is kept."""
    scan = Scan(found=len(records))
    scan.unusable = incarnation.places - len(records)
    first = incarnation.declared.first
    named: dict[int, int] = {}  # the least of those that share a plan epoch, as in the other engine
    mine: dict[int, int] = {}
    for place, record in records:
        if type(record) is Plan:
            epoch, stamp = record.plan_epoch & PLAN_EPOCH_MASK, record.stamp
            named[epoch] = min(stamp, named.get(epoch, stamp))
            scan.crashed |= record.state == STATE_CRASHED
            if stamp in plan.numbers:
                if record.state in ADMITTED_UNDER:
                    scan.ran.add(plan.numbers[stamp])
                if record.state == STATE_DRAINING:
                    scan.drained.add(plan.numbers[stamp])
                mine[epoch] = min(plan.numbers[stamp], mine.get(epoch, MOST_PLANS))
        elif type(record) is Gap:
            scan.gaps += 1
            scan.dropped += 0 if record.damaged else record.dropped
            scan.lost += record.dropped if record.damaged else 0
            scan.cut += record.damaged and not record.dropped
        elif type(record) is Load and record.records_before != first + place and scan.misplaced is None:
            scan.misplaced = (place, record.records_before)
    scan.epochs = mine
    others = Counter[int]()
    for _, record in records:
        epoch = record.plan_epoch_low
        if record.kind in LEDGER_KINDS and epoch not in mine:
            scan.unnamed += epoch not in named
            if epoch in named:
                others[named[epoch]] += 1
    scan.foreign, scan.others = others.total(), others
    return scan
