"""`--survive 1`: a plan that stays possible when any one host fails, with the plan to deploy then for each.

Every operator that survives stays where it is, so what failed moves into room that the plan has to leave: their
demand is reserved by planning each fail-over and asking for another plan where one is impossible. Rejected: a copy of
every operator in the model itself ([P]'s rows with what a failed node would bring), which takes the printed rows for
granted and would have to be written again for every model; and free migration of what survives, which would restart
operators that nothing has happened to.

The optimum is tried first. Where a host cannot fail, what stays is ruled out together: no plan with those operators in
those places; then the next best. With every operator free, an impossible fail-over is proven impossible for all plans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from coordinator.errors import InfeasibleError, Mistake, OutOfTimeError
from coordinator.model import problem
from coordinator.model.choices import Choices
from coordinator.model.progress import Watch
from coordinator.solve.surviving_topology import SurvivingTopology, without
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from protos.plan_document import Plan, Survivor

Make = Callable[[Query, Cluster, Mapping[str, str], Choices, Watch | None], Plan]
Conflict = dict[str, frozenset[str]]
IMPOSSIBLE = Mistake("no_survival", "no plan survives the loss of any one node")
IN_TIME = Mistake("no_survival_in_time", "no plan that survives any one node was found in time")
NONE_HOLDS = Mistake("infeasible", "no plan holds")
MOST_TRIES = 200
MOST_SHRUNK = 24  # operators up to which what is ruled out is made small
LEAST_SECONDS = 2.0  # of one fail-over


@dataclass
class _Search:
    """`proven`: nothing was ruled out for want of time; `wanted`: outputs that the present plan guarantees, which each
    fail-over has to guarantee as well, `whole`: those are all."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    choices: Choices
    make: Make
    until: float
    left: dict[str, SurvivingTopology]
    conflicts: list[Conflict] = field(default_factory=list)
    why: dict[str, list[Mistake]] = field(default_factory=dict)
    known: dict[object, Plan | None] = field(default_factory=dict)
    hopeful: set[str] = field(default_factory=set)
    proven: bool = True
    wanted: frozenset[str] = frozenset()
    whole: bool = True

    @property
    def _sound(self) -> bool:
        return self.choices.allocator == "deadline" and self.choices.model == "sound"

    def run(self, watch: Watch | None) -> Plan:
        for _ in range(MOST_TRIES):
            primary = self._primary(watch)
            self.wanted = _promised(primary) if self._sound and not self.choices.best_effort else frozenset()
            self.whole = self.wanted == primary.guarantee.keys()
            found = {host: self._after(host, primary) for host, left in self.left.items() if left.query}
            failed = [host for host, plan in found.items() if plan is None]
            if not failed:
                return self._document(primary, found)
            for host in failed:
                self.conflicts.append(self._conflict(host, primary))
            if time.monotonic() > self.until:
                break
        raise OutOfTimeError(IN_TIME, *self._reasons())

    def _primary(self, watch: Watch | None) -> Plan:
        """The best plan that is not ruled out."""
        choices = replace(self.choices, survive=0, conflicts=tuple(self.conflicts))
        try:
            return self.make(self.query, self.cluster, self.types, choices, watch)
        except InfeasibleError:
            if not self.conflicts:
                raise
            if not self.proven:
                raise OutOfTimeError(
                    replace(IMPOSSIBLE, text=f"{IMPOSSIBLE.text}, as far as was found"), *self._reasons()
                ) from None
            raise InfeasibleError([IMPOSSIBLE, *self._reasons()]) from None

    def _reasons(self, hosts: Iterable[str] = ()) -> list[Mistake]:
        told = hosts or self.why
        return [each.within(f"without node {host}") for host in told for each in self.why.get(host, [NONE_HOLDS])]

    def _after(self, host: str, primary: Plan) -> Plan | None:
        """The fail-over plan of a host, None where there is none; found once for what stays where it is."""
        stays = self._stays(host, primary)
        key = (host, tuple(sorted(stays.items())), self.wanted)
        if key not in self.known:
            self.known[key] = self._plan(host, stays)
            if self.known[key] is None and host not in self.hopeful:
                self.hopeful.add(host)
                self._plan(host, stays, quick=False)  # for the reasons
                self._hope(host)
        return self.known[key]

    def _stays(self, host: str, primary: Plan) -> dict[str, str]:
        """Surviving operators that are elsewhere, and where."""
        query = self.left[host].query
        down = {node.name for node in self.cluster.hosts[host]}
        place = primary.placement
        return {one.name: place[one.name] for one in query.operators if place[one.name] not in down} if query else {}

    def _hope(self, host: str) -> None:
        """Where a fail-over is impossible with every operator free, every plan's is. Raises InfeasibleError then."""
        before, self.proven = self.proven, True
        if self._plan(host, {}, quick=False) is None and self.proven:
            raise InfeasibleError([IMPOSSIBLE, *self._reasons([host])])
        self.proven = before

    def _plan(self, host: str, stays: Mapping[str, str], quick: bool = True) -> Plan | None:
        left = self.left[host]
        assert left.query is not None  # asked only where an output is left
        seconds = max(LEAST_SECONDS, self.choices.limits.seconds / len(self.left))
        choices = replace(
            self.choices,
            place={name: self._exact(place) for name, place in stays.items()},
            limits=replace(self.choices.limits, seconds=seconds),
            tighten=None,
            survive=0,
            quick=quick,
            best_effort=self.choices.best_effort or not self.whole,
            conflicts=(),
        )
        try:
            found = self.make(left.query, left.cluster, self.types, choices, None)
        except InfeasibleError as error:
            if not quick:
                self.why[host] = error.reasons
            return None
        except OutOfTimeError as error:
            self.why.setdefault(host, error.mistakes)
            self.proven = False
            return None
        lacking = self.wanted & (found.guarantee.keys() - _promised(found))
        if lacking:
            names = ", ".join(sorted(lacking))
            self.why[host] = [
                Mistake("not_guaranteed", f"{names}: no plan was found that guarantees it", subject=names)
            ]
            self.proven = False
            return None
        return found

    def _exact(self, place: str) -> str:
        """The name of one place, where a host's name alone means any of its cores."""
        node = self.cluster.nodes[place]
        return f"{node.host}.{node.core}" if node.cores > 1 else place

    def _conflict(self, host: str, primary: Plan) -> Conflict:
        """What may not stand together again: the fewer operators, the more plans it rules out.

        With fewer operators held a fail-over is possible where it was before, so those that stay are enough, and of
        them those without which it would be possible. Not so where chains are contracted by what is held: there also
        what is on the host counts.
        """
        stays = self._stays(host, primary)
        if self._contracts(host):
            left = self.left[host].query
            gone = {one.name for one in left.operators} - stays.keys() if left else set()
            down = frozenset(node.name for node in self.cluster.hosts[host])
            return {**{name: frozenset((at,)) for name, at in stays.items()}, **dict.fromkeys(gone, down)}
        if len(stays) <= MOST_SHRUNK:
            for name in list(stays):
                rest = {other: at for other, at in stays.items() if other != name}
                if time.monotonic() < self.until and rest and self._plan(host, rest) is None:
                    stays = rest
        return {name: frozenset((at,)) for name, at in stays.items()}

    def _contracts(self, host: str) -> bool:
        left = self.left[host]
        if self._sound or left.query is None:
            return False
        fixed, linear = (
            problem.build(left.query, left.cluster, {}, "fixed"),
            problem.build(left.query, left.cluster, {}, "linear"),
        )
        return len(linear.items) < len(fixed.items)

    def _document(self, primary: Plan, found: Mapping[str, Plan | None]) -> Plan:
        entries = {}
        for host, left in self.left.items():
            after = found.get(host)
            moved = {} if after is None else {
                name: at for name, at in after.placement.items() if primary.placement[name] != at
            }  # fmt: skip
            entries[host] = Survivor(
                lost_outputs=left.lost_outputs,
                lost_sources=left.lost_sources,
                lost_operators=left.lost_operators,
                lost_sides=left.lost_sides,
                moved=moved,
                plan=after,
            )
        return replace(primary, failover=entries).sealed()


def survivable(
    query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices, make: Make, watch: Watch | None = None
) -> Plan:
    """The best plan under which any one host may fail, with `failover`, an entry per host; `make` plans.

    Raises InfeasibleError where there is none, with the hosts and reasons, and OutOfTimeError.
    """
    left = {host: without(query, cluster, host) for host in cluster.hosts}
    until = time.monotonic() + choices.limits.seconds * 2
    return _Search(query, cluster, types, choices, make, until, left).run(watch)


def _promised(plan: Plan) -> frozenset[str]:
    """Outputs with a bound within their deadline, from admission on where a source declares no age."""
    found = set()
    for name, claim in plan.guarantee.items():
        since_ns = claim.from_admission_ns
        ageless = claim.bound_ns is None and since_ns is not None and since_ns <= claim.deadline_ns
        if claim.holds or ageless:
            found.add(name)
    return frozenset(found)
