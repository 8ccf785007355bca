"""Trace records as events of the Chrome trace format, which ui.perfetto.dev and chrome://tracing open.

A process per node, a track per core (place): its task instances as slices (ph X), linked along each tuple by flow
events (s, t, f), which lie at the beginning of the slice that they belong to. Beside it a track with results and
deadlines as instants. Sheds, losses and windows without a result are instants on the core's track; queue bytes, ready
instances and utilisation are counters; what travels is an async slice (b, e) at the sender, sent to received.
The tuples of a batch run at once: their slices lie beneath each other.
Times are microseconds since the first instant of the run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from coordinator.addresses import host_of
from coordinator.report.joined import moved
from coordinator.report.one_clock import OneClock
from coordinator.report.reader import Incarnation, Run
from protos import records as rec
from protos.records import FLAG, NO_REF, PLAN_EPOCH_MASK, Record

Event = dict[str, Any]
Lineage = tuple[int, int, int]
Step = tuple[int, int, int]  # start of a slice, incarnation and place of its record
FAR_LATENCY_NS = 1 << 50  # an origin is not known where a latency could be so long
GOES_ON = "tfe"  # phases of what began before: a tuple's arrows, a link
RESULTS = 1000  # added to a core's track number: its results and deadlines
COLOURS = {"met": "good", "late": "terrible", "undecidable": "bad"}


def us(ns: int) -> float:
    """Nanoseconds as microseconds: exact as they are written, for spans below a hundred days."""
    return ns / 1000


class Flows:
    """The slices of each tuple: which is its first, which its last. Tuples with one slice have no arrow."""

    def __init__(self) -> None:
        self._ends: dict[Lineage, tuple[Step, Step]] = {}

    def add(self, lineage: Lineage, step: Step) -> None:
        """In any order."""
        known = self._ends.get(lineage)
        self._ends[lineage] = (step, step) if known is None else (min(known[0], step), max(known[1], step))

    def phase(self, lineage: Lineage, step: Step) -> str:
        """s, t or f; empty: no arrow."""
        first, last = self._ends[lineage]
        if first == last:
            return ""
        return "s" if step == first else "f" if step == last else "t"


class Events:
    """Events of a run's records. zero_ns: the instant on the one clock that is 0 in the file."""

    def __init__(self, run: Run, epochs: Mapping[int, Mapping[int, int]], clock: OneClock, zero_ns: int) -> None:
        """epochs: by incarnation, the number of the plan that each plan epoch stands for."""
        self._run, self._plan, self._epochs = run, run.plan, epochs
        self._clock, self._flows, self._zero_ns = clock, Flows(), zero_ns
        hosts = list(dict.fromkeys(host_of(name) for _, name in sorted(self._plan.nodes.items())))
        self._process = {name: 1 + number for number, name in enumerate(hosts)}
        self._tracks = {number: (self._process[host_of(name)], 1 + number) for number, name in self._plan.nodes.items()}
        self._clocks = {one.node: one.clock for one in run.incarnations}
        self._loads: dict[int, tuple[int, int, int]] = {}  # by incarnation: at, busy, overhead of the last LOAD
        self._links = 0
        self.counts: dict[str, int] = {}  # events by kind; of flows and links, one each
        self._make: dict[int, Callable[[Incarnation, int, Record], Iterable[Event]]] = {
            rec.RAN: self._ran, rec.OUTPUT: self._output, rec.SHED: self._shed, rec.LOST: self._lost,
            rec.GAVE_UP: self._gave_up, rec.RECEIVED: self._received, rec.LOAD: self._load, rec.WINDOW: self._window,
        }  # fmt: skip

    def names(self) -> Iterator[Event]:
        """Processes and tracks."""
        for name, pid in self._process.items():
            yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"node {name}"}}
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
        for number, (pid, tid) in sorted(self._tracks.items()):
            place = self._plan.nodes[number]
            for track, name in ((tid, f"core {place}"), (tid + RESULTS, f"results of {place}")):
                yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": track, "args": {"name": name}}
                yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": track, "args": {"sort_index": track}}

    def of(self, one: Incarnation, place: int, record: Record) -> Iterator[Event]:
        """Of one record of the run, as it was read; of another plan's, nothing."""
        make = self._make.get(record.kind)
        mine = record if record.kind == rec.LOAD or make is None else self.own(one, record)
        if make is None or mine is None:
            return
        for event in make(one, place, mine):
            kind = str(event.get("cat", event["ph"]))
            self.counts[kind] = self.counts.get(kind, 0) + (event["ph"] not in GOES_ON)
            yield event

    def step(self, one: Incarnation, place: int, record: Record) -> None:
        """A record that will come: where tuples go has to be known before the first event is made."""
        if record.kind == rec.RAN and (r := self.own(one, record)) is not None:
            self._flows.add((r.source, r.epoch, r.seq), (self._clock.at(one.clock, r.w1), one.number, place))

    def own(self, one: Incarnation, record: Record) -> Record | None:
        """The record with the run's ids; None: it is of another plan."""
        number = self._epochs[one.number].get(record.flags & PLAN_EPOCH_MASK)
        return moved(record, number, self._plan) if number else None if number is None else record

    # -- parts of events

    def _ts(self, one: Incarnation, at_ns: int) -> float:
        return us(self._clock.at(one.clock, at_ns) - self._zero_ns)

    def _event(self, one: Incarnation, phase: str, name: str, kind: str, at_ns: int, **more: Any) -> Event:
        pid, tid = self._tracks[one.node]
        return {"ph": phase, "name": name, "cat": kind, "pid": pid, "tid": tid, "ts": self._ts(one, at_ns), **more}

    def _tuple(self, r: Record, ordinal: int) -> dict[str, Any]:
        stream = self._plan.sources.get(r.source, (0, -1))[1]
        window = self._plan.windows.get(r.source)
        source = window.name if window else self._plan.streams.get(stream, f"source {r.source}")
        return {"tuple": f"{r.source}/{r.epoch}/{r.seq}.{ordinal}", "source": source}

    def _unit(self, ref: int) -> str:
        return self._plan.units[ref].label if ref in self._plan.units else f"unit {ref}"

    def _stream(self, stream: int) -> str:
        return self._plan.streams.get(stream, f"stream {stream}")

    # -- kinds of records

    def _ran(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        start, lineage = self._clock.at(one.clock, r.w1), (r.source, r.epoch, r.seq)
        args = self._tuple(r, rec.ran_ordinal(r.last)) | {
            "release": self._ts(one, r.w0),
            "deadline": self._ts(one, r.w3),
            "wait_us": us(r.w1 - r.w0),
            "slack_us": us(r.w3 - r.w2),
            "outputs": sum(rec.ran_outputs(r.last, 4)),
        }
        if r.flags & FLAG:
            args["goes_on_later"] = True
        ran = self._event(one, "X", self._unit(r.ref), "ran", r.w1, dur=us(max(r.w2 - r.w1, 0)), args=args)
        yield ran
        if phase := self._flows.phase(lineage, (start, one.number, place)):
            flow = {"id": "/".join(map(str, lineage)), **({"bp": "e"} if phase == "f" else {})}
            yield self._event(one, phase, "tuple", "flow", r.w1, **flow)

    def _output(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        view = self._plan.outputs.get(r.ref)
        name = view.name if view else f"output {r.ref}"
        upper, lower = r.w0 - r.w1, r.w0 - r.w2
        verdict = "met" if upper <= r.w3 else "late" if lower > r.w3 else "undecidable"
        args = self._tuple(r, r.w4) | {"latency_us": [us(lower), us(upper)], "deadline_us": us(r.w3)}
        if verdict == "undecidable" and upper > FAR_LATENCY_NS:
            args.pop("latency_us")
        yield self._result(one, f"{name}: {verdict}", "result", r.w0, args | {"verdict": verdict}, COLOURS[verdict])
        if upper <= FAR_LATENCY_NS:
            yield self._result(one, f"deadline of {name}", "deadline", r.w1 + r.w3, self._tuple(r, r.w4), "grey")

    def _result(self, one: Incarnation, name: str, kind: str, at_ns: int, args: Event, colour: str) -> Event:
        event = self._event(one, "i", name, kind, at_ns, s="t", cname=colour, args=args)
        return event | {"tid": event["tid"] + RESULTS}

    def _instant(self, one: Incarnation, r: Record, name: str, kind: str, args: Event) -> Event:
        return self._event(one, "i", name, kind, r.w0, s="t", cname="terrible", args=args)

    def _shed(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        policy = rec.SHED_POLICIES[r.w1] if 0 < r.w1 < len(rec.SHED_POLICIES) else f"policy {r.w1}"
        args = self._tuple(r, r.w2) | {"cause": policy} | self._where(r, r.w3)
        if r.w4 and r.ref != NO_REF:
            args["result_of"] = self._plan.operators.get(r.w4, f"operator {r.w4}")
        yield self._instant(one, r, f"shed: {policy}", "shed", args)

    def _lost(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        cause = rec.CAUSES[r.w1] if 0 < r.w1 < len(rec.CAUSES) else f"cause {r.w1}"
        args = self._tuple(r, r.w2) | {"cause": cause}
        if r.flags & FLAG:
            args |= {"to": self._plan.nodes.get(r.ref, str(r.ref)), "stream": self._stream(r.w3)}
        else:
            args |= self._where(r, r.w3)
        yield self._instant(one, r, f"lost: {cause}", "lost", args)

    def _where(self, r: Record, stream: int) -> Event:
        return {"stream": self._stream(stream)} if r.ref == NO_REF else {"unit": self._unit(r.ref)}

    def _gave_up(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        args = self._tuple(r, r.w3) | {"to": self._plan.nodes.get(r.ref, str(r.ref)), "stream": self._stream(r.w2)}
        yield self._instant(one, r, "given up on a link", "gave_up", args)

    def _received(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        """At the sender's track; where the offsets' middle has it come before it left, it takes no time."""
        if r.ref not in self._tracks or r.ref not in self._clocks:
            return
        self._links += 1
        name = f"{self._plan.nodes[r.ref]} to {self._plan.nodes[one.node]}: {self._stream(r.w3)}"
        arrived = self._ts(one, r.w0)
        left = min(us(self._clock.at(self._clocks[r.ref], r.w2) - self._zero_ns), arrived)
        pid, tid = self._tracks[r.ref]
        for phase, ts, args in (("b", left, self._tuple(r, r.w4) | {"link_seq": r.w1}), ("e", arrived, {})):
            yield {
                "ph": phase, "name": name, "cat": "link", "id": f"link {self._links}", "pid": pid, "tid": tid, "ts": ts,
                "args": args,
            }  # fmt: skip

    def _load(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        name = self._plan.nodes[one.node]
        yield self._counter(one, r, f"queue of {name}", {"bytes": r.w1})
        yield self._counter(one, r, f"ready on {name}", {"instances": r.w2})
        before = self._loads.get(one.number)
        self._loads[one.number] = (r.w0, r.w3, r.w4)
        if before is not None and r.w0 > before[0]:
            spent = (r.w3 - before[1], r.w4 - before[2])
            operators, overhead = (1000 * each // (r.w0 - before[0]) / 10 for each in spent)
            yield self._counter(one, r, f"utilisation of {name} [%]", {"operators": operators, "overhead": overhead})

    def _counter(self, one: Incarnation, r: Record, name: str, values: Event) -> Event:
        return self._event(one, "C", name, "counter", r.w0, args=values)

    def _window(self, one: Incarnation, place: int, r: Record) -> Iterator[Event]:
        if r.w1 in {rec.WINDOW_ABANDONED, rec.WINDOW_SKIPPED}:
            state = rec.WINDOW_STATES[r.w1]
            cause = rec.WINDOW_CAUSES[r.w4] if 0 < r.w4 < len(rec.WINDOW_CAUSES) else ""
            args = {"operator": self._plan.operators.get(r.ref, f"operator {r.ref}"), "cause": cause, "number": r.seq}
            yield self._instant(one, r, f"window {state}{': ' if cause else ''}{cause}", "window", args)
