"""Properties of any virtual run: how nodes choose, and that both ledgers balance in the report's verdict."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.runtime.deployments.lifecycle import Policies, installed
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.run import Simulation, Trace, simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from tests.sampling import examples
from tests.simulation.policies.paper_policies import OWN, handed
from tests.simulation.random_plans import documents, registry

EXAMPLES = settings(
    max_examples=examples(40, 2), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)

ALONE = [
    "edf",
    "edf-e2e",
    "edf-op",
    "fifo",
    "taat",
    "spt",
    "rr",
    "muf",
    "qed",
    "pqed",
    "slack",
]
BATCHING = ["bts", "bts1", "ats", "ats1", "adaptive"]

scenarios = st.builds(
    Scenario,
    trials=st.integers(1, 2),
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(ALONE + BATCHING),
    decision_ns=st.sampled_from([0, 0, 300_000]),
    phi_ns=st.sampled_from([None, 5_000_000]),
    first_k=st.sampled_from([None, 3]),
    jitter=st.sampled_from(["none", "exp", "lognormal:cv=1", "uniform:0.5,1.5"]).map(parse_jitter),
    bursts=st.integers(1, 2),
    phase_ns=st.dictionaries(st.just("s0"), st.sampled_from([0, 1_000_000, 7_654_321])),
    latency_ns=st.sampled_from([None, 0]),
    loss=st.sampled_from([0.0, 0.0, 0.3]),
)
policies = st.sampled_from([installed] * 10 + [handed(each) for each in OWN.values()])


class Ran(NamedTuple):
    """A task instance as it was recorded."""

    release: int
    start: int
    end: int
    unit: int


def ran(trace: Trace) -> list[Ran]:
    """All instances of a node that were not lost, by start."""
    facts = records.unpack_records(trace.records)
    return sorted(
        (Ran(r.release_ns, r.start_ns, r.end_ns, r.unit) for r in facts if isinstance(r, records.Ran)),
        key=lambda each: each.start,
    )


def report(done: Simulation) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        write_run(done, directory)
        return verdict(read_run(directory)).document()


@EXAMPLES
@given(documents(), scenarios, policies)
def test_every_obligation_ends_once_and_the_summary_is_the_reports_verdict(
    plan: Plan, scenario: Scenario, policies: Policies
) -> None:
    done = simulate(plan, scenario, registry(), policies=policies)
    found = report(done)
    note(str(found["conservation"]["problems"]))
    assert found["completeness"]["complete"]
    assert found["conservation"]["balanced"]
    assert found["conservation"]["admitted"] == found["conservation"]["accounted"] == done.admitted
    assert found["conservation"]["by_outcome"]["open"] == 0
    for name, output in done.outputs.items():
        mine, theirs = output.document(), found["outputs"][name]
        assert theirs["undecidable"] == 0
        assert {key: mine[key] for key in ("met", "late", "deadline_ns", "latency_ns")} == {
            key: theirs[key] for key in ("met", "late", "deadline_ns", "latency_ns")
        }
        if not theirs["lost"] and not theirs["lost_unsure"] and not found["conservation"]["by_outcome"]["shed"]:
            assert mine["miss_ratio"] == theirs["miss_ratio"]


@EXAMPLES
@given(
    documents(("pass", "filter", "union", "test.attach", "test.twice")),
    scenarios.filter(lambda scenario: scenario.policy in ALONE and not scenario.decision_ns),
    policies,
)
def test_a_node_runs_one_instance_at_a_time_and_never_idles_with_ready_work(
    plan: Plan, scenario: Scenario, policies: Policies
) -> None:
    for trace in simulate(plan, scenario, registry(), policies=policies).traces:
        instances = ran(trace)
        for one, after in pairwise(instances):
            assert one.end <= after.start, "an instance was interrupted or two ran at once"
        busy = 0  # end of the busy period that reaches up to each instance's start
        for index, each in enumerate(instances):
            busy = index if index == 0 or instances[index - 1].end < each.start else busy
            assert each.release == each.start or each.release >= instances[busy].start, "idle with ready work"


@EXAMPLES
@given(
    documents(("pass", "filter", "union", "test.attach", "test.twice")),
    scenarios.filter(lambda scenario: scenario.policy in ("edf", "fifo")),
)
def test_a_node_starts_the_least_of_its_order(plan: Plan, scenario: Scenario) -> None:
    for trace in simulate(plan, scenario, registry()).traces:
        local = plan.nodes[trace.node]
        ahead_ns = {unit.id: unit.sub_deadline_ns for unit in local.units}
        instances = ran(trace)
        for index, chosen in enumerate(instances):
            for other in instances[index + 1 :]:
                if other.release <= chosen.start - scenario.decision_ns:  # the instant of the choice
                    keys = [each.release + (ahead_ns[each.unit] if scenario.policy == "edf" else 0)
                            for each in (chosen, other)]  # fmt: skip
                    assert keys[0] <= keys[1], "a more urgent instance was ready"


@EXAMPLES
@given(documents(), scenarios)
def test_the_same_seed_gives_the_same_bytes(plan: Plan, scenario: Scenario) -> None:
    first, second = (simulate(plan, scenario, registry()) for _ in range(2))
    assert [trace.segment for trace in first.traces] == [trace.segment for trace in second.traces]


@EXAMPLES
@given(documents(("pass", "filter", "union")), st.integers(0, 2**32))
def test_a_tuple_costs_an_operator_the_same_whatever_the_policy(plan: Plan, seed: int) -> None:
    costs: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for policy in ("edf", "fifo"):
        scenario = Scenario(seed=seed, policy=policy, jitter=parse_jitter("exp"))
        for trace in simulate(plan, scenario, registry()).traces:
            for fact in records.unpack_records(trace.records):
                # Filters count tuples as they come, so an instance of several operators may end early or not.
                if isinstance(fact, records.Ran) and fact.outputs:
                    key = (fact.unit, fact.source, fact.epoch, fact.seq, fact.ordinal)
                    costs[(*key, fact.outputs)].add(fact.end_ns - fact.start_ns)
    assert all(len(found) == 1 for found in costs.values())
