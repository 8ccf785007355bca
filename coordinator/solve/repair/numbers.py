"""Keys whose value is a number: for each the direction that may help, what it may be at most, and how it is written.

`NUMBERS` is the table of them. A key that a file does not have is not changed, and so is one that is at its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Generic, Literal

from coordinator.plan import policy_choice
from coordinator.solve.repair.case_parts import (
    CORE_LINKS,
    ENTRIES,
    LINKS,
    NODES,
    OPERATORS,
    OUTPUTS,
    SOURCES,
    Part,
    Section,
    chained,
)
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Change, Edit, Way
from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec.cluster import Link, Node
from coordinator.spec.quality import Freshness
from coordinator.spec.query import GUESS_NS, Operator, Output, Source
from coordinator.spec.windows import WAIT_NS
from coordinator.units import LARGEST, exact, exact_bps, exact_bytes, show_bps, show_bytes, show_ns, step_of
from protos.plan.arrivals import BurstArrival
from protos.plan.operators import SideRule, Sync, Window

MOST = 1000  # times what is declared, at most
MICRO = 10**6
MILLI = 1000


@dataclass(frozen=True)
class Unit:
    """How a number is shown, how a file has it, and a round step of about a thousandth of it."""

    show: Callable[[int], str]
    write: Callable[[int], str]
    step: Callable[[int], int]


def _binary(size: int) -> int:
    return 1 << max(0, size.bit_length() - 10)


def _decimal(scale: int) -> Unit:
    def write(value: int) -> str:
        return f"{(Decimal(value) / scale).normalize():f}"

    return Unit(write, write, lambda value: 1 if scale == MILLI else step_of(value))


TIME = Unit(show_ns, exact, step_of)
BYTES = Unit(show_bytes, exact_bytes, _binary)
BITS = Unit(show_bps, exact_bps, step_of)
COUNT = Unit(str, str, step_of)
PER_S = _decimal(MICRO)  # in millionths a second
SHARE = _decimal(MILLI)  # in thousandths


@dataclass(frozen=True)
class Bounds:
    """The least and the most that a number may become."""

    low: int
    high: int


@dataclass(frozen=True)
class Number(Generic[Part]):
    """One key. `read`: its value, None: it is not there; `write`: with another one; `way` and `text` of a change to it;
    `direction` that may help; `end`: the utmost that it may be; `whole`: the value of the key where it is more than the
    number, None: it is not; `ranged`: what a declared range calls it, empty: `key`."""

    section: Section[Part]
    key: str
    way: Way
    text: str
    direction: Literal["more", "less"]
    read: Callable[[Part], int | None]
    write: Callable[[Part, int], Part]
    unit: Unit = TIME
    end: Callable[[Part], int] | None = None
    whole: Callable[[Part, str], str] | None = None
    ranged: str = ""

    def remedies(self, case: Case, names: Collection[str] = (), bounds: Bounds | None = None) -> list[Remedy]:
        """One for every part, or of those names, that has the key. `bounds`: within which the value stays."""
        found = []
        for name, parts in self.section.of(case).items():
            if names and name not in names:
                continue
            for part in parts:
                before = self.read(part)
                if before is not None and (end := self._end(part, before, bounds)) != before:
                    found.append(self._remedy(name, part, before, end))
                    break
        return found

    def value(self, case: Case, name: str) -> int | None:
        """What it is for the part of that name; None: the part does not have it."""
        values = (self.read(part) for part in self.section.of(case).get(name, ()))
        return next((value for value in values if value is not None), None)

    @property
    def range_key(self) -> str:
        """What a declared range calls it."""
        return self.ranged or self.key

    def _end(self, part: Part, before: int, bounds: Bounds | None) -> int:
        if bounds is not None:
            least = self.end(part) if self.end and self.direction == "less" else 1
            most = self.end(part) if self.end and self.direction == "more" else LARGEST
            return (
                min(before, max(bounds.low, least)) if self.direction == "less" else max(before, min(bounds.high, most))
            )
        if self.direction == "less":
            return min(before, self.end(part) if self.end else 1)
        return max(before, min(MOST * before, LARGEST, self.end(part) if self.end else LARGEST))

    def _remedy(self, name: str, part: Part, before: int, end: int) -> Remedy:
        step = self.unit.step(before)

        def change(case: Case, value: int) -> Change:
            after = self._round(before, end, value)

            def write(one: Part) -> Part:
                return one if self.read(one) is None else self.write(one, after)

            shown = {"after": self.unit.show(after), "before": self.unit.show(before)}
            written = self.unit.write(after)
            edit = Edit(self.section.name, name, self.key, self.whole(part, written) if self.whole else written)
            low, high = sorted((max(1, before), max(1, after)))
            changed = self.section.changed(case, name, write)
            return Change(self.way, self.text.format(name=name, **shown), changed, (edit,), (Fraction(high, low),))

        label = f"{self.direction} '{self.key}' of {name}"
        if self.direction == "more":
            return Remedy(label, change, before, (min(2 * before, end), end), lambda _: step)
        limits = tuple(dict.fromkeys([*(max(end, before // part) for part in (2, MOST, MOST**2)), end]))
        least = max(1, step // 10)  # near 0, where nothing is near in proportion
        return Remedy(label, change, before, limits, lambda value: max(1, value // MOST) if value else least)

    def _round(self, before: int, end: int, value: int) -> int:
        """Away from what it was."""
        if value in (before, end):
            return value
        if self.direction == "more":
            step = self.unit.step(before)
            return min(end, before - (before - value) // step * step)
        step = self.unit.step(value)
        return max(end, value // step * step)


def _nothing(_: object) -> int:
    return 0


def _window(read: Callable[[Window], int | None]) -> Callable[[Operator], int | None]:
    return lambda one: read(one.window) if one.window is not None else None


def _with_window(write: Callable[[Window, int], Window]) -> Callable[[Operator, int], Operator]:
    def changed(one: Operator, value: int) -> Operator:
        assert one.window is not None  # it was read
        return replace(one, window=write(one.window, value))

    return changed


def _length(kind: str) -> tuple[Callable[[Operator], int | None], Callable[[Operator, int], Operator]]:
    """Of windows of that kind. The hop follows where it is the length."""
    read = _window(lambda window: window.length if window.kind == kind else None)
    write = _with_window(
        lambda window, value: replace(
            window, length=value, hop=value if window.hop == window.length else min(window.hop, value)
        )
    )
    return read, write


def _hop(counted: bool) -> Callable[[Operator], int | None]:
    return _window(lambda window: window.hop if (window.kind == "count") == counted else None)


def _most_hop(one: Operator) -> int:
    assert one.window is not None  # it was read
    return one.window.length


_with_hop = _with_window(lambda window, value: replace(window, hop=value))


def _sync(write: Callable[[Sync, int], Sync]) -> Callable[[Operator, int], Operator]:
    def changed(one: Operator, value: int) -> Operator:
        assert one.sync is not None  # it was read
        return replace(one, sync=write(one.sync, value))

    return changed


def _call(source: Source, value: int) -> Source:
    assert source.pull is not None  # it was read
    return replace(source, pull=replace(source.pull, cost_ns=value))


def _every(source: Source, value: int) -> Source:
    """What follows from it unless it is declared follows: how late a tick may be, what a call is guessed to cost."""
    pull, written = source.pull, source.arrival.written
    assert pull is not None and isinstance(written, BurstArrival)
    part = 1 if pull.run else 10
    late_ns = value // part if written.tolerance_ns == pull.every_ns // part else written.tolerance_ns
    arrival = replace(
        source.arrival,
        rate=Fraction(1, value),
        written=replace(written, period_ns=value, tolerance_ns=late_ns),
    )
    cost_ns = min(GUESS_NS, value // 10) if pull.guessed else pull.cost_ns
    return replace(source, arrival=arrival, pull=replace(pull, every_ns=value, cost_ns=cost_ns))


def _tolerated(source: Source, value: int) -> Source:
    written = replace(source.arrival.written, tolerance_ns=value)
    return replace(source, arrival=replace(source.arrival, written=written))


def _memory(node: Node, value: int) -> Node:
    return replace(node, host_memory_bytes=value, memory_bytes=value // node.cores)


def _latest(output: Output) -> int:
    """Data cannot be younger than the tuples that a deadline counts from."""
    return output.age.limit_ns if output.age is not None else LARGEST


def _age(output: Output, value: int) -> Output:
    assert output.age is not None  # it was read
    return replace(output, age=replace(output.age, limit_ns=value))


def _reaction(output: Output, value: int) -> Output:
    assert output.reaction is not None  # it was read
    return replace(output, reaction=replace(output.reaction, limit_ns=value))


def _limit(asked: Freshness | None, written: str) -> str:
    without = asked.without if asked is not None else ()
    return f"{{limit: {written}, without: [{', '.join(without)}]}}" if without else written


def _cost(one: Operator, value: int) -> Operator:
    return replace(one, cost_ns=value, cost_from=None)


def _chain_cost(one: Operator) -> int | None:
    """Of an operator of a chain that the file has as one name: a chain that is a list may have members of other
    costs."""
    return one.cost_ns if chained(one) and not one.closes and "chain" not in one.keys else None


def _batch(node: Node) -> int | None:
    """The largest batch of a policy that has a bound; one without a limit has none."""
    policy = node.policy
    return policy.largest_batch if policy is not None and policy_choice.covered(policy) else None


def _with_batch(node: Node, value: int) -> Node:
    assert node.policy is not None  # it was read
    return replace(node, policy=replace(node.policy, largest_batch=value))


def _policy(node: Node, batch: str) -> str:
    assert node.policy is not None  # it was read
    return replace(node.policy, largest_batch=int(batch)).written


DEADLINE = Number[Output](
    OUTPUTS,
    "deadline",
    "deadline",
    "relax the deadline: {name} {after} instead of {before}",
    "more",
    lambda one: one.deadline_ns,
    lambda one, value: replace(one, deadline_ns=value),
    end=_latest,
)
WISHES: tuple[Number[Output], ...] = (
    Number(
        OUTPUTS,
        "wait",
        "quality",
        "let the first result of {name} after a pause come after {after} (wait) instead of {before}",
        "more",
        lambda one: one.qos.wait_ns,
        lambda one, value: replace(one, qos=replace(one.qos, wait_ns=value)),
    ),
    Number(
        OUTPUTS,
        "throughput",
        "quality",
        "ask of {name} a throughput of {after} a second instead of {before}",
        "less",
        lambda one: None if one.qos.throughput is None else round(one.qos.throughput * MICRO),
        lambda one, value: replace(one, qos=replace(one.qos, throughput=value / MICRO)),
        PER_S,
    ),
    Number(
        OUTPUTS,
        "latency",
        "quality",
        "let the throughput of {name} begin after {after} (latency) instead of {before}",
        "more",
        lambda one: one.qos.latency_ns or None,
        lambda one, value: replace(one, qos=replace(one.qos, latency_ns=value)),
    ),
    Number(
        OUTPUTS,
        "queue",
        "quality",
        "let tuples for {name} take {after} (queue) instead of {before}",
        "more",
        lambda one: one.qos.queue_bytes,
        lambda one, value: replace(one, qos=replace(one.qos, queue_bytes=value)),
        BYTES,
    ),
    Number(
        OUTPUTS,
        "age",
        "quality",
        "let the data behind {name} be up to {after} old (age) instead of {before}",
        "more",
        lambda one: one.age.limit_ns if one.age is not None else None,
        _age,
        whole=lambda one, written: _limit(one.age, written),
    ),
    Number(
        OUTPUTS,
        "reaction",
        "quality",
        "let {name} react within {after} (reaction) instead of {before}",
        "more",
        lambda one: one.reaction.limit_ns if one.reaction is not None else None,
        _reaction,
        whole=lambda one, written: _limit(one.reaction, written),
    ),
)
CAPACITY: tuple[Number[Node] | Number[Link], ...] = (
    Number[Node](
        NODES,
        "memory",
        "memory",
        "give node {name} a memory of {after} instead of {before}",
        "more",
        lambda one: one.host_memory_bytes or None,
        _memory,
        BYTES,
    ),
    Number[Node](
        NODES,
        "cap",
        "cap",
        "let node {name} be used up to {after} (cap) instead of {before}",
        "more",
        lambda one: int(one.cap * MILLI) or None,
        lambda one, value: replace(one, cap=Fraction(value, MILLI)),
        SHARE,
        lambda _: MILLI,
    ),
    Number[Node](
        NODES,
        "policy",
        "policy",
        "let at most {after} tuples run as one instance on node {name} (batch) instead of {before}",
        "less",
        _batch,
        _with_batch,
        COUNT,
        whole=_policy,
        ranged="policy.batch",
    ),
    Number[Link](
        LINKS,
        "bandwidth",
        "bandwidth",
        "give link {name} a bandwidth of {after} instead of {before}",
        "more",
        lambda one: one.bandwidth_bps or None,
        lambda one, value: replace(one, bandwidth_bps=value),
        BITS,
    ),
    Number[Link](
        LINKS,
        "latency",
        "latency",
        "make link {name} faster: a latency of {after} instead of {before}",
        "less",
        lambda one: one.latency_ns or None,
        lambda one, value: replace(one, latency_ns=value),
        end=_nothing,
    ),
    Number[Link](
        CORE_LINKS,
        "core_link",
        "latency",
        "make hops between cores of {name} faster: a core_link of {after} instead of {before}",
        "less",
        lambda one: one.latency_ns or None,
        lambda one, value: replace(one, latency_ns=value),
        end=_nothing,
    ),
)
ARRIVING: tuple[Number[Source], ...] = (
    Number(
        SOURCES,
        "max_age",
        "age",
        "admit only tuples of {name} that are at most {after} old (max_age), instead of {before}",
        "less",
        lambda one: one.max_age_ns or None,
        lambda one, value: replace(one, max_age_ns=value),
    ),
    Number(
        SOURCES,
        "max_age",
        "age",
        "admit tuples of {name} that are up to {after} old (max_age), instead of {before}",
        "more",
        lambda one: one.max_age_ns or None,
        lambda one, value: replace(one, max_age_ns=value),
    ),
    Number(
        SOURCES,
        "every",
        "input",
        "run source {name} every {after} instead of {before}",
        "more",
        lambda one: (one.pull.every_ns or None) if one.pull is not None else None,
        _every,
        end=lambda _: 86_400 * 10**9,
    ),
    Number(
        SOURCES,
        "cost",
        "cost",
        "make a call of source {name} cost {after} instead of {before}",
        "less",
        lambda one: (one.pull.cost_ns or None) if one.pull is not None else None,
        _call,
    ),
    Number(
        SOURCES,
        "tolerance",
        "input",
        "feed {name} more evenly: tuples at most {after} late (tolerance) instead of {before}",
        "less",
        lambda one: one.arrival.written.tolerance_ns or None,
        _tolerated,
        end=_nothing,
    ),
    Number(
        SOURCES,
        "max_size",
        "size",
        "make tuples of {name} smaller: at most {after} (max_size) instead of {before}",
        "less",
        lambda one: one.max_bytes or None,
        lambda one, value: replace(one, max_bytes=value),
        BYTES,
    ),
)
_TIME, _COUNT, _SIZED = _length("time"), _length("count"), _length("sized")
WORK: tuple[Number[Operator], ...] = (
    Number(
        OPERATORS,
        "cost",
        "cost",
        "make {name} cost {after} a tuple instead of {before}",
        "less",
        lambda one: None if one.closes else one.cost_ns,
        _cost,
    ),
    Number(
        ENTRIES,
        "cost",
        "cost",
        "make each operator of {name} cost {after} a tuple instead of {before}",
        "less",
        _chain_cost,
        _cost,
    ),
    Number(
        OPERATORS,
        "window.close",
        "cost",
        "make closing a window of {name} cost {after} instead of {before}",
        "less",
        lambda one: one.cost_ns if one.closes else None,
        _cost,
    ),
    Number(
        ENTRIES,
        "memory",
        "memory",
        "let {name} keep {after} (memory) instead of {before}",
        "less",
        lambda one: one.memory_bytes or None,
        lambda one, value: replace(one, memory_bytes=value),
        BYTES,
    ),
    Number(
        ENTRIES,
        "max_size",
        "size",
        "make results of {name} smaller: at most {after} (max_size) instead of {before}",
        "less",
        lambda one: one.max_bytes or None,
        lambda one, value: replace(one, max_bytes=value),
        BYTES,
    ),
    Number(
        OPERATORS,
        "window.hop",
        "window",
        "let windows of {name} begin every {after} (hop) instead of {before}",
        "more",
        _hop(counted=False),
        _with_hop,
        end=_most_hop,
    ),
    Number(
        OPERATORS,
        "window.hop",
        "window",
        "let windows of {name} begin every {after} tuples (hop) instead of {before}",
        "more",
        _hop(counted=True),
        _with_hop,
        COUNT,
        _most_hop,
    ),
    Number(
        OPERATORS, "window.time", "window", "make windows of {name} {after} long instead of {before}", "less", *_TIME
    ),
    Number(
        OPERATORS,
        "window.count",
        "window",
        "make windows of {name} {after} tuples long instead of {before}",
        "less",
        *_COUNT,
        COUNT,
    ),
    Number(
        OPERATORS,
        "window.most",
        "window",
        "make windows of {name} at most {after} long (most) instead of {before}",
        "less",
        *_SIZED,
    ),
    Number(
        OPERATORS,
        "window.lateness",
        "window",
        "let tuples come to windows of {name} at most {after} late (lateness) instead of {before}",
        "less",
        _window(lambda window: window.lateness_ns or None),
        _with_window(lambda window, value: replace(window, lateness_ns=value)),
        end=_nothing,
    ),
    Number(
        OPERATORS,
        "window.wait",
        "window",
        "let windows of {name} wait at most {after} for a missing number (wait) instead of {before}; more are given up",
        "less",
        _window(lambda window: window.wait_ns or WAIT_NS),
        _with_window(lambda window, value: replace(window, wait_ns=value)),
    ),
    Number(
        OPERATORS,
        "sync.timeout",
        "fusion",
        "let {name} wait at most {after} for its other inputs (timeout) instead of {before}",
        "less",
        lambda one: (one.sync.timeout_ns or None) if one.sync is not None else None,
        _sync(lambda sync, value: replace(sync, timeout_ns=value)),
    ),
    Number(
        OPERATORS,
        "sync.within",
        "fusion",
        "let {name} take tuples at most {after} apart (within) instead of {before}",
        "less",
        lambda one: (one.sync.within_ns or None) if one.sync is not None and not one.sync.each else None,
        _sync(lambda sync, value: replace(sync, within_ns=value)),
        end=_nothing,
    ),
)
WAIT = Number[Operator](  # no deadline hangs on it, but whether each window comes
    OPERATORS,
    "window.wait",
    "window",
    "let windows of {name} wait {after} for a missing number (wait) instead of {before}, so that none is given up",
    "more",
    _window(lambda window: window.wait_ns or WAIT_NS),
    _with_window(lambda window, value: replace(window, wait_ns=value)),
)
NUMBERS = (DEADLINE, *WISHES, *CAPACITY, *ARRIVING, *WORK)


def side_ages(case: Case) -> list[Remedy]:
    """A `max_age` of every side input: a shorter one, for an age, and a longer one, for a reaction."""
    found = []
    for operator in case.query.operators:
        for port, stream in operator.side.items():
            rule = operator.side_rules.get(port, SideRule())
            found += [_side(operator.said, port, stream, rule, direction) for direction in ("less", "more")]
    return [remedy for remedy in found if remedy is not None]


def _side(name: str, port: str, stream: str, rule: SideRule, direction: str) -> Remedy | None:
    if direction == "more" and not rule.max_age_ns:
        return None
    before = rule.max_age_ns or 10 * 10**9  # of any age: ten seconds are old for what a deadline depends on
    absent = ", absent: shed" if rule.shed else ""

    def change(case: Case, value: int) -> Change:
        value = max(1, value // step_of(value) * step_of(value)) if direction == "less" else value

        def limited(one: Operator) -> Operator:
            return replace(one, side_rules={**one.side_rules, port: replace(rule, max_age_ns=value)})

        instead = f" instead of {show_ns(rule.max_age_ns)}" if rule.max_age_ns else ""
        text = f"let values of side input {port} of {name} be at most {show_ns(value)} old (max_age){instead}"
        edit = Edit("operators", name, f"side.{port}", f"{{from: {stream}, max_age: {exact(value)}{absent}}}")
        ratio = Fraction(max(before, value), min(before, value))
        return Change("age", text, OPERATORS.changed(case, name, limited), (edit,), (ratio,))

    limits = (before // 2, before // MOST, 1) if direction == "less" else (2 * before, MOST * before)
    named = f"{direction} 'max_age' of side input {port} of {name}"
    return Remedy(named, change, before + (direction == "less"), limits, lambda value: max(1, value // MOST))


__all__ = ["DEADLINE", "MICRO", "MILLI", "NUMBERS", "WAIT", "WISHES", "Bounds", "Number", "Unit", "side_ages"]
