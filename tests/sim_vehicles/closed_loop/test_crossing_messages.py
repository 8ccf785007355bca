"""What became of the messages about the crossing vehicle: which tuples they were, and what a trace says of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from protos.records import (
    CAUSE_JOIN_EXPIRED,
    CAUSE_OPERATOR_ERROR,
    CAUSE_STOPPED,
    POLICY_ARRIVALS,
    POLICY_LATE,
    POLICY_RATE,
    Lost,
    Ran,
    Shed,
)
from protos.vehicle_pb2 import Cpm, PerceivedObject, Sensor
from sim_vehicles.closed_loop.crossing_messages import (
    CrossingMessages,
    Offered,
    answered,
    offered,
    traced,
    until_known,
)
from sim_vehicles.world.sense import Burst

X, OTHER, SOURCE, EPOCH = 8, 3, 2, 5


def burst(at_ns: int, *about: int, source: str = "v2v") -> Burst:
    values = tuple(Cpm(station=1, object=PerceivedObject(object_id=one)) for one in about)
    return Burst(source, at_ns, 0, values)


def test_a_tuple_has_the_number_that_its_source_gave_it() -> None:
    bursts = [burst(1, X, OTHER), Burst("sensor", 2, 0, (Sensor(),)), burst(3, X), burst(4, X, source="other")]
    assert offered(bursts, "v2v", SOURCE, EPOCH, (), X) == [
        Offered(1, (SOURCE, EPOCH, 1), False), Offered(3, (SOURCE, EPOCH, 3), False)
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_numbers_leave_out_what_was_refused(seed: int) -> None:
    """Against a source that counts."""
    draw = Random(seed)
    bursts, refused, expected, count, seq = [], [], [], 0, 0
    for at_ns in range(30):
        about = draw.choices([X, OTHER], k=draw.randint(1, 4))
        bursts.append(burst(at_ns, *about))
        for one in about:
            count += 1
            taken = draw.random() < 0.7
            seq += taken
            refused += [] if taken else [count]
            if one == X:
                expected.append(Offered(at_ns, (SOURCE, EPOCH, seq) if taken else None, not taken))
    assert offered(bursts, "v2v", SOURCE, EPOCH, refused, X) == expected, f"seed {seed}"


@dataclass(frozen=True)
class Answer:
    seq: int | None = None
    epoch: int = EPOCH
    why: str | None = None


def test_answers_of_live_agents_say_which_tuples_they_are_of() -> None:
    answers = [Answer(seq=7), Answer(why="too old"), Answer(seq=8)]
    assert answered(burst(1, X, X, OTHER), SOURCE, answers, X) == [
        Offered(1, (SOURCE, EPOCH, 7), False), Offered(1, None, True)
    ]  # fmt: skip


def test_only_what_came_until_the_ego_knew_counts() -> None:
    tuples = [Offered(10**9, (1, 1, 1), False), Offered(2 * 10**9, None, True), Offered(3 * 10**9, (1, 1, 2), False)]
    assert until_known(tuples, 2.0) == CrossingMessages(2, 1, ((1, 1, 1),))
    assert until_known(tuples, None) == CrossingMessages(3, 1, ((1, 1, 1), (1, 1, 2)))


def test_a_trace_says_what_was_policed_shed_and_lost() -> None:
    messages = CrossingMessages(8, 1, tuple((1, 1, seq) for seq in range(1, 8)))
    about = {"source": 1, "epoch": 1}
    records = [
        Shed.make(**about, seq=1, policy=POLICY_RATE),
        Shed.make(**about, seq=2, policy=POLICY_ARRIVALS),
        Ran.make(**about, seq=3, policed_results=1),
        Ran.make(**about, seq=4),
        Shed.make(**about, seq=4, policy=POLICY_LATE),
        Ran.make(**about, seq=5),
        Shed.make(source=1, epoch=2, seq=5, policy=POLICY_RATE),
        Lost.make(**about, seq=6, cause=CAUSE_OPERATOR_ERROR),
        Lost.make(**about, seq=6, cause=CAUSE_JOIN_EXPIRED),
        Lost.make(**about, seq=4, cause=CAUSE_JOIN_EXPIRED),
        Lost.make(source=1, epoch=2, seq=7, cause=CAUSE_STOPPED),
    ]
    found = traced(messages, records)
    assert (found.policed, found.shed, found.lost, found.left_out) == (2, 2, 1, 6)


def test_a_tuple_that_an_operator_failed_on_is_lost() -> None:
    messages = CrossingMessages(1, 0, ((1, 1, 1),))
    found = traced(messages, [Lost.make(source=1, epoch=1, seq=1, cause=CAUSE_OPERATOR_ERROR)])
    assert found.fates == {"refused": 0, "policed": 0, "shed": 0, "lost": 1}
    assert messages.fates["lost"] is None and messages.left_out == 0
