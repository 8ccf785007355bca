"""A shedder at the doors of units, by itself: what it decides, and what follows for the engine to do."""

from collections.abc import Callable

from node_agent.core.lineage import Lineage
from node_agent.core.model import Effect, ForwardedRemoval, Shed, Withdrawal, new_job
from node_agent.core.shedding.backlog import Backlog
from node_agent.core.shedding.entry_shedders import Free, Rule, SharedEntry, Shedder, UnitEntry
from node_agent.core.windows.window_aware import Load
from tests.node_agent.core.engine.compiled import one_source

PERIOD_NS = 100
POLICY = 9


def tuple_(number: int, origin_ns: int = 0) -> Lineage:
    return 1, 1, number, 0, origin_ns, origin_ns


class Even:
    """Lets even numbers in; in each period so many of the oldest go. lost: numbers that no window needs any more."""

    policy = POLICY
    decided = (0, 0)

    def __init__(self, gone: int = 0) -> None:
        self.gone = gone
        self.lost: frozenset[int] = frozenset()

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        return not lineage[2] % 2

    def free(self, source: int) -> Free | None:
        return None

    def period(self, load: Load) -> int:
        return self.gone

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        lost, self.lost = self.lost, frozenset()
        return (lambda lineage: lineage[2] in lost) if lost else None

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        raise AssertionError("no other plan")


class Place:
    """Both units of a source behind doors of one shedder."""

    def __init__(self, rule: Even, single: bool = False) -> None:
        self.units = one_source().source_routes[1].units
        self.shedder = Shedder(rule, ["W"], Backlog([self.units], (), 1000), PERIOD_NS)
        self.shedder.entries = tuple(UnitEntry(unit, self.shedder, 0, single) for unit in self.units)
        self.entry = SharedEntry(self.shedder, 0, self.shedder.entries)

    def queue(self, *numbers: int) -> None:
        for unit in self.units:
            queue = unit.queue
            for number in numbers:
                queue.append(new_job(0, number, number, unit, tuple_(number, number), None))


def shed(effects: list[Effect]) -> list[tuple[int, int, int]]:
    return [(each.unit.id, each.lineage[2], each.policy) for each in effects if isinstance(each, Shed)]


def gone(effects: list[Effect]) -> list[tuple[int, int, int]]:
    return [
        (each.unit.id, each.punctuation.first, each.lineage[2])
        for each in effects
        if isinstance(each, ForwardedRemoval)
    ]


def test_a_tuple_is_let_in_at_all_doors_or_shed_at_all_of_them() -> None:
    place = Place(Even())
    assert place.entry.decide(5, tuple_(2)) == (True, [])
    passes, effects = place.entry.decide(6, tuple_(3))
    assert not passes and shed(effects) == [(1, 3, POLICY), (2, 3, POLICY)] and not gone(effects)
    assert (place.shedder.offered, place.shedder.shed) == (2, 1)


def test_a_range_that_was_shed_goes_on_before_the_next_tuple_that_is_let_in() -> None:
    place = Place(Even())
    for number in (3, 5):
        place.entry.decide(6, tuple_(number, number))
    passes, effects = place.entry.decide(7, tuple_(6, 6))
    assert passes and gone(effects) == [(1, 3, 3), (1, 5, 5), (2, 3, 3), (2, 5, 5)]
    assert place.entry.decide(8, tuple_(8)) == (True, [])


def test_a_heartbeat_takes_what_waits_of_its_source_only() -> None:
    place = Place(Even())
    place.entry.decide(6, tuple_(3))
    entry = place.shedder.entries[0]
    assert list(entry.forward(2)) == []
    assert gone(list(entry.forward(1))) == [(1, 3, 3)] and list(entry.forward(1)) == []


def test_before_a_join_each_number_goes_on_at_once() -> None:
    _, effects = Place(Even(), single=True).entry.decide(6, tuple_(3))
    assert [type(each) for each in effects] == [Shed, ForwardedRemoval, Shed, ForwardedRemoval]


def test_when_a_period_has_passed_the_oldest_leave_all_queues_and_go_on_as_ranges() -> None:
    place = Place(Even(gone=2))
    place.queue(1, 2, 3)
    assert place.shedder.due_ns == 0
    effects = place.shedder.tick(250)
    assert place.shedder.due_ns == 250 + PERIOD_NS and place.shedder.shed == 2
    assert [type(each) for each in effects] == [Withdrawal, Shed, Shed, ForwardedRemoval] * 2
    assert [sorted(each.lineages) for each in effects if isinstance(each, Withdrawal)] == [  # type: ignore[call-overload]
        [tuple_(1, 1), tuple_(2, 2)]
    ] * 2
    assert gone(effects) == [(1, 1, 2), (2, 1, 2)]


def test_what_no_window_needs_any_more_leaves_all_queues_at_the_end_of_a_period() -> None:
    rule = Even()
    place = Place(rule)
    place.queue(2, 4, 6, 8)
    rule.lost = frozenset({4, 6})
    effects = place.shedder.tick(250)
    assert [type(each) for each in effects] == [Withdrawal, Shed, Shed, ForwardedRemoval, ForwardedRemoval] * 2
    assert gone(effects) == [(1, 4, 4), (1, 6, 6), (2, 4, 4), (2, 6, 6)]
    assert place.shedder.shed == 2 and place.shedder.tick(550) == []


def test_what_no_window_needs_any_more_leaves_with_the_tuple_that_is_refused() -> None:
    rule = Even()
    place = Place(rule)
    place.queue(2, 4)
    rule.lost = frozenset({4})
    kept, effects = place.entry.decide(6, tuple_(5))
    assert not kept and shed(effects) == [(1, 5, POLICY), (2, 5, POLICY), (1, 4, POLICY), (2, 4, POLICY)]


def test_periods_that_nobody_asked_in_are_one() -> None:
    place = Place(Even())
    place.shedder.tick(50)
    place.shedder.tick(50 + 10 * PERIOD_NS + 1)
    assert place.shedder.due_ns == 50 + 11 * PERIOD_NS
