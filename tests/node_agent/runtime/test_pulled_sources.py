"""Stories of sources that a node makes itself: which ticks are admitted, which are missed, and what hands over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.operators.registry import Registry
from node_agent.runtime.deployments.deployed_plan import Deployed
from node_agent.runtime.loop import Runtime
from node_agent.runtime.pulled_sources import MOST_DUE
from node_agent.sdk import Aged, Tick, operator, source
from node_agent.wire.plan_error import PlanError
from protos import records
from tests.node_agent.runtime.stepped_world import SteppedWorld, deploy, run_until, runtime_in, written
from tests.seeds import seeds

MS = 10**6
SECOND = 10**9
START = 10**12 + 7 * MS


def plan(pull: core.Pull, hash_: int = 1, run: str = "pass", **of_source: Any) -> core.Plan:
    """source `in`, made on the node -> operator O1 -> output `out`."""
    return core.Plan(
        "q", "a", 0, hash_ << 60, hash_, "edf", 1,
        (core.Stream(1, "in", "json", False, SECOND), core.Stream(2, "O1", "json", False, SECOND)),
        (core.Source(1, "in", 1, pull=pull, **of_source),),
        (core.Operator(1, "O1", run, (1,), 2, 0),),
        (core.Unit(1, (1,), SECOND // 10, SECOND, (2,)),),
        (core.Output(1, "out", 2, SECOND),),
    )  # fmt: skip


@dataclass
class Story:
    """A runtime in a world of its own, and what came of the source. results: payloads in the order of their runs;
    gives: what the function does at each call; busy_ns: what the operator takes, after `long_ns`."""

    world: SteppedWorld = field(default_factory=lambda: SteppedWorld(START))
    gives: Callable[[Tick], Any] = lambda tick: tick.number
    busy_ns: int = 0
    long_ns: list[int] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    made: int = 0
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        story = self

        @source("t.reading")
        class Reading:
            def __init__(self, gain: int = 1) -> None:
                story.made += 1
                self.gain = gain

            def __call__(self, *, tick: Tick) -> Any:
                return story.gives(tick)

        @source("t.stream")
        def stream() -> Iterator[Any]:
            while True:
                yield story.gives(Tick(0, 0))

        @operator("t.note")
        def note(value: Any) -> Any:
            story.results.append(value)
            story.world.now += story.long_ns.pop() if story.long_ns else story.busy_ns
            return value

        self.runtime = runtime_in(self.world, Registry(operators=(Reading, stream, note)))

    def deploy(self, made: core.Plan) -> Deployed:
        return deploy(self.runtime, made)

    def until(self, after_ns: int) -> None:
        run_until(self.runtime, self.world, START + after_ns)

    def ends(self) -> tuple[list[records.Admitted], Counter[str]]:
        """The admitted tuples, and how many were refused for which reason."""
        found = list(written(self.runtime))
        refused: Counter[str] = Counter()
        for record in found:
            if isinstance(record, records.Refused):
                refused[records.REASONS[record.reason]] += record.tuples
        return [record for record in found if isinstance(record, records.Admitted)], refused


def test_a_timer_is_admitted_at_its_instants_and_has_them_as_origin() -> None:
    story = Story()
    story.deploy(plan(core.Pull(10 * MS, 3 * MS), run="t.note"))
    story.until(50 * MS)
    admitted, refused = story.ends()
    planned = [START + after * MS for after in (6, 16, 26, 36, 46)]
    assert [(each.at_ns, each.origin_lo_ns, each.origin_hi_ns) for each in admitted] == [(at, at, at) for at in planned]
    assert [each["planned_ns"] for each in story.results] == planned and not refused
    numbers = [each["tick"] for each in story.results]
    assert numbers == list(range(numbers[0], numbers[0] + 5)) and numbers[0] == (planned[0] - 3 * MS) // (10 * MS)


def test_ticks_that_are_due_at_once_are_made_up_for_within_a_limit() -> None:
    story = Story(long_ns=[400 * MS])
    story.deploy(plan(core.Pull(10 * MS), run="t.note"))
    story.until(500 * MS)
    admitted, refused = story.ends()
    assert refused["missed"] == 40 - MOST_DUE
    assert len(admitted) + refused["missed"] == 50, "each tick is one or the other"
    origins = [each.origin_lo_ns for each in admitted]
    assert origins == sorted(set(origins))
    (deployed,) = story.runtime.plans.by_hash.values()
    assert deployed.loaded.source_routes[1].refused == story.runtime.shared.counters["tuples_refused"] == 24


def test_the_tick_s_instant_is_the_origin_however_long_the_call_takes() -> None:
    story = Story()
    story.world.takes = lambda: 4 * MS
    story.deploy(plan(core.Pull(10 * MS, run="t.reading")))
    story.until(40 * MS)
    admitted, refused = story.ends()
    assert [(each.at_ns - START, each.origin_lo_ns - START) for each in admitted] == [
        (after * MS + 4 * MS, after * MS) for after in (3, 13, 23, 33)
    ]
    assert not refused


def test_a_tick_that_finds_a_call_under_way_is_missed_and_nothing_piles_up() -> None:
    story = Story()
    story.world.takes = lambda: 25 * MS
    story.deploy(plan(core.Pull(10 * MS, run="t.reading")))
    story.until(100 * MS)
    admitted, refused = story.ends()
    assert [(each.origin_lo_ns - START) // MS for each in admitted] == [3, 33, 63]
    assert refused == {"missed": 6}


def test_a_call_that_hangs_costs_its_ticks_and_holds_up_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    story.world.takes = lambda: None
    both = plan(core.Pull(10 * MS, run="t.reading"))
    timer = core.Source(2, "beat", 3, pull=core.Pull(10 * MS, 5 * MS))
    story.deploy(
        replace(
            both,
            streams=(*both.streams, core.Stream(3, "beat", "json", False, SECOND), core.Stream(4, "O2", "json")),
            sources=(*both.sources, timer),
            operators=(*both.operators, core.Operator(2, "O2", "t.note", (3,), 4, 0)),
            units=(*both.units, core.Unit(2, (2,), SECOND // 10, SECOND)),
        )
    )
    story.until(3 * SECOND)
    admitted, refused = story.ends()
    assert {each.source for each in admitted} == {2} and len(admitted) == 300 == len(story.results)
    assert refused == {"missed": 299} and story.world.under_way == 1
    assert "source in: a call has not returned for 1.0 s" in capsys.readouterr().err


@pytest.mark.parametrize(("size", "memory", "reason"), [(2 << 20, 0, "too_large"), (1 << 19, 1 << 18, "full")])
def test_what_is_larger_than_its_stream_or_the_memory_is_refused(size: int, memory: int, reason: str) -> None:
    story = Story(gives=lambda tick: "x" * size)
    story.deploy(replace(plan(core.Pull(10 * MS, run="t.reading"), run="t.note"), memory_bytes=memory))
    story.until(50 * MS)
    admitted, refused = story.ends()
    assert not admitted and set(refused) == {reason} and not story.results


def test_what_a_call_raises_costs_its_tick_and_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def gives(tick: Tick) -> Any:
        odd = {0: None, 1: Aged("old", 30), 2: Aged("never", -1), 3: {1, 2}}
        if tick.number % 6 == 4:
            raise OSError("no camera here")
        return odd.get(tick.number % 6, "good")

    story = Story(gives=gives)
    story.deploy(plan(core.Pull(10 * MS, run="t.reading"), run="t.note", max_age_ns=50 * MS))
    story.until(60 * MS)
    admitted, refused = story.ends()
    assert sorted(story.results) == ["good", "old"]
    assert refused == {"raised": 2, "unreadable": 1}, "no value is no tuple, and nothing that was refused"
    ages = [each.at_ns - each.origin_lo_ns for each in admitted]
    assert sorted(ages) == [0, 30 * MS]
    said = capsys.readouterr().err
    assert "source in raised; this tick has no tuple" in said and "no camera here" in said
    assert story.runtime.shared.counters["source_errors.in"] == 3


def test_a_value_that_is_too_old_is_refused_as_a_client_s_is() -> None:
    story = Story(gives=lambda tick: Aged(1, 51))
    story.deploy(plan(core.Pull(10 * MS, run="t.reading"), max_age_ns=50 * MS))
    story.until(30 * MS)
    admitted, refused = story.ends()
    assert not admitted and refused == {"too_old": 3}


def test_a_full_node_refuses_ticks() -> None:
    story = Story()
    deployed = story.deploy(replace(plan(core.Pull(10 * MS)), memory_bytes=1))
    for number in range(4):
        deployed.engine_slot.engine.admit(
            1, deployed.loaded.source_routes[1], (1, 1, 900 + number, 0, 1, 1), "x" * 100, 100
        )
    story.runtime.pulled.release(START + 3 * MS)
    assert story.ends()[1] == {"full": 1}


def test_an_iterator_goes_at_its_own_pace_and_may_end(capsys: pytest.CaptureFixture[str]) -> None:
    values = iter([1, 2, Aged(3, 1), None, 5])

    def gives(tick: Tick) -> Any:
        return next(values)

    story = Story(gives=gives)
    pace = iter([7, 1, 20, 3, 2, 1])
    story.world.takes = lambda: next(pace) * MS
    story.deploy(plan(core.Pull(run="t.stream"), run="t.note"))
    story.until(100 * MS)
    admitted, refused = story.ends()
    assert story.results == [1, 2, 3, 5]
    assert [(each.at_ns - START) // MS for each in admitted] == [7, 8, 28, 33]
    assert [(each.origin_lo_ns - START) // MS for each in admitted] == [7, 8, 27, 33]
    assert refused == {"raised": 1}, "a generator whose code lets StopIteration out has raised"
    assert "source in raised; it ends here" in capsys.readouterr().err


def test_an_iterator_that_ends_says_so_and_is_no_tuple_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    @source("t.three")
    def three() -> Iterator[int]:
        yield from (1, 2, 3)

    world = SteppedWorld(START)
    runtime = runtime_in(world, Registry(operators=(three,)))
    deploy(runtime, plan(core.Pull(run="t.three")))
    run_until(runtime, world, START + SECOND)
    kinds = Counter(type(record).__name__ for record in written(runtime))
    assert kinds["Admitted"] == 3 and not kinds["Refused"]
    assert "source in: its iterator has come to its end" in capsys.readouterr().err


def test_the_next_plan_goes_on_with_the_same_function_at_the_same_instants() -> None:
    called: list[int] = []
    story = Story(gives=lambda tick: called.append(tick.planned_ns) or tick.number)  # type: ignore[func-returns-value]
    story.world.takes = lambda: 4 * MS
    pull = core.Pull(10 * MS, run="t.reading", with_json='{"gain":2}')
    story.deploy(plan(pull))
    story.until(23 * MS)  # a call has begun
    story.deploy(plan(pull, 2))
    story.until(43 * MS)
    admitted, refused = story.ends()
    assert [(each.origin_lo_ns - START) // MS for each in admitted] == [3, 13, 23, 33] and not refused
    assert [each.flags for each in admitted] == [1, 1, 2, 2], "the plan of the instant at which it is admitted"
    assert story.made == 1 and [each.seq for each in admitted] == [1, 2, 3, 4]
    assert called == [each.origin_lo_ns for each in admitted], "none twice"


def test_other_parameters_are_another_function_at_the_same_instants() -> None:
    story = Story()
    story.deploy(plan(core.Pull(10 * MS, run="t.reading", with_json='{"gain":2}')))
    story.until(24 * MS)
    story.deploy(plan(core.Pull(10 * MS, run="t.reading", with_json='{"gain":3}'), 2))
    story.until(45 * MS)
    admitted, _ = story.ends()
    assert [(each.origin_lo_ns - START) // MS for each in admitted] == [3, 13, 23, 33, 43] and story.made == 2


def test_a_stopped_plan_calls_nothing_more_and_gives_its_function_back() -> None:
    story = Story()
    deployed = story.deploy(plan(core.Pull(10 * MS, run="t.reading")))
    story.until(15 * MS)
    story.runtime.plans.drain(deployed.hash)
    run_until(story.runtime, story.world, START + SECOND)
    admitted, refused = story.ends()
    assert len(admitted) == 2 and not refused and not deployed.pulls and not story.runtime.plans.by_hash


@pytest.mark.parametrize("seed", seeds(range(30)))
def test_whatever_calls_take_their_results_keep_to_the_declared_arrivals(seed: int) -> None:
    """n results in a row span n - 2 periods at least (`coordinator.spec.arrivals.of_source`), and each tick is
    admitted, missed, or under way."""
    random, story = Random(seed), Story()
    every_ns = random.choice([MS, 3 * MS, 10 * MS])
    worst_ns = random.choice([0, every_ns // 2, every_ns, 3 * every_ns])
    story.world.takes = lambda: random.randint(0, worst_ns)
    story.busy_ns = random.choice([0, every_ns // 3])
    offset_ns = random.randrange(every_ns)
    story.deploy(plan(core.Pull(every_ns, offset_ns, run="t.reading"), run=random.choice(["pass", "t.note"])))
    story.until(200 * every_ns)
    admitted, refused = story.ends()
    late_ns = story.busy_ns  # an instance holds up the look at the ticks, and what is admitted after it
    ends_ns = [each.at_ns for each in admitted]
    for count in (2, 3, 5, 20):
        for first, last in zip(ends_ns, ends_ns[count - 1 :], strict=False):
            assert last - first >= (count - 2) * every_ns - late_ns, f"seed {seed}"
    ticks = (story.world.now - START - (offset_ns - START) % every_ns) // every_ns + 1
    assert 0 <= ticks - len(admitted) - refused["missed"] <= 2, f"seed {seed}"
    assert set(refused) <= {"missed"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"installed": (core.Identity("t.reading", "1", "0" * 64),)}, "other_code"),
        ({"installed": (core.Identity("t.reading", "2", "0" * 64),)}, "other_code"),
        ({"run": "t.raeding"}, "unknown_operator"),
        ({"run": "pass"}, "no_source_function"),
        ({"with_json": '{"gain":"much"}'}, "parameter_type"),
        ({"with_json": '{"grain":1}'}, "unknown_parameter"),
    ],
)
def test_a_plan_for_another_function_is_refused_as_one_for_another_operator(changes: dict[str, Any], code: str) -> None:
    story = Story()
    pull = core.Pull(10 * MS, run=changes.get("run", "t.reading"), with_json=changes.get("with_json", "{}"))
    made = replace(plan(pull), installed=changes.get("installed", ()))
    with pytest.raises(PlanError) as refused:
        story.runtime.plans.load(made, "1" * 64)
    assert refused.value.code == code and not story.runtime.plans.by_hash
