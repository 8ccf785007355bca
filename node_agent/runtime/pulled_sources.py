"""Sources whose tuples the node makes itself: ticks of timers, what functions give at ticks, what iterators give.

They are admitted as those of clients are, after a drain of the sockets. Their origin is the tick's planned instant,
unless the function says how old its value is. The source's limits, its age and its declared arrivals hold for them too.

A function is called beside the scheduling thread (`ports.Callers`), one call at a time: a tick that finds the call
before it under way is missed, and refused as that. Of a timer some ticks may be due at once, after a long instance;
more than MOST_DUE are not made up for. So nothing piles up where a call hangs.

Under the next plan a source of the same name, function and parameters goes on with the function that it has, at the
instants that it had.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from node_agent.core import plan as core
from node_agent.core.shedding.memory_limit import REFUSE
from node_agent.core.shedding.refusals import age_refused
from node_agent.core.ticks import Ticks
from node_agent.operators.hop import UnencodableError
from node_agent.operators.source_call import EndedError, Made, SourceCall
from node_agent.operators.source_functions import Tick
from node_agent.ports import Caller, Returned
from node_agent.problems import ProblemError
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import COMMITTED, Deployed
from node_agent.runtime.deployments.lifecycle import Plans
from node_agent.runtime.large_payloads import LARGE_BYTES
from node_agent.runtime.links.roles import Context
from protos.records import REASON_FULL, REASON_MISSED, REASON_RAISED, REASON_TOO_LARGE, REASON_UNREADABLE

MOST_DUE = 16  # ticks of a timer that are made up for
HANGS_NS = 1_000_000_000  # a call that takes so long is told of
NEVER_NS = 1 << 62
NO_TICK = Tick(0, 0)  # an iterator is told of none
TICK_BYTES = len('{"tick":1000000000,"planned_ns":1000000000000000}')

Span = tuple[int, int]  # from, until


@dataclass(slots=True, eq=False)
class PulledSource:
    """One of the plan that is committed. call, caller: of a timer none; ticks: of an iterator none. called_ns: when the
    call that is under way began; tick: what it was told."""

    deployed: Deployed
    source: core.Source
    call: SourceCall | None
    caller: Caller | None
    ticks: Ticks | None
    called_ns: int = 0
    tick: Tick = NO_TICK

    def close(self) -> None:
        """Nothing more is made."""
        if self.caller is not None:
            self.caller.close()


class PulledSources:
    """Releases what is due. due_ns: when that is. admitted, refused: tuples so far."""

    def __init__(self, shared: Shared, plans: Plans, context: Context) -> None:
        self.shared, self.plans, self.context = shared, plans, context
        self.due_ns = NEVER_NS
        self.admitted = self.refused = 0
        self._by_name: dict[str, PulledSource] = {}
        self._newest: Deployed | None = None
        self._spans: Callable[[str], Span] = _always
        self._on_failed: Callable[[str, BaseException], None] = _nothing

    def within(self, spans: Callable[[str], Span]) -> None:
        """Only ticks from an instant on and before another one, by source, are any."""
        self._spans = spans

    def on_failed(self, call: Callable[[str, BaseException], None]) -> None:
        """Who is told of a source that raised, beside the log."""
        self._on_failed = call

    def look_up(self) -> None:
        """Call at every change of plans or of their states, before anything more is admitted."""
        deployed = max(
            (each for each in self.plans.by_hash.values() if each.state == COMMITTED),
            key=lambda each: each.plan.epoch,
            default=None,
        )
        if deployed is self._newest or (deployed is None and self._newest is not None and self._newest.superseded):
            return  # another plan is about to be committed in its place
        self._newest, before, self._by_name = deployed, self._by_name, {}
        begun: list[PulledSource] = []
        for source in deployed.plan.sources if deployed is not None else ():
            if source.pull is not None and deployed is not None:
                own = self._going_on(deployed, source, before)
                if own is None:
                    own = self._begin(deployed, source, before.get(source.name))
                    begun.append(own)
                self._by_name[source.name] = own
        for each in before.values():
            if self._by_name.get(each.source.name) is not each:
                each.close()
                each.deployed.pulls.pop(each.source.id, None)  # a device is free again
        for each in begun:
            if each.ticks is None:
                self._call(each, self.shared.now_ns())
        self._plan_next()

    def release(self, at_ns: int) -> None:
        """What is due goes to the arrivals of this drain, or is called."""
        if at_ns < self.due_ns:
            return
        for each in self._by_name.values():
            if each.ticks is not None and each.ticks.next_ns <= at_ns:
                self._tick(at_ns, each, each.ticks)
        self._plan_next()

    # -- plans

    def _going_on(
        self, deployed: Deployed, source: core.Source, before: dict[str, PulledSource]
    ) -> PulledSource | None:
        """The one of before, under the new plan, where it is the same."""
        own = before.get(source.name)
        if own is None or own.source.pull != source.pull or own.call is not deployed.pulls.get(source.id):
            return None
        own.deployed, own.source = deployed, source
        return own

    def _begin(self, deployed: Deployed, source: core.Source, before: PulledSource | None) -> PulledSource:
        pull, call = source.pull, deployed.pulls.get(source.id)
        assert pull is not None
        ticks = None
        if pull.every_ns:
            old = before.ticks if before is not None else None
            same = old is not None and (old.every_ns, old.offset_ns) == (pull.every_ns, pull.offset_ns)
            from_ns = old.next_ns if same and old is not None else self.shared.now_ns()
            ticks = Ticks(pull.every_ns, pull.offset_ns, max(from_ns, self._spans(source.name)[0]))
        own = PulledSource(deployed, source, call, None, ticks)
        if call is not None:
            own.caller = self.shared.callers.open(source.name, partial(self._returned, own), call.iterates)
        return own

    def _plan_next(self) -> None:
        """When the next tick is due."""
        self.due_ns = NEVER_NS
        for name, each in self._by_name.items():
            if each.ticks is not None and each.ticks.next_ns < min(self.due_ns, self._spans(name)[1]):
                self.due_ns = each.ticks.next_ns

    # -- ticks

    def _tick(self, at_ns: int, each: PulledSource, ticks: Ticks) -> None:
        due = ticks.take(min(at_ns, self._spans(each.source.name)[1] - 1))
        most = MOST_DUE if each.caller is None else int(not each.caller.busy)
        taken = min(due.ticks, most)
        first_ns = due.first_ns + (due.ticks - taken) * ticks.every_ns
        if taken < due.ticks:
            self._refuse(at_ns, each, due.first_ns, first_ns - ticks.every_ns, REASON_MISSED, due.ticks - taken)
        if each.caller is not None and not taken and due.ticks and at_ns - each.called_ns >= HANGS_NS:
            self._hangs(at_ns, each)
        for planned_ns in range(first_ns, first_ns + taken * ticks.every_ns, ticks.every_ns):
            tick = Tick(ticks.number(planned_ns), planned_ns)
            if each.caller is None:
                payload = {"tick": tick.number, "planned_ns": planned_ns}
                self._offer(at_ns, each, planned_ns, payload, TICK_BYTES)
            else:
                self._call(each, at_ns, tick)

    def _hangs(self, at_ns: int, each: PulledSource) -> None:
        name, seconds = each.source.name, (at_ns - each.called_ns) / 1e9
        text = f"source {name}: a call has not returned for {seconds:.1f} s; its ticks are missed until it does"
        self.shared.note(f"source_hangs.{name}", text, event="source_hangs", source=name)

    # -- calls

    def _call(self, each: PulledSource, at_ns: int, tick: Tick = NO_TICK) -> None:
        assert each.caller is not None and each.call is not None
        each.called_ns, each.tick = at_ns, tick
        each.caller.call(partial(each.call, tick))

    def _returned(self, each: PulledSource, returned: Returned) -> None:
        """A call has ended."""
        at_ns, error, made = self.shared.now_ns(), returned.error, returned.value
        if error is None and returned.elapsed_ns:
            each.deployed.calls[each.source.id].add(returned.cpu_ns, returned.elapsed_ns)
        planned_ns = returned.at_ns if each.ticks is None else each.tick.planned_ns
        if error is not None:
            self._failed(at_ns, each, planned_ns, error)
        elif isinstance(made, Made):
            origin_ns = planned_ns if made.age_ns is None else returned.at_ns - made.age_ns
            self._offer(at_ns, each, origin_ns, made.payload, made.size)
        if each.ticks is None and error is None:
            self._call(each, at_ns)

    def _failed(self, at_ns: int, each: PulledSource, planned_ns: int, error: BaseException) -> None:
        """An iterator that has raised is at its end as well."""
        name = each.source.name
        if isinstance(error, EndedError):
            text = f"source {name}: its iterator has come to its end; nothing more comes until it is deployed anew"
            self.shared.note(f"source_ended.{name}", text, event="source_ended", source=name)
            return
        self._on_failed(name, error)
        unreadable = isinstance(error, UnencodableError)
        ours = isinstance(error, ProblemError)  # it says what to do, and where it was raised is no news
        text = str(error) if ours else "".join(traceback.format_exception(error, limit=-8)).rstrip()
        what = "it ends here" if each.ticks is None else "this tick has no tuple"
        said = f"source {name} raised; {what}\n{text}"
        self.shared.note(f"source_errors.{name}", said, event="source_error", source=name)
        reason = REASON_UNREADABLE if unreadable else REASON_RAISED
        if isinstance(error, UnencodableError) and error.code == "too_large":
            reason = REASON_TOO_LARGE
        self._refuse(at_ns, each, planned_ns, planned_ns, reason)

    # -- admission

    def _offer(self, at_ns: int, each: PulledSource, origin_ns: int, payload: object, size: int) -> None:
        source, context, deployed = each.source, self.context, each.deployed
        counted = source.stream in deployed.counted
        deployed.ages[source.id].add(at_ns, origin_ns)
        reason = age_refused(source, counted, at_ns, origin_ns, origin_ns, context.promised.get(source.name))
        if not reason and source.on_full == REFUSE and context.backpressure.room() <= 0:
            reason = REASON_FULL
        if not reason and size >= LARGE_BYTES and not context.backpressure.takes(size):
            reason = REASON_FULL
        if reason:
            self._refuse(at_ns, each, origin_ns, origin_ns, reason)
            return
        self.admitted += 1
        route = deployed.loaded.source_routes[source.id]
        context.admit(route, source.id, origin_ns, origin_ns, payload, size)

    def _refuse(self, at_ns: int, each: PulledSource, lo_ns: int, hi_ns: int, reason: int, tuples: int = 1) -> None:
        """lo_ns, hi_ns: the oldest and the youngest origin."""
        self.refused += tuples
        self.shared.counters["tuples_refused"] += tuples
        self.context.refuse(each.deployed, each.source, at_ns, lo_ns, hi_ns, reason, tuples)


def _always(name: str) -> Span:
    return -NEVER_NS, NEVER_NS


def _nothing(name: str, error: BaseException) -> None:
    """Nobody is told."""


__all__ = ["PulledSource", "PulledSources"]
