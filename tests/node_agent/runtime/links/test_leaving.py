"""What leaves a node, and when: after the facts that explain it, and before an instance that takes long."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.core.shedding import refusals
from node_agent.host import network
from node_agent.host.clock import clock_domain, now_ns
from node_agent.host.trace_ring import DATA, WRITTEN, Ring
from node_agent.operators.registry import Registry
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import LONG_NS, Runtime
from node_agent.sdk import operator
from node_agent.wire import frames
from protos import records
from tests.node_agent.runtime.links.test_runtime_punctuation import Peer

MINUTE = 60 * 10**9
HASH = 1 << 60
Fact = tuple[str, int, int]  # kind, source, seq


def _plan(*costs_ns: int, emulate_cost_ns: int = 0) -> core.Plan:
    """Source `in` leads to operators of these costs in one unit; the last one's results go to output `out` and to node
    b. What comes from there on stream 1 goes back there on stream 2."""
    numbers = range(2, 2 + len(costs_ns))
    last = numbers[-1] + 2
    names = {1: "from_b", 2: "to_b", 3: "in"} | {number + 2: f"O{number}" for number in numbers}
    operators = [core.Operator(each, f"O{each}", "test.look", (each + 1,), each + 2, 1) for each in numbers]
    operators = [replace(each, cost_ns=cost_ns) for each, cost_ns in zip(operators, costs_ns, strict=True)]
    return core.Plan(
        "q", "a", 0, HASH, 1, "edf", 1,
        tuple(core.Stream(each, name, "json", False, MINUTE, producers=(1,) if each == 1 else ())
              for each, name in names.items()),
        (core.Source(1, "in", 3, max_age_ns=MINUTE),),
        (core.Operator(1, "O1", "pass", (1,), 2, 1), *operators),
        (core.Unit(1, (1,), MINUTE, MINUTE, (2,)), core.Unit(2, tuple(numbers), MINUTE, MINUTE, (last,))),
        (core.Output(1, "out", last, MINUTE),), ((2, 1), (last, 1)), (core.Peer(1, "b"),),
        emulate_cost_ns=emulate_cost_ns,
    )  # fmt: skip


def _published(ring: Ring) -> set[Fact]:
    """What outlives the runtime if it is killed now."""
    data = ring.memory[DATA : DATA + ring.cells[WRITTEN]]
    return {(records.KINDS[each.kind], each.source, each.seq) for each in records.unpack_records(data)}


@dataclass
class Watch:
    """Every frame that leaves over a socket, and every call of an operator, with the facts that were published by then.
    promised: by the call, the sequence numbers that stood in shared memory as taken over."""

    left: list[tuple[frames.Frame, set[Fact]]] = field(default_factory=list)
    calls: list[set[Fact]] = field(default_factory=list)
    promised: list[list[int]] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)  # by the call, how many tuples of the source
    kept: list[tuple[set[int], set[int]]] = field(default_factory=list)  # at a frame: admitted, and promised numbers
    held: list[bool] = field(default_factory=list)  # by the refusal that was told: whether some stood in no record

    def of(self, kind: type[Any]) -> Iterator[tuple[Any, set[Fact]]]:
        """The frames of a kind."""
        return (each for each in self.left if isinstance(each[0], kind))

    def outcomes(self) -> int:
        """How many tuples of the source were told of."""
        admitted = sum(len(frame.admitted) for frame, _ in self.of(frames.Ack))
        return admitted + sum(frame.link_seq > 0 for frame, _ in self.of(frames.Refused))


@contextmanager
def _watched(
    plan: core.Plan, folder: Path, monkeypatch: pytest.MonkeyPatch, b: str = "127.0.0.1:1"
) -> Iterator[tuple[Runtime, Watch]]:
    """b: where that node listens."""
    watch, prompt = Watch(), network._prompt

    def look(value: Any) -> Any:
        watch.calls.append(_published(ring))
        watch.promised.append([each.seq for each in ring.promised()])
        watch.acknowledged.append(watch.outcomes())
        return value

    class Watched:
        """A connection's socket."""

        def __init__(self, end: socket.socket) -> None:
            self._end, self._reader = prompt(end), frames.FrameReader()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._end, name)

        def send(self, data: bytes | bytearray) -> int:
            for frame in self._reader.feed(bytes(data)):
                watch.left.append((frame, _published(ring)))
                admitted = {seq for kind, source, seq in _published(ring) if (kind, source) == ("ADMITTED", 1)}
                watch.kept.append((admitted, {each.seq for each in ring.promised() if each.seq}))
                if isinstance(frame, frames.Refused):
                    watch.held.append(runtime.shared.refusals.held)
            return self._end.send(data)

    monkeypatch.setattr(network, "_prompt", Watched)
    with in_process(plan, folder, Registry(operators=[operator("test.look")(look)])) as runtime:
        ring = runtime.facts.ring
        (deployed,) = runtime.plans.by_hash.values()
        assert runtime.add_plan(deployed, ((1, "b", b),)) == ""
        yield runtime, watch


def _connected(runtime: Runtime, who: str) -> socket.socket:
    assert runtime.acceptor is not None
    end = socket.create_connection(runtime.acceptor.address)
    end.sendall(frames.encode_hello(frames.Hello(who, clock_domain(), 5)))
    return end


def _batch(*ages_ns: int, first: int = 1, source: int = 0, stream: int = 0, plan: int = 0) -> bytes:
    at_ns = now_ns()
    origins = [(source, source, seq, 0, at_ns - age_ns, at_ns - age_ns) for seq, age_ns in enumerate(ages_ns, 1)]
    return frames.encode_batch(first, now_ns, [frames.encode_tuple(each, stream, plan, b"1") for each in origins])


def _step_until(runtime: Runtime, done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        runtime.step(wait=False)
        assert time.monotonic() < until


def _admitted(seqs: Sequence[int]) -> set[Fact]:
    return {("ADMITTED", 1, seq) for seq in seqs}


@pytest.mark.parametrize("cost_ns", [1, LONG_NS], ids=["short", "long"])
def test_nothing_leaves_before_its_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost_ns: int) -> None:
    peer = Peer()
    with _watched(_plan(cost_ns), tmp_path, monkeypatch, peer.address) as (runtime, watch):
        peer.greet(runtime)
        with _connected(runtime, "sink:out"), _connected(runtime, "source:in") as source:
            _step_until(runtime, lambda: len(list(watch.of(frames.Hello))) == 3)  # one of them to b
            source.sendall(_batch(0, 2 * MINUTE, 0))
            _step_until(runtime, lambda: watch.outcomes() == 3 and len(peer.read(runtime, 2)) == 2)
            with _connected(runtime, "node:b") as node:
                node.sendall(_batch(0, source=9, stream=1, plan=HASH))
                _step_until(runtime, lambda: len(peer.read(runtime, 3)) == 3)
                _step_until(runtime, lambda: any(frame.upto == 1 for frame, _ in watch.of(frames.Ack)))
    assert [link_seq for frame, _ in watch.of(frames.Refused) if (link_seq := frame.link_seq)] == [2]
    for frame, facts in watch.of(frames.Refused):
        assert "REFUSED" in {kind for kind, *_ in facts}, frame
    for frame, facts in watch.of(frames.Ack):
        assert _admitted([each.seq for each in frame.admitted]) <= facts, frame
        assert frame.upto != 1 or ("RECEIVED", 9, 1) in facts, frame
    came = [(each, facts) for frame, facts in watch.of(frames.Batch) for each in frame.tuples]
    assert sorted(each.lineage[:3:2] for each, _ in came) == [(1, 1), (1, 1), (1, 2), (1, 2), (9, 1)]
    for each, facts in came:  # to sinks an instant is told
        assert ("OUTPUT" if each.at_ns else "SENT", *each.lineage[:3:2]) in facts, each


def test_refused_tuples_are_told_when_they_stand_in_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One record in 50 ms may be written, so the second tuple has to wait for its own."""
    monkeypatch.setattr(refusals, "BURST_RECORDS", 0)
    monkeypatch.setattr(refusals, "RECORD_NS", 50_000_000)
    with _watched(_plan(1), tmp_path, monkeypatch) as (runtime, watch), _connected(runtime, "source:in") as source:
        _step_until(runtime, lambda: any(watch.of(frames.Hello)))
        source.sendall(_batch(2 * MINUTE))
        _step_until(runtime, lambda: watch.outcomes() == 1)
        source.sendall(_batch(2 * MINUTE, first=2))
        _step_until(runtime, lambda: watch.outcomes() == 2)
    assert watch.held == [False, False]


def test_a_tuple_that_runs_before_it_is_acknowledged_is_promised_when_its_admission_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _watched(_plan(1), tmp_path, monkeypatch) as (runtime, watch), _connected(runtime, "source:in") as source:
        _step_until(runtime, lambda: any(watch.of(frames.Hello)))
        source.sendall(_batch(0))
        _step_until(runtime, lambda: watch.outcomes() == 1)
    assert (watch.promised, watch.acknowledged) == ([[1]], [0])
    assert _admitted([1]) <= watch.calls[0]


@pytest.mark.parametrize(
    ("costs_ns", "emulate_cost_ns", "long"),
    [
        ((LONG_NS - 1,), 0, False),
        ((LONG_NS,), 0, True),
        ((LONG_NS // 2, LONG_NS // 2 - 1), 0, False),
        ((LONG_NS // 2, LONG_NS // 2), 0, True),
        ((1,), LONG_NS, True),
        ((1,), LONG_NS - 1, False),
    ],
)
def test_only_an_instance_that_is_planned_to_take_long_waits_for_the_acknowledgement_of_its_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, costs_ns: tuple[int, ...], emulate_cost_ns: int, long: bool
) -> None:
    plan = _plan(*costs_ns, emulate_cost_ns=emulate_cost_ns)
    with _watched(plan, tmp_path, monkeypatch) as (runtime, watch), _connected(runtime, "source:in") as source:
        _step_until(runtime, lambda: any(watch.of(frames.Hello)))
        source.sendall(_batch(0))
        _step_until(runtime, lambda: watch.outcomes() == 1)
    assert watch.acknowledged[0] == long
    assert watch.promised[0] == [1]


def test_what_no_promise_can_say_is_acknowledged_before_any_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A promise says what was taken over. A refusal beside it cannot be promised, so both outcomes leave at once,
    however short the instance is: killed in it, the runtime would be asked for the refused tuple again."""
    with _watched(_plan(1), tmp_path, monkeypatch) as (runtime, watch), _connected(runtime, "source:in") as source:
        _step_until(runtime, lambda: any(watch.of(frames.Hello)))
        source.sendall(_batch(2 * MINUTE, 0))
        _step_until(runtime, lambda: bool(watch.calls))
    assert watch.acknowledged == [2]
    assert {("REFUSED", 1, 0)} | _admitted([1]) <= watch.calls[0]


@pytest.mark.parametrize("cost_ns", [1, LONG_NS], ids=["short", "long"])
def test_whenever_a_runtime_is_killed_what_it_has_admitted_is_not_admitted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost_ns: int
) -> None:
    """At everything that leaves, tuples to peers before acknowledgements, and after these are under way: they may be
    lost with the connection."""
    peer = Peer()
    with _watched(_plan(cost_ns), tmp_path, monkeypatch, peer.address) as (runtime, watch):
        peer.greet(runtime)
        with _connected(runtime, "source:in") as source, _connected(runtime, "node:b") as node:
            _step_until(runtime, lambda: len(list(watch.of(frames.Hello))) == 3)
            for first in (1, 3, 5):
                source.sendall(_batch(0, 0, first=first))
                node.sendall(_batch(0, source=8 + first, stream=1, plan=HASH, first=first))
                _step_until(runtime, lambda first=first: watch.outcomes() == first + 1)  # type: ignore[misc]
            _step_until(runtime, lambda: len(peer.read(runtime, 9)) == 9)
    assert len(watch.kept) > 6
    for admitted, promised in watch.kept:
        assert admitted == promised
