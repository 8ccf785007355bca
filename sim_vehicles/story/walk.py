"""Follows the tuples of one lineage backwards through a trace, stage by stage (split.py says what the stages are)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from protos import records as rec
from protos.records import FLAG, Record
from sim_vehicles.story.clocks import Offsets, UnknownOffsetError
from sim_vehicles.story.reader import Incarnation, Lineage, RunTrace, UnitView

UNKNOWN_NS = 1 << 60  # an interval of origin that is wider says nothing: the clocks' offset was not known


@dataclass(frozen=True)
class Stage:
    """One stage. node: where (a link: where it ends, from_node where it begins); operators: whose time it was."""

    stage: str
    ns: int
    node: str | None = None
    operators: tuple[str, ...] = ()
    from_node: str | None = None
    shared_out: bool = False

    def document(self) -> dict[str, Any]:
        """As in replay.json."""
        plain: dict[str, Any] = {
            "stage": self.stage,
            "node": self.node,
            "operators": list(self.operators),
            "ns": self.ns,
        }
        if self.from_node is not None:
            plain["from_node"] = self.from_node
        if self.shared_out:
            plain["shared_out"] = True
        return plain


class MissingRecordError(Exception):
    """The trace does not hold what the split needs; the text says which record is missing."""


class Walk:
    """Follows the tuples of one lineage backwards.

    path: the stages, oldest first; the first one is the age on admission. crossings: the places, counted from the
    newest stage, of links between nodes of different clocks. latency_ns, uncertain_ns, deadline_ns: of the result.
    """

    def __init__(self, trace: RunTrace, lineage: Lineage) -> None:
        self._plan = trace.plan
        self._records = trace.of(lineage)
        self._offsets = Offsets(trace.plan, self._records, {one.node: one.clock for one in trace.incarnations})
        self._found: list[Stage] = []  # newest first
        self._name = "/".join(map(str, lineage))
        self.crossings: list[int] = []
        self.latency_ns = self.uncertain_ns = self.deadline_ns = 0

    @property
    def path(self) -> list[Stage]:
        """See the class."""
        return self._found[::-1]

    def delivered(self, ordinal: int, output: str | None = None) -> tuple[str, int, int, int]:
        """The result, as `back` takes it: of the output of that name, else of the one that had it first."""
        outputs = self._plan.outputs
        found = [
            record
            for _, record in self._of(rec.OUTPUT)
            if record.w4 == ordinal and record.ref in outputs and output in {None, outputs[record.ref][0]}
        ]
        if not found:
            raise MissingRecordError(f"no OUTPUT record of tuple {self._name}.{ordinal}")
        last = min(found, key=lambda record: record.w0)
        if last.w2 - last.w1 > UNKNOWN_NS:
            raise MissingRecordError("no CLOCK record from before the tuple: the offset of the clocks is not known")
        self.latency_ns = last.w0 - (last.w1 + last.w2) // 2
        self.uncertain_ns = (last.w2 - last.w1) // 2
        self.deadline_ns = last.w3
        _, node, stream = outputs[last.ref]
        return node, stream, ordinal, last.w0

    def back(self, node: str, stream: int, ordinal: int, until_ns: int) -> None:
        """Everything before the tuple of `stream` is there at `node`, at `until_ns` of that node's clock."""
        while True:
            unit = self._plan.makers.get(stream)
            if unit is not None and unit.node == node:
                ordinal, until_ns = self._ran(unit, stream, ordinal, until_ns)
                stream = self._trigger(unit, ordinal, until_ns)
                name = unit.operators[0]
            else:
                name = self._plan.names.get(stream, str(stream))
            waited_ns = until_ns - self._arrived(node, stream, ordinal, until_ns)
            self._add("handover", waited_ns, node, (name,))
            until_ns -= waited_ns
            if self._plan.admitted.get(stream) == node:
                admitted = self._one(rec.ADMITTED, node)
                self._add("sensing", until_ns - (admitted.w1 + admitted.w2) // 2, node, keep=True)
                return
            maker = self._plan.makers.get(stream)
            if maker is None or maker.node != node:
                node, until_ns = self._crossed(node, stream, ordinal, until_ns)

    # -- one step back each

    def _ran(self, unit: UnitView, stream: int, ordinal: int, until_ns: int) -> tuple[int, int]:
        """Queue and execution of the instance that gave it; returns its own ordinal and release."""
        ordinal, stretches = self._instance(unit, stream, ordinal, until_ns)
        release_ns = stretches[0].w0
        ended_ns = min(until_ns, stretches[-1].w2)
        ran_ns = sum(min(each.w2, ended_ns) - each.w1 for each in stretches if each.w1 < ended_ns)
        queue_ns = ended_ns - release_ns - ran_ns
        if ran_ns < 0 or queue_ns < 0:
            raise MissingRecordError(f"the RAN records of unit {unit.label} at {unit.node} contradict one another")
        self._add("handover", until_ns - ended_ns, unit.node, unit.operators[-1:])
        upto = unit.streams.index(stream) + 1
        operators, costs = unit.operators[:upto], unit.costs_ns[:upto]
        for name, ns in reversed(list(zip(operators, shares(ran_ns, costs), strict=True))):
            self._found.append(Stage("execution", ns, unit.node, (name,), shared_out=upto > 1))
        self._add("queue", queue_ns, unit.node, operators, keep=True)
        return ordinal, release_ns

    def _instance(self, unit: UnitView, stream: int, ordinal: int, until_ns: int) -> tuple[int, list[Record]]:
        """The stretches, in order, of the instance that gave the tuple of `stream`, and the ordinal of its input.

        The output keeps the input's ordinal, or is one of several: then its parent's, up to four operators back.
        """
        mine = [record for one, record in self._of(rec.RAN) if record.ref == unit.id and one.node == unit.node]
        for back in range(5):
            if back and not ordinal:
                break
            ordinal = (ordinal - 1) >> 8 if back else ordinal
            ran = [each for each in mine if rec.ran_ordinal(each.last) == ordinal and each.w1 <= until_ns]
            if ran:
                chosen = _chosen(instances(ran), stream == unit.streams[-1], until_ns)
                if chosen[-1].flags & FLAG and stream == unit.streams[-1]:
                    break  # it went on to its last operator in a record that is not there
                return ordinal, chosen
        if any(record.ref == unit.id and one.node == unit.node for one, record in self._of(rec.LOST)):
            raise MissingRecordError(
                f"unit {unit.label} at {unit.node} failed after it gave tuple {self._name}:"
                " a failed instance's record says neither release nor start"
            )
        raise MissingRecordError(f"no RAN record of unit {unit.label} at {unit.node} for tuple {self._name}")

    def _trigger(self, unit: UnitView, ordinal: int, until_ns: int) -> int:
        """The input stream whose tuple made the release: the one that came at that instant."""
        away_ns: dict[int, int] = {}
        missing: MissingRecordError | None = None
        for stream in unit.inputs:
            try:
                away_ns[stream] = abs(self._there(unit.node, stream, ordinal, until_ns) - until_ns)
            except MissingRecordError as error:
                missing = error
        if not away_ns:
            raise missing or MissingRecordError(f"no record of what triggered unit {unit.label} at {unit.node}")
        return min(away_ns, key=lambda stream: away_ns[stream])

    def _there(self, node: str, stream: int, ordinal: int, until_ns: int) -> int:
        """When the tuple of that stream was at the node, by the record that says so."""
        unit = self._plan.makers.get(stream)
        if unit is not None and unit.node == node:
            _, stretches = self._instance(unit, stream, ordinal, until_ns)
            return stretches[-1].w2 if stream == unit.streams[-1] else min(until_ns, stretches[-1].w2)
        if self._plan.admitted.get(stream) == node:
            return self._one(rec.ADMITTED, node).w0
        return self._received(node, stream, ordinal, until_ns).w0

    def _arrived(self, node: str, stream: int, ordinal: int, until_ns: int) -> int:
        """The same, but not after what was done with it at `until_ns`.

        A live runtime stamps RECEIVED when it decodes and the release when it reads, some microseconds before.
        """
        return min(until_ns, self._there(node, stream, ordinal, until_ns))

    def _crossed(self, node: str, stream: int, ordinal: int, until_ns: int) -> tuple[str, int]:
        """The link that it came over; returns the node that sent it, and when by that node's clock."""
        received = self._received(node, stream, ordinal, until_ns)
        sender, name = self._plan.nodes.get(received.ref, "?"), self._plan.names.get(stream, str(stream))
        key = (self._plan.index[node], received.w1, stream, ordinal)
        sent = self._find(rec.SENT, sender, lambda r: (r.ref, r.w1, r.w2, r.w3) == key)
        if sent is None:
            raise MissingRecordError(f"no SENT record of {name} from {sender} to {node} for tuple {self._name}")
        arrived_ns = min(until_ns, received.w0)
        try:
            offset_ns = self._offsets.of(node, sender, arrived_ns)
        except UnknownOffsetError as error:
            raise MissingRecordError(str(error)) from None
        if not self._offsets.same(node, sender):
            self.crossings.append(len(self._found))
        self._found.append(Stage("link", arrived_ns - sent.w0 - offset_ns, node, from_node=sender))
        return sender, sent.w0

    # -- records

    def _received(self, node: str, stream: int, ordinal: int, until_ns: int) -> Record:
        """The one nearest to `until_ns`: a union may send several tuples of one lineage on one stream."""
        name = self._plan.names.get(stream, str(stream))
        found = [r for one, r in self._of(rec.RECEIVED) if one.node == node and (r.w3, r.w4) == (stream, ordinal)]
        if not found:
            raise MissingRecordError(f"no RECEIVED record of {name} at {node} for tuple {self._name}")
        return min(found, key=lambda r: abs(r.w0 - until_ns))

    def _one(self, kind: int, node: str) -> Record:
        found = self._find(kind, node, lambda r: True)
        if found is None:
            raise MissingRecordError(f"no {rec.KINDS[kind]} record at {node} for tuple {self._name}")
        return found

    def _find(self, kind: int, node: str, fits: Callable[[Record], bool]) -> Record | None:
        """The earliest: a tuple that is sent again keeps its first instant."""
        found = [record for one, record in self._of(kind) if one.node == node and fits(record)]
        return min(found, key=lambda record: record.w0, default=None)

    def _of(self, kind: int) -> Iterable[tuple[Incarnation, Record]]:
        return ((one, record) for one, record in self._records if record.kind == kind)

    def _add(self, stage: str, ns: int, node: str, operators: tuple[str, ...] = (), keep: bool = False) -> None:
        if ns or keep:
            self._found.append(Stage(stage, ns, node, operators))


def instances(ran: Iterable[Record]) -> list[list[Record]]:
    """RAN records of one unit and tuple as instances: one ends with the first record that does not say it goes on."""
    found: dict[int, list[list[Record]]] = {}
    for record in sorted(ran, key=lambda each: each.w1):
        same = found.setdefault(record.w0, [[]])  # by release
        if same[-1] and not same[-1][-1].flags & FLAG:
            same.append([])
        same[-1].append(record)
    return [stretches for same in found.values() for stretches in same]


def _chosen(found: list[list[Record]], whole: bool, until_ns: int) -> list[Record]:
    """The instance that gave what was there at `until_ns`. whole: by its last operator, so it had ended."""
    ended = [stretches for stretches in found if stretches[-1].w2 <= until_ns]
    if whole and ended:
        return max(ended, key=lambda stretches: stretches[-1].w2)
    return max(found, key=lambda stretches: stretches[0].w1)


def shares(total_ns: int, costs_ns: Iterable[int]) -> list[int]:
    """A total in proportion to costs, in whole ns that add up to it; equal shares where nothing costs anything."""
    costs = list(costs_ns)
    if not sum(costs):
        costs = [1] * len(costs)
    whole = sum(costs)
    parts = [total_ns * cost // whole for cost in costs]
    for place in range(total_ns - sum(parts)):
        parts[place] += 1
    return parts
