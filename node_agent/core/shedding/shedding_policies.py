"""Shedding policies: which tuples are shed where not all windows can be completed in time ([S]).

`window-aware` lets in tuples that an admitted window needs, `front` takes the oldest off the queues, `random` draws,
and `drop-tail` refuses tuples while the queue is full. Each decides at the entries that the plan names, and sees time
only as the instants of arrivals and heartbeats there.
"""

from collections.abc import Callable, Iterable, Sequence

from node_agent.core import plan as plans
from node_agent.core.lineage import Lineage
from node_agent.core.shedding.entry_shedders import Free, Rule
from node_agent.core.windows.shedding_control import PPM, AtRandom, DropTail, Front, RateControl
from node_agent.core.windows.window_aware import Kind, Load, WindowAware
from node_agent.core.windows.window_operator import grid_of
from protos.records import POLICY_DROP_TAIL, POLICY_FRONT, POLICY_RANDOM, POLICY_WINDOW_AWARE

SAMPLES = 128  # numbers over which their mean distance is taken; half of them at least
PERIODS = 8  # over which gaps are averaged, where no window says how long
MASK = (1 << 64) - 1


class _Windows:
    """Windows of the same sources. by count: positions are numbers, and begin anew with an incarnation."""

    def __init__(self, kinds: Sequence[Kind], most: int, lateness_ns: int) -> None:
        self.kinds = tuple(kinds)
        self.counted = kinds[0].counted
        self.aware = WindowAware(kinds, most, lateness_ns, None)
        self._epoch = -1
        self._number = self._at_ns = self._numbers = self._ns = 0

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """Whether a window that was admitted needs it."""
        if not self.counted:
            return self.aware.keeps(lineage[4], load)
        epoch, number = lineage[1], lineage[2]
        if epoch != self._epoch:
            self._epoch, self._number, self._at_ns = epoch, number, at_ns
            self.aware.begin(number)
        elif number > self._number:
            self._numbers += number - self._number
            self._ns += at_ns - self._at_ns
            self._number, self._at_ns = number, at_ns
            if self._numbers >= SAMPLES:
                self._numbers >>= 1
                self._ns >>= 1
        load.number_ns = self._ns // self._numbers if self._numbers else 0
        return self.aware.keeps(number, load)

    def needs(self, lineage: Lineage) -> bool:
        """Whether a window that was admitted needs a tuple that waits; of an incarnation before it may."""
        if not self.counted:
            return self.aware.needs(lineage[4])
        return lineage[1] != self._epoch or self.aware.needs(lineage[2])


class NeededWindows:
    """Windows by the sources that they are of: a tuple is let in where one of them needs it."""

    policy = POLICY_WINDOW_AWARE

    def __init__(self, spec: plans.Shedding, operators: Iterable[plans.Operator]) -> None:
        kinds: dict[tuple[bool, frozenset[int]], list[tuple[Kind, int]]] = {}
        for operator in operators:
            window = operator.window
            assert window is not None
            sources = frozenset(source for source, _ in window.feeds)
            kind = Kind(grid_of(window), window.useful_ns, window.kind == "count", window.first)
            kinds.setdefault((kind.counted, sources), []).append((kind, window.lateness_ns))
        self._windows = {
            sources: _Windows([kind for kind, _ in each], spec.most, max(late_ns for _, late_ns in each))
            for sources, each in kinds.items()
        }
        self._by_source: dict[int, tuple[_Windows, ...]] = {}
        for (_, sources), each in self._windows.items():
            for source in sorted(sources):
                self._by_source[source] = (*self._by_source.get(source, ()), each)
        self._free = {source: _free(each) for source, each in self._by_source.items()}
        self._given_up = 0

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """All are asked: each decides on its windows with the first tuple in them."""
        kept = False
        for windows in self._by_source.get(lineage[0], ()):
            if windows.keeps(at_ns, lineage, load):
                kept = True
        return kept

    def free(self, source: int) -> Free | None:
        """By time; numbers that were shed one after the other meet no admitted window by count."""
        return self._free.get(source)

    def period(self, load: Load) -> int:
        """What is taken out of the queues is `unneeded`."""
        for windows in self._windows.values():
            windows.aware.give_up(load)
        return 0

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        """Those of windows that were given up since, where no other one needs them."""
        given_up = sum(windows.aware.given_up for windows in self._windows.values())
        if given_up == self._given_up:
            return None
        self._given_up = given_up
        return lambda lineage: not any(windows.needs(lineage) for windows in self._by_source.get(lineage[0], ()))

    @property
    def decided(self) -> tuple[int, int]:
        """Over all its windows."""
        each = self._windows.values()
        return sum(windows.aware.opened for windows in each), sum(windows.aware.denied for windows in each)

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        """Windows that are open go on as they were decided on, where they are the same."""
        assert isinstance(other, NeededWindows)
        before = {
            (counted, frozenset(sources.get(each, -1) for each in theirs)): windows
            for (counted, theirs), windows in other._windows.items()
        }
        for key, windows in self._windows.items():
            if key in before and before[key].kinds == windows.kinds:
                windows.__dict__.update(before[key].__dict__)


def _free(windows: Sequence[_Windows]) -> Free | None:
    frees = [each.aware for each in windows if not each.counted]
    if len(frees) == 1:
        return frees[0].free
    return (lambda least, greatest: all(each.free(least, greatest) for each in frees)) if frees else None


class OldestFirst:
    """[S]'s `front`: every tuple is let in, and the oldest ones are shed, n = max(r arrivals, q - M) per period."""

    policy = POLICY_FRONT
    decided = (0, 0)

    def __init__(self, spec: plans.Shedding) -> None:
        self.control = RateControl(spec.target_ns)
        self.front = Front(self.control, spec.most)

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """Every tuple is let in."""
        self.front.arrived()
        return True

    def free(self, source: int) -> Free | None:
        """No range is cut."""
        return None

    def period(self, load: Load) -> int:
        """As the control says."""
        return self.front.period(load.queued, load.cost_ns, load.work_ns)

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        """None are."""
        return None

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        """The control as well."""
        assert isinstance(other, OldestFirst)
        self.control.inherit(other.control)


class Drawn:
    """`random`: draws by the tuple's own lineage, so the same journal sheds the same."""

    policy = POLICY_RANDOM
    decided = (0, 0)

    def __init__(self, spec: plans.Shedding) -> None:
        self.control = RateControl(spec.target_ns)
        self.random = AtRandom(self.control, spec.most)

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """With the probability that the control says."""
        return self.random.keeps(draw(*lineage[:3]), load.queued)

    def free(self, source: int) -> Free | None:
        """No range is cut."""
        return None

    def period(self, load: Load) -> int:
        """The rate follows the backlog."""
        self.random.period(1, load.work_ns or 0)
        return 0

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        """None are."""
        return None

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        """The control as well."""
        assert isinstance(other, Drawn)
        self.control.inherit(other.control)


class WhileThereIsRoom:
    """`drop-tail`: a queue of so many."""

    policy = POLICY_DROP_TAIL
    decided = (0, 0)

    def __init__(self, spec: plans.Shedding) -> None:
        self.tail = DropTail(spec.most)

    def keeps(self, at_ns: int, lineage: Lineage, load: Load) -> bool:
        """While there is room."""
        return self.tail.keeps(load.queued)

    def free(self, source: int) -> Free | None:
        """No range is cut."""
        return None

    def period(self, load: Load) -> int:
        """No tuple that was let in is shed."""
        return 0

    def unneeded(self) -> Callable[[Lineage], bool] | None:
        """None are."""
        return None

    def inherit(self, other: Rule, sources: dict[int, int]) -> None:
        """Nothing is remembered."""


def draw(source: int, epoch: int, seq: int) -> int:
    """0 to 999 999, as good as random: a counter through the finalizer of SplitMix64 (Steele, Lea, Flood, 2014)."""
    x = (seq * 0x9E3779B97F4A7C15 + (source << 16 | epoch) * 0xD1B54A32D192ED03) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return (x ^ x >> 31) * PPM >> 64


def rule(spec: plans.Shedding, operators: Sequence[plans.Operator]) -> Rule:
    """As the plan names it. operators: which collect the windows."""
    if spec.policy == "window-aware":
        return NeededWindows(spec, operators)
    makers: dict[str, Callable[[plans.Shedding], Rule]] = {
        "front": OldestFirst, "random": Drawn, "drop-tail": WhileThereIsRoom,
    }  # fmt: skip
    return makers[spec.policy](spec)


__all__ = ["PERIODS", "draw", "rule"]
