"""Scenario: the options that a simulation varies, and its view of plan.json."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from node_agent.core import plan as core
from node_agent.core.meters import PPM
from node_agent.core.policies import POLICIES
from node_agent.virtual.cost_model import NO_JITTER, Jitter
from node_agent.virtual.durations import duration_ns
from node_agent.virtual.errors import BadInputError, bad_input
from node_agent.wire.plan_message import MOST_K, core_plan
from protos.plan.arrivals import Arrival
from protos.plan.sources import Pull
from protos.plan_document import Plan
from protos.policies import Chosen, PolicyError, chosen
from protos.records import stamp_of

BATCHES = ("tuple", "burst", "barrier")
MOST_TRIALS = 65_535  # the trial is the lineage's epoch, 16 bits in trace records
PLAN_EPOCH = 1


@dataclass(frozen=True)
class Scenario:
    """Everything that is not in the plan. Durations are nanoseconds; names are the sources'.

    ages_ns: how old a source's tuples are on admission. burst: tuples per burst instead of the plan's. phase_ns: first
    burst after the trial's start. latency_ns: of every link, which then takes no time to send either; None: the
    plan's. batch: None: as each node's plan says. loss: probability that a tuple never crosses a link.
    tuples: files with what the sources admit. decision_ns: what a scheduling decision costs; one is taken for every
    task instance, but where a policy goes on without. policy: of every node, written like bts:phi=10ms,k=5; None: the
    plan's. phi_ns, first_k, share_ppm: of the policy; None: what is written there, else the plan's.
    spread_ns: how much later than the first instant a node may commit the next plan, where there is one.
    """

    trials: int = 1
    seed: int = 1
    policy: str | None = None
    batch: str | None = None
    jitter: Jitter = NO_JITTER
    cost_scale: float = 1.0
    bursts: int = 1
    ages_ns: Mapping[str, int] = field(default_factory=dict)
    burst: Mapping[str, int] = field(default_factory=dict)
    phase_ns: Mapping[str, int] = field(default_factory=dict)
    latency_ns: int | None = None
    loss: float = 0.0
    tuples: Mapping[str, str] = field(default_factory=dict)
    decision_ns: int = 0
    phi_ns: int | None = None
    first_k: int | None = None
    share_ppm: int | None = None
    spread_ns: int = 0

    def document(self) -> dict[str, Any]:
        """For run.json: plain values."""
        given: dict[str, Any] = {"tuples": dict(self.tuples)} if self.tuples else {}
        if self.decision_ns:
            given["decision_ns"] = self.decision_ns
        if self.spread_ns:
            given["spread_ns"] = self.spread_ns
        return given | self.parameters() | {
            "trials": self.trials, "seed": self.seed, "policy": self.policy, "batch": self.batch,
            "jitter": self.jitter.text, "cost_scale": self.cost_scale, "bursts": self.bursts,
            "ages_ns": dict(self.ages_ns), "burst": dict(self.burst), "phase_ns": dict(self.phase_ns),
            "latency_ns": self.latency_ns, "loss": self.loss,
        }  # fmt: skip

    @property
    def chosen(self) -> Chosen | None:
        """The policy that was given. Raises BadInputError."""
        if self.policy is None:
            return None
        try:
            return chosen(self.policy, _duration_ns)
        except PolicyError as error:
            raise bad_input(error.code, f"--policy {self.policy}: {error}", subject="--policy") from None

    def parameters(self) -> dict[str, int]:
        """The policy's, as far as they are given beside it."""
        given = {"phi_ns": self.phi_ns, "first_k": self.first_k, "share_ppm": self.share_ppm}
        return {name: value for name, value in given.items() if value is not None}


def _duration_ns(text: str) -> int:
    try:
        return duration_ns(text, "duration")
    except BadInputError as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Source:
    """A source as its arrivals need it."""

    id: int
    name: str
    node: str
    codec: str
    max_age_ns: int
    arrival: Arrival
    pull: Pull | None = None  # how its node makes its tuples itself

    @property
    def ticks(self) -> bool:
        """Whether its node makes its tuples at instants of its own."""
        return self.pull is not None and self.pull.every_ns > 0


@dataclass(frozen=True)
class VirtualPlan:
    """A plan as it is simulated: local plans in node order, sources and outputs in the order of their ids."""

    made: Plan
    nodes: tuple[core.Plan, ...]
    speeds: Mapping[str, float]
    sources: tuple[Source, ...]
    outputs: tuple[core.Output, ...]
    epoch: int = PLAN_EPOCH

    @property
    def hash(self) -> str:
        """The plan's."""
        return self.made.hash

    @property
    def windows(self) -> dict[int, str]:
        """What windows are admitted as, by the operator that gives their results."""
        found: dict[int, str] = {}
        for local in self.nodes:
            closing = {operator.closes: operator.name for operator in local.operators if operator.closes}
            found |= {source.id: closing.get(source.window, source.name) for source in local.sources if source.window}
        return found

    @property
    def hash_u64(self) -> int:
        """As in trace records."""
        return stamp_of(self.hash)


def virtual_plan(made: Plan, epoch: int = PLAN_EPOCH) -> VirtualPlan:
    """The plan as it is simulated under that epoch. Raises BadInputError."""
    try:
        return _virtual(made, epoch)
    except (KeyError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise bad_input(
            "not_simulated", f"not a plan that can be simulated: {what}", "make it with `coordinator plan`"
        ) from None


def _virtual(made: Plan, epoch: int) -> VirtualPlan:
    nodes = made.cluster.nodes
    plans = [
        core_plan(made.nodes[name], stamp_of(made.hash), epoch)
        for name in sorted(made.nodes, key=lambda each: nodes[each].index)
    ]
    sources = [
        Source(source.id, name, source.at, source.type, source.max_age_ns, source.arrival, source.pull)
        for name, source in made.graph.sources.items()
    ]
    outputs = [output for plan in plans for output in plan.outputs]
    return VirtualPlan(
        made=made,
        nodes=tuple(plans),
        speeds={name: float(node.speed) for name, node in nodes.items()},
        sources=tuple(sorted(sources, key=lambda each: each.id)),
        outputs=tuple(sorted(outputs, key=lambda each: each.id)),
        epoch=epoch,
    )


def check(plan: VirtualPlan, scenario: Scenario, more: Iterable[Source] = ()) -> None:
    """Raises BadInputError where the scenario does not fit the plan. more: sources of other plans of the run."""
    if not 1 <= scenario.trials <= MOST_TRIALS:
        raise bad_input(
            "out_of_range", f"--trials {scenario.trials}: must be between 1 and {MOST_TRIALS}", subject="--trials"
        )
    if scenario.bursts < 1:
        raise bad_input("out_of_range", f"--bursts {scenario.bursts}: must be at least 1", subject="--bursts")
    if not 0 < scenario.cost_scale < 1e6:
        raise bad_input(
            "out_of_range", f"--cost-scale {scenario.cost_scale}: must be a positive factor", subject="--cost-scale"
        )
    if not 0 <= scenario.loss < 1:
        raise bad_input("out_of_range", f"--loss {scenario.loss}: must be a probability below 1", subject="--loss")
    _check_parameters(scenario)
    if scenario.batch is not None and scenario.batch not in BATCHES:
        raise bad_input(
            "unknown_word",
            f"--batch {scenario.batch!r}: unknown",
            f"use one of {', '.join(BATCHES)}",
            subject="--batch",
        )
    known = {source.name: source for source in (*plan.sources, *more)}
    by_source: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("--age", scenario.ages_ns), ("--burst", scenario.burst), ("--phase", scenario.phase_ns),
        ("--tuples", scenario.tuples),
    )  # fmt: skip
    for option, given in by_source:
        for name in given:
            if name not in known:
                raise bad_input(
                    "unknown_source",
                    f"{option} {name}: the plan has no such source",
                    f"it has {', '.join(known)}",
                    subject=option,
                )
            if known[name].pull is not None:
                raise bad_input(
                    "made_here",
                    f"{option} {name}: its node makes the tuples of that source itself",
                    f"leave {option} out",
                    subject=option,
                )
    for name, age_ns in scenario.ages_ns.items():
        limit_ns = known[name].max_age_ns
        if limit_ns and age_ns > limit_ns:
            raise bad_input(
                "too_old",
                f"--age {name}: {age_ns} ns is above its max_age of {limit_ns} ns, so it would be refused",
                subject="--age",
            )
    _check_batch(plan, scenario)


def _check_parameters(scenario: Scenario) -> None:
    named = scenario.chosen
    twice = sorted(named.parameters.keys() & scenario.parameters()) if named is not None else []
    for name in twice:
        option = {"phi_ns": "--phi", "first_k": "--first-k", "share_ppm": "--share"}[name]
        raise bad_input(
            "given_twice", f"{option}: --policy {scenario.policy} says it too", "leave one of the two", subject=option
        )
    if named is not None and named.largest_batch != 1 and scenario.batch is not None:
        raise bad_input(
            "given_twice", f"--batch: --policy {scenario.policy} says it too", "leave one of the two", subject="--batch"
        )
    if scenario.decision_ns < 0:
        raise bad_input("negative", "--decision-cost: must not be negative", subject="--decision-cost")
    if scenario.phi_ns is not None and scenario.phi_ns < 1:
        raise bad_input("out_of_range", "--phi: must be above 0, like 10ms", subject="--phi")
    if scenario.first_k is not None and not 1 <= scenario.first_k <= MOST_K:
        raise bad_input(
            "out_of_range", f"--first-k {scenario.first_k}: must be between 1 and {MOST_K}", subject="--first-k"
        )
    if scenario.share_ppm is not None and not 0 < scenario.share_ppm < PPM:
        raise bad_input("out_of_range", "--share: must be a percentage above 0 and below 100", subject="--share")


def _check_batch(plan: VirtualPlan, scenario: Scenario) -> None:
    if scenario.batch == "barrier" and any(len(unit.operators) > 1 for local in plan.nodes for unit in local.units):
        raise bad_input(
            "barrier_of_several_operators",
            "--batch barrier: needs one operator per task unit",
            "plan with `--units operator`",
            subject="--batch",
        )
    if scenario.batch == "burst":
        for local in plan.nodes:
            named = scenario.chosen
            runs = POLICIES[local.policy if named is None else named.name]
            if runs.yields or runs.key is not None or runs.tuner or runs.stays:
                raise bad_input(
                    "burst_of_single_tuples",
                    f"--batch burst: policy {runs.name} runs tuple by tuple",
                    "use --policy edf or fifo",
                    subject="--batch",
                )


def as_run(plan: core.Plan, scenario: Scenario) -> core.Plan:
    """The local plan with the scenario's policy and batches. A policy that is named comes with its own parameters, not
    with those of the plan's."""
    named = scenario.chosen
    if named is not None:
        given = named.parameters
        batch = given.pop("largest_batch", 1)
        plan = replace(plan, policy=named.name, largest_batch=batch, parameters=core.Parameters(**given))
    batch = {None: plan.largest_batch, "tuple": 1, "barrier": 1, "burst": 0}[scenario.batch]
    return replace(plan, largest_batch=batch, parameters=replace(plan.parameters, **scenario.parameters()))
