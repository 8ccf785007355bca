"""Marks in the runtime: what a link owes, what a peer may tell, how old a counted tuple may be, heartbeats."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node_agent.core import plan as core
from node_agent.core.engine.engine import Engine
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from node_agent.host.clock import clock_domain, now_ns
from node_agent.link.arrived import Arrived, Lineage
from node_agent.link.limits import LinkError
from node_agent.link.receiver import Inbox
from node_agent.link.sender import Sender
from node_agent.runtime.deployments.deployed_plan import Deployed, EngineSlot
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links import peer_link
from node_agent.runtime.links.pending_punctuation import MOST_RANGES, PendingPunctuation
from node_agent.runtime.links.source_role import SourceRole
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames
from node_agent.wire.punctuation_frames import (
    MOST_NUMBER,
    MOST_REMOVED,
    encode_punctuation,
    feeders,
    read_punctuation,
)
from protos import records
from tests.extension_modules import only_python
from tests.node_agent.core.simulated.window_node import window, windowed

SECOND = 10**9
MS = 10**6
BOOTS = count(1)
Told = tuple[int, int, int, int, int, int]  # source, epoch, upto, first, oldest origin, instant


def _plan(hash_: int = 1 << 60, epoch: int = 1, **source: Any) -> core.Plan:
    """A counted source on `a`, whose stream goes to node `b`; a stream of the same kind comes from `b`."""
    counted: dict[str, Any] = {"marked": True, "counted": True, "deadline_ns": SECOND}
    return core.Plan(
        "q", "a", 0, hash_, epoch, "edf", 1,
        (core.Stream(1, "in", "json", **counted), core.Stream(2, "other", "json", producers=(1,), **counted),
         core.Stream(3, "plain", "json", producers=(1,))),
        (core.Source(1, "in", 1, **{"max_age_ns": 100 * MS, "beat_ns": 10 * MS, **source}),),
        (), (), (), ((1, 1),), (core.Peer(1, "b"),),
    )  # fmt: skip


class Beaten:
    """The engine's side of heartbeats, for those who only look at when they come."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        only_python()
        self.told: list[Told] = []
        monkeypatch.setattr(Engine, "heartbeat", self._beat)

    def _beat(self, at_ns: int, loaded: Any, source: int, epoch: int, upto: int, first: int, origin_ns: int) -> None:
        self.told.append((source, epoch, upto, first, origin_ns, at_ns))


class Peer:
    """Node `b`: listens, greets, grants credit when told, and keeps what comes."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.came: list[Arrived] = []

    def greet(self, runtime: Runtime) -> None:
        """Until the hello has arrived there."""
        runtime.step(wait=False)
        while not select.select([self.listener], [], [], 0)[0]:
            runtime.step(wait=False)
        self.end, _ = self.listener.accept()
        self.end.setblocking(False)
        self.reader = frames.FrameReader()
        self.end.sendall(frames.encode_hello(frames.Hello("node:b", "elsewhere", 9, credit_bytes=1 << 20)))
        while not runtime.outbox.links["b"].sender.connected:
            runtime.step(wait=False)

    def read(self, runtime: Runtime, least: int) -> list[Arrived]:
        """Until so many tuples and marks have come in all; each batch is acknowledged."""
        while len(self.came) < least:
            runtime.step(wait=False)
            try:
                data = self.end.recv(1 << 16)
            except BlockingIOError:
                continue
            assert data, "the link was closed"
            for frame in self.reader.feed(data):
                if isinstance(frame, frames.Batch):
                    self.came += frame.tuples
                    self.end.sendall(frames.encode_ack(frame.first + len(frame.tuples) - 1, 1 << 20))
        return self.came


@contextmanager
def _linked(tmp_path: Path) -> Iterator[tuple[Runtime, Peer]]:
    peer = Peer()
    with in_process(_plan(beat_ns=0), tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()
        assert runtime.add_plan(deployed, ((1, "b", peer.address),)) == ""
        yield runtime, peer
    peer.listener.close()


def _send(runtime: Runtime, seq: int, payload: Any, lo_ns: int = 0, hi_ns: int = 0) -> None:
    (deployed,) = runtime.plans.by_hash.values()
    at_ns = now_ns()
    lineage = (1, 1, seq, 0, lo_ns or at_ns, hi_ns or at_ns)
    runtime.outbox.send(at_ns, deployed.loaded, 1, 1, lineage, payload)


def _kinds(runtime: Runtime) -> list[str]:
    runtime.facts.publish()
    found = records.unpack_records(runtime.facts.ring.take(1 << 24))
    return [records.KINDS[record.kind] for record in found if record.kind in {records.SENT, records.LOST}]


def test_numbers_in_a_row_are_owed_as_one_range_and_others_apart() -> None:
    owed, key = PendingPunctuation(), (cast(Deployed, object()), 1, 1, 1, 1)
    for seq, lo_ns in ((3, 30), (4, 10), (6, 60), (7, 70)):
        owed.lost(key, seq, (1, 1, seq, 0, lo_ns, lo_ns + 5))
    owed.lost(key, 8, (1, 1, 20, 0, 50, 90))
    assert owed
    assert [(first, lineage) for _, first, lineage in owed.take_ranges()] == [
        (3, (1, 1, 4, 0, 10, 35)),
        (6, (1, 1, 20, 0, 50, 90)),
    ]
    assert not owed
    for seq in range(0, 4 * MOST_RANGES, 2):
        owed.lost(key, seq, (1, 1, seq, 0, seq, seq))
    kept = [first for _, first, _ in owed.take_ranges()]
    assert kept == list(range(4 * MOST_RANGES - 2 * MOST_RANGES, 4 * MOST_RANGES, 2))


@pytest.mark.parametrize("mark", [ABSENCE, Removal(3), Removal(2, True), Removal(3), Progress(1)], ids=str)
@pytest.mark.parametrize("ordinal", [0, 7])
def test_a_mark_is_read_as_it_was_written(mark: Any, ordinal: int) -> None:
    """One that is about several numbers is about no single result."""
    one = mark is ABSENCE or getattr(mark, "first", 0) == 3
    lineage = (1, 2, 3, ordinal if one else 0, 40, 50)
    reader = frames.FrameReader()
    list(reader.feed(frames.encode_hello(frames.Hello("node:b", "x", 1))))
    data = frames.encode_batch(1, 7, [encode_punctuation(lineage, 5, 8, mark)])
    (batch,) = reader.feed(data)
    assert isinstance(batch, frames.Batch)
    (arrived,) = batch.tuples
    assert arrived.lineage == lineage
    same, other = (read_punctuation("node:b", arrived, frozenset({5}), clock) for clock in (True, False))
    assert repr(same) == repr(mark)
    assert not getattr(other, "exact", False)


def test_what_a_peer_must_not_tell_is_refused() -> None:
    def arrived(mark: int, seq: int, first: int) -> Arrived:
        return Arrived((1, 1, seq, 0, 0, 0), 5, 8, b"", True, 0, mark, first)

    for mark in (frames.REMOVED, frames.EXACT, frames.QUIET):
        with pytest.raises(LinkError, check=lambda error: error.counter == "mark_not_allowed"):
            read_punctuation("node:b", arrived(mark, 3, 2), frozenset({4}), True)
    with pytest.raises(LinkError, check=lambda error: error.counter == "mark_range"):
        read_punctuation("node:b", arrived(frames.REMOVED, MOST_REMOVED, 0), frozenset({5}), True)
    assert isinstance(
        read_punctuation("node:b", arrived(frames.REMOVED, MOST_REMOVED, 1), frozenset({5}), True), Removal
    )
    assert isinstance(read_punctuation("node:b", arrived(frames.QUIET, 1 << 40, 1), frozenset({5}), True), Progress)


def test_a_heartbeat_does_not_hide_the_tuple_of_its_number_after_a_restart() -> None:
    """The lineage of a mark is no tuple's: a new incarnation that sends the tuple is heard."""

    def arrived(seq: int, mark: int) -> Arrived:
        return Arrived((1, 1, seq, 0, 0, 0), 5, 8, b"", bool(mark), 0, mark, 1 if mark else 0)

    inbox = Inbox()
    old = inbox.hello("node:b", 1, alone=True)
    assert len(old.on_batch(1, [arrived(1, 0), arrived(2, frames.QUIET), arrived(2, frames.QUIET)])) == 3
    new = inbox.hello("node:b", 2, alone=True)
    again = new.on_batch(1, [arrived(1, 0), arrived(2, frames.QUIET), arrived(2, 0), arrived(3, 0)])
    assert [(item.lineage[2], item.mark) for item in again] == [(2, frames.QUIET), (2, 0), (3, 0)]


def test_marks_leave_no_records_and_one_heartbeat_waits_at_a_time(tmp_path: Path) -> None:
    with _linked(tmp_path) as (runtime, peer):
        _kinds(runtime)
        _send(runtime, 1, 7)
        for upto in range(2, 6):
            _send(runtime, upto, Progress(1), now_ns() - SECOND)
        _send(runtime, 9, Removal(6))
        assert len(runtime.outbox.links["b"].sender) == 3
        peer.greet(runtime)
        came = peer.read(runtime, 4)
        assert [(each.lineage[2], each.mark, each.first) for each in came] == [
            (1, 0, 0),
            (2, frames.QUIET, 1),
            (9, frames.REMOVED, 6),
            (5, frames.QUIET, 1),
        ]
        assert _kinds(runtime) == ["SENT"]
        (deployed,) = runtime.plans.by_hash.values()
        while deployed.held:
            runtime.step(wait=False)


def test_what_a_full_link_loses_is_told_as_removed_when_it_can_take_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_link, "Sender", lambda facts, **given: Sender(facts, max_tuples=3, **given))
    with _linked(tmp_path) as (runtime, peer):
        base_ns = now_ns()
        _kinds(runtime)
        for seq in range(1, 8):
            _send(runtime, seq, 7 if seq != 5 else ABSENCE, base_ns + seq, base_ns + seq)
        _send(runtime, 8, Removal(8), base_ns + 8, base_ns + 9)
        _send(runtime, 9, Progress(1), base_ns + 9, base_ns + 9)
        assert _kinds(runtime) == ["LOST"] * 3  # 4, 6 and 7: the others are marks
        assert runtime.shared.counters["link_full"] == 3, "as many as the records tell of"
        peer.greet(runtime)
        came = peer.read(runtime, 5)
        assert [(each.lineage[2], each.mark, each.first) for each in came[:3]] == [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
        told = {(each.mark, each.first): each.lineage for each in came[3:]}
        assert told[frames.REMOVED, 4] == (1, 1, 8, 0, base_ns + 4, base_ns + 9)
        assert told[frames.QUIET, 1][2] == 9


def test_what_is_no_longer_in_time_is_told_as_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node_agent.runtime.links.outbox.LEAST_NS", 0)
    with _linked(tmp_path) as (runtime, peer):
        for seq in (1, 2):
            _send(runtime, seq, 7, 1, 1)  # as old as the clock
        peer.greet(runtime)
        (mark,) = peer.read(runtime, 1)
        assert _kinds(runtime).count("LOST") == runtime.shared.counters["tuples_given_up"] == 2
        assert (mark.mark, mark.first, mark.lineage) == (frames.REMOVED, 1, (1, 1, 2, 0, 1, 1))


def test_what_cannot_be_encoded_is_counted_as_lost(tmp_path: Path) -> None:
    with _linked(tmp_path) as (runtime, _):
        _send(runtime, 1, object())
        assert _kinds(runtime) == ["LOST"] and runtime.shared.counters["lost.encode"] == 1


def _source(runtime: Runtime, clock: str, boot: int = 5) -> socket.socket:
    assert runtime.acceptor is not None
    end = socket.create_connection(runtime.acceptor.address)
    end.sendall(frames.encode_hello(frames.Hello("source:in", clock, boot)))
    return end


def _outcome(runtime: Runtime, end: socket.socket, origin_ns: int) -> frames.Frame:
    lineage: Lineage = (0, 0, 0, 0, origin_ns, origin_ns)
    end.sendall(frames.encode_batch(1, now_ns(), [frames.encode_tuple(lineage, 0, 0, b"1")]))
    end.setblocking(False)
    reader = frames.FrameReader()
    while True:
        runtime.step(wait=False)
        try:
            found = list(reader.feed(end.recv(1 << 16)))
        except BlockingIOError:
            continue
        for frame in found:
            if isinstance(frame, frames.Refused) or (isinstance(frame, frames.Ack) and frame.upto):
                return frame


@pytest.mark.parametrize(
    ("clock", "age_ns", "why"),
    [
        ("same", 0, ""),
        ("same", 3600 * SECOND, "at least"),
        ("other", 0, "not known before both clocks have been compared"),
    ],
)
def test_a_counted_tuple_has_to_be_young_for_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str, age_ns: int, why: str
) -> None:
    Beaten(monkeypatch)
    with in_process(_plan(max_age_ns=60 * SECOND), tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()
        runtime.add_plan(deployed, ((1, "b", "127.0.0.1:1"),))
        with _source(runtime, clock_domain() if clock == "same" else "elsewhere") as end:
            outcome = _outcome(runtime, end, now_ns() - age_ns)
        if why:
            assert isinstance(outcome, frames.Refused)
            assert why in outcome.why
        else:
            assert isinstance(outcome, frames.Ack)


@pytest.mark.parametrize(
    ("least_ns", "most_ns", "why"),
    [
        (100 * MS, 100 * MS, ""),
        (100 * MS, 100 * MS + 1, "may be 100.0 ms old, at most 100 ms are allowed"),
        (100 * MS + 1, 102 * MS, "at least 100.0 ms old, at most 100 ms are allowed"),
    ],
)
def test_a_tuple_may_be_as_old_as_its_source_allows_and_not_a_nanosecond_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_ns: int, most_ns: int, why: str
) -> None:
    """At an instant that is told, as a batch of one tuple of that age."""
    Beaten(monkeypatch)
    with in_process(_plan(max_age_ns=100 * MS), tmp_path) as runtime:
        acceptor = runtime.acceptor
        assert acceptor is not None
        with _source(runtime, clock_domain()):
            while not (found := [each.role for each in acceptor._accepted if isinstance(each.role, SourceRole)]):
                runtime.step(wait=False)
            at_ns = now_ns()
            lineage = (0, 0, 0, 0, at_ns - most_ns, at_ns - least_ns)
            found[0].on_batch(at_ns, frames.Batch(1, at_ns, (Arrived(lineage, 0, 0, b"1", False, 0),)))
            assert [each or "" for *_, each in found[0].outcome_log.take()] == [why]


def test_no_client_feeds_windows(tmp_path: Path) -> None:
    plan = _plan(beat_ns=0)
    with in_process(replace(plan, sources=(replace(plan.sources[0], window=3),)), tmp_path) as runtime:
        assert runtime.plans.source("in") is None


def test_heartbeats_come_with_the_commit_and_once_more_after_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beaten = Beaten(monkeypatch)
    with in_process(_plan(), tmp_path) as runtime:
        seqs, told = runtime.context.seqs, beaten.told
        runtime.tick(now_ns())
        assert [each[:4] for each in told] == [(1, 1, 1, 1)]
        assert told[0][4] == told[0][5] - 100 * MS
        due_ns = runtime.heartbeats.due_ns
        assert due_ns == told[0][5] + 10 * MS
        seqs[1] = 5
        runtime.tick(due_ns - 1)
        runtime.tick(due_ns)
        assert [each[:4] for each in told[1:]] == [(1, 1, 6, 1)]
        (old,) = runtime.plans.by_hash.values()
        new = _plan(2 << 60, 2)
        assert runtime.plans.load(new, "2" * 64).state != old.state
        before_ns = now_ns()
        runtime.plans.commit("2" * 64)
        after_ns = now_ns()
        seqs[1] = 8  # under the new one
        runtime.tick(due_ns + 1)
        assert [each[:4] for each in told[2:]] == [(1, 1, 6, 1), (1, 1, 9, 6)]
        assert before_ns <= told[2][4] + 100 * MS <= after_ns
        assert told[3][4] == due_ns + 1 - 100 * MS
        runtime.tick(runtime.heartbeats.due_ns)
        assert [each[:4] for each in told[4:]] == [(1, 1, 9, 6)]


def test_a_spoilt_window_is_told_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = SimpleNamespace(why="field 'speed' is no number: 'fast'")
    windowed = SimpleNamespace(state=state, name="W")
    state.newest = windowed
    with in_process(_plan(beat_ns=0), tmp_path) as runtime:
        lane = cast(EngineSlot, SimpleNamespace(engine=SimpleNamespace(windows=SimpleNamespace(operators=[windowed]))))
        for _ in range(2):
            runtime.plans.announcer.spoilt([lane])
        assert runtime.shared.counters["windows_spoilt.W"] == 1
    assert "windows of W are lost: field 'speed' is no number: 'fast'" in capsys.readouterr().err


def test_a_source_with_another_id_in_the_next_plan_goes_on_with_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beaten = Beaten(monkeypatch)
    plan = _plan()
    one, other = plan.sources[0], replace(plan.sources[0], id=2, name="other")
    with in_process(replace(plan, sources=(one, other)), tmp_path) as runtime:
        runtime.tick(now_ns())
        runtime.context.seqs |= {1: 100, 2: 40}
        swapped = (replace(one, id=2), replace(other, id=1), replace(one, id=3, name="new"))
        runtime.plans.load(replace(plan, hash=2 << 60, epoch=2, sources=swapped), "2" * 64)
        runtime.plans.commit("2" * 64)
        del beaten.told[:]
        runtime.tick(now_ns())
        assert [each[:4] for each in beaten.told[:2]] == [
            (1, 1, 101, 1),
            (2, 1, 41, 1),
        ]  # the last ones of the old plan
        assert [each[:4] for each in beaten.told[2:]] == [(2, 1, 101, 101), (1, 1, 101, 101), (3, 1, 1, 1)]


def test_a_promise_to_windows_holds_under_the_next_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It allows a greater age, but windows that are kept may have closed."""
    beaten = Beaten(monkeypatch)
    with in_process(_plan(max_age_ns=20 * MS), tmp_path) as runtime:
        runtime.tick(now_ns())
        promised_ns = beaten.told[-1][4]
        deployed = runtime.plans.load(_plan(2 << 60, 2, max_age_ns=60 * SECOND), "2" * 64)
        runtime.add_plan(deployed, ((1, "b", "127.0.0.1:1"),))
        runtime.plans.commit("2" * 64)
        runtime.tick(now_ns())
        for origin_ns, kind in ((promised_ns - 1, frames.Refused), (now_ns() - MS, frames.Ack)):
            with _source(runtime, clock_domain(), 5 + (kind is frames.Ack)) as end:
                outcome = _outcome(runtime, end, origin_ns)
            assert isinstance(outcome, kind)
            if isinstance(outcome, frames.Refused):
                assert "nothing as old as that comes" in outcome.why


def _told(runtime: Runtime, data: bytes, peer: str = "b") -> frames.Frame:
    """What the runtime answers to a mark of a peer: Ack, or Refused."""
    assert runtime.acceptor is not None
    with socket.create_connection(runtime.acceptor.address) as end:
        end.sendall(
            frames.encode_hello(frames.Hello(f"node:{peer}", clock_domain(), next(BOOTS)))
            + frames.encode_batch(1, 1, [data])
        )
        end.setblocking(False)
        reader = frames.FrameReader()
        while True:
            runtime.step(wait=False)
            try:
                found = list(reader.feed(end.recv(1 << 16)))
            except BlockingIOError:
                continue
            for frame in found:
                if isinstance(frame, frames.Refused) or (isinstance(frame, frames.Ack) and frame.upto):
                    return frame


@pytest.mark.parametrize("kind", [frames.FILTERED, frames.REMOVED, frames.QUIET])
def test_numbers_that_no_source_comes_to_are_refused(tmp_path: Path, kind: int) -> None:
    """Windows by count add those of incarnations; records have 63 bits."""
    with in_process(_plan(beat_ns=0), tmp_path) as runtime:
        for number, answer in ((MOST_NUMBER - 1, frames.Ack), (MOST_NUMBER, frames.Refused)):
            mark: Any = {frames.FILTERED: ABSENCE, frames.REMOVED: Removal(number), frames.QUIET: Progress(1)}[kind]
            assert isinstance(_told(runtime, encode_punctuation((1, 1, number, 0, 0, 0), 2, 1 << 60, mark)), answer)


@pytest.mark.parametrize("mark", [ABSENCE, Removal(1), Progress(1)], ids=str)
def test_nothing_is_told_of_the_future(tmp_path: Path, mark: Any) -> None:
    """A peer may say anything of its own source, but windows do not run ahead of the clock."""
    with in_process(_plan(beat_ns=0), tmp_path) as runtime:
        for number, ahead_ns, answer in ((1, 0, frames.Ack), (2, 3600 * SECOND, frames.Refused)):
            origin_ns = now_ns() + ahead_ns
            data = encode_punctuation((1, 1, number, 0, origin_ns, origin_ns), 2, 1 << 60, mark)
            assert isinstance(_told(runtime, data), answer)


def test_a_peer_tells_of_no_source_that_does_not_come_by_its_stream(tmp_path: Path) -> None:
    """Two sources come to a window by two streams, one of which passes an operator here."""
    plan = windowed(window(feeds=((1, 0), (2, 1))))
    peers = {1: (1,), 5: (), 6: (2,)}
    streams = tuple(replace(each, producers=peers.get(each.id, ())) for each in plan.streams)
    plan = replace(
        plan, streams=streams, node="a", hash=1 << 60, epoch=1, peers=(core.Peer(1, "b"), core.Peer(2, "c")),
        sources=plan.sources[1:2], operators=tuple(_runs(each) for each in plan.operators if each.id != 4),
        units=tuple(each for each in plan.units if each.id != 4),
    )  # fmt: skip
    assert feeders(plan) == {1: {1}, 6: {2}}
    with in_process(plan, tmp_path) as runtime:
        for source, stream, peer, kind in (
            (1, 1, "b", frames.Ack),
            (2, 1, "b", frames.Refused),
            (2, 6, "c", frames.Ack),
        ):
            data = encode_punctuation((source, 1, 3, 0, 0, 0), stream, 1 << 60, Removal(3))
            assert isinstance(_told(runtime, data, peer), kind)


def _runs(operator: core.Operator) -> core.Operator:
    """The operator, of a kind that is installed."""
    return replace(operator, run="pass") if operator.run == "filter" else replace(operator, with_json='{"n": "count"}')
