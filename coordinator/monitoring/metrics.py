"""Metrics between two looks: rates, the share of late results, how long they took, what was shed before them.

All counts only grow while a runtime lives; where one is smaller than before, or the incarnation is another, the span
begins with the incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from coordinator.monitoring import empty_windows, paths
from coordinator.monitoring.paths import ON_LINKS, Ends, Path
from coordinator.monitoring.status_response import OutputStatus, PlaceStatus, UnitStatus
from coordinator.plan.deadline_breakdown import ADMITTED, MISSED, guarantee_status
from coordinator.report.missed_share import WINDOWS, interval
from coordinator.report.report_document import Share
from protos.plan.guarantee import Claim
from protos.plan_document import Plan

PROMISE = {ADMITTED: "from admission", MISSED: "not guaranteed"}
SHED, LOST = "shed.", "lost."
STATES = ("committed", "draining", "prepared", "ended", "none")
PERCENT = 99

Plans = Mapping[str, Plan]


@dataclass(frozen=True)
class Look:
    """at_s: when, on a monotonic clock. places: as `status_response.ask` has them. Before the first look
    there is None."""

    at_s: float
    places: Mapping[str, PlaceStatus]


@dataclass(frozen=True)
class Node:
    """One place. Where it does not answer only `why` says something. *_per_s, utilisation: between the looks."""

    name: str
    reachable: bool
    well: bool
    why: str = ""
    version: str = ""
    rt: bool = False
    state: str = ""  # of its plans
    utilisation: float | None = None
    queue_bytes: int = 0
    queue_limit_bytes: int | None = None
    shed_per_s: float | None = None
    lost: int = 0
    restarts: int = 0
    slack_ns: int | None = None  # the least that a unit had left of its sub-deadline, of late
    uptime_ns: int = 0
    values: PlaceStatus = field(default_factory=PlaceStatus)
    before: PlaceStatus | None = None  # of the look before, where it is the same incarnation
    span_s: float = 0.0


@dataclass(frozen=True)
class Output:
    """One output. Between the looks: results and what follows from them. path: where the plan is known."""

    name: str
    place: str
    deadline_ns: int
    query: str = ""
    bound_ns: int | None = None
    promise: str = ""
    span_s: float = 0.0
    met: int = 0
    late: int = 0
    undecidable: int = 0
    all_time: tuple[int, int, int] = (0, 0, 0)  # met, late, undecidable, of this incarnation
    worst_ns: int = 0  # of this incarnation
    p99_ns: int | None = None  # at most so long
    most_ns: int | None = None  # likewise, the longest
    shed: int | None = None  # tuples before it
    shed_all_time: int | None = None
    path: Path | None = None
    ends: Ends = field(default_factory=Ends)  # of what gave no result, between the looks
    silent: bool = False  # its node does not answer: nothing but what the plan says is known
    unheard: tuple[str, ...] = ()  # other nodes on its way that do not answer: what they hold back is not known
    idle: int | None = 0  # results of windows that nothing was fed into, at most; None: any may be such

    @property
    def results(self) -> int:
        """Delivered between the looks."""
        return self.met + self.late + self.undecidable

    @property
    def per_s(self) -> float | None:
        """Results."""
        return self.results / self.span_s if self.span_s else None

    @property
    def miss_ratio(self) -> float | None:
        """Of what was delivered and decided; None: nothing was."""
        decided = self.met + self.late
        return self.late / decided if decided else None

    @property
    def met_idle(self) -> int:
        """Of the met, at most so many are of windows that nothing was fed into, and no part of what was offered."""
        return self.met if self.idle is None else min(self.met, self.idle)

    @property
    def between(self) -> dict[str, int]:
        """What may have been missed, in results: of a tuple the most that it can have, with any filters before
        it."""
        ends = self.ends
        return {
            "refused": ends.refused, "policed": ends.policed, "shed_before_filter": ends.shed,
            "lost_before_filter": ends.lost, "undecidable": self.undecidable,
            WINDOWS: min(self.met, ends.refused_of_windows),
        }  # fmt: skip

    @property
    def missed_of_offered(self) -> Share:
        """[lo, hi] of what was offered, as in the report, as far as it is known here."""
        return (0.0, 1.0) if self.unheard else interval(self.met, self.late, self.between, self.met_idle)

    @property
    def slack_ns(self) -> int | None:
        """What the slowest result had left of the deadline, at least."""
        return None if self.most_ns is None else self.deadline_ns - self.most_ns

    @property
    def shed_per_s(self) -> float | None:
        """Before it."""
        return self.shed / self.span_s if self.shed is not None and self.span_s else None


@dataclass(frozen=True)
class Unit:
    """A task unit between the looks. mean_ns: from release to end, of the instances that were timed."""

    place: str
    plan: str
    id: int
    operators: tuple[str, ...]
    sub_deadline_ns: int
    queued: int
    per_s: float | None
    shed: int
    lost: int
    mean_ns: int | None
    recent_ns: int | None
    worst_ns: int | None


@dataclass(frozen=True)
class Frame:
    """Everything that is shown of two looks. plans: those that are known, by hash."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    plans: Plans


def between(before: Look | None, now: Look, plans: Plans, earlier: Iterable[Output] = ()) -> Frame:
    """What happened from the one to the other; without the one before, since each runtime began. earlier: outputs that
    were seen then, which stay where their node does not answer now."""
    nodes = tuple(_node(name, values, before, now) for name, values in now.places.items())
    outputs = list(_outputs(nodes, plans))
    answered = {output.name for output in outputs}
    outputs += [output for output in _silent(nodes, plans, earlier) if output.name not in answered]
    return Frame(nodes, tuple(outputs), plans)


def _node(name: str, values: PlaceStatus, before: Look | None, now: Look) -> Node:
    if not values.reachable:
        return Node(name, False, False, values.why, values=values)
    old = before.places.get(name) if before is not None else None
    if old is not None and (not old.reachable or old.boot != values.boot):
        old = None
    ns = values.uptime_ns - (old.uptime_ns if old else 0)
    span_s = ns / 1e9
    busy_ns = values.busy_ns + values.overhead_ns - (old.busy_ns + old.overhead_ns if old else 0)
    shed = total(values, SHED) - (total(old, SHED) if old else 0)
    lost = total(values, LOST) + sum(values.counters.get(name, 0) for name in ON_LINKS)
    return Node(
        name, True, values.is_well, values.why, values.version, values.rt, _state(values),
        busy_ns / ns if ns > 0 else None, values.queue_bytes, values.queue_limit_bytes,
        shed / span_s if ns > 0 else None, lost,
        values.restarts, _slack(values), values.uptime_ns, values, old, span_s,
    )  # fmt: skip


def total(values: PlaceStatus, prefix: str) -> int:
    """Of all counters with that prefix."""
    return sum(n for name, n in values.counters.items() if name.startswith(prefix))


def _state(values: PlaceStatus) -> str:
    if not values.runtime_alive:
        return "no runtime"
    states = {status.state for status in values.plans}
    return next((state for state in STATES if state in states), "no plan")


def _slack(values: PlaceStatus) -> int | None:
    left = [unit.sub_deadline_ns - unit.recent_ns for status in values.plans for unit in status.units if unit.recent_ns]
    return min(left, default=None)


def units(node: Node) -> list[Unit]:
    """Of a node, as they are in its plans."""
    if not node.reachable:
        return []
    old = {
        (status.hash, unit.id): unit
        for status in (node.before.plans if node.before is not None else ())
        for unit in status.units
    }
    return [
        _unit(node, status.hash, unit, old.get((status.hash, unit.id)))
        for status in node.values.plans
        for unit in status.units
    ]


def _unit(node: Node, plan: str, unit: UnitStatus, old: UnitStatus | None) -> Unit:
    if old is not None and (unit.runs < old.runs or unit.timed < old.timed):  # the plan was loaded anew
        old = None
    timed = unit.timed - (old.timed if old else 0)
    timed_ns = unit.timed_ns - (old.timed_ns if old else 0)
    runs = unit.runs - (old.runs if old else 0)
    return Unit(
        node.name, plan, unit.id, tuple(unit.operators), unit.sub_deadline_ns, unit.queued,
        runs / node.span_s if node.span_s else None, unit.shed, unit.lost, timed_ns // timed if timed else None,
        unit.recent_ns or None, unit.worst_ns or None,
    )  # fmt: skip


def _outputs(nodes: tuple[Node, ...], plans: Plans) -> Iterator[Output]:
    """Those that any node has, in the order of the nodes."""
    running = _running(nodes, plans)
    known = {name: _Known(plan, name) for plan in running for name in plan.graph.outputs}
    for node in nodes:
        for name, output in node.values.outputs.items():
            found = _output(node, name, output, known.get(name), nodes)
            yield replace(found, idle=_idle(found, empty_windows.leading(running, name), node, nodes))


def _silent(nodes: tuple[Node, ...], plans: Plans, earlier: Iterable[Output]) -> Iterator[Output]:
    """Outputs at nodes that do not answer: of the plans that others have, or, where nobody says which plan runs, of
    those that are known; and what was seen there."""
    silent = {node.name for node in nodes if not node.reachable}
    if not silent:
        return
    asked = any(node.values.plans for node in nodes)
    found: dict[str, Output] = {each.name: _unseen(each) for each in earlier}
    for plan in _running(nodes, plans) if asked else plans.values():
        for name, output in plan.graph.outputs.items():
            known = _Known(plan, name)
            found[name] = Output(
                name,
                output.at,
                plan.guarantee[name].deadline_ns,
                known.query,
                known.bound_ns,
                known.promise,
                path=known.path,
                silent=True,
            )
    yield from (output for output in found.values() if output.place in silent)


def _unseen(seen: Output) -> Output:
    """What still holds of an output."""
    return Output(
        seen.name, seen.place, seen.deadline_ns, seen.query, seen.bound_ns, seen.promise, path=seen.path, silent=True
    )


def _running(nodes: tuple[Node, ...], plans: Plans) -> list[Plan]:
    """The known plans that nodes have, the one that counts last."""
    found = {
        status.hash: (status.state == "committed", status.epoch)
        for node in nodes
        for status in node.values.plans
        if status.hash in plans
    }
    return [plans[hash_] for hash_ in sorted(found, key=found.__getitem__)]


def promise(claim: Claim) -> str:
    """What is promised of an output, in a word or three."""
    said = guarantee_status(claim)
    return PROMISE.get(said, said)


class _Known:
    """What the plan says of an output."""

    def __init__(self, plan: Plan, name: str) -> None:
        claim = plan.guarantee[name]
        self.path = paths.to(plan, name)
        self.query = next((query for query, of in plan.queries.items() if name in of.outputs), "")
        self.bound_ns = claim.from_admission_ns if claim.judged_ns is None else claim.judged_ns
        self.promise = promise(claim)


def _output(node: Node, name: str, now: OutputStatus, known: _Known | None, nodes: tuple[Node, ...]) -> Output:
    old = node.before.outputs.get(name) if node.before is not None else None
    if old is not None and (now.met < old.met or now.late < old.late or now.undecidable < old.undecidable):
        old = None  # another plan with an output of that name
    met, late, undecidable = now.met, now.late, now.undecidable
    if old is not None:
        met, late, undecidable = met - old.met, late - old.late, undecidable - old.undecidable
    p99_ns, most_ns = _latencies(now, old)
    path = known.path if known else None
    shed, shed_all_time = _shed(path, nodes)
    unheard = tuple(each.name for each in nodes if not each.reachable and (path is None or each.name in path.places))
    return Output(
        name, node.name, now.deadline_ns, known.query if known else "", known.bound_ns if known else None,
        known.promise if known else "", node.span_s, met, late, undecidable,
        (now.met, now.late, now.undecidable), now.worst_ns, p99_ns, most_ns,
        shed, shed_all_time, path, _ends(path, nodes), unheard=unheard,
    )  # fmt: skip


def _latencies(now: OutputStatus, old: OutputStatus | None) -> tuple[int | None, int | None]:
    """By which 99 of 100 results had come, and all; no longer than the longest ever."""
    then: dict[int, int] = dict(old.latencies) if old else {}
    new = [(most_ns, results - then.get(most_ns, 0)) for most_ns, results in now.latencies]
    new = [(min(most_ns, now.worst_ns), results) for most_ns, results in new if results > 0]
    every = sum(results for _, results in new)
    if not every:
        return None, None
    rank, seen = -(-every * PERCENT // 100), 0
    for most_ns, results in new:
        seen += results
        if seen >= rank:
            return most_ns, new[-1][0]
    raise AssertionError("the rank is at most the number")


def _ends(path: Path | None, nodes: tuple[Node, ...]) -> Ends:
    """Between the looks, or, where no node was seen before, ever."""
    seen = [(node.values, node.before) for node in nodes if node.before is not None]
    if not seen:
        return paths.ends(path, [node.values for node in nodes])
    return paths.ends(path, [now for now, _ in seen]).since(paths.ends(path, [before for _, before in seen]))


def _idle(output: Output, leading: empty_windows.Leading, at: Node, nodes: tuple[Node, ...]) -> int | None:
    """Of an output at a node. None where another runtime began anew since the span began: what it had counted is gone.
    An agent that did so does not know; more results than windows have closed tell."""
    there = [node for node in nodes if node.reachable]
    counting = [node for node in there if leading.places is None or node.name in leading.places]
    younger = [node for node in counting if node.before is None and node.span_s < at.span_s]
    if younger:
        given = sum(empty_windows.given(leading, node.values) for node in there)
        restarted = at.before is not None or any(node.restarts for node in younger)
        if restarted or (leading.alone and output.results > given):
            return None
    return sum(empty_windows.idle(leading, node.values, node.before) for node in there)


def _shed(path: Path | None, nodes: tuple[Node, ...]) -> tuple[int | None, int | None]:
    """Before an output: between the looks, and ever. A node that was not seen before has no share in the first."""
    if path is None:
        return None, None
    ever = paths.shed_before(path, [node.values for node in nodes])
    seen = [(node.values, node.before) for node in nodes if node.before is not None]
    if not seen:
        return ever, ever
    then = paths.shed_before(path, [before for _, before in seen])
    return max(0, paths.shed_before(path, [now for now, _ in seen]) - then), ever
