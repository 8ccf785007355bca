"""Admission control of a source: its rate limit ([P] 5.1), policing of its declared arrivals, and the node's memory.

In this order a tuple is shed as it is admitted: the queues are full and the latest go (drop-tail); its source is above
its limit and it is not worth more than what waits; it is beyond what was declared. A tuple that takes the place of
another one is not policed: together with the survivors it conforms to the limit, and only where the limit implies all
that is policed may anything be displaced. Where the queues are full and the oldest go (front), that is last.
"""

from collections import OrderedDict
from collections.abc import Callable

from node_agent.core import plan as plans
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Decision, Displaced, Job, Passed, Route
from node_agent.core.queues import find, in_order
from node_agent.core.shedding.memory_limit import DROP_TAIL, REFUSE
from node_agent.core.shedding.policing import ArrivalPolice, arrival_police
from node_agent.core.shedding.rate_limiter import PASS, SHED, RateLimiter
from node_agent.core.shedding.utility import Utility, read
from protos.records import POLICY_ARRIVALS, POLICY_MEMORY, POLICY_RATE

SWEPT = 16  # numbers too many that are remembered of a queue that is a heap


class RateLimit:
    """The limit of one source: which tuples pass, and where those are that still wait.

    A tuple waits as long as it is queued in all units of its stream. What also goes to a join, a side input, a link or
    an output cannot be had back.
    """

    __slots__ = ("_may_wait", "_number", "_passed", "_utility", "_value_json", "shedder")

    def __init__(self, limit: plans.Limit, source: plans.Source, route: Route) -> None:
        self.shedder = RateLimiter(limit.tuples, limit.span_ns)
        self._value_json = limit.value_json
        self._utility: Utility | None = read(limit.value_json) if limit.value_json else None
        elsewhere = route.joins or route.sides or route.sends or route.outputs
        self._may_wait = bool(route.units) and not elsewhere and implied(limit, source)
        self._number = -1
        self._passed: OrderedDict[int, Passed] = OrderedDict()

    def decide(self, at_ns: int, payload: object) -> int:
        """PASS, SHED, or the number of a tuple that has to go; then `entered` or `gone` is due, but not after SHED."""
        self._settle()
        self._number += 1
        utility = self._utility
        value = 0.0 if utility is None else utility(payload, at_ns)
        decision = self.shedder.decide(at_ns, value, self._number, self._waits)
        if utility is not None and decision != SHED:
            utility.let_in(payload)
        return decision

    def entered(self, first: int, route: Route, lineage: Lineage) -> None:
        """The tuple that was decided last is let in; the first of its jobs will have that number."""
        if self._may_wait:
            self._passed[self._number] = Passed(first, route, lineage)
        else:
            self.gone()

    def gone(self) -> None:
        """The tuple that was decided last went some other way."""
        self.shedder.taken(self._number)

    def displaced(self, number: int) -> Displaced:
        """A tuple that has to go."""
        passed = self._passed.pop(number)
        jobs = _queued(passed)
        assert jobs is not None
        return Displaced(passed, jobs)

    def inherit(self, other: "RateLimit", same: bool) -> None:
        """A new plan has the same source: what the old one let pass counts, and may still be displaced where one engine
        runs both (same). From now on only this one is asked."""
        self.shedder.inherit(other.shedder)
        if self._value_json == other._value_json:
            self._utility = other._utility
        self._passed, self._number = other._passed, other._number
        if not (same and self._may_wait):
            for number in self._passed:
                self.shedder.taken(number)
            self._passed = OrderedDict()

    def _waits(self, number: int) -> bool:
        passed = self._passed.get(number)
        if passed is not None and _queued(passed) is not None:
            return True
        self._passed.pop(number, None)
        return False

    def _settle(self) -> None:
        """Tell of what has left its queue. In queues in the order of arrival that is what came first."""
        passed = self._passed
        while passed:
            number = next(iter(passed))
            if not _left(passed[number]):
                break
            del passed[number]
            self.shedder.taken(number)
        if passed:
            least = min((len(unit.queue) for unit in next(iter(passed.values())).route.units), default=0)
            if len(passed) > 2 * least + SWEPT:
                for number in [each for each, entry in passed.items() if _queued(entry) is None]:
                    del passed[number]
                    self.shedder.taken(number)


def _left(passed: Passed) -> bool:
    """Whether a tuple has certainly left one of its queues."""
    last = passed.first + len(passed.route.units) - 1
    for unit in passed.route.units:
        queue = unit.queue
        if not queue or (in_order(queue) and queue[0].number > last):
            return True
    return not passed.route.units


def _queued(passed: Passed) -> list[Job] | None:
    """The jobs of a tuple; None: it is no longer queued in all of its units."""
    jobs = []
    last = passed.first + len(passed.route.units) - 1
    for unit in passed.route.units:
        job = find(unit.queue, passed.first, last)
        if job is None or job.lineage is not passed.lineage:
            return None
        jobs.append(job)
    return jobs or None


def implied(limit: plans.Limit, source: plans.Source) -> bool:
    """Whether what conforms to the limit conforms to all that is policed of its source: any n of its tuples in a row
    span at least floor((n - 1) / tuples) spans."""
    for pace in source.paces:
        whole, rest = divmod(pace.tuples, limit.tuples)
        if rest or pace.interval > whole * limit.span_ns * pace.parts:
            return False
    return all((count - 1) // limit.tuples * limit.span_ns >= span_ns for count, span_ns in source.spans)


class SourceAdmission:
    """What is asked about each tuple of one source. None of it: the route has no entry."""

    __slots__ = ("_police", "limit", "name", "on_full", "only_polices")

    def __init__(self, source: plans.Source, route: Route, police: ArrivalPolice | None) -> None:
        self.name, self.on_full, self._police = source.name, source.on_full, police
        self.limit = RateLimit(source.limit, source, route) if source.limit is not None else None
        self.only_polices = self.limit is None and self.on_full == REFUSE

    @property
    def policed(self) -> int:
        """Tuples beyond what the source declared."""
        return 0 if self._police is None else self._police.shed

    def police(self, at_ns: int) -> int:
        """By which policy a tuple that comes now is shed; 0: it conforms to what was declared."""
        return 0 if self._police is None or self._police.passes(at_ns) else POLICY_ARRIVALS

    def decide(self, at_ns: int, payload: object, memory_full: Callable[[], bool]) -> Decision:
        """On an admitted tuple of the source."""
        full = self.on_full != REFUSE and memory_full()
        if full and self.on_full == DROP_TAIL:
            return Decision(POLICY_MEMORY)
        limit, displaced = self.limit, None
        if limit is not None:
            decision = limit.decide(at_ns, payload)
            if decision == SHED:
                return Decision(POLICY_RATE)
            if decision != PASS:
                displaced = limit.displaced(decision)
        policy = self.police(at_ns) if displaced is None else 0
        return Decision(policy, displaced, full and not policy, limit is not None)

    def settle(self, first: int, route: Route, lineage: Lineage, policy: int) -> None:
        """The tuple that was decided last goes on, and the first of its jobs will have that number; or it is shed by
        that policy. Only where it was counted."""
        assert self.limit is not None
        if policy:
            self.limit.gone()
        else:
            self.limit.entered(first, route, lineage)

    def inherit(self, other: "SourceAdmission", same: bool) -> None:
        """See RateLimit and ArrivalPolice."""
        if self.limit is not None and other.limit is not None:
            self.limit.inherit(other.limit, same)
        if self._police is not None and other._police is not None:
            self._police.inherit(other._police)


def install_admission(source: plans.Source, route: Route) -> None:
    """Put before a route what its source asks for; when the route is settled."""
    police = arrival_police(source)
    if police is not None or source.limit is not None or source.on_full != REFUSE:
        route.admission = SourceAdmission(source, route, police)


def inherit_admission(new: CompiledPlan, old: CompiledPlan) -> None:
    """The new plan is admitted to in place of the old one: sources of both go on where they were."""
    before = {entry.name: entry for entry in _entries(old)}
    plans_ = (new.plan, old.plan)
    same = len({(plan.policy, plan.largest_batch, plan.parameters) for plan in plans_}) == 1  # then one engine has both
    for entry in _entries(new):
        if entry.name in before:
            entry.inherit(before[entry.name], same)


def _entries(loaded: CompiledPlan) -> list[SourceAdmission]:
    return [entry for route in loaded.source_routes.values() if isinstance(entry := route.admission, SourceAdmission)]


__all__ = ["RateLimit", "SourceAdmission", "implied", "inherit_admission", "install_admission"]
