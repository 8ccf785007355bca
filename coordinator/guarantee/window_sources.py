"""Windows of a plan as sources: how densely they close, and how long after their end at worst.

A window is closed when its node knows that everything up to its end has come: when every source has said, by a
heartbeat, that nothing older is to come, and every number below that heartbeat's is settled. With nothing lost both are
so at the latest

    max_age + beat + tick + the way of a tuple to the windows, its own instance there included

after the end. docs/explanation/guarantee.md has the argument, and why lateness is in no term. By count there is no end
to wait for: the window closes when its last number is settled, which is one way after that number's admission.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.calculus.curves import Curve, Jcp
from coordinator.calculus.flow import jittered, selected
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee.facts import Facts
from protos.plan.operators import Operator


@dataclass(frozen=True)
class Windows:
    """What a window operator collects. `name`: the operator that makes the results; `add`: the one that collects, also
    the name of its stream and of its source. `length`, `hop`: in ns, by count in numbers. `first`: deadlines count from
    the oldest tuple. `useful_ns`: a window that is not complete so long after that is abandoned, 0: never. `wait_ns`:
    after so long a missing number is given up. `whole`: no operator before it drops a tuple."""

    name: str
    add: str
    node: str
    kind: str
    length: int
    hop: int
    first: bool
    useful_ns: int
    wait_ns: int
    sources: tuple[str, ...]
    whole: bool = False

    def curve(self, numbers: Curve, spread_ns: int | None) -> Curve | None:
        """Of the windows that close. `numbers`: of tuples admitted at its source, for windows by count; `spread_ns`:
        for how long after its end a window may close, None: not known. None: nothing bounds them.

        By time window i ends at i hop + length, and closes from then on until it is of no use: ends are a hop apart.
        By size it begins at i hop, and ends within the length after that. By count, k windows in a row hold at least
        (k - 1) min(hop, length) + 1 numbers between their last ones, none of which was shed, or it would not close.
        """
        if self.kind == "count":
            each = Selectivity(((min(self.hop, self.length), 1),))
            return None if spread_ns is None else selected(jittered(numbers, spread_ns), [each])
        jitter_ns = self.jitter_ns(spread_ns)
        return None if jitter_ns is None else Jcp(self.hop, 0, jitter_ns)

    def jitter_ns(self, spread_ns: int | None) -> int | None:
        """How much less than their hops windows may be apart when they close; by count, than their numbers."""
        if self.kind == "count":
            return spread_ns
        known = [ns for ns in (spread_ns, self.useful_ns or None) if ns is not None]
        return min(known) + (self.length if self.kind == "sized" else 0) if known else None

    @property
    def after_ns(self) -> int:
        """What a result waits for besides its last tuples: from the first of them to the end."""
        if self.kind == "count":
            return 0
        return self.length if self.first or self.kind == "sized" else 0


def read_windows(plan: Facts) -> dict[str, Windows]:
    """By the operator that collects; none where it has none."""
    found = {}
    for name, facts in plan.graph.windows.items():
        add = facts.add
        found[add] = Windows(
            name,
            add,
            plan.placement[add],
            facts.kind,
            facts.length,
            facts.hop,
            facts.first,
            facts.useful_ns,
            facts.wait_ns,
            facts.sources,
            whole(plan, plan.graph.operators[add].inputs),
        )
    return found


@dataclass(frozen=True)
class EntryShedder:
    """Where tuples on their way to `windows` may be shed: at those units, by a policy, `most` waiting on their way."""

    policy: str
    units: tuple[int, ...]
    windows: frozenset[str]
    most: int
    path: tuple[int, ...]


def read_entry_shedders(plan: Facts) -> tuple[EntryShedder, ...]:
    """Of all nodes."""
    names = {facts.id: name for name, facts in plan.graph.operators.items()}
    return tuple(
        EntryShedder(
            each.policy,
            tuple(each.units),
            frozenset(names[number] for number in each.windows),
            each.most,
            tuple(each.path),
        )
        for local in plan.nodes.values()
        for each in local.sheddings
    )


def whole(plan: Facts, streams: Iterable[str]) -> bool:
    """Whether what makes these streams declares to pass every tuple: at most one, and one on average."""
    operators = plan.graph.operators
    waiting, seen = list(streams), set()
    while waiting:
        name = waiting.pop()
        if name in operators and name not in seen:
            seen.add(name)
            if not passes_all(operators[name]):
                return False
            waiting += operators[name].inputs
    return True


def passes_all(operator: Operator) -> bool:
    """Whether an operator declares one result of every tuple."""
    said = operator.declared
    return operator.run != "filter" and said.mean == 1 and said.at_most in ((), ((1, 1),))


__all__ = ["EntryShedder", "Windows", "passes_all", "read_entry_shedders", "read_windows", "whole"]
