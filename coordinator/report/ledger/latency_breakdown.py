"""Which hop spent the time of the delivered results, in plain Python.

Per result: age before admission, then queued and running in every unit on the way, then the links whose two ends
share a clock domain, and the rest (other links, waiting for a join's last partner, hand-over). Branches of a join
overlap in time, so their shares can add up to more than the latency; the rest is then 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.report.counts import DURATION_LIMIT, INSTANT_LIMIT, Counts, Hop, StageTime, nearest_rank
from coordinator.report.facts.plan_view import UNIT, Reach, consumer_id
from coordinator.report.ledger.balance_sheet import Ledger, Row
from coordinator.report.ledger.results import Key, instant
from protos import records as rec

Lineage = tuple[int, int, int]
HopKey = tuple[int, int]


@dataclass
class _Busy:
    release: int
    end: int
    run: int


def duration(until: int, since: int) -> int:
    """A span in ns, clamped to what damage cannot overflow."""
    return max(0, min(DURATION_LIMIT, instant(until) - instant(since)))


class StageTimes:
    """Where time went, by lineage: ages, unit instances and links."""

    def __init__(self, ledger: Ledger, rows: Iterable[Row]) -> None:
        self.ages: dict[Lineage, int] = {}
        self.units: dict[Lineage, dict[tuple[int, int], _Busy]] = defaultdict(dict)  # (unit, ordinal)
        self.links: dict[Lineage, dict[tuple[int, int, int], int]] = defaultdict(dict)  # (node, stream, ordinal)
        left: dict[tuple[int, ...], tuple[int, str]] = {}  # SENT: instant and clock domain
        here: dict[tuple[int, ...], list[tuple[int, str]]] = defaultdict(list)
        for incarnation, r in rows:
            lineage = (r.source, r.epoch, r.seq)
            node, clock = ledger.node(incarnation), ledger.traces[incarnation].incarnation.clock
            if type(r) is rec.Admitted:
                age = duration(r.at_ns, r.origin_lo_ns)
                self.ages[lineage] = min(self.ages.get(lineage, age), age)
            elif type(r) is rec.Ran:
                if r.unit in ledger.plan.units:
                    self._ran(lineage, r)
            elif type(r) is rec.Sent:
                key = (node, r.peer, *lineage, r.stream, r.ordinal)
                left[key] = min(left.get(key, (r.at_ns, clock)), (r.at_ns, clock))
            elif type(r) is rec.Received:
                here[(r.peer, node, *lineage, r.stream, r.ordinal)].append((r.at_ns, clock))
        self._add_links(left, here)

    def _ran(self, lineage: Lineage, r: rec.Ran) -> None:
        release_ns, end_ns = r.release_ns, r.end_ns
        busy = self.units[lineage].setdefault((r.unit, r.ordinal), _Busy(release_ns, end_ns, 0))
        busy.release, busy.end = min(busy.release, release_ns), max(busy.end, end_ns)
        busy.run += duration(end_ns, r.start_ns)

    def _add_links(
        self, left: Mapping[tuple[int, ...], tuple[int, str]], here: Mapping[tuple[int, ...], list[tuple[int, str]]]
    ) -> None:
        for key, arrivals in here.items():
            sent_ns, clock = left.get(key, (0, ""))
            links_ns = [duration(at_ns, sent_ns) for at_ns, domain in arrivals if clock and domain == clock]
            if links_ns:
                _, node, *lineage, stream, ordinal = key
                self.links[lineage[0], lineage[1], lineage[2]][node, stream, ordinal] = min(links_ns)

    def of(self, key: Key, units: frozenset[int], streams: frozenset[tuple[int, int]]) -> dict[HopKey, int]:
        """Hop -> ns of one delivered result; units and (node, stream) pairs that lead to its output."""
        _, source, epoch, seq, ordinal = key
        lineage = (source, epoch, seq)
        line = {ordinal, ordinal >> 8, ordinal >> 16, ordinal >> 24, 0}
        times: dict[HopKey, int] = defaultdict(int)
        if lineage in self.ages:
            times[Hop.AGE, 0] = self.ages[lineage]
        for (unit, ran_ordinal), busy in self.units.get(lineage, {}).items():
            if unit in units and ran_ordinal in line:
                run = min(DURATION_LIMIT, busy.run)
                times[Hop.QUEUE, unit] += max(0, duration(busy.end, busy.release) - run)
                times[Hop.RUN, unit] += run
        for (node, stream, sent_ordinal), span in self.links.get(lineage, {}).items():
            if (node, stream) in streams and sent_ordinal in line:
                times[Hop.LINK, node] += span
        return times


def leading(
    reach: Reach, units: Iterable[int], streams: Iterable[tuple[int, int]], output: int
) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    """The units, and the (node, stream) pairs, that lead to an output."""
    return (
        frozenset(u for u in units if output in reach.consumer(0, consumer_id(UNIT, u))),
        frozenset(pair for pair in streams if output in reach.stream(*pair)),
    )


def break_down(ledger: Ledger, rows: Iterable[Row], delivered: Mapping[Key, int], counts: Counts) -> None:
    """Split the latencies (upper bounds) of the delivered results into `counts`; unbounded ones are left out."""
    stages = StageTimes(ledger, rows)
    reach = Reach(ledger.plan)
    for output in ledger.plan.outputs:
        mine = {key: bound for key, bound in delivered.items() if key[0] == output and bound < INSTANT_LIMIT}
        if not mine:
            continue
        units, streams = leading(reach, ledger.plan.units, ledger.plan.consumers, output)
        bounds = sorted(mine.values())
        threshold = bounds[nearest_rank(len(bounds), 99, 100) - 1]
        total: dict[HopKey, list[int]] = defaultdict(lambda: [0, 0])
        latency, tail = [0, 0], 0
        for key, bound in mine.items():
            times = stages.of(key, units, streams)
            whole = max(0, min(DURATION_LIMIT, bound))
            times[Hop.REST, 0] = max(0, whole - sum(times.values()))
            in_tail = bound >= threshold
            tail += in_tail
            for hop, ns in (*times.items(), (None, whole)):
                sums = latency if hop is None else total[hop]
                sums[0] += ns
                sums[1] += ns * in_tail
        counts.broken_down[output] = (len(mine), tail)
        counts.latency[output] = StageTime(*latency)
        counts.stage_times.update({(output, *hop): StageTime(*sums) for hop, sums in total.items()})
