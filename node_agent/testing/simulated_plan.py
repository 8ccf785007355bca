"""For tests: a plan in virtual time on given tuples, and what came of them.

`node_agent.testing.simulated` takes a query and a cluster file, has them planned, and comes here.
"""

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from node_agent.operators.codecs import CodecError, UnknownCodecError
from node_agent.operators.registry import Registry
from node_agent.problems import ProblemError
from node_agent.testing.loaded import with_codecs
from node_agent.virtual.arrivals import bursts
from node_agent.virtual.errors import bad_input
from node_agent.virtual.plan_file import read_plan, typed
from node_agent.virtual.run import Simulation, operators_here, simulate
from node_agent.virtual.scenario import Scenario, Source, VirtualPlan, virtual_plan
from node_agent.virtual.summary import OutputSummary
from node_agent.virtual.world import Delivery, Offer
from protos.plan_document import Plan

MOST_BURSTS = 1000  # for a tuple, of a source that admits few beside one that admits often
Tuples = Mapping[str, Sequence[Any]]
Operators = Registry | Sequence[str | Path | Callable[..., Any]]  # files, and classes and functions under @operator


class FailedError(ProblemError, AssertionError):
    """Operators raised while a plan was simulated; says which, how often, and the first error of each."""


class UnknownOutputError(ProblemError, KeyError):
    """The plan has no such output."""

    __str__ = Exception.__str__  # a KeyError would quote its sentence


@dataclass(frozen=True)
class Output:
    """What an output gave, in the order of delivery; times in ns. met, late: results in and after the deadline, where a
    result that a union gave twice counts once. What was shed or lost on a link has no result and is in neither."""

    deliveries: tuple[Delivery, ...]
    summary: OutputSummary = field(repr=False)

    @property
    def values(self) -> list[Any]:
        """The results."""
        return [each.payload for each in self.deliveries]

    @property
    def latencies_ns(self) -> list[int]:
        """Of each result, from the origin of its tuple."""
        return [each.latency_ns for each in self.deliveries]

    @property
    def deadline_ns(self) -> int:
        """From the query."""
        return self.summary.deadline_ns

    @property
    def met(self) -> int:
        """How many results came in time."""
        return self.summary.met

    @property
    def late(self) -> int:
        """How many came after the deadline."""
        return self.summary.late


@dataclass(frozen=True)
class Simulated:
    """`done["sorted"]` is what the output `sorted` gave. admitted: tuples. shed: tuples, windows, results, by policy.
    failures: a sentence per operator that raised. simulation: everything else."""

    outputs: Mapping[str, Output]
    simulation: Simulation = field(repr=False)

    def __getitem__(self, output: str) -> Output:
        """Raises UnknownOutputError (a KeyError) with the outputs that there are."""
        if output not in self.outputs:
            mend = f"there are: {', '.join(self.outputs)}"
            raise UnknownOutputError("unknown_output", f"no output {output!r}", mend, subject=output)
        return self.outputs[output]

    def __iter__(self) -> Iterator[str]:
        """The outputs' names."""
        return iter(self.outputs)

    @property
    def admitted(self) -> int:
        """How many tuples."""
        return self.simulation.admitted

    @property
    def refused(self) -> int:
        """Tuples that were too old for the windows that they would lie in."""
        return self.simulation.refused

    @property
    def shed(self) -> Mapping[str, int]:
        """By policy; nothing where the load is what the query declares."""
        return self.simulation.shed

    @property
    def failures(self) -> tuple[str, ...]:
        """Of operators, where a test allows them."""
        return self.simulation.failures


def simulated(
    plan: Plan | Mapping[str, Any] | str | Path,
    tuples: Tuples,
    operators: Operators = (),
    scenario: Scenario | None = None,
    may_fail: bool = False,
) -> Simulated:
    """Run plan.json, a file or what was read of one, in virtual time.

    tuples: what each source admits, each once, in order, as the query says that they arrive; a source that is not
    named admits nothing. Values are JSON; of a protobuf stream messages, or their JSON. operators: beside the
    installed ones; one that changes what others read fails. scenario: costs, ages, losses, policy, seed, ...;
    `tuples` of it are set here, and `bursts`, but that a source which its node makes itself ticks so often at
    least. Raises BadInputError where plan, tuples and scenario do not fit, and FailedError where an operator
    raises, unless it may.
    """
    made = _made(plan)
    registry = registered(operators)
    read, scenario = virtual_plan(made), scenario or Scenario()
    world = _Given({source.name: _values(source, tuples, registry) for source in read.sources}, scenario.ages_ns)
    for name in tuples:
        if name not in world.values:
            raise bad_input(
                "unknown_source", f"the plan has no source {name!r}", f"it has {', '.join(world.values)}", subject=name
            )
    counts = {name: len(values) for name, values in world.values.items()}
    own = [source.name for source in read.sources if source.pull is not None]
    if given := next((name for name in own if counts[name]), None):
        raise bad_input("made_here", f"source {given}: its node makes its tuples itself; give none", subject=given)
    least = scenario.bursts if own else 1
    conditions = replace(scenario, bursts=max(least, _bursts(read, counts, scenario)), tuples={})
    done = simulate(made, conditions, registry, world)
    if done.failures and not may_fail:
        raise FailedError("raised", "; ".join(done.failures))
    outputs = {
        name: Output(tuple(each for each in world.deliveries if each.output == name), summary)
        for name, summary in done.outputs.items()
    }
    return Simulated(outputs, done)


def _made(plan: Plan | Mapping[str, Any] | str | Path) -> Plan:
    if isinstance(plan, Plan):
        return plan
    return typed(plan, "plan") if isinstance(plan, Mapping) else read_plan(Path(plan))


def registered(operators: Operators) -> Registry:
    """The registry of a test: installed operators and these, all checked; the test's codecs. Raises BadInputError."""
    if isinstance(operators, Registry):
        return operators
    if isinstance(operators, str | Path):
        raise bad_input(
            "not_a_list",
            "operators: a list of files and classes is needed",
            f"write operators=[{str(operators)!r}]",
            subject="operators",
        )
    files = [Path(each) for each in operators if isinstance(each, str | Path)]
    marked = [each for each in operators if not isinstance(each, str | Path)]
    return with_codecs(operators_here(files, True, marked))


def _values(source: Source, tuples: Tuples, registry: Registry) -> list[Any]:
    """What the source admits."""
    found = []
    for number, value in enumerate(tuples.get(source.name, ()), 1):
        try:
            codec = registry.codecs.get(source.codec)
            made = value if hasattr(value, "SerializeToString") else codec.from_json(value)
            made = codec.decode(codec.encode(made))
        except (CodecError, UnknownCodecError) as error:
            raise bad_input(
                "not_a_tuple", f"source {source.name}, tuple {number}: {error}", subject=source.name
            ) from None
        found.append(made)
    return found


def _bursts(plan: VirtualPlan, counts: Mapping[str, int], scenario: Scenario) -> int:
    """The least number of bursts in which every source admits everything."""

    def short(number: int) -> list[str]:
        offered = dict.fromkeys((source.id for source in plan.sources), 0)
        for burst in bursts(plan, replace(scenario, bursts=number), 1):
            offered[burst.source] += burst.tuples
        return [source.name for source in plan.sources if offered[source.id] < counts[source.name]]

    most, last = 1, MOST_BURSTS * max([1, *counts.values()])
    while missing := short(most):
        if most >= last:
            raise bad_input(
                "tuples_never_come",
                f"source {missing[0]}: its {counts[missing[0]]} tuples never come at its arrivals",
                subject=missing[0],
            )
        most *= 2
    return bisect_left(range(1, most), True, key=lambda number: not short(number)) + 1


class _Given:
    """Sources that admit these values, one after the other, and results that are kept."""

    def __init__(self, values: dict[str, list[Any]], ages_ns: Mapping[str, int]) -> None:
        self.values, self.deliveries = values, list[Delivery]()
        self._ages_ns = ages_ns
        self._next = dict.fromkeys(values, 0)

    def begin(self, trial: int) -> None:
        """From the first value again."""
        self._next = dict.fromkeys(self.values, 0)

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """A copy, so that trials do not share it; None after the last."""
        number = self._next[source]
        if number >= len(self.values[source]):
            return None
        self._next[source] = number + 1
        return Offer(copy.deepcopy(self.values[source][number]), self._ages_ns.get(source, 0))

    def deliver(self, delivery: Delivery) -> None:
        """Kept."""
        self.deliveries.append(delivery)


__all__ = ["FailedError", "Operators", "Output", "Simulated", "Tuples", "registered", "simulated"]
