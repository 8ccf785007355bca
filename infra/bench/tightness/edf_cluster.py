"""Nodes under non-preemptive EDF, links in order, windows that close: a cluster as small as it can be.

It shares no code with the calculus or the agents: it reads what a plan says (units, hops, arrivals) and takes from an
`Attack` what plans leave open. A tuple is (source, number); all operators have one result of a tuple or none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

from coordinator.guarantee.system import Stage, System, Unit
from infra.bench.tightness.attack import ALWAYS, Attack
from infra.bench.tightness.attack import NEVER as OLD
from infra.bench.tightness.closing_windows import NEVER, Collected
from infra.bench.tightness.fused_sets import Fired, Fusion

Token = tuple[str, int]
ARRIVES, ENDS, CHOOSES = 0, 1, 2  # in this order at one instant
TUPLE_BITS_NS = 8 * 10**9
TUPLE_BYTES = 1500
MOST_TUPLES = 40


class SpanCurve(Protocol):
    """The least time that n tuples in a row span."""

    def span(self, n: int) -> int: ...


@dataclass(frozen=True)
class Ran:
    """An instance: when its tuple was released, when it started and ended, and since when its node had been busy."""

    unit: int
    token: Token
    release_ns: int
    start_ns: int
    end_ns: int
    busy_ns: int


@dataclass(frozen=True)
class Longest:
    """Of an output, or of a stretch of it: how long a tuple took at most, and which it was."""

    ns: int = -1
    token: Token = ("", 0)


@dataclass
class Seen:
    """What happened. `took`: per output, from admission on; `aged`: from origins on; `ran`: every instance."""

    took: dict[str, Longest] = field(default_factory=dict)
    aged: dict[str, Longest] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    admitted_ns: dict[Token, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Consumers:
    """Of a stream at a node."""

    units: tuple[int, ...]
    outputs: tuple[str, ...]
    hops: tuple[str, ...]


class EdfCluster:
    """A plan, ready to be run again and again. `until_ns`: sources send so long after their first tuple; `most_tuples`:
    so many of each at most."""

    def __init__(self, system: System, until_ns: int, most_tuples: int = MOST_TUPLES) -> None:
        self.system, self.until_ns, self.most_tuples = system, until_ns, most_tuples
        self._arrivals: dict[tuple[str, tuple[tuple[int, int], ...]], list[int]] = {}
        self.consumers = self._consumers()
        self.spans: dict[str, SpanCurve] = {
            name: source.curve  # type: ignore[misc]  # declared arrivals all say their spans
            for name, source in system.sources.items()
        }

    def _consumers(self) -> Mapping[tuple[str, str], _Consumers]:
        system = self.system
        streams = {*system.sources, *system.windows, *(each for unit in system.units.values() for each in unit.exits)}
        found = {}
        for stream in streams:
            for node in system.nodes:
                units = tuple(u.id for u in system.units.values() if u.node == node and stream in u.inputs)
                outputs = tuple(n for n, one in system.outputs.items() if (one.stream, one.node) == (stream, node))
                hops = tuple(end for start, end in system.hops.get(stream, ()) if start == node)
                found[stream, node] = _Consumers(units, outputs, hops)
        return found

    def arrivals(self, source: str, pauses_ns: Mapping[int, int]) -> Sequence[int]:
        """After the first one: each as soon as every span allows, and its pause later."""
        key = (source, tuple(sorted(pauses_ns.items())))
        if key not in self._arrivals:
            span, found = self.spans[source].span, list[int]()
            while len(found) < self.most_tuples:
                n = len(found)
                at = max((found[i] + span(n - i + 1) for i in range(n)), default=0) + pauses_ns.get(n, 0)
                if at > self.until_ns:
                    break
                found.append(at)
            self._arrivals[key] = found or [0]
        return self._arrivals[key]

    def run(self, attack: Attack) -> Seen:
        """Everything that follows from an attack."""
        return Execution(self, attack).go()


class Execution:
    """One run of a cluster."""

    def __init__(self, cluster: EdfCluster, attack: Attack) -> None:
        self.cluster, self.system, self.attack, self.seen = cluster, cluster.system, attack, Seen()
        self.events: list[tuple[int, int, int, str, tuple[object, ...]]] = []
        self.order = 0
        self.waiting: dict[str, list[tuple[int, int, int, int, Token, int]]] = defaultdict(list)
        self.busy: dict[str, int | None] = dict.fromkeys(self.system.nodes)  # since when
        self.running: set[str] = set()
        self.choosing: set[str] = set()
        self.joined: dict[tuple[int, Token], int] = defaultdict(int)
        self.passed: dict[str, list[int]] = defaultdict(list)
        self.free_ns: dict[tuple[str, str], int] = defaultdict(lambda: NEVER)
        self.there_ns: dict[tuple[str, str], int] = defaultdict(lambda: NEVER)
        self.origin_ns: dict[Token, int] = {}
        self.counts: dict[str, int] = defaultdict(int)
        self.windows: dict[str, Collected] = {}
        self.fusions = {u.id: Fusion(len(u.inputs)) for u in self.system.units.values() if u.sync is not None}

    def at(self, at_ns: int, kind: int, what: str, *given: object) -> None:
        self.order += 1
        heappush(self.events, (at_ns, kind, self.order, what, given))

    def go(self) -> Seen:
        """All of it."""
        last_ns = self._admit_all()
        self._beat(last_ns)
        calls = {
            "deliver": self.deliver, "release": self.release, "end": self.end, "choose": self.choose,
            "present": self.present, "beat": self.beat, "admit": self.admit, "fire": self.fire,
        }  # fmt: skip
        while self.events:
            at_ns, _, _, what, given = heappop(self.events)
            calls[what](at_ns, *given)  # type: ignore[operator]
        return self.seen

    # -- sources

    def _admit_all(self) -> int:
        last_ns = 0
        for name, source in self.system.sources.items():
            first_ns = self.attack.phase_ns.get(name, 0)
            for number, after_ns in enumerate(self.cluster.arrivals(name, self.attack.pauses_ns.get(name, {}))):
                at_ns = first_ns + after_ns
                age_ns = 0 if self.attack.young.get(name, OLD).is_so(number) else source.max_age_ns
                self.origin_ns[name, number] = at_ns - age_ns
                self.at(at_ns, ARRIVES, "admit", name, source.node, (name, number))
                last_ns = max(last_ns, at_ns)
        return last_ns

    def admit(self, at_ns: int, stream: str, node: str, token: Token) -> None:
        """A tuple, or a window that has closed."""
        self.seen.admitted_ns[token] = at_ns
        self.counts[stream] += 1
        self.deliver(at_ns, stream, node, token)

    def _beat(self, last_ns: int) -> None:
        """Heartbeats of sources that lead to windows, from well before the first tuple on until well after the last."""
        if not self.system.windows:
            return
        first_ns = min(self.attack.phase_ns.values(), default=0)
        most_ns = max(each.length + each.hop for each in self.system.windows.values())
        for add, windows in self.system.windows.items():
            ages = [self.system.sources[name].max_age_ns for name in windows.sources]
            self.windows[add] = Collected(windows.sources, windows.length, windows.hop, first_ns - most_ns - max(ages))
        for name, source in self.system.sources.items():
            if source.beat_ns:
                start_ns = self.attack.beat_ns.get(name, 0) % source.beat_ns
                number = (first_ns - 2 * most_ns - start_ns) // source.beat_ns
                while (said_ns := start_ns + number * source.beat_ns) <= last_ns + 2 * most_ns:
                    self.at(said_ns, ENDS, "beat", name, source.node)
                    number += 1

    def beat(self, at_ns: int, name: str, node: str) -> None:
        """Said at the source, after what is admitted at that instant; it goes ahead of what is queued."""
        count = self.counts[name]
        for add, windows in self.system.windows.items():
            if name in windows.sources:
                way = self._way(windows.add, name, windows.node)
                slow = [self.attack.slow.get(f"{a}>{b}", ALWAYS).is_so(count) for a, b in way]
                late_ns = sum(self.system.links[p].latency_ns for p, is_slow in zip(way, slow, strict=True) if is_slow)
                self.at(at_ns + late_ns, ARRIVES, "present", add, name, count, at_ns - self._age_ns(name), True)

    def _age_ns(self, name: str) -> int:
        return self.system.sources[name].max_age_ns

    def _way(self, stream: str, source: str, node: str) -> list[tuple[str, str]]:
        """Links from a source to the operator that makes a stream at a node."""
        made = {stage.operator: unit for unit in self.system.units.values() for stage in unit.stages}
        if stream == source:
            return self._hops(stream, self.system.sources[source].node, node)
        unit = made[stream]
        found = [self._way(each, source, unit.node) for each in unit.inputs if self._comes(each, source, made)]
        hops = [] if stream in self.system.windows else self._hops(stream, unit.node, node)
        return [*(found[0] if found else []), *hops]

    def _comes(self, stream: str, source: str, made: Mapping[str, Unit]) -> bool:
        return stream == source or (stream in made and any(self._comes(i, source, made) for i in made[stream].inputs))

    def _hops(self, stream: str, start: str, end: str) -> list[tuple[str, str]]:
        before = {to: from_ for from_, to in self.system.hops.get(stream, ())}
        found = []
        while end != start:
            found.append((before[end], end))
            end = before[end]
        return found[::-1]

    # -- streams

    def deliver(self, at_ns: int, stream: str, node: str, token: Token) -> None:
        consumers = self.cluster.consumers[stream, node]
        for unit in consumers.units:
            self.arrive(at_ns, unit, stream, token)
        for output in consumers.outputs:
            self.result(output, at_ns, token)
        for to in consumers.hops:
            pair, slow = (node, to), self.attack.slow.get(f"{node}>{to}", ALWAYS).is_so(token[1])
            link = self.system.links[pair]
            sends_ns = -(-TUPLE_BYTES * TUPLE_BITS_NS // link.bandwidth_bps) if link.bandwidth_bps and slow else 0
            self.free_ns[pair] = max(at_ns, self.free_ns[pair]) + sends_ns
            there_ns = max(self.there_ns[pair], self.free_ns[pair] + (link.latency_ns if slow else 0))
            self.there_ns[pair] = there_ns
            self.at(there_ns, ARRIVES, "deliver", stream, to, token)

    def result(self, output: str, at_ns: int, token: Token) -> None:
        """Of an output, as it is delivered."""
        self._longest(self.seen.took, output, at_ns - self.seen.admitted_ns[token], token)
        self._longest(self.seen.aged, output, at_ns - self.origin_ns[token], token)

    def _longest(self, found: dict[str, Longest], output: str, took_ns: int, token: Token) -> None:
        if output not in found or took_ns > found[output].ns:
            found[output] = Longest(took_ns, token)

    def arrive(self, at_ns: int, number: int, stream: str, token: Token) -> None:
        unit = self.system.units[number]
        if unit.sync is not None:
            fusion = self.fusions[number]
            begins = not fusion.waiting
            self._fired(at_ns, unit, fusion.come(unit.inputs.index(stream), token, self.origin_ns))
            if begins and fusion.waiting:
                self.at(at_ns + unit.sync.timeout_ns, ENDS, "fire", number, fusion.begun)
            return
        if unit.join:
            self.joined[number, token] += 1
            if self.joined[number, token] < len(unit.inputs):
                return
        self.release(at_ns, number, token)

    # -- fusions

    def fire(self, at_ns: int, number: int, begun: int) -> None:
        """A set has waited for as long as it may."""
        fusion = self.fusions[number]
        if fusion.waiting and fusion.begun == begun:
            self._fired(at_ns, self.system.units[number], fusion.fire(self.origin_ns))

    def _fired(self, at_ns: int, unit: Unit, fired: Fired) -> None:
        """A set runs; windows behind hear what is not to come, ahead of what is queued."""
        for token in fired.absent:
            for add, windows in self.system.windows.items():
                if token[0] in windows.sources:
                    way = self._way(add, token[0], windows.node)
                    behind = way[len(self._way(unit.stages[0].operator, token[0], unit.node)) :]
                    late_ns = sum(self.system.links[pair].latency_ns for pair in behind)
                    self.at(at_ns + late_ns, ARRIVES, "present", add, *token, self.origin_ns[token], False)
        if fired.lead is not None:
            self.release(at_ns, unit.id, fired.lead)

    # -- nodes

    def release(self, at_ns: int, number: int, token: Token) -> None:
        unit = self.system.units[number]
        self.order += 1
        tie = 0 if number in self.attack.first else 1
        due_ns = at_ns + unit.sub_deadline_ns
        heappush(self.waiting[unit.node], (due_ns, tie, self.order, number, token, at_ns))
        self._look(at_ns, unit.node)

    def _look(self, at_ns: int, node: str) -> None:
        if node not in self.running and node not in self.choosing:
            self.choosing.add(node)
            self.at(at_ns, CHOOSES, "choose", node)

    def choose(self, at_ns: int, node: str) -> None:
        self.choosing.discard(node)
        if not self.waiting[node]:
            self.busy[node] = None
            return
        since_ns = self.busy[node]
        since_ns = self.busy[node] = at_ns if since_ns is None else since_ns
        *_, number, token, release_ns = heappop(self.waiting[node])
        end_ns = self._execute(at_ns, self.system.units[number], token)
        self.seen.ran.append(Ran(number, token, release_ns, at_ns, end_ns, since_ns))
        self.running.add(node)
        self.at(end_ns, ENDS, "end", node)

    def end(self, at_ns: int, node: str) -> None:
        self.running.discard(node)
        self._look(at_ns, node)

    def cost_ns(self, stage: Stage, token: Token) -> int:
        """Of an instance."""
        slow = self.attack.slow.get(stage.operator, ALWAYS).is_so(token[1])
        return stage.cost_ns if slow else stage.best_ns

    def _execute(self, at_ns: int, unit: Unit, token: Token) -> int:
        exits: dict[int, list[str]] = defaultdict(list)
        for stream, position in unit.exits.items():
            exits[position].append(stream)
        for position, stage in enumerate(unit.stages):
            at_ns += self.cost_ns(stage, token)
            if not self._passes(stage.operator, stage.selectivity.pairs):
                break
            for stream in exits[position]:
                if stream in self.system.windows:
                    self.at(at_ns, ARRIVES, "present", stream, *token, self.origin_ns[token], False)
                else:
                    self.at(at_ns, ARRIVES, "deliver", stream, unit.node, token)
        return at_ns

    def _passes(self, operator: str, pairs: Sequence[tuple[int, int]]) -> bool:
        if all(k <= m for k, m in pairs):
            return True
        before = self.passed[operator]
        if not before and operator in self.attack.dropped:
            before.append(0)
            return False
        passes = all(sum(before[max(0, len(before) - k + 1) :]) < m for k, m in pairs)
        before.append(int(passes))
        return passes

    # -- windows

    def present(self, at_ns: int, add: str, source: str, number: int, origin_ns: int, beat: bool) -> None:
        """To a window operator: a tuple has run there, or a heartbeat is known there."""
        windows, collected = self.system.windows[add], self.windows[add]
        (collected.progress if beat else collected.settle)(source, number, origin_ns)
        for window, end_ns in collected.closed():
            if windows.useful_ns and at_ns > end_ns + windows.useful_ns:
                continue
            self.origin_ns[add, window] = end_ns
            self.at(at_ns, ARRIVES, "admit", add, windows.node, (add, window))


__all__ = ["EdfCluster", "Execution", "Longest", "Ran", "Seen", "Token"]
