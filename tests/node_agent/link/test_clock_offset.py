"""The interval of a clock's offset always holds the truth, for every drift within what was declared."""

from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from node_agent.link.clock_offset import FAR_NS, PeerClock, Question
from tests.sampling import examples
from tests.sentences import Wording

SAID = Wording("engine", "clock offsets")

MILLION = 1_000_000


class World:
    """True time, and two clocks that drift within bounds; readings are rounded down as a clock's are."""

    def __init__(self, offset_ns: int) -> None:
        self.local = Fraction(10**12)
        self.peer = Fraction(10**12 - offset_ns)

    def pass_(self, true_ns: int, local_ppm: int, peer_ppm: int) -> None:
        self.local += Fraction(true_ns) * (MILLION + local_ppm) / MILLION
        self.peer += Fraction(true_ns) * (MILLION + peer_ppm) / MILLION

    @property
    def now(self) -> int:
        return int(self.local)

    @property
    def peers(self) -> int:
        return int(self.peer)


DRIFT = st.integers(-200, 200)
PAUSE = st.integers(0, 3_000_000_000)
DELAY = st.integers(0, 50_000_000)


@settings(max_examples=examples(300, 4), deadline=None)
@given(
    st.integers(-(10**11), 10**11),
    st.lists(st.tuples(PAUSE, DELAY, DELAY, DELAY, DELAY, DRIFT, DRIFT), min_size=1, max_size=15),
    st.integers(0, 300_000_000),
)
@example(9, [(0, 0, 1, 0, 0, 0, -26)], 0)  # the peer's clock seems to stand still: its answer holds by the rounding
@example(71, [(0, 0, 0, 1, 0, -37, 0)], 3)  # readings alone leave an intersection that is empty by a nanosecond
@example(94, [(1, 1, 3, 0, 0, 200, -200)], 2)
@example(86, [(3, 0, 0, 0, 0, -47, 0), (0, 0, 0, 1, 2, 200, -82)], 0)
def test_the_interval_holds_the_true_instant(
    offset: int, steps: list[tuple[int, int, int, int, int, int, int]], age: int
) -> None:
    world = World(offset)
    clock = PeerClock("a", 200, "b", 200)
    seen: list[tuple[int, int]] = []  # one moment, read on both clocks
    for pause, there, held, back, batch_delay, local_ppm, peer_ppm in steps:
        world.pass_(pause, local_ppm, peer_ppm)
        seen.append((world.now, world.peers))
        question = clock.ask(world.now)
        world.pass_(there, local_ppm, peer_ppm)
        t1 = world.peers
        world.pass_(held, peer_ppm, local_ppm)
        t2 = world.peers
        world.pass_(back, local_ppm, peer_ppm)
        if question is not None:
            assert clock.on_answer(world.now, question, t1, t2) is not None
        sent = world.peers
        seen.append((world.now, world.peers))
        world.pass_(batch_delay, local_ppm, peer_ppm)
        clock.on_batch(world.now, sent)
        world.pass_(age, peer_ppm, local_ppm)
        for local, peer in seen:
            lo, hi = clock.map(world.now, peer, peer)
            assert lo <= local <= hi
    assert clock.known and clock.era == 0, "no drift within the declared bounds looks like a jump"


def answered(clock: PeerClock, at: int, offset: int, delay: int = 1_000_000) -> int:
    """A probe over a symmetrical link to a peer whose clock is `offset` behind; returns the instant it is back."""
    question = clock.ask(at)
    assert question is not None
    back = at + 2 * delay
    assert clock.on_answer(back, question, at + delay - offset, at + delay - offset) is not None
    return back


def test_the_same_clock_domain_needs_no_probe() -> None:
    clock = PeerClock("a", 100, "a", 100)
    assert clock.due_ns() is None and clock.ask(5) is None and clock.known
    assert clock.map(100, 3, 4) == (3, 4)
    assert clock.offset(100) == (0, 0, 0, 0)
    assert not PeerClock("", 0, "", 0).same, "an unnamed clock is nobody's"


def test_before_any_answer_nothing_is_known_but_that_causes_precede_effects() -> None:
    clock = PeerClock("a", 100, "b", 100)
    assert clock.map(100, 3, 4) == (-FAR_NS, 100)
    assert clock.offset(100)[:2] == (-FAR_NS, FAR_NS)


def test_probes_are_frequent_at_first_and_then_every_second() -> None:
    clock = PeerClock("a", 100, "b", 100)
    at, asked = 0, []
    for _ in range(12):
        due = clock.due_ns()
        assert due is not None
        at = max(at, due)
        asked.append(at)
        question = clock.ask(at)
        assert question is not None and clock.ask(at) is None
        clock.on_answer(at + 2, question, at + 1, at + 1)
    assert asked[1] - asked[0] == 20_000_000 and asked[-1] - asked[-2] == 1_000_000_000


def test_an_answer_is_waited_for_a_second() -> None:
    clock = PeerClock("a", 100, "b", 100)
    first = clock.ask(0)
    assert first is not None and clock.ask(999_999_999) is None
    assert clock.on_answer(999_999_999, first, 5, 5) is not None, "a round trip longer than the first pauses"
    second = clock.ask(2_000_000_000)
    assert second is not None and clock.ask(3_000_000_000) is not None
    assert clock.on_answer(3_000_000_001, second, 5, 5) is None, "given up"


def test_a_new_connection_keeps_what_is_known_and_asks_at_once() -> None:
    clock = PeerClock("a", 100, "b", 100)
    back = answered(clock, 0, 5_000)
    assert clock.speaks_like("b", 100) and not clock.speaks_like("b", 50) and not clock.speaks_like("c", 100)
    before = clock.offset(back)
    assert clock.ask(back + 20_000_000) is not None
    clock.met(back + 20_000_001, 0)
    assert clock.known and clock.offset(back) == before and clock.ask(back + 20_000_001) is not None


def test_a_peer_that_says_its_clock_stood_still_is_asked_anew_also_where_no_answer_contradicts() -> None:
    clock = PeerClock("a", 100, "b", 100)
    clock.met(0, 3)
    back = answered(clock, 0, 5_000)
    clock.met(back, 3)
    assert clock.known and clock.era == 1 and clock.map(back, -9_000, -8_000)[0] < -(1 << 60), "of before it was asked"
    clock.met(back + 1, 4)
    assert not clock.known and clock.era == 2 and clock.offset(back + 1).lo_ns < -(1 << 60)
    again = answered(clock, back + 1, 95_000_000 + 5_000, delay=400_000_000)  # slower than the clock stood still
    known = clock.offset(again)
    assert clock.known and known.hi_ns - known.lo_ns > 400_000_000, "nothing of before narrows it"


def test_the_least_round_trip_wins_and_the_interval_widens_with_time() -> None:
    clock = PeerClock("a", 100, "b", 100)
    answered(clock, 0, 5_000, delay=10_000_000)
    wide = clock.offset(30_000_000)
    back = answered(clock, 30_000_000, 5_000, delay=100_000)
    narrow = clock.offset(back)
    assert narrow.hi_ns - narrow.lo_ns < 210_000 < wide.hi_ns - wide.lo_ns and narrow.rtt_ns == 200_000
    later = clock.offset(back + 1_000_000_000)
    assert later.lo_ns <= narrow.lo_ns - 200_000 and later.hi_ns >= narrow.hi_ns + 200_000
    answered(clock, 70_000_000, 5_000, delay=10_000_000)
    assert clock.offset(90_000_000).hi_ns - clock.offset(90_000_000).lo_ns < 300_000


def test_an_impossible_answer_begins_a_new_era_and_the_time_before_is_unknown() -> None:
    clock = PeerClock("a", 100, "b", 100)
    back = answered(clock, 0, 5_000)
    at = answered(clock, 1_000_000_000, 700_000_000)
    assert clock.era == 1 and clock.known
    lo, hi = clock.map(at, at - 700_000_000, at - 700_000_000)
    assert lo <= at == hi
    assert clock.map(at, back - 5_000, back - 5_000)[0] == -FAR_NS, "an instant before the jump"


def test_a_batch_from_the_future_reveals_a_local_suspension_at_once() -> None:
    clock = PeerClock("a", 100, "b", 100)
    back = answered(clock, 0, 0)
    clock.on_batch(back + 10, back)
    assert clock.known
    clock.on_batch(back + 20, back + 900_000_000)
    assert not clock.known and clock.era == 1
    assert clock.due_ns() == back + 20, "ask again at once"


def test_batches_narrow_the_interval_from_above() -> None:
    clock = PeerClock("a", 100, "b", 100)
    back = answered(clock, 0, 0, delay=50_000_000)
    before = clock.offset(back).hi_ns
    clock.on_batch(back + 1000, back + 500)
    assert clock.offset(back + 1000).hi_ns == 502 < before, (
        "500, and 1 each for the rounding of both readings and of the drift"
    )


def test_answers_to_nothing_are_ignored() -> None:
    clock = PeerClock("a", 100, "b", 100)
    assert clock.on_answer(10, Question(1, 10), 5, 5) is None
    question = clock.ask(20)
    assert question is not None
    assert clock.on_answer(30, question._replace(id=question.id + 1), 5, 5) is None
    assert clock.on_answer(30, question._replace(t0_ns=9), 5, 5) is None, "an answer to an earlier connection, again"
    assert clock.on_answer(30, question, 6, 5) is None, "answered before it arrived"
    assert clock.on_answer(30, question, 5, 900) is None, "held for longer than the round trip"
    assert not clock.known


def test_drifts_that_leave_no_clock_are_refused() -> None:
    with SAID.refuses("out_of_range", kind=ValueError):
        PeerClock("a", 400_000, "b", 400_000)
