"""Trace records as events of the Chrome trace format, which ui.perfetto.dev and chrome://tracing open.

A process per node, a track per core (place): its task instances as slices (ph X), linked along each tuple by flow
events (s, t, f), which lie at the beginning of the slice that they belong to. Beside it a track with results and
deadlines as instants. Sheds, losses and windows without a result are instants on the core's track; queue bytes, ready
instances and utilisation are counters; what travels is an async slice (b, e) at the sender, sent to received.
The tuples of a batch run at once: their slices lie beneath each other.
Times are microseconds since the first instant of the run.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coordinator.fleet.addresses import host_of
from coordinator.report.facts.merged_plans import AnyRecord, moved
from coordinator.report.facts.one_clock import OneClock
from coordinator.report.facts.reader import Incarnation, Run
from protos import records as rec
from protos.latency import Verdict
from protos.records import Record

Event = dict[str, Any]
Lineage = tuple[int, int, int]
Step = tuple[int, int, int]  # start of a slice, incarnation and place of its record
FAR_LATENCY_NS = 1 << 50  # an origin is not known where a latency could be so long
GOES_ON = "tfe"  # phases of what began before: a tuple's arrows, a link
DRAWN = (rec.Ran, rec.Output, rec.Shed, rec.Lost, rec.GaveUp, rec.Received, rec.Window)  # and LOAD, of any plan
RESULTS = 1000  # added to a core's track number: its results and deadlines
COLOURS = {Verdict.MET: "good", Verdict.LATE: "terrible", Verdict.UNDECIDABLE: "bad"}


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
        for event in self._made(one, place, record):
            kind = str(event.get("cat", event["ph"]))
            self.counts[kind] = self.counts.get(kind, 0) + (event["ph"] not in GOES_ON)
            yield event

    def step(self, one: Incarnation, place: int, record: Record) -> None:
        """A record that will come: where tuples go has to be known before the first event is made."""
        if isinstance(record, rec.Ran) and (r := self._own(one, record)) is not None:
            self._flows.add((r.source, r.epoch, r.seq), (self._clock.at(one.clock, r.start_ns), one.number, place))

    def _own(self, one: Incarnation, record: AnyRecord) -> AnyRecord | None:
        """The record with the run's ids; None: it is of another plan."""
        number = self._epochs[one.number].get(record.plan_epoch_low)
        return moved(record, number, self._plan) if number else None if number is None else record

    def _made(self, one: Incarnation, place: int, record: Record) -> Iterable[Event]:
        found: Iterable[Event] = ()
        match self._own(one, record) if isinstance(record, DRAWN) else record:
            case rec.Load() as r:
                found = self._load(one, r)
            case rec.Ran() as r:
                found = self._ran(one, place, r)
            case rec.Output() as r:
                found = self._output(one, r)
            case rec.Shed() as r:
                found = self._shed(one, r)
            case rec.Lost() as r:
                found = self._lost(one, r)
            case rec.GaveUp() as r:
                found = self._gave_up(one, r)
            case rec.Received() as r:
                found = self._received(one, r)
            case rec.Window() as r:
                found = self._window(one, r)
        return found

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

    def _ran(self, one: Incarnation, place: int, r: rec.Ran) -> Iterator[Event]:
        start, lineage = self._clock.at(one.clock, r.start_ns), (r.source, r.epoch, r.seq)
        args = self._tuple(r, r.ordinal) | {
            "release": self._ts(one, r.release_ns),
            "deadline": self._ts(one, r.due_ns),
            "wait_us": us(r.start_ns - r.release_ns),
            "slack_us": us(r.due_ns - r.end_ns),
            "outputs": sum(rec.per_exit(r.outputs, 4)),
        }
        if r.unfinished:
            args["goes_on_later"] = True
        run_us = us(max(r.end_ns - r.start_ns, 0))
        yield self._event(one, "X", self._unit(r.unit), "ran", r.start_ns, dur=run_us, args=args)
        if phase := self._flows.phase(lineage, (start, one.number, place)):
            flow = {"id": "/".join(map(str, lineage)), **({"bp": "e"} if phase == "f" else {})}
            yield self._event(one, phase, "tuple", "flow", r.start_ns, **flow)

    def _output(self, one: Incarnation, r: rec.Output) -> Iterator[Event]:
        view = self._plan.outputs.get(r.output)
        name = view.name if view else f"output {r.output}"
        latency, verdict = r.latency, r.verdict
        tuple_ = self._tuple(r, r.ordinal)
        args = tuple_ | {"latency_us": [us(latency.least_ns), us(latency.most_ns)], "deadline_us": us(r.deadline_ns)}
        if verdict is Verdict.UNDECIDABLE and latency.most_ns > FAR_LATENCY_NS:
            args.pop("latency_us")
        yield self._result(one, f"{name}: {verdict}", "result", r.at_ns, args | {"verdict": verdict}, COLOURS[verdict])
        if latency.most_ns <= FAR_LATENCY_NS:
            due_ns = r.origin_lo_ns + r.deadline_ns
            yield self._result(one, f"deadline of {name}", "deadline", due_ns, tuple_, "grey")

    def _result(self, one: Incarnation, name: str, kind: str, at_ns: int, args: Event, colour: str) -> Event:
        event = self._event(one, "i", name, kind, at_ns, s="t", cname=colour, args=args)
        return event | {"tid": event["tid"] + RESULTS}

    def _instant(self, one: Incarnation, r: Record, name: str, kind: str, args: Event) -> Event:
        return self._event(one, "i", name, kind, r.at_ns, s="t", cname="terrible", args=args)

    def _shed(self, one: Incarnation, r: rec.Shed) -> Iterator[Event]:
        policy = rec.Shed.policy.text(r.policy)
        args = self._tuple(r, r.ordinal) | {"cause": policy} | self._where(r)
        if r.operator and not r.of_arrival:
            args["result_of"] = self._plan.operators.get(r.operator, f"operator {r.operator}")
        yield self._instant(one, r, f"shed: {policy}", "shed", args)

    def _lost(self, one: Incarnation, r: rec.Lost) -> Iterator[Event]:
        cause = rec.Lost.cause.text(r.cause)
        args = self._tuple(r, r.ordinal) | {"cause": cause} | (self._way(r) if r.never_left else self._where(r))
        yield self._instant(one, r, f"lost: {cause}", "lost", args)

    def _where(self, r: rec.Shed | rec.Lost) -> Event:
        return {"stream": self._stream(r.stream)} if r.of_arrival else {"unit": self._unit(r.unit)}

    def _way(self, r: rec.GaveUp | rec.Lost) -> Event:
        return {"to": self._plan.nodes.get(r.peer, str(r.peer)), "stream": self._stream(r.stream)}

    def _gave_up(self, one: Incarnation, r: rec.GaveUp) -> Iterator[Event]:
        yield self._instant(one, r, "given up on a link", "gave_up", self._tuple(r, r.ordinal) | self._way(r))

    def _received(self, one: Incarnation, r: rec.Received) -> Iterator[Event]:
        """At the sender's track; where the offsets' middle has it come before it left, it takes no time."""
        if r.peer not in self._tracks or r.peer not in self._clocks:
            return
        self._links += 1
        name = f"{self._plan.nodes[r.peer]} to {self._plan.nodes[one.node]}: {self._stream(r.stream)}"
        arrived = self._ts(one, r.at_ns)
        left = min(us(self._clock.at(self._clocks[r.peer], r.sent_ns) - self._zero_ns), arrived)
        pid, tid = self._tracks[r.peer]
        for phase, ts, args in (("b", left, self._tuple(r, r.ordinal) | {"link_seq": r.link_seq}), ("e", arrived, {})):
            yield {
                "ph": phase, "name": name, "cat": "link", "id": f"link {self._links}", "pid": pid, "tid": tid, "ts": ts,
                "args": args,
            }  # fmt: skip

    def _load(self, one: Incarnation, r: rec.Load) -> Iterator[Event]:
        name = self._plan.nodes[one.node]
        yield self._counter(one, r, f"queue of {name}", {"bytes": r.queue_bytes})
        yield self._counter(one, r, f"ready on {name}", {"instances": r.ready})
        before = self._loads.get(one.number)
        self._loads[one.number] = (r.at_ns, r.busy_ns, r.overhead_ns)
        if before is not None and r.at_ns > before[0]:
            spent = (r.busy_ns - before[1], r.overhead_ns - before[2])
            operators, overhead = (1000 * each // (r.at_ns - before[0]) / 10 for each in spent)
            yield self._counter(one, r, f"utilisation of {name} [%]", {"operators": operators, "overhead": overhead})

    def _counter(self, one: Incarnation, r: Record, name: str, values: Event) -> Event:
        return self._event(one, "C", name, "counter", r.at_ns, args=values)

    def _window(self, one: Incarnation, r: rec.Window) -> Iterator[Event]:
        if r.state in {rec.WINDOW_ABANDONED, rec.WINDOW_SKIPPED}:
            state = rec.Window.state.text(r.state)
            cause = rec.WINDOW_CAUSES[r.cause] if 0 < r.cause < len(rec.WINDOW_CAUSES) else ""
            operator = self._plan.operators.get(r.operator, f"operator {r.operator}")
            args = {"operator": operator, "cause": cause, "number": r.seq}
            yield self._instant(one, r, f"window {state}{': ' if cause else ''}{cause}", "window", args)
