"""Follows the tuples of one lineage backwards through a trace, stage by stage. stage_times.py defines the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from protos import records as rec
from protos.mistake import Mistake
from protos.records import Output, Ran, Received, Record, Sent
from sim_vehicles.encounter.judgement import Stage
from sim_vehicles.error_codes import Code
from sim_vehicles.story.timeline.clocks import Offsets, UnknownOffsetError
from sim_vehicles.story.timeline.run_trace import Incarnation, Lineage, RunTrace, UnitView

Kind = TypeVar("Kind", bound=Record)
UNKNOWN_NS = 1 << 60  # an interval of origin that is wider says nothing: the clocks' offset was not known


class MissingRecordError(Exception):
    """The trace does not hold what the split needs; the text says which record is missing, the subject where."""

    def __init__(self, code: Code, text: str, subject: str = "") -> None:
        self.mistake = Mistake(code, text, subject=subject)
        super().__init__(text)


class LineageTrace:
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
            each
            for _, each in self._of(Output)
            if each.ordinal == ordinal and each.output in outputs and output in {None, outputs[each.output][0]}
        ]
        if not found:
            raise MissingRecordError("no_output_record", f"no OUTPUT record of tuple {self._name}.{ordinal}")
        last = min(found, key=lambda each: each.at_ns)
        if last.origin_hi_ns - last.origin_lo_ns > UNKNOWN_NS:
            raise MissingRecordError(
                "no_clock_record", "no CLOCK record from before the tuple: the offset of the clocks is not known"
            )
        self.latency_ns = last.latency.middle_ns
        self.uncertain_ns = last.latency.uncertain_ns
        self.deadline_ns = last.deadline_ns
        _, node, stream = outputs[last.output]
        return node, stream, ordinal, last.at_ns

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
                admitted = self._admitted(node)
                origin_ns = (admitted.origin_lo_ns + admitted.origin_hi_ns) // 2
                self._add("sensing", until_ns - origin_ns, node, keep=True)
                return
            maker = self._plan.makers.get(stream)
            if maker is None or maker.node != node:
                node, until_ns = self._crossed(node, stream, ordinal, until_ns)

    # -- one step back each

    def _ran(self, unit: UnitView, stream: int, ordinal: int, until_ns: int) -> tuple[int, int]:
        """Queue and execution of the instance that gave it; returns its own ordinal and release."""
        ordinal, stretches = self._instance(unit, stream, ordinal, until_ns)
        release_ns = stretches[0].release_ns
        ended_ns = min(until_ns, stretches[-1].end_ns)
        ran_ns = sum(min(each.end_ns, ended_ns) - each.start_ns for each in stretches if each.start_ns < ended_ns)
        queue_ns = ended_ns - release_ns - ran_ns
        if ran_ns < 0 or queue_ns < 0:
            raise MissingRecordError(
                "contradicting_records", f"the RAN records of unit {unit.label} at {unit.node} contradict one another"
            )
        self._add("handover", until_ns - ended_ns, unit.node, unit.operators[-1:])
        upto = unit.streams.index(stream) + 1
        operators, costs = unit.operators[:upto], unit.costs_ns[:upto]
        for name, ns in reversed(list(zip(operators, shares(ran_ns, costs), strict=True))):
            self._found.append(Stage("execution", unit.node, (name,), ns, shared_out=upto > 1))
        self._add("queue", queue_ns, unit.node, operators, keep=True)
        return ordinal, release_ns

    def _instance(self, unit: UnitView, stream: int, ordinal: int, until_ns: int) -> tuple[int, list[Ran]]:
        """The stretches, in order, of the instance that gave the tuple of `stream`, and the ordinal of its input.

        The output keeps the input's ordinal, or is one of several: then its parent's, up to four operators back.
        """
        mine = [record for one, record in self._of(Ran) if record.unit == unit.id and one.node == unit.node]
        for back in range(5):
            if back and not ordinal:
                break
            ordinal = (ordinal - 1) >> 8 if back else ordinal
            ran = [each for each in mine if each.ordinal == ordinal and each.start_ns <= until_ns]
            if ran:
                chosen = _chosen(instances(ran), stream == unit.streams[-1], until_ns)
                if chosen[-1].unfinished and stream == unit.streams[-1]:
                    break  # it went on to its last operator in a record that is not there
                return ordinal, chosen
        if any(record.unit == unit.id and one.node == unit.node for one, record in self._of(rec.Lost)):
            raise MissingRecordError(
                "failed_instance",
                f"unit {unit.label} at {unit.node} failed after it gave tuple {self._name}:"
                " a failed instance's record says neither release nor start",
                subject=unit.node,
            )
        raise MissingRecordError(
            "no_ran_record", f"no RAN record of unit {unit.label} at {unit.node} for tuple {self._name}", unit.node
        )

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
            raise missing or MissingRecordError(
                "no_trigger_record", f"no record of what triggered unit {unit.label} at {unit.node}", unit.node
            )
        return min(away_ns, key=lambda stream: away_ns[stream])

    def _there(self, node: str, stream: int, ordinal: int, until_ns: int) -> int:
        """When the tuple of that stream was at the node, by the record that says so."""
        unit = self._plan.makers.get(stream)
        if unit is not None and unit.node == node:
            _, stretches = self._instance(unit, stream, ordinal, until_ns)
            ended_ns = stretches[-1].end_ns
            return ended_ns if stream == unit.streams[-1] else min(until_ns, ended_ns)
        if self._plan.admitted.get(stream) == node:
            return self._admitted(node).at_ns
        return self._received(node, stream, ordinal, until_ns).at_ns

    def _arrived(self, node: str, stream: int, ordinal: int, until_ns: int) -> int:
        """The same, but not after what was done with it at `until_ns`.

        A live runtime stamps RECEIVED when it decodes and the release when it reads, some microseconds before.
        """
        return min(until_ns, self._there(node, stream, ordinal, until_ns))

    def _crossed(self, node: str, stream: int, ordinal: int, until_ns: int) -> tuple[str, int]:
        """The link that it came over; returns the node that sent it, and when by that node's clock."""
        received = self._received(node, stream, ordinal, until_ns)
        sender, name = self._plan.nodes.get(received.peer, "?"), self._plan.names.get(stream, str(stream))
        key = (self._plan.index[node], received.link_seq, stream, ordinal)
        sent = self._first(r for r in self._at(sender, Sent) if (r.peer, r.link_seq, r.stream, r.ordinal) == key)
        if sent is None:
            raise MissingRecordError(
                "no_sent_record", f"no SENT record of {name} from {sender} to {node} for tuple {self._name}", sender
            )
        arrived_ns = min(until_ns, received.at_ns)
        try:
            offset_ns = self._offsets.of(node, sender, arrived_ns)
        except UnknownOffsetError as error:
            raise MissingRecordError("no_clock_record", str(error)) from None
        if not self._offsets.same(node, sender):
            self.crossings.append(len(self._found))
        self._found.append(Stage("link", node, (), arrived_ns - sent.at_ns - offset_ns, from_node=sender))
        return sender, sent.at_ns

    # -- records

    def _received(self, node: str, stream: int, ordinal: int, until_ns: int) -> Received:
        """The one nearest to `until_ns`: a union may send several tuples of one lineage on one stream."""
        name = self._plan.names.get(stream, str(stream))
        found = [r for r in self._at(node, Received) if (r.stream, r.ordinal) == (stream, ordinal)]
        if not found:
            raise MissingRecordError(
                "no_received_record", f"no RECEIVED record of {name} at {node} for tuple {self._name}", node
            )
        return min(found, key=lambda r: abs(r.at_ns - until_ns))

    def _admitted(self, node: str) -> rec.Admitted:
        found = self._first(self._at(node, rec.Admitted))
        if found is None:
            raise MissingRecordError("no_admitted_record", f"no ADMITTED record at {node} for tuple {self._name}", node)
        return found

    def _first(self, found: Iterable[Kind]) -> Kind | None:
        """The earliest: a tuple that is sent again keeps its first instant."""
        return min(found, key=lambda record: record.at_ns, default=None)

    def _at(self, node: str, kind: type[Kind]) -> Iterator[Kind]:
        return (record for one, record in self._of(kind) if one.node == node)

    def _of(self, kind: type[Kind]) -> Iterator[tuple[Incarnation, Kind]]:
        return ((one, record) for one, record in self._records if isinstance(record, kind))

    def _add(self, stage: str, ns: int, node: str, operators: tuple[str, ...] = (), keep: bool = False) -> None:
        if ns or keep:
            self._found.append(Stage(stage, node, operators, ns))


def instances(ran: Iterable[Ran]) -> list[list[Ran]]:
    """RAN records of one unit and tuple as instances: one ends with the first record that does not say it goes on."""
    found: dict[int, list[list[Ran]]] = {}
    for record in sorted(ran, key=lambda each: each.start_ns):
        same = found.setdefault(record.release_ns, [[]])
        if same[-1] and not same[-1][-1].unfinished:
            same.append([])
        same[-1].append(record)
    return [stretches for same in found.values() for stretches in same]


def _chosen(found: list[list[Ran]], whole: bool, until_ns: int) -> list[Ran]:
    """The instance that gave what was there at `until_ns`. whole: by its last operator, so it had ended."""
    ended = [stretches for stretches in found if stretches[-1].end_ns <= until_ns]
    if whole and ended:
        return max(ended, key=lambda stretches: stretches[-1].end_ns)
    return max(found, key=lambda stretches: stretches[0].start_ns)


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
