"""Runs operators: what one call of an operator yields, and the loop that runs a whole task instance.

`apply` is shared by the live runtime and by virtual time, so an operator means the same in both. The instance's end and
what it triggers are the engine's.
"""

from collections.abc import Callable
from typing import Protocol

from node_agent.core.engine.engine import Engine
from node_agent.core.lineage import Lineage
from node_agent.core.model import Exit, Job, Step, Unit
from node_agent.host.clock import now_ns
from node_agent.host.trace_ring import HANG, HANG_AT, WRITTEN, RingFacts
from node_agent.operators.api import At, Many
from node_agent.operators.hop import UnencodableError
from node_agent.problems import ProblemError
from protos.records import CAUSE_ENCODE, CAUSE_OPERATOR_ERROR, CAUSE_ORDINALS, CAUSE_QUEUE_FULL

MOST_OUTPUTS = 255  # of one instance on one exit: trace records count outputs in 8 bits
ORDINAL_LIMIT = 1 << 32
NEVER = 1 << 62
RAISED = (Exception, SystemExit)  # what an operator may do to its tuple; an operator's exit() ends no node

Item = tuple[int, Lineage, object]  # slot in the batch, lineage, payload
Operate = Callable[[Step, Lineage, object, int, int], list[tuple[Lineage, object]]]  # as `apply`

COMPILED = not __file__.endswith(".py")

pack_hang = HANG.pack_into


class OutputsError(ProblemError):
    """An operator returned more results for one input than can be told apart."""

    def __init__(self, text: str) -> None:
        super().__init__("too_many_results", text)


class LateError(Exception):
    """A tuple is too late for an operator that is asked about that; it did not start."""


class StaleError(Exception):
    """A side input that an operator needs has no value, or one that may be too old; it did not start."""


class Rest(list[Item]):
    """Payload of an instance that yielded at an operator's boundary: what its next operator gets."""


def results(lineage: Lineage, result: object) -> list[tuple[Lineage, object]]:
    """What an operator returned (None, a value, or Many), each with its lineage. Raises OutputsError."""
    if result is None:
        return []
    if result.__class__ is not Many:
        return [(lineage, result)]
    source, epoch, seq, ordinal, lo_ns, hi_ns = lineage
    values = [value for value in result.values if value is not None]
    first = ordinal * 256 + 1
    if len(values) > MOST_OUTPUTS or first + len(values) > ORDINAL_LIMIT:
        raise OutputsError(
            f"{len(values)} results for one input: at most {MOST_OUTPUTS}, through at most four operators"
        )
    return [((source, epoch, seq, first + i, lo_ns, hi_ns), value) for i, value in enumerate(values)]


def call(step: Step, lineage: Lineage, payload: object, now_ns: int, deadline_ns: int) -> object:
    """Call an operator that reads more than its one input: joined inputs, side inputs, the time, lineage."""
    if step.collects is not None:
        step.collects.present(now_ns, lineage, payload)
        return None
    inputs = payload if step.join else (payload,)
    sides = {side.port: side.at(now_ns) for side in step.sides}
    for side in step.sides:
        if side.rule.shed and sides[side.port] is None:
            raise StaleError
    return step.call(inputs, sides, At(now_ns, (lineage[4], lineage[5]), lineage[4] + deadline_ns))


def ask(step: Step, lineage: Lineage, payload: object, now_ns: int, deadline_ns: int) -> object:
    """`call`, unless the tuple is late for the operator. Raises LateError."""
    late = step.late
    if late is not None:
        if late.concerns(now_ns if late.now is None else late.now(), lineage):
            raise LateError
        if step.bare:
            return step.call(payload)
    return call(step, lineage, payload, now_ns, deadline_ns)


def apply(step: Step, lineage: Lineage, payload: object, now_ns: int, deadline_ns: int) -> list[tuple[Lineage, object]]:
    """Run one operator on one tuple, late or not. Raises OutputsError, and what the operator raises."""
    result = step.call(payload) if step.bare else call(step, lineage, payload, now_ns, deadline_ns)
    return results(lineage, result)


def cause_of(error: BaseException) -> int:
    """Why a tuple is lost where its operator raised that."""
    if isinstance(error, UnencodableError):
        return CAUSE_ENCODE
    return CAUSE_ORDINALS if isinstance(error, OutputsError) else CAUSE_OPERATOR_ERROR


def _nothing(at_ns: int) -> None:
    """No sockets to drain."""


class Barrier(Protocol):
    """Takes an operator's results in the executor's place."""

    def emit(self, exit_: Exit, items: list[Item]) -> None:
        """An operator has run on all its items; what it gave on that exit."""


class Executor:
    """Runs task instances on the calling thread, one at a time.

    now: the node's clock in ns. spend(step, lineage, raised): called after each run of an operator, whose cost it
    measures, fills up or simulates. failed(step, error): told of every operator that raised; the tuple is lost, nothing
    else happens. drain(at_ns): called at the end of the first instance that ends at `due_ns` or later, before the next
    one is chosen, so that what has arrived by then takes part in the choice; it sets the next `due_ns`. stepwise: every
    instance runs operator by operator, with `operate` and through the barrier, if there is one.
    """

    __slots__ = ("_real", "barrier", "drain", "due_ns", "engine", "failed", "now", "operate", "spend", "stepwise")

    def __init__(
        self,
        engine: Engine,
        now: Callable[[], int],
        spend: Callable[[Step, Lineage, bool], None] | None = None,
        failed: Callable[[Step, BaseException], None] | None = None,
    ) -> None:
        self.engine, self.now, self.spend, self.failed = engine, now, spend, failed
        self._real = now is now_ns
        self.due_ns = NEVER
        self.operate: Operate = apply  # of an operator that runs on several tuples, one after the other
        self.drain: Callable[[int], None] = _nothing
        self.stepwise = False
        self.barrier: Barrier | None = None

    def run(self, job: Job, facts: RingFacts | None = None) -> Job | None:  # noqa: PLR0912 - the hot path: no calls
        """Run the instance to its end; returns the next one that the engine chose.

        facts: name each instance in the ring's hang cell before it starts, publish its facts when it has ended, and go
        on with the next one until `drain` was called, an instance did not end normally, or nothing is ready.
        """
        engine, now, spend = self.engine, self.now, self.spend
        if self.stepwise or not engine.simple:
            return self._run_items(job.unit, self._items(job), job.unit.chain, now())
        due_ns = self.due_ns
        while True:
            unit, lineage, payload = job.unit, job.lineage, job.payload
            if facts is not None:
                if COMPILED:
                    facts.starts(engine.ended_ns, unit.hang_ns, unit.id, unit.flags, lineage)
                else:  # `starts` without the call
                    source, epoch, seq, ordinal, _, _ = lineage
                    pack_hang(
                        facts.buffer, HANG_AT, engine.ended_ns, unit.hang_ns, unit.id, unit.flags,
                        source, epoch, seq, ordinal,
                    )  # fmt: skip
            start_ns = self._instant() if COMPILED else now()
            end_ns = 0
            for step in unit.chain:
                try:
                    payload = (
                        step.call(payload) if step.plain else ask(step, lineage, payload, start_ns, unit.deadline_ns)
                    )
                except RAISED as error:
                    return self._raised(unit, step, lineage, payload, start_ns, error)
                if spend is not None:
                    spend(step, lineage, False)
                if step.policed and type(payload) is not Many:
                    payload = self._policed(unit, step, lineage, payload)
                if payload is None:
                    end_ns = 0
                    break
                if type(payload) is Many:
                    return self._run_many(unit, lineage, payload, step, start_ns)
                if step.exit is not None:
                    end_ns = self._instant() if COMPILED else now()
                    engine.emit(end_ns, step.exit, lineage, payload)
            if unit.last_step.exit is None or not end_ns:
                end_ns = self._instant() if COMPILED else now()
            if end_ns >= due_ns:
                self.drain(end_ns)
                return engine.step(start_ns, end_ns)
            next_job = engine.step(start_ns, end_ns)
            if facts is None:
                return next_job
            if COMPILED:
                facts.publish()
            elif not facts.dropping:  # `publish` without the call
                facts.cells[WRITTEN] = facts.origin + facts.position
            if next_job is None:
                return None
            job = next_job

    def _instant(self) -> int:
        """The node's clock for compiled code, which reads the machine's without Python."""
        if self._real:
            return raw_ns()  # type: ignore[name-defined,no-any-return]  # noqa: F821 - of clock.pxd
        return self.now()

    # -- several tuples at once: batches, Many, instances that yield

    def _raised(
        self, unit: Unit, step: Step, lineage: Lineage, payload: object, start_ns: int, error: BaseException
    ) -> Job | None:
        """An operator has not returned: it raised, or it was not to start on that tuple."""
        if error.__class__ is LateError or error.__class__ is StaleError:
            return self._run_items(unit, [(0, lineage, payload)], unit.chain[unit.chain.index(step) :], start_ns)
        self._record_time(step, lineage, True)
        self._within(unit, step, [])
        return self._fail(start_ns, self._cause(step, error))

    def _items(self, job: Job) -> list[Item]:
        if isinstance(job.payload, Rest):
            return job.payload
        return [(slot, each.lineage, each.payload) for slot, each in enumerate(self.engine.jobs)]

    def _run_many(self, unit: Unit, lineage: Lineage, result: object, step: Step, start_ns: int) -> Job | None:
        """The rest of the chain, after one of its operators has returned several values."""
        try:
            got = results(lineage, result)
        except OutputsError as error:
            self._within(unit, step, [])
            return self._fail(start_ns, self._cause(step, error))
        items = [(0, *each) for each in self._within(unit, step, got)]
        if not self.engine.has_room(len(items)):
            return self._fail(start_ns, CAUSE_QUEUE_FULL)
        self._emit(step, items)
        return self._run_items(unit, items, unit.chain[unit.chain.index(step) + 1 :], start_ns)

    def _run_items(self, unit: Unit, items: list[Item], chain: tuple[Step, ...], start_ns: int) -> Job | None:
        """Operator by operator: each runs on all items before the next one starts."""
        failed: dict[int, int] = {}  # slot -> cause
        for step in chain:
            items = self._operate(unit, step, items, start_ns, failed)
            self._emit(step, items)
        return self._finish(unit, items, failed, start_ns)

    def _operate(self, unit: Unit, step: Step, items: list[Item], start_ns: int, failed: dict[int, int]) -> list[Item]:
        made: list[Item] = []
        per_slot: dict[int, int] = {}
        for slot, lineage, payload in items:
            if slot in failed:
                continue
            run = step if step.late is None else self.engine.judge(self.now(), unit, step, lineage, slot)
            if run is None:
                continue
            try:
                got = self.operate(run, lineage, payload, start_ns, unit.deadline_ns)
            except StaleError:
                self.engine.shed_stale(self.now(), unit, step, lineage, slot)
                self._within(unit, step, [], slot)
                continue
            except RAISED as error:
                self._record_time(run, lineage, True)
                self._within(unit, step, [], slot)
                failed[slot] = self._cause(step, error)
                continue
            self._record_time(run, lineage, False)
            got = self._within(unit, step, got, slot)
            per_slot[slot] = per_slot.get(slot, 0) + len(got)
            if per_slot[slot] > MOST_OUTPUTS:
                failed[slot] = self._cause(step, OutputsError(f"more than {MOST_OUTPUTS} results of one instance"))
                continue
            if len(got) > 1 and not self.engine.has_room(len(made) + len(got)):
                failed[slot] = CAUSE_QUEUE_FULL
                continue
            made += [(slot, *each) for each in got]
        return [item for item in made if item[0] not in failed]

    def _record_time(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """An operator has run, whether or not it returned."""
        if self.spend is not None:
            self.spend(step, lineage, raised)

    def _policed(self, unit: Unit, step: Step, lineage: Lineage, payload: object) -> object:
        """What passes of the one result of an operator, or of none."""
        if payload is None:
            self._within(unit, step, [])
        elif not self._within(unit, step, [(lineage, payload)]):
            return None
        return payload

    def _within(
        self, unit: Unit, step: Step, got: list[tuple[Lineage, object]], slot: int = 0
    ) -> list[tuple[Lineage, object]]:
        """What passes of the results of one input; the surplus is shed."""
        if step.police is None:
            return got
        return got[: self.engine.police(self.now(), unit, step, [lineage for lineage, _ in got], slot)]

    def _emit(self, step: Step, items: list[Item]) -> None:
        exit_ = step.exit
        if exit_ is None:
            return
        if self.barrier is not None:
            self.barrier.emit(exit_, items)
        elif items:
            at_ns = self.now()
            for slot, lineage, payload in items:
                self.engine.emit(at_ns, exit_, lineage, payload, slot)

    def _finish(self, unit: Unit, items: list[Item], failed: dict[int, int], start_ns: int) -> Job | None:
        engine, end_ns = self.engine, self._ended()
        if engine.batching:
            for slot in sorted(failed, reverse=True):
                engine.fail(start_ns, end_ns, failed[slot], slot)
        elif failed:
            return engine.fail(start_ns, end_ns, failed[0])
        elif unit.rest is not None and items:
            engine.suspend(Rest(items))
        return engine.step(start_ns, end_ns)

    def _ended(self) -> int:
        """The instance ends now."""
        end_ns = self.now()
        if end_ns >= self.due_ns:
            self.drain(end_ns)
        return end_ns

    def _fail(self, start_ns: int, cause: int) -> Job | None:
        return self.engine.fail(start_ns, self._ended(), cause)

    def _cause(self, step: Step, error: BaseException) -> int:
        if self.failed is not None:
            self.failed(step, error)
        return cause_of(error)
