"""Sender and receiver against a network that loses connections: nothing in time is lost, nothing comes twice."""

import re
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.link.arrived import Arrived
from node_agent.link.backoff import Backoff
from node_agent.link.fence import AWAY_NS
from node_agent.link.limits import (
    BATCH_OVERHEAD_BYTES,
    MAX_BATCH_TUPLES,
    MAX_FRAME_BYTES,
    TUPLE_OVERHEAD_BYTES,
    LinkError,
)
from node_agent.link.receiver import Acknowledgement, Inbox, Memory, Receiver, share_credit
from node_agent.link.sender import Outgoing, Sender
from node_agent.wire.frames import MAX_WHY_CHARS
from tests.sampling import examples

FOREVER = 1 << 60


class Facts:
    def __init__(self) -> None:
        self.sents: list[tuple[int, Any]] = []
        self.ackeds: list[int] = []
        self.gave_ups: list[tuple[int, Any]] = []

    def sent(self, at_ns: int, link_seq: int, tag: Any) -> None:
        self.sents.append((link_seq, tag))

    def acked(self, at_ns: int, upto: int) -> None:
        self.ackeds.append(upto)

    def gave_up(self, at_ns: int, link_seq: int, tag: Any) -> None:
        self.gave_ups.append((link_seq, tag))


def arrived(number: int, stream: int = 1, plan: int = 7) -> Arrived:
    return Arrived((1, 1, number, 0, 0, 0), stream, plan, b"", False, 0)


def _told(ack: Acknowledgement | None) -> tuple[int, int]:
    assert ack is not None
    return ack.upto, ack.credit_bytes


def unpack(out: Outgoing) -> list[Arrived]:
    return [arrived(int.from_bytes(data[:4], "big")) for data in out.tuples]


def data_of(number: int, size: int = 10) -> bytes:
    return number.to_bytes(4, "big").ljust(size, b".")


def polled(sender: Sender, at_ns: int) -> list[Outgoing]:
    batches = []
    while (out := sender.poll(at_ns)) is not None:
        batches.append(out)
    return batches


class Network:
    """One direction, in order per connection. Cutting it loses what is under way, either way; abandoning it loses the
    acknowledgements only: the bytes still come, beside those of the next connection."""

    def __init__(self, credit: int, ack_every: int) -> None:
        self.facts = Facts()
        self.sender = Sender(self.facts, max_bytes=4000, max_tuples=200, backoff=Backoff())
        self.inbox = Inbox(ack_every=ack_every)
        self.receiver: Receiver | None = None
        self.credit = credit
        self.forward: deque[Outgoing] = deque()
        self.backward: deque[Any] = deque()
        self.stale: deque[Outgoing] = deque()
        self.delivered: list[int] = []
        self.now = 0

    def connect(self) -> None:
        if self.sender.connected:
            return
        self.receiver = self.inbox.hello("node:a", 1, alone=True)
        hello = self.receiver.on_hello(self.credit)
        self.sender.on_connected(self.now, 99, hello.upto, hello.credit_bytes)

    def cut(self) -> None:
        if self.sender.connected:
            self.sender.on_disconnected(self.now)
        self.forward.clear()
        self.backward.clear()

    def abandon(self) -> None:
        self.stale.extend(self.forward)
        self.cut()

    def arrive_late(self) -> None:
        if self.stale and self.receiver:
            out = self.stale.popleft()
            self.delivered += [item.lineage[2] for item in self.receiver.on_batch(out.first, unpack(out))]

    def write(self) -> None:
        self.forward.extend(polled(self.sender, self.now))

    def arrive(self) -> None:
        if self.forward and self.receiver:
            out = self.forward.popleft()
            self.delivered += [item.lineage[2] for item in self.receiver.on_batch(out.first, unpack(out))]
            ack = self.receiver.ack(self.credit, drained=not self.forward)
            if ack:
                self.backward.append(ack)

    def acknowledge(self) -> None:
        if self.backward:
            ack = self.backward.popleft()
            self.sender.on_ack(self.now, ack.upto, ack.credit_bytes)


ACTIONS = st.sampled_from(
    ["offer", "offer", "offer", "connect", "cut", "abandon", "write", "arrive", "arrive_late", "acknowledge", "later"]
)


@settings(max_examples=examples(300, 4), deadline=None)
@given(
    st.lists(st.tuples(ACTIONS, st.integers(0, 300)), max_size=120),
    st.integers(1, 400),
    st.integers(1, 8),
)
def test_no_tuple_in_time_is_lost_none_comes_twice_and_order_is_kept(
    script: list[tuple[str, int]], credit: int, ack_every: int
) -> None:
    network = Network(credit, ack_every)
    give_up: dict[int, int] = {}
    number = 0
    for action, amount in script:
        if action == "offer":
            last = FOREVER if amount % 2 else network.now + amount
            if network.sender.offer(network.now, data_of(number + 1, 4 + amount // 8), last, number + 1):
                number += 1
                give_up[number] = last
        elif action == "later":
            network.now += amount
        else:
            getattr(network, action)()
    network.connect()
    for _ in range(2000):
        if not len(network.sender):
            break
        network.write()
        network.arrive()
        network.acknowledge()
    assert len(network.sender) == 0 and network.sender.held_bytes == 0 and network.sender.unacknowledged == 0
    assert network.delivered == sorted(set(network.delivered)), "each at most once, in the order of the offers"
    missing = set(give_up) - set(network.delivered)
    assert all(give_up[each] < network.now for each in missing), "only what was too late is missing"
    sent, given_up = (
        {tag: seq for seq, tag in network.facts.sents},
        {tag: seq for seq, tag in network.facts.gave_ups},
    )
    assert len(sent) == len(network.facts.sents), "SENT once per tuple"
    assert missing <= set(given_up), "and the sender says so"
    assert set(network.delivered) <= set(sent)
    assert {tag for tag, seq in given_up.items() if seq == 0} == set(give_up) - set(sent), "never left: link_seq 0"


def connected(credit: int = 1 << 20, **limits: Any) -> tuple[Sender, Facts]:
    facts = Facts()
    sender = Sender(facts, **limits)
    sender.on_connected(0, 1, 0, credit)
    return sender, facts


def test_zero_credit_holds_everything_back_and_blocks_nothing() -> None:
    sender, facts = connected(credit=0)
    assert sender.offer(0, b"x", 100, "a")
    assert sender.poll(1) is None
    sender.on_ack(2, 0, 10)
    out = sender.poll(3)
    assert out == (1, 3, [b"x"]) and facts.sents == [(1, "a")]


def test_credit_limits_what_is_unacknowledged_but_one_tuple_always_goes() -> None:
    sender, _ = connected(credit=25)
    for _ in range(4):
        sender.offer(0, b"0123456789", FOREVER, None)
    assert [len(out.tuples) for out in polled(sender, 1)] == [2]
    sender.on_ack(2, 1, 25)
    assert [len(out.tuples) for out in polled(sender, 3)] == [1]
    small, _ = connected(credit=1)
    small.offer(0, b"0123456789", FOREVER, None)
    assert len(polled(small, 1)) == 1


def test_what_waits_too_long_is_given_up_without_a_connection() -> None:
    facts = Facts()
    sender = Sender(facts)
    sender.offer(0, b"a", 50, "a")
    sender.offer(0, b"b", FOREVER, "b")
    assert sender.due_ns() is not None
    sender.poll(50)
    assert facts.gave_ups == []
    sender.poll(1_000_000)
    assert facts.gave_ups == [(0, "a")] and len(sender) == 1


def test_after_a_broken_connection_what_is_too_late_is_given_up_and_the_rest_resent_under_its_number() -> None:
    sender, facts = connected()
    for tag, last in (("a", FOREVER), ("b", 10), ("c", FOREVER), ("d", FOREVER)):
        sender.offer(0, tag.encode(), last, tag)
    assert sender.poll(1) == (1, 1, [b"a", b"b", b"c", b"d"])
    sender.on_disconnected(2)
    assert sender.connect_at_ns is not None and sender.connect_at_ns > 2
    sender.on_connected(20, 1, 0, 1000)
    assert polled(sender, 20) == [(1, 20, [b"a"]), (3, 20, [b"c", b"d"])]
    assert facts.gave_ups == [(2, "b")]
    assert len(facts.sents) == 4


def test_a_connection_that_breaks_in_the_middle_of_a_resend_keeps_the_order() -> None:
    sender, _ = connected(credit=100)
    for tag in "abc":
        sender.offer(0, tag.encode() * 10, FOREVER, tag)
    sender.poll(1)
    sender.on_disconnected(2)
    sender.on_connected(3, 1, 0, 10)
    assert polled(sender, 3) == [(1, 3, [b"a" * 10])]
    sender.on_disconnected(4)
    sender.on_connected(5, 1, 0, 100)
    assert polled(sender, 5) == [(1, 5, [b"a" * 10, b"b" * 10, b"c" * 10])]


def test_what_the_peer_took_over_before_the_connection_broke_is_not_resent() -> None:
    sender, facts = connected()
    for tag in "abc":
        sender.offer(0, tag.encode(), FOREVER, tag)
    sender.poll(1)
    sender.on_disconnected(2)
    sender.on_connected(3, 1, 2, 1000)
    assert polled(sender, 3) == [(3, 3, [b"c"])]
    assert facts.ackeds == [2]


def test_a_full_link_says_so_and_has_room_again_once_tuples_are_too_late() -> None:
    sender = Sender(Facts(), max_bytes=10, max_tuples=5)
    assert sender.offer(0, b"12345678", 100, None)
    assert not sender.offer(1, b"123", 100, None)
    assert sender.offer(101, b"123", 200, None)
    for _ in range(4):
        assert sender.offer(101, b"", 200, None)
    assert not sender.offer(101, b"", 200, None)


def test_batches_keep_the_limits_of_the_wire() -> None:
    sender, _ = connected(max_bytes=64 << 20, max_tuples=10_000, credit=64 << 20)
    for _ in range(5000):
        sender.offer(0, b"x", FOREVER, None)
    assert [len(out.tuples) for out in polled(sender, 1)] == [MAX_BATCH_TUPLES, 5000 - MAX_BATCH_TUPLES]
    sender.on_ack(2, 5000, 64 << 20)
    for _ in range(3):
        sender.offer(0, bytes(MAX_FRAME_BYTES // 2 - 100), FOREVER, None)
    assert [len(out.tuples) for out in polled(sender, 3)] == [2, 1]


def test_a_tuple_that_no_frame_can_hold_does_not_stop_the_others() -> None:
    sender, _ = connected()
    assert not sender.offer(0, bytes(MAX_FRAME_BYTES), FOREVER, None)
    largest = bytes(MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES - TUPLE_OVERHEAD_BYTES)
    assert sender.offer(0, largest, FOREVER, None) and sender.poll(1) == (1, 1, [largest])


def test_a_peer_that_claims_what_was_never_sent_breaks_the_rules() -> None:
    sender, _ = connected()
    with pytest.raises(LinkError) as error:
        sender.on_ack(1, 1, 0)
    assert error.value.counter == "ack_ahead"
    with pytest.raises(LinkError):
        sender.on_connected(1, 1, 5, 0)


def test_a_peer_that_stops_acknowledging_is_noticed() -> None:
    sender, _ = connected(stall_ns=100)
    sender.poll(1000)
    assert not sender.stalled(1000)
    sender.offer(1000, b"x", FOREVER, None)
    sender.poll(1000)
    assert not sender.stalled(1100) and sender.stalled(1101)
    sender.on_ack(1102, 1, 10)
    assert not sender.stalled(5000)


def test_a_peer_that_says_nothing_is_noticed_before_tuples_come() -> None:
    sender = Sender(Facts(), stall_ns=100)
    sender.on_connected(0, 1, 0, 0, asks=True)
    assert not sender.stalled(100) and sender.stalled(101), "although nothing waits"
    sender.heard(1000)
    sender.offer(1050, b"x", FOREVER, None)
    assert sender.poll(1050) is None, "no credit"
    assert not sender.stalled(1100) and sender.stalled(1101)
    sender.heard(1101)
    assert not sender.stalled(1201) and sender.stalled(1202)
    sender.on_disconnected(1203)
    assert not sender.stalled(5000), "there is no connection"
    sender.on_connected(5001, 1, 0, 0)
    assert not sender.stalled(9000), "over this connection nothing is asked"


def test_the_end_of_the_link_gives_everything_up() -> None:
    sender, facts = connected(credit=1)
    sender.offer(0, b"a", FOREVER, "a")
    sender.offer(0, b"b", FOREVER, "b")
    sender.poll(0)
    sender.give_up_all(1)
    assert facts.gave_ups == [(1, "a"), (0, "b")] and len(sender) == 0


def test_pauses_double_up_to_a_ceiling_and_start_over_after_a_success() -> None:
    backoff = Backoff(10, 35)
    assert [backoff.failed(100) for _ in range(4)] == [110, 120, 135, 135]
    backoff.succeeded()
    assert backoff.failed(0) == 10


def test_acknowledgements_come_every_n_tuples_at_the_end_of_a_drain_and_when_credit_returns() -> None:
    receiver = Receiver(ack_every=3)
    receiver.on_hello(1000)
    receiver.on_batch(1, [arrived(1), arrived(2)])
    assert receiver.ack(1000, drained=False) is None
    assert _told(receiver.ack(1000, drained=True)) == (2, 1000)
    assert receiver.ack(1000, drained=True) is None
    receiver.on_batch(3, [arrived(3), arrived(4), arrived(5)])
    assert _told(receiver.ack(1000, drained=False)) == (5, 1000)
    assert _told(receiver.ack(0, drained=True)) == (5, 0)
    assert receiver.ack(0, drained=True) is None
    assert _told(receiver.ack(700, drained=True)) == (5, 700)
    assert receiver.ack(900, drained=True) is None


def test_resent_tuples_are_recognised_within_a_batch() -> None:
    receiver = Receiver()
    assert len(receiver.on_batch(1, [arrived(1), arrived(2)])) == 2
    assert [item.lineage[2] for item in receiver.on_batch(2, [arrived(2), arrived(3)])] == [3]
    assert receiver.on_batch(1, [arrived(1)]) == []
    assert receiver.duplicates == 2 and receiver.last == 3


def test_credit_is_a_share_in_useful_pieces() -> None:
    assert share_credit(100_000, 1 << 30, 4) == 25_000
    assert share_credit(100_000, 1 << 30, 40) == 0
    assert share_credit(1 << 30, 1 << 30, 1) == 1 << 20
    assert share_credit(0, 1 << 30, 0) == 0


def test_where_all_the_room_is_less_than_useful_pieces_its_half_is_useful() -> None:
    assert share_credit(3800, 3800, 1) == 3800
    assert share_credit(1900, 3800, 1) == 1900
    assert share_credit(1899, 3800, 1) == 0
    assert share_credit(0, 3800, 1) == 0


@pytest.mark.parametrize("senders", [1, 40, 5000])
def test_where_nothing_waits_every_sender_may_send(senders: int) -> None:
    assert share_credit(3800, 3800, senders) >= 1


def test_a_new_incarnation_of_a_node_does_not_repeat_what_the_old_one_sent() -> None:
    inbox = Inbox()
    old = inbox.hello("node:a", 1, alone=True)
    old.on_batch(1, [arrived(1), arrived(2), arrived(2)])  # a union may put a lineage twice on its stream
    new = inbox.hello("node:a", 2, alone=True)
    fresh = new.on_batch(1, [arrived(2), arrived(2), arrived(2), arrived(3), arrived(1, stream=2), arrived(1, plan=8)])
    assert [(item.lineage[2], item.stream, item.plan) for item in fresh] == [(2, 1, 7), (3, 1, 7), (1, 2, 7), (1, 1, 8)]
    third = inbox.hello("node:a", 3, alone=True)
    assert third.on_batch(1, [arrived(1), arrived(2), arrived(3)]) == []


def test_a_superseded_incarnation_is_fenced() -> None:
    inbox = Inbox()
    old = inbox.hello("node:a", 1, alone=True)
    inbox.hello("node:a", 2, alone=True)
    with pytest.raises(LinkError) as error:
        old.on_batch(1, [arrived(1)])
    assert error.value.counter == "fenced"
    with pytest.raises(LinkError):
        inbox.hello("node:a", 1, alone=True)
    assert inbox.hello("node:b", 1, alone=True).on_batch(1, [arrived(1)])


def test_an_incarnation_that_is_not_later_is_refused_and_the_one_that_lives_goes_on() -> None:
    inbox = Inbox()
    living = inbox.hello("node:a", 1, True, incarnation=5)
    for boot, incarnation in ((2, 5), (3, 4), (4, 0), (1, 6), (1, 4)):
        with pytest.raises(LinkError) as error:
            inbox.hello("node:a", boot, True, incarnation, AWAY_NS - 1)
        assert error.value.counter == "fenced"
        assert {"node:a", "5", str(incarnation), f"{boot:016x}"} <= set(re.split(r"[ ,()]+", str(error.value)))
        assert len(str(error.value)) < MAX_WHY_CHARS, "it arrives as a whole"
    assert inbox.hello("node:a", 1, True, 5) is living and living.on_batch(1, [arrived(1)])
    later = inbox.hello("node:a", 9, True, 6)
    assert later.on_batch(1, [arrived(1), arrived(2)]) == [arrived(2)] and not later.began_anew
    with pytest.raises(LinkError):
        living.on_batch(2, [arrived(3)])


def test_a_node_whose_count_began_anew_is_let_in_after_the_one_of_before_has_gone() -> None:
    inbox = Inbox()
    before = inbox.hello("node:a", 1, True, 5)
    before.on_batch(1, [arrived(1)])
    inbox.gone("node:a", 7, 2 * AWAY_NS)  # of a boot that does not live
    with pytest.raises(LinkError):
        inbox.hello("node:a", 2, True, 1, AWAY_NS, present=True)
    inbox.gone("node:a", 1, AWAY_NS)
    with pytest.raises(LinkError):
        inbox.hello("node:a", 2, True, 1, 2 * AWAY_NS - 1)
    anew = inbox.hello("node:a", 2, True, 1, 2 * AWAY_NS)
    assert anew.began_anew and anew.on_batch(1, [arrived(1), arrived(2)]) == [arrived(2)]
    with pytest.raises(LinkError):
        before.on_batch(2, [arrived(3)])
    inbox.hello("node:a", 1, True, 5, 2 * AWAY_NS)  # it was cut off for long, and another one had its name meanwhile
    with pytest.raises(LinkError):
        anew.on_batch(3, [arrived(3)])


def test_a_version_that_tells_no_count_gives_way_to_one_that_does() -> None:
    inbox = Inbox()
    inbox.hello("node:a", 1, True)
    inbox.hello("node:a", 2, True)  # restarted
    with pytest.raises(LinkError):
        inbox.hello("node:a", 1, True)
    inbox.hello("node:a", 3, True, 1)
    with pytest.raises(LinkError):
        inbox.hello("node:a", 4, True, 0)


def test_sources_of_one_name_live_side_by_side_and_their_number_is_bounded() -> None:
    inbox = Inbox(most_receivers=2)
    one = inbox.hello("source:s", 1, alone=False)
    inbox.hello("source:s", 2, alone=False)
    assert inbox.hello("source:s", 1, alone=False) is one
    inbox.hello("source:s", 3, alone=False)
    assert inbox.hello("source:s", 1, alone=False) is one, "the one longest unused goes first"


@given(st.integers(1, 20), st.integers(0, 200))
def test_the_memory_is_bounded_and_holds_the_latest(keep: int, count: int) -> None:
    memory = Memory(keep)
    keys = [(1, 1, number, 0, 1, 1) for number in range(count)]
    assert all(memory.is_fresh(key) for key in keys)
    memory.new_incarnation()
    assert len(memory._before) <= 2 * keep
    assert not any(memory.is_fresh(key) for key in keys[-keep:])
