"""Random transactions of small integers, the stories that may happen to them, and the worst of some of these."""

from collections.abc import Iterator
from itertools import product
from random import Random

from infra.papers.conventional.edf import Edf
from infra.papers.conventional.fixed_priority import FixedPriorities
from infra.papers.conventional.holistic import Scheduling, least_releases_ns
from infra.papers.conventional.priorities import by
from infra.papers.conventional.transactions import Activity, Event, Output, Release, Step, Transactions
from tests.infra.papers.conventional.small_cluster import Key, Story, worst

LAST = 40  # events come until then


def drawn(dice: Random) -> Transactions:
    """Two or three chains on two nodes, with bursts, jitter, links, filters and outputs on the way."""
    activities: list[Activity] = []
    outputs: list[Output] = []
    for number in range(dice.randint(2, 3)):
        period = dice.choice((4, 6, 8, 12))
        event = Event(period, dice.choice((1, 1, 2)), dice.choice((0, 0, period // 2, 2 * period)))
        _chain(dice, number, event, activities, outputs)
    return Transactions(tuple(activities), tuple(outputs))


def _chain(dice: Random, number: int, event: Event, activities: list[Activity], outputs: list[Output]) -> None:
    after, one_of, length = None, 1, dice.randint(1, 3)
    for place in range(length):
        steps, passes = [], 1
        for _ in range(dice.randint(1, 2)):
            cost = dice.randint(1, 2)
            steps.append(Step(cost, dice.randint(0, cost), passes))
            passes *= dice.choice((1, 1, 1, 2))
        link = dice.choice((0, 1)) if after is None else 0
        activities.append(Activity(f"{number}.{place}", dice.choice("ab"), event, tuple(steps), after, one_of, link))
        leaves = len(steps) if dice.random() < 0.8 else 1
        if place == length - 1 or dice.random() < 0.3:
            outputs.append(Output(f"out{len(outputs)}", len(activities) - 1, leaves, dice.choice((0, 1)), 100))
        after = Release(len(activities) - 1, leaves, dice.choice((0, 1)))
        one_of *= steps[leaves - 1].one_of


def schedulings(of: Transactions, dice: Random) -> Iterator[tuple[Scheduling, Key]]:
    """Fixed priorities, EDF after releases, EDF after events: as analysed, and as a cluster does it."""
    fixed: FixedPriorities = by([dice.random() for _ in of.activities])
    due = tuple(dice.randint(1, 25) for _ in of.activities)
    least = least_releases_ns(of)
    yield fixed, lambda number, released, event: fixed.rank[number]
    yield Edf(due), lambda number, released, event: released + due[number]
    yield Edf(due, "global"), lambda number, released, event: event + least[number] + due[number]


def worst_of_some(of: Transactions, key: Key, dice: Random, stories: int) -> dict[str, int]:
    """Phases drawn from all there are, then what declarations leave open."""
    firsts = [number for number, each in enumerate(of.activities) if each.after is None]
    phases = list(product(*(range(of.activities[number].event.period_ns) for number in firsts)))
    dice.shuffle(phases)
    found = {output.name: 0 for output in of.outputs}
    for phase in phases[:stories]:
        events = {
            number: events_of(dice, of.activities[number].event, at) for number, at in zip(firsts, phase, strict=True)
        }
        late_ties = frozenset(number for number in range(len(of.activities)) if dice.random() < 0.5)
        story = Story(events, dice.choice((0, 0, 0.2, 0.6)), late_ties, dice.randrange(10**9))
        for name, took in worst(of, key, story).items():
            found[name] = max(found[name], took)
    return found


def events_of(dice: Random, event: Event, phase: int) -> list[int]:
    """All of the first ones late and the rest not, none late, or as it comes."""
    jitter, mode = event.jitter_ns, dice.choice(("dense", "drawn", "none"))
    found = []
    for turn in range(LAST // event.period_ns + 4):
        nominal = phase + turn * event.period_ns
        for _ in range(event.burst):
            late = {"dense": max(0, phase + jitter - nominal), "drawn": dice.randint(0, jitter), "none": 0}[mode]
            found.append(nominal + late)
    return sorted(found)


__all__ = ["drawn", "events_of", "schedulings", "worst_of_some"]
