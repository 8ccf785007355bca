"""The worst end-to-end response that a search finds, output by output.

It starts from the bound's own story: where a bound is reached, each unit on the way has a `Moment`, so the sources of
the units that go before it are moved until their tuples come when that busy period begins, node by node along the way.
Then it climbs: phases, pauses, who is slow, which filter drops, heartbeats, one change at a time, kept where the
response does not fall; random restarts; all within what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.bounds import Claim
from infra.bench.tightness.attack import Attack, Slow, Which
from infra.bench.tightness.edf_cluster import EdfCluster, Longest, Ran, Seen

LONGEST_NS = 400 * 10**6  # for so long sources send at most
STALE = 60  # changes without a gain before the next restart


@dataclass(frozen=True)
class Found:
    """The longest of an output, and the attack that makes it so."""

    longest: Longest
    attack: Attack


@dataclass(frozen=True)
class _Tried:
    attack: Attack
    seen: Seen
    longest: Longest


@dataclass(frozen=True)
class _Stretch:
    """A unit on the way: the busy period of the bound begins so long before its release; `start_ns`: of it, after that
    beginning; `blocked_ns`: of what was started before; `due_ns`: after the beginning."""

    unit: int
    released_ns: int
    start_ns: int
    blocked_ns: int
    due_ns: int


class Adversary:
    """Against one plan. `aged`: responses count from origins on, not from admission."""

    def __init__(self, analysis: Analysis, dice: Random, aged: bool = False) -> None:
        self.analysis, self.system, self.dice, self.aged = analysis, analysis.system, dice, aged
        busy_ns = max((int(load.busy) for load in analysis.loads.values()), default=0)
        ends_ns = sum(int(each.end) for each in analysis.delays.units.values())
        self.cluster = EdfCluster(self.system, min(3 * busy_ns, busy_ns + ends_ns, LONGEST_NS) + 10**6)
        self.slowable = [s.operator for u in self.system.units.values() for s in u.stages]
        self.slowable += [f"{a}>{b}" for hops in self.system.hops.values() for a, b in hops]
        self.filters = [
            s.operator for u in self.system.units.values() for s in u.stages if len(s.selectivity.pairs) > 1
        ]
        self.drawn_from = {
            unit: [s for s in flow.late if s in self.system.sources] for unit, flow in analysis.streams.triggers.items()
        }

    def search(self, output: str, claim: Claim, runs: int) -> Found:
        """The worst of so many runs. Never empty-handed where a tuple gets there at all."""
        best: _Tried | None = None
        starts, left = self._starts(output, claim), runs
        while left > 0:
            current, used = self._climb(output, next(starts), left)
            left -= used
            if best is None or current.longest.ns > best.longest.ns:
                best = current
            elif self.dice.random() < 0.5 and left > 0:
                current, used = self._climb(output, self._changed(best), left)
                left -= used
                best = current if current.longest.ns > best.longest.ns else best
        assert best is not None
        return Found(best.longest, best.attack)

    def _climb(self, output: str, attack: Attack, left: int) -> tuple[_Tried, int]:
        current, used, stale = self._try(output, attack), 1, 0
        while stale < STALE and used < left:
            changed = self._try(output, self._changed(current))
            used += 1
            stale = 0 if changed.longest.ns > current.longest.ns else stale + 1
            if changed.longest.ns >= current.longest.ns:
                current = changed
        return current, used

    def _try(self, output: str, attack: Attack) -> _Tried:
        seen = self.cluster.run(attack)
        return _Tried(attack, seen, (seen.aged if self.aged else seen.took).get(output, Longest()))

    # -- starts

    def _starts(self, output: str, claim: Claim) -> Iterator[Attack]:
        """The story with all slow, with who is in the way at once fast before, then at random."""
        way = self._way(claim)
        yield self._aligned(output, way, Attack())
        yield self._aligned(output, way, Attack(slow=dict.fromkeys(self._beside(way), Slow(Which.NONE))))
        while True:
            drawn = self._drawn()
            yield self._aligned(output, way, drawn) if self.dice.random() < 0.6 else drawn

    def _way(self, claim: Claim) -> list[_Stretch]:
        found = []
        for part in claim.parts:
            response = self.analysis.delays.units.get(part.unit)
            if part.kind == "unit" and response is not None and response.moments:
                moment = response.moments[part.stage]
                due_ns = int(moment.released) + self.system.units[part.unit].sub_deadline_ns
                found.append(_Stretch(part.unit, int(moment.released), int(moment.start), int(moment.blocked), due_ns))
        return found

    def _beside(self, way: list[_Stretch]) -> list[str]:
        """Operators that lead to units beside the way, and are on no node of it or before those."""
        units = {each.unit for each in way}
        nodes = {self.system.units[each].node for each in units}
        others = [u for u in self.system.units.values() if u.id not in units and u.node not in nodes]
        return [stage.operator for unit in others for stage in unit.stages]

    def _aligned(self, output: str, way: list[_Stretch], attack: Attack) -> Attack:
        """Phases so that on each node of the way others come when the busy period of the bound begins."""
        token, placed = None, set[str]()
        for stretch in way:
            tried = self._try(output, attack)
            token = token or tried.longest.token
            here = next((r for r in tried.seen.ran if (r.unit, r.token) == (stretch.unit, token)), None)
            if here is None:
                return attack
            placed.add(token[0])
            attack = self._together(attack, tried.seen, here.release_ns - stretch.released_ns, stretch, placed)
        return attack

    def _together(self, attack: Attack, seen: Seen, at_ns: int, stretch: _Stretch, placed: set[str]) -> Attack:
        node = self.system.units[stretch.unit].node
        phases = dict(attack.phase_ns)
        for unit in self.system.units.values():
            if unit.node != node or unit.id == stretch.unit:
                continue
            longest = sum(stage.cost_ns for stage in unit.stages)
            blocks = unit.sub_deadline_ns > stretch.due_ns and longest == stretch.blocked_ns
            for source in self.drawn_from.get(unit.id, ()):
                came = [r.release_ns for r in seen.ran if r.unit == unit.id and r.token[0] == source]
                if source not in placed and came:
                    phases[source] = phases.get(source, 0) + at_ns - int(blocks) - _densest(came, stretch.start_ns)
                    placed.add(source)
        return replace(attack, phase_ns=phases)

    def _drawn(self) -> Attack:
        dice = self.dice
        phases = {name: dice.randint(0, 100) * 10**6 for name in self.system.sources}
        slow = {name: self._slow(dice.randint(1, 4)) for name in self.slowable if dice.random() < 0.4}
        dropped = frozenset(name for name in self.filters if dice.random() < 0.5)
        return Attack(phase_ns=phases, slow=slow, dropped=dropped, beat_ns=self._heartbeat_phases())

    def _heartbeat_phases(self) -> dict[str, int]:
        return {n: self.dice.randrange(s.beat_ns) for n, s in self.system.sources.items() if s.beat_ns}

    def _slow(self, number: int) -> Slow:
        return Slow(self.dice.choice([Which.NONE, Which.BEFORE, Which.BEFORE, Which.FROM]), number)

    # -- changes

    def _changed(self, tried: _Tried) -> Attack:
        """One change, now and then two."""
        attack = self._once(tried.attack, tried)
        return self._once(attack, tried) if self.dice.random() < 0.25 else attack

    def _once(self, attack: Attack, tried: _Tried) -> Attack:
        changes: list[Callable[[Attack, _Tried], Attack]] = [
            self._meet, self._meet, self._shift, self._slowed, self._slowed, self._pause, self._tied,
        ]  # fmt: skip
        changes += [self._drop] if self.filters else []
        changes += [self._beaten, self._aged] if self.system.windows else []
        return self.dice.choice(changes)(attack, tried)

    def _shift(self, attack: Attack, tried: _Tried) -> Attack:
        name = self.dice.choice(list(self.system.sources))
        by_ns = self.dice.choice([-1, 1, self.dice.randint(-(10**6), 10**6), self.dice.randint(-(10**8), 10**8)])
        return replace(attack, phase_ns={**attack.phase_ns, name: attack.phase_ns.get(name, 0) + by_ns})

    def _meet(self, attack: Attack, tried: _Tried) -> Attack:
        """An instance of another source is released where the slowest tuple waits: when its busy period begins, when it
        comes, when it starts; or it has just begun before."""
        dice, token = self.dice, tried.longest.token
        own = [ran for ran in tried.seen.ran if ran.token == token]
        if not own:
            return attack
        ran = dice.choice(own)
        node = self.system.units[ran.unit].node
        others = [r for r in tried.seen.ran if r.token[0] != token[0] and self.system.units[r.unit].node == node]
        others = [r for r in others if r.token[0] in self.system.sources]
        if not others:
            return attack
        other = self._near(others, ran)
        wanted = dice.choice([ran.busy_ns, ran.release_ns, ran.start_ns, ran.start_ns - 1, ran.busy_ns - 1])
        source = other.token[0]
        moved = attack.phase_ns.get(source, 0) + wanted - other.release_ns
        return replace(attack, phase_ns={**attack.phase_ns, source: moved})

    def _near(self, others: list[Ran], ran: Ran) -> Ran:
        first = [r for r in others if r.token[1] == 0]
        near = sorted(others, key=lambda r: abs(r.release_ns - ran.release_ns))[:4]
        return self.dice.choice([*(first or near), *near])

    def _number(self, tried: _Tried, source: str = "") -> int:
        """Of the slowest tuple, or of one that ran near to it, or one beside those."""
        dice, token = self.dice, tried.longest.token
        own = [ran.start_ns for ran in tried.seen.ran if ran.token == token]
        number = token[1]
        if own and (token[0] != source if source else dice.random() < 0.6):
            at_ns = dice.choice(own)
            near = [ran for ran in tried.seen.ran if ran.token[0] == source or not source]
            near = sorted(near, key=lambda ran: abs(ran.start_ns - at_ns))[:8]
            number = dice.choice(near).token[1] if near else number
        return number + dice.choice([-1, 0, 0, 1])

    def _slowed(self, attack: Attack, tried: _Tried) -> Attack:
        name, which = self.dice.choice(self.slowable), self.dice.choice(list(Which))
        return replace(attack, slow={**attack.slow, name: Slow(which, self._number(tried))})

    def _pause(self, attack: Attack, tried: _Tried) -> Attack:
        dice, name = self.dice, self.dice.choice(list(self.system.sources))
        pauses = {each: dict(given) for each, given in attack.pauses_ns.items()}
        if pauses.get(name) and dice.random() < 0.5:
            del pauses[name]
            return replace(attack, pauses_ns=pauses)
        number = self._number(tried, name)
        by_ns = dice.choice([dice.randint(1, 10**6), dice.randint(1, 10**7), dice.randint(1, 10**8)])
        pauses.setdefault(name, {})[max(1, number)] = by_ns
        return replace(attack, pauses_ns=pauses)

    def _tied(self, attack: Attack, tried: _Tried) -> Attack:
        return replace(attack, first=attack.first ^ {self.dice.choice(list(self.system.units))})

    def _drop(self, attack: Attack, tried: _Tried) -> Attack:
        return replace(attack, dropped=attack.dropped ^ {self.dice.choice(self.filters)})

    def _beaten(self, attack: Attack, tried: _Tried) -> Attack:
        """A heartbeat earlier or later; or just before the window of the slowest result could close by it."""
        beats = {n: s.beat_ns for n, s in self.system.sources.items() if s.beat_ns}
        name = self.dice.choice(list(beats))
        by_ns = self.dice.choice([-1, 1, self.dice.randrange(beats[name])])
        return replace(attack, beat_ns={**attack.beat_ns, name: attack.beat_ns.get(name, 0) + by_ns})

    def _aged(self, attack: Attack, tried: _Tried) -> Attack:
        name, which = self.dice.choice(list(self.system.sources)), self.dice.choice(list(Which))
        return replace(attack, young={**attack.young, name: Slow(which, self._number(tried, name))})


def _densest(came: list[int], within_ns: int) -> int:
    """Where most of these instants are within that time, the first of them."""
    return max(sorted(came), key=lambda at: sum(at <= other <= at + within_ns for other in came))


def worst(
    analysis: Analysis, claims: Mapping[str, Claim], runs: int, seed: str, aged: bool = False
) -> dict[str, Found]:
    """Of every output that has a bound; `aged`: from origins on."""
    adversary = Adversary(analysis, Random(seed), aged)
    bounded = {
        name: claim
        for name, claim in claims.items()
        if (claim.bound_ns if aged else claim.from_admission_ns) is not None
    }
    return {name: adversary.search(name, claim, runs) for name, claim in bounded.items()}


__all__ = ["Adversary", "Found", "worst"]
