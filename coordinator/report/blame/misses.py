"""Every missed result with its cause: `misses` of a run that was judged, for either engine.

Records near a miss become objects, all others stay columns. Of results that came too late at most `MOST_LOOKED_AT` are
looked at one by one, spread evenly over each output; those in between have the cause of the one before them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

import numpy as np

from coordinator.report.blame import way
from coordinator.report.blame.causes import Found, Judge, told_outright
from coordinator.report.blame.core_timeline import Span
from coordinator.report.blame.excess import excess
from coordinator.report.blame.missed import LATE, LOST, OUTCOMES, SHED, UNDECIDABLE, Rows, look, reduced
from coordinator.report.blame.near import Near, near
from coordinator.report.blame.no_route import explained
from coordinator.report.blame.planned import Planned
from coordinator.report.blame.record_pieces import Ints
from coordinator.report.blame.sentences import Words
from coordinator.report.blame.shares import Evidence, Shared, Subject
from coordinator.report.blame.story import story
from coordinator.report.blame.unended import unended
from coordinator.report.blame.way import Stretch, Way
from coordinator.report.facts.completeness import NOT_OVER
from coordinator.report.facts.mixing import Codes, mixed
from coordinator.report.facts.reader import Run
from coordinator.report.free_memory import hand_back
from coordinator.report.report_document import CauseKind, Miss, Misses, MissHop, Report, TraceState, WaitedFor
from protos import records as rec

MOST_LOOKED_AT = 1024
MOST_WORST, MOST_STORIES = 200, 3
MOST_OPEN = 20_000  # lineages that went with a runtime or on a link, looked at one by one
MOST_WAITED_FOR = 5


def misses(run: Run, report: Report) -> Misses:
    """What was missed, and why. report: what an engine found out of the same run."""
    return _MissAnalysis(run, report).misses()


@dataclass(frozen=True, slots=True)
class _Looked:
    """A miss that was looked at."""

    row: int
    stretches: tuple[Stretch, ...]
    shared: Shared
    causes: tuple[Found, ...]


class _MissAnalysis:
    def __init__(self, run: Run, report: Report) -> None:
        self._run, self._plan, self._report = run, run.plan, report
        states = _states(run, report)
        self._unsound = frozenset(n for n, each in states.items() if not each.complete and each.why != (NOT_OVER,))
        crashed = frozenset(number for number, each in states.items() if each.status == "crashed")
        whole = _whole_nodes(run, states)
        self._looked = look(run, crashed, whole)
        hand_back()
        codes = [self._looked.unreceived[:MOST_OPEN], *(each[:MOST_OPEN] for each in self._looked.open.values())]
        gone = unended(run, self._looked, near(run, self._looked.epochs, np.concatenate(codes)), crashed, whole)
        # What is gone comes first: where a partner went so, nothing else is to be said of a join that waited for it.
        rows = explained(run, self._looked, np.concatenate([gone, self._looked.missed]), crashed)
        self._rows = reduced(rows, self._looked.delivered)
        self._rows = self._rows[np.lexsort((self._rows["at_ns"], self._rows["output"]))]
        self._planned = Planned(run.plan)
        self._evidence = Evidence(run, self._looked, self._planned, excess(self._looked.arrivals, self._planned))
        self._judge = Judge(self._evidence, self._unsound)
        self._words = Words(run.plan, self._planned)

    def misses(self) -> Misses:
        """All of it."""
        weight, outright = self._weights(), self._outright()
        by_time = np.array([each is None for each in outright], np.bool_)
        late = _spread(np.flatnonzero(by_time), self._rows["output"], weight)
        chosen = np.concatenate([late, self._worst_outright(weight, outright)])
        told = near(self._run, self._looked.epochs, self._codes(chosen))
        found = {row: self._look_at(row, told) for row in chosen.tolist()}
        kinds = self._kinds(outright, found)
        shown = tuple(self._miss(found[row]) for row in self._worst(weight, kinds, found))
        return Misses(self._by_cause(kinds), shown, tuple(story(each) for each in _for_stories(shown)))

    # -- which ones

    def _codes(self, rows: Ints) -> Codes:
        chosen = self._rows[rows]
        return mixed(chosen["source"], chosen["epoch"], chosen["seq"]) if len(chosen) else np.zeros(0, np.uint64)

    def _weights(self) -> Ints:
        """How bad: ns beyond the deadline; what was not delivered is as bad as a deadline."""
        rows = self._rows
        deadline = np.array([self._plan.outputs[each].deadline_ns for each in rows["output"].tolist()], np.int64)
        found: Ints = np.where(rows["outcome"] == LATE, rows["latency_ns"] - deadline, deadline)
        return np.where(rows["outcome"] == UNDECIDABLE, 0, found)

    def _outright(self) -> list[CauseKind | None]:
        """What the record of each miss says itself; None: time has to be looked at."""
        columns = (self._rows[name].tolist() for name in ("outcome", "why", "detail"))
        return [told_outright(*each) for each in zip(*columns, strict=True)]

    def _worst_outright(self, weight: Ints, outright: Sequence[CauseKind | None]) -> Ints:
        """Those of them that may be shown."""
        groups: dict[tuple[int, str], list[int]] = defaultdict(list)
        for row in np.argsort(-weight, kind="stable").tolist():
            kind = outright[row]
            if kind is not None:
                groups[int(self._rows["output"][row]), kind].append(row)
        return np.array(_in_turn(groups.values()), np.int64)

    def _kinds(self, outright: Sequence[CauseKind | None], found: Mapping[int, _Looked]) -> list[str]:
        """The main cause's kind of every miss."""
        kinds: list[str] = []
        last: dict[tuple[int, int], str] = {}
        outputs, outcomes = self._rows["output"].tolist(), self._rows["outcome"].tolist()
        for row, (output, outcome, told) in enumerate(zip(outputs, outcomes, outright, strict=True)):
            if told is None and row in found:
                last[output, outcome] = found[row].causes[0].subject.kind
            kinds.append(told or last.get((output, outcome), "unknown"))
        return kinds

    def _worst(self, weight: Ints, kinds: Sequence[str], found: Mapping[int, _Looked]) -> list[int]:
        """At most 200 of those that were looked at, of every output and cause in turn, the worst first."""
        groups: dict[tuple[int, str], list[int]] = defaultdict(list)
        for row in sorted(found, key=lambda row: (-int(weight[row]), row)):
            groups[int(self._rows["output"][row]), kinds[row]].append(row)
        return sorted(_in_turn(groups.values()), key=lambda row: (-int(weight[row]), row))

    def _by_cause(self, kinds: Sequence[str]) -> dict[str, dict[str, int]]:
        """Sums; what the verdict counts beyond them, as windows that nobody opened, has no record to tell why."""
        sums: dict[int, Counter[str]] = defaultdict(Counter)
        for output, kind in zip(self._rows["output"].tolist(), kinds, strict=True):
            sums[output][kind] += 1
        found: dict[str, dict[str, int]] = {}
        for id_, view in self._plan.outputs.items():
            told = self._report.outputs.get(view.name)
            mine = self._rows[self._rows["output"] == id_]
            if told is not None:
                lacking = told.late + told.shed + told.lost - int((mine["outcome"] != UNDECIDABLE).sum())
                never = sum(each.never_opened + each.unended for each in told.windows.values())
                for kind, n in (("restart", min(never, lacking)), ("unknown", lacking - min(never, lacking))):
                    sums[id_][kind] += max(0, n)
            found[view.name] = {kind: n for kind, n in sums[id_].most_common() if n}
        return {name: each for name, each in found.items() if each}

    # -- one of them

    def _look_at(self, row: int, told: Near) -> _Looked:
        one = self._rows[row]
        incarnation = self._run.incarnations[int(one["incarnation"])]
        output, ordinal, at_ns = int(one["output"]), int(one["ordinal"]), int(one["at_ns"])
        outcome, why = int(one["outcome"]), int(one["why"])
        code = int(mixed(*(np.array([one[name]], np.int64) for name in ("source", "epoch", "seq")))[0])
        path = Way(self._plan, told.get(code, ()), self._looked.clocks)
        if outcome <= UNDECIDABLE:
            stretches = path.to_result(output, incarnation.number, at_ns, ordinal)
        elif why == rec.POLICY_WINDOW and outcome == SHED:
            stretches = path.to_window(incarnation, at_ns)
        else:
            stretches = path.to_unit(int(one["unit"]), incarnation, at_ns, ordinal)
        view = self._plan.outputs[output]
        shared = self._evidence.shares(stretches, view.name)
        outright = told_outright(outcome, why, int(one["detail"]))
        if outright is not None:
            causes = [Found(self._subject(one, outright, incarnation.node), 0, detail=int(one["detail"]))]
        elif outcome == SHED and why == rec.POLICY_EXCESS:
            causes = self._judge.given_up(stretches, shared, sum(each.ns for each in stretches))
        elif outcome == UNDECIDABLE:
            causes = self._judge.undecidable(stretches, shared, int(one["most_ns"] - one["latency_ns"]))
        else:
            latency_ns = int(one["latency_ns"]) if outcome == LATE else sum(each.ns for each in stretches)
            causes = self._judge.late(stretches, shared, latency_ns, latency_ns - view.deadline_ns)
            if causes[0].subject.kind == "window":
                causes = [replace(causes[0], detail=int(one["detail"])), *causes[1:]]
        return _Looked(row, stretches, shared, tuple(causes))

    def _subject(self, one: Rows, kind: str, node: int) -> Subject:
        """What a record that tells the cause itself names."""
        source, unit = self._planned.source_name(int(one["source"])), int(one["unit"])
        name = source if (kind in {"rate", "policed"} and unit < 0) or int(one["source"]) in self._plan.windows else ""
        if kind == "link":
            name = f"{self._plan.nodes.get(node, '?')} -> {self._plan.nodes.get(int(one['peer']), '?')}"
        if kind in {"restart", "stopped", "rate"}:
            unit = -1
        return Subject(kind, node, unit, name)  # type: ignore[arg-type]

    def _miss(self, looked: _Looked) -> Miss:
        one, view = self._rows[looked.row], self._plan.outputs[int(self._rows["output"][looked.row])]
        incarnation = self._run.incarnations[int(one["incarnation"])]
        outcome = int(one["outcome"])
        zero = outcome in (LOST, SHED)
        return Miss(
            output=view.name,
            query=self._planned.query_of_output(view.name),
            source=self._planned.source_name(int(one["source"])),
            epoch=int(one["epoch"]),
            seq=int(one["seq"]),
            ordinal=int(one["ordinal"]),
            outcome=OUTCOMES[outcome],  # type: ignore[arg-type]
            node=self._plan.nodes[incarnation.node],
            boot=incarnation.boot_hex,
            at_ns=int(one["at_ns"]),
            latency_ns=None if zero else int(one["latency_ns"]),
            deadline_ns=view.deadline_ns,
            hops=tuple(self._hops(looked)),
            causes=tuple(self._words.cause(each) for each in looked.causes),
        )

    def _hops(self, looked: _Looked) -> Iterator[MissHop]:
        for number, each in enumerate(looked.stretches):
            if each.kind == way.REST and not each.ns:
                continue
            unit = self._plan.units.get(each.unit)
            place: tuple[str, ...] = () if unit is None else unit.operators
            if link := _link_of(looked.stretches, number):
                place = (self._plan.nodes.get(link.sender, ""), self._plan.nodes.get(link.at.node, ""))
            elif each.kind == way.ADMISSION:
                place = (self._planned.source_name(int(self._rows["source"][looked.row])),)
            ran_ns = each.ns if each.kind == way.RUN else 0
            span = looked.shared.ran.get(number) if each.kind != way.RUN else None
            yield MissHop(
                kind=each.kind,  # type: ignore[arg-type]
                place=place,
                node=self._plan.nodes[each.at.node],
                from_ns=each.from_ns,
                until_ns=each.until_ns,
                waited_ns=each.ns - ran_ns,
                ran_ns=ran_ns,
                waited_for=() if span is None else tuple(self._waited_for(span, each)),
            )

    def _waited_for(self, span: Span, each: Stretch) -> Iterator[WaitedFor]:
        ns = span.plain + span.batch + span.above
        units = [(int(ns[span.unit == unit].sum()), unit) for unit in np.unique(span.unit).tolist()]
        for took_ns, unit in sorted(units, reverse=True)[:MOST_WAITED_FOR]:
            view = self._plan.units.get(unit)
            if view is not None and took_ns > 0:
                query, node = self._planned.query_of_operators(view.operators), self._plan.nodes[each.at.node]
                yield WaitedFor(view.operators, query, node, int((span.unit == unit).sum()), took_ns)


def _link_of(stretches: Sequence[Stretch], number: int) -> Stretch | None:
    """The link that a tuple was on, or that it was held back for."""
    if stretches[number].kind == way.LINK:
        return stretches[number]
    follows = stretches[number + 1] if number + 1 < len(stretches) else None
    held_back = stretches[number].kind == way.REST and follows is not None and follows.kind == way.LINK
    return follows if held_back else None


def _in_turn(groups: Iterable[Sequence[int]]) -> list[int]:
    """One of each group after the other, as many as are shown."""
    rounds = zip_longest(*groups)
    return list(islice((row for each in rounds for row in each if row is not None), MOST_WORST))


def _states(run: Run, report: Report) -> dict[int, TraceState]:
    told = {(each.node, each.boot): each for each in report.completeness.incarnations}
    keys = ((each.number, (run.plan.nodes[each.node], each.boot_hex)) for each in run.incarnations)
    return {number: told[key] for number, key in keys if key in told}


def _whole_nodes(run: Run, states: Mapping[int, TraceState]) -> frozenset[int]:
    """Nodes all of whose traces are clean, or whole up to a crash."""
    there = {each.node for each in run.incarnations}
    doubtful = {
        each.node
        for each in run.incarnations
        if each.number not in states or states[each.number].status not in ("clean", "crashed")
    }
    return frozenset(there - doubtful)


def _spread(rows: Ints, outputs: Ints, weight: Ints) -> Ints:
    """Which are looked at: the worst, and of each output as many as there is room for, evenly."""
    if len(rows) <= MOST_LOOKED_AT:
        return rows
    worst = rows[np.argsort(-weight[rows], kind="stable")[:MOST_WORST]]
    names = np.unique(outputs[rows]).tolist()
    chosen = [worst]
    for output in names:
        mine = rows[outputs[rows] == output]
        step = max(1, -(-len(mine) * len(names) // MOST_LOOKED_AT))
        chosen.append(mine[::step])
    found: Ints = np.unique(np.concatenate(chosen))
    return found


def _for_stories(worst: Sequence[Miss]) -> Iterator[Miss]:
    """The worst of three outputs and causes, if there are so many."""
    seen: set[tuple[str, str]] = set()
    first: list[Miss] = []
    others: list[Miss] = []
    for each in worst:
        key = each.output, each.causes[0].kind
        (others if key in seen else first).append(each)
        seen.add(key)
    yield from [*first, *others][:MOST_STORIES]


__all__ = ["misses"]
