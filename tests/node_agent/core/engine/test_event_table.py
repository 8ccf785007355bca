"""Every way into the engine is an event: a journal of events replays all that can happen to it."""

from dataclasses import replace
from typing import Any, get_args

from node_agent.core import plan as plans
from node_agent.core.engine import events
from node_agent.core.engine.engine import Engine
from node_agent.core.engine.events import TABLE, Event, ScenarioRunner
from node_agent.core.policies import policy
from protos.records import CAUSE_DECODE, CAUSE_OPERATOR_ERROR

QUERIES = {"has_room", "most_urgent"}  # change nothing
ELSEWHERE = {"add", "end_windows"}  # the second half of `load`, and what engines tell each other
LINEAGE = (1, 0, 1, 0, 0, 0)


def chain(**changes: Any) -> plans.Plan:
    """Source 1 -> unit 1 of O1, O2 -> out."""
    made = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json", marked=True, counted=True) for i in (1, 2, 3)),
        sources=(plans.Source(1, "in", 1),),
        operators=(
            plans.Operator(1, "O1", "pass", (1,), 2, 1, at_most=((1, 1),)),
            plans.Operator(2, "O2", "pass", (2,), 3, 1),
        ),
        units=(plans.Unit(1, (1, 2), 10, 100, (3,)),), outputs=(plans.Output(1, "out", 3, 100),),
    )  # fmt: skip
    return replace(made, **changes)


class Watched:
    """An engine whose methods are noted as they are called from outside."""

    def __init__(self, engine: Engine, called: set[str]) -> None:
        self._engine, self._called = engine, called

    def __getattr__(self, name: str) -> Any:
        if callable(getattr(Engine, name, None)):
            self._called.add(name)
        return getattr(self._engine, name)


def test_every_kind_of_event_has_a_row() -> None:
    assert set(TABLE) == set(get_args(Event))


def test_every_way_into_the_engine_is_an_event() -> None:
    public = {name for name, what in vars(Engine).items() if callable(what) and not name.startswith("_")}
    called: set[str] = set()
    for name in ("edf", "edf-op"):
        story = ScenarioRunner(chain(), policy(name))
        story.engine = Watched(story.engine, called)  # type: ignore[assignment]
        story.handle(events.Limited(0, 100), events.Prepared(0, chain(hash=2, epoch=2)))
        story.handle(events.Admitted(1, 1, LINEAGE), events.Received(1, 1, LINEAGE), events.Released(1, 0, LINEAGE))
        story.handle(events.Lost(1, 1, LINEAGE, CAUSE_DECODE), events.Heartbeat(1, 1, 2, 0), events.Expired(1))
        story.handle(events.Resumed(2))
        story.handle(events.Judged(2, 0), events.Stale(2, 0), events.Policed(2, 0, (LINEAGE,)))
        if name == "edf-op":
            story.handle(events.Yielded(3), events.Finished(2, 3))
        else:
            story.handle(events.Ended(4, 0, counted_only=True), events.Ended(4, 0))
        story.handle(events.Failed(3, 5, CAUSE_OPERATOR_ERROR), events.MemoryPressure(5, 0, 1))
        story.handle(events.Finished(5, 6), events.Committed(6, 2))
        story.handle(events.Drained(7, 1))
    assert called == public - QUERIES - ELSEWHERE
