"""Worlds in which each value carries the set of all tuples behind it: what a report measures of their records is held
against that.

Tuples run through random queries of operators with side inputs, filters and results of several, fusions and windows, on
one node or on two whose clocks are apart. The records that nodes would write of it are all that a report gets.
"""

import heapq
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from protos import records as rec
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, Node, hashed, plan_document
from tests.coordinator.report.synthetic_windows import with_windows

APART_NS = 123 * MS  # what the clock of b is ahead of that of a
LENGTH, HOP = 50 * MS, 40 * MS  # of windows
LIMIT = 40 * MS


class Tuple(NamedTuple):
    """Of a source. origin_ns: on the clock of a, as all instants in a world."""

    source: str
    seq: int
    origin_ns: int


@dataclass(frozen=True)
class Value:
    """Anything that flows. behind: all tuples that it stems from."""

    lineage: Lineage
    behind: frozenset[Tuple]


@dataclass(frozen=True)
class Delivered:
    """A result."""

    output: str
    at_ns: int
    behind: frozenset[Tuple]


def asking(document: dict[str, Any], age_ns: int = LIMIT, reaction_ns: int = LIMIT, **more: Any) -> dict[str, Any]:
    """The plan, all of whose outputs ask for the age of their data and the reaction to it."""
    outputs = [each for node in document["nodes"].values() for each in node.get("outputs", ())]
    document["graph"]["outputs"] = {
        each["name"]: {"id": each["id"], "age_ns": age_ns, "reaction_ns": reaction_ns} | more for each in outputs
    }
    return hashed(document)


def random_query(dice: random.Random, nodes: list[str]) -> dict[str, Any]:
    """Operators in a row, of which some read sources or what goes through another operator at the side; a fusion of two
    rows, and a window."""
    at = {name: dice.choice(nodes) for name in ("one", "two", "read", "fuse", "last", "mean.add", "mean")}
    at["mean"] = at["mean.add"]
    side = {name: [each for each in choices if dice.random() < 0.5] for name, choices in SIDES.items()}
    ops: list[dict[str, Any]] = [
        {"name": "one", "at": at["one"], "in": ["s"], "side": side["one"], "mean": 0.8},
        {"name": "two", "at": at["two"], "in": ["t"], "side": side["two"]},
        {"name": "read", "at": at["read"], "in": ["u"], "side": side["read"]},
        {"name": "fuse", "at": at["fuse"], "in": ["one", "two"], "join": True, "side": side["fuse"]},
        {"name": "last", "at": at["last"], "in": ["fuse"], "side": side["last"]},
        {"name": "mean.add", "at": at["mean.add"], "in": ["one"]},
        {"name": "mean", "at": at["mean"], "in": ["mean.add"], "side": side["mean"]},
    ]
    sources = {name: dice.choice(nodes) for name in "stuv"}
    outputs = {
        "fused": ("last", dice.choice(nodes), 30 * MS), "means": ("mean", dice.choice(nodes), 90 * MS),
        "seen": ("read", dice.choice(nodes), 20 * MS),
    }  # fmt: skip
    document = plan_document(nodes, sources, ops, outputs)
    for node in document["nodes"].values():
        for operator in node.get("operators", ()):
            if operator["name"] == "fuse":
                operator["sync"] = {}
    return asking(with_windows(document, {"mean": {}}))


SIDES = {"one": ["u", "v"], "two": ["v"], "read": ["v", "t"], "fuse": ["read"], "last": ["v", "mean"], "mean": ["read"]}


@dataclass(order=True)
class _Event:
    at_ns: int
    number: int
    what: str = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)


class World(Cluster):
    """Runs a query for a while. delivered: what a report is to say, as sets; tuples: those that were admitted."""

    def __init__(self, seed: int, nodes: list[str], more: dict[str, Any] | None = None) -> None:
        self.dice = random.Random(seed)
        super().__init__(random_query(self.dice, nodes) if more is None else more, seed, mishaps=0, many=0)
        self.delivered: list[Delivered] = []
        self.tuples: list[Tuple] = []
        self._queue: list[_Event] = []
        self._number = 0
        self._now = 0
        self._slots: dict[tuple[int, int], Value] = {}  # (operator, stream)
        self._waiting: dict[int, dict[int, Value]] = {}
        self._collected: list[tuple[int, Value]] = []
        self._busy: dict[int, int] = {}
        self._sent = 0
        self._unit_of = {operator: unit for unit, operator in self.plan.before}
        self._windows: dict[int, int] = {}  # source -> the next number

    def _start(self, index: int, boot: int) -> Node:
        name = self.plan.nodes[index]
        node = Node(name, index, boot, f"clock of {name}")
        for state in (rec.STATE_PREPARED, rec.STATE_COMMITTED):
            node.write(rec.PLAN, 0, state, None, node.now, 131, last=self.plan.hash_u64)
        return node

    # -- the loop

    def run(self, tuples: int = 60) -> None:  # type: ignore[override]
        """Admit so many tuples, and go on until nothing happens any more."""
        at_ns = 10 * MS
        for source in self.plan.sources:
            if source in self.plan.windows:
                continue
            at_ns = 10 * MS
            for seq in range(1, tuples // 4 + 1):
                at_ns += self.dice.randrange(MS, 25 * MS)
                self._at(at_ns, "_admit", source, seq)
        for node in self.plan.nodes:
            for beat in range(1, 60):
                self._at(beat * 10 * MS, "_compare", node)
        for window in range(10):
            for source in self.plan.windows:
                self._at(window * HOP + LENGTH + self.dice.randrange(5, 10) * MS, "_close", source, window)
        while self._queue:
            event = heapq.heappop(self._queue)
            self._now = event.at_ns
            getattr(self, event.what)(*event.arguments)
        for unit, waiting in self._waiting.items():
            for each in waiting.values():
                own, node = each.lineage, self.nodes[self.plan.units[unit].node]
                self._write(node, rec.SHED, unit, own, rec.POLICY_UNMATCHED, own.ordinal)
        for node in self.nodes.values():
            self._write(node, rec.LOAD, 0, None, last=len(node.records))
            node.ended = True
            self._write(node, rec.PLAN, rec.STATE_ENDED, None, 131, flags=0, last=self.plan.hash_u64)

    @property
    def end_ns(self) -> int:
        """When it was over."""
        return self._now

    def _at(self, at_ns: int, what: str, *arguments: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, _Event(at_ns, self._number, what, arguments))

    def _clock(self, node: Node, at_ns: int) -> int:
        return at_ns + APART_NS * (node.name == "b")

    def _write(
        self, node: Node, kind: int, ref: int, lineage: Lineage | None, *words: int, last: int = 0,
        flags: int | None = None,
    ) -> None:  # fmt: skip
        set_ = self.flags if flags is None else flags
        node.write(kind, set_, ref, lineage, self._clock(node, self._now), *words, last=last)

    # -- what happens

    def _compare(self, index: int) -> None:
        for peer, other in self.nodes.items():
            if peer != index:
                ahead = APART_NS * ((self.plan.nodes[index] == "b") - (other.name == "b"))
                blur = self.dice.randrange(MS)
                self._write(self.nodes[index], rec.CLOCK, peer, None, ahead - blur, ahead + MS - blur)

    def _admit(self, source: int, seq: int) -> None:
        index, stream = self.plan.sources[source]
        node = self.nodes[index]
        new = Tuple(self.plan.streams[stream], seq, self._now - self.dice.randrange(5 * MS))
        self.tuples.append(new)
        origin = self._clock(node, new.origin_ns)
        lineage = Lineage(source, 1, seq, 0, origin, origin)
        self._write(node, rec.ADMITTED, source, lineage, origin, origin)
        self._spread(node, stream, Value(lineage, frozenset([new])))

    def _spread(self, node: Node, stream: int, value: Value) -> None:
        lineage = value.lineage
        for consumer in self.plan.consumers.get((node.index, stream), ()):
            kind, ref = consumer >> 48, (consumer >> 24) & 0xFFFFFF
            if kind == 2:
                self._slots[ref, stream] = value
                self._write(node, rec.ABSORBED, ref, lineage, stream, lineage.ordinal)
            elif kind == 3:
                view = self.plan.outputs[ref]
                self._write(node, rec.OUTPUT, ref, lineage, lineage.lo, lineage.hi, view.deadline_ns, lineage.ordinal)
                self.delivered.append(Delivered(view.name, self._now, value.behind))
            elif kind == 4:
                self._send(node, ref, stream, value)
            elif self.plan.units[ref].fuses:
                self._fuse(node, ref, stream, value)
            else:
                self._release(node, ref, value)

    def _send(self, node: Node, peer: int, stream: int, value: Value) -> None:
        self._sent += 1
        self._write(node, rec.SENT, peer, value.lineage, self._sent, stream, value.lineage.ordinal)
        self._at(
            self._now + self.dice.randrange(1, 3 * MS), "_receive", node, peer, stream, value, self._sent, self._now
        )

    def _receive(self, sender: Node, index: int, stream: int, value: Value, link_seq: int, sent_ns: int) -> None:
        node, old = self.nodes[index], value.lineage
        ahead = APART_NS * ((node.name == "b") - (sender.name == "b"))
        lineage = Lineage(old.source, old.epoch, old.seq, old.ordinal, old.lo + ahead - MS, old.hi + ahead + MS)
        self._write(
            node, rec.RECEIVED, sender.index, lineage, link_seq, self._clock(sender, sent_ns), stream, old.ordinal
        )
        self._spread(node, stream, Value(lineage, value.behind))

    def _fuse(self, node: Node, unit: int, stream: int, value: Value) -> None:
        waiting = self._waiting.setdefault(unit, {})
        if stream in waiting:  # the operator does without it
            old = waiting[stream].lineage
            self._write(node, rec.SHED, unit, old, rec.POLICY_REPLACED, old.ordinal)
        waiting[stream] = value
        if len(waiting) < len(self.plan.units[unit].inputs):
            return
        parts = sorted(self._waiting.pop(unit).values(), key=lambda each: each.lineage.lo)
        lead = parts[0].lineage
        for each in parts[1:]:
            own = each.lineage
            self._write(node, rec.MERGED, unit, own, lead.source, lead.epoch, own.ordinal, 0, last=lead.seq)
        self._release(node, unit, Value(lead, frozenset().union(*(each.behind for each in parts))))

    def _release(self, node: Node, unit: int, value: Value) -> None:
        start_ns = max(self._now, self._busy.get(node.index, 0)) + self.dice.randrange(MS)
        end_ns = self._busy[node.index] = start_ns + self.dice.randrange(MS, 3 * MS)
        self._at(start_ns, "_begin", node, unit, value, self._now, end_ns)

    def _begin(self, node: Node, unit: int, value: Value, release_ns: int, end_ns: int) -> None:
        slots = [key for key in sorted(self._sides()) if self._unit_of[key[0]] == unit]
        read = [self._slots[key].behind for key in slots if key in self._slots]
        made = Value(value.lineage, value.behind.union(*read))
        if not self.plan.units[unit].exits:
            self._collected.append((unit, made))
        self._at(end_ns, "_end", node, unit, made, release_ns, self._now)

    def _sides(self) -> set[tuple[int, int]]:
        return {
            ((consumer >> 24) & 0xFFFFFF, stream)
            for (_, stream), found in self.plan.consumers.items()
            for consumer in found
            if consumer >> 48 == 2
        }

    def _end(self, node: Node, unit: int, value: Value, release_ns: int, start_ns: int) -> None:
        view, lineage = self.plan.units[unit], value.lineage
        draw = self.dice.random()
        n = 0 if view.filters and any(view.filters) and draw < 0.3 else 2 if draw > 0.9 and not lineage.ordinal else 1
        given = [lineage] if n == 1 else [lineage.child(lineage.ordinal * 256 + i) for i in range(1, n + 1)]
        if view.operators[0] in {"one", "two"} and n == 2:  # no number tells several apart, behind fusions and windows
            given, n = [lineage], 1
        for exit_ in view.exits:
            for each in given:
                self._spread(node, exit_, Value(each, value.behind))
        word = sum(n << 8 * exit_ for exit_ in range(len(view.exits)))
        times = (self._clock(node, each) for each in (release_ns, start_ns, self._now, release_ns + MS))
        node.write(rec.RAN, self.flags, unit, lineage, *times, 0, last=lineage.ordinal << 32 | word)

    def _close(self, source: int, number: int) -> None:
        view = self.plan.windows[source]
        node = self.nodes[view.node]
        start = self._clock(node, 0) + number * HOP
        # What lies at an edge by any clock is left out of the world's windows as of the trace's.
        inside = [
            value
            for unit, value in self._collected
            if unit == self._unit_of[view.operators[0]] and start <= self._position(node, value) < start + LENGTH
            if not self._is_late(value)
        ]
        lineage = Lineage(source, 1, number + 1, 0, start + LENGTH, start + LENGTH)
        self._write(
            node, rec.WINDOW, view.operators[0], lineage, rec.WINDOW_CLOSED, start, start + LENGTH, 0, last=len(inside)
        )
        self._write(node, rec.ADMITTED, source, lineage, lineage.lo, lineage.hi)
        stream = self.plan.sources[source][1]
        self._spread(node, stream, Value(lineage, frozenset().union(*(each.behind for each in inside))))

    def _is_late(self, value: Value) -> bool:
        """Whether it is older than a lower number of its source."""
        own = next(each for each in self.tuples if self._is_of(each, value.lineage))
        lower = [each for each in self.tuples if each.source == own.source and each.seq < own.seq]
        return any(each.origin_ns > own.origin_ns for each in lower)

    def _position(self, node: Node, value: Value) -> int:
        own = next(each for each in self.tuples if self._is_of(each, value.lineage))
        return self._clock(node, own.origin_ns)

    def _is_of(self, each: Tuple, lineage: Lineage) -> bool:
        stream = self.plan.sources[lineage.source][1]
        return (each.source, each.seq) == (self.plan.streams[stream], lineage.seq)


def world(seed: int, nodes: list[str], path: Path) -> World:
    """One that has run, in a run directory."""
    made = World(seed, nodes)
    made.run()
    made.save(path)
    return made
