"""The query for dense traffic: every output guaranteed, and what is shed is never the first news of the vehicle that
matters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.core.shedding.source_admission import implied
from node_agent.operators.registry import Registry
from node_agent.wire.plan_message import core_plan
from protos.plan_document import Plan
from sim_vehicles.closed_loop.in_virtual_time import replay_virtual
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.inputs.load import utilisation
from sim_vehicles.replay.preparation import Options, Prepared, prepare
from sim_vehicles.v2v.channel import parse_channel

QUERIES = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries"
CHANNEL = "loss=0.1,delay=5ms,jitter=2ms,half=150m"
SECOND = 10**9


@pytest.fixture(scope="module")
def plan() -> Plan:
    query, cluster = QUERIES / "collision_streets.yaml", QUERIES / "cluster_paper.yaml"
    return planner.make_plan(query, cluster, Choices(model="sound"))


@pytest.fixture(scope="module")
def path(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streets") / "plan.json"
    path.write_text(plan.text())
    return path


def prepared(path: Path, seed: int, phase: tuple[int, int]) -> Prepared:
    return prepare(
        Options(
            "crossing_50", virtual=path, start_ns=8 * SECOND, until_ns=10 * SECOND, phase=phase, seed=seed,
            messages="etsi", channel=parse_channel(CHANNEL), around="streets_50",
        )
    )  # fmt: skip


def test_every_output_is_guaranteed_and_what_waits_may_be_displaced(plan: Plan) -> None:
    assert all(claim.guaranteed for claim in plan.guarantee.values())
    (source,) = (one for one in core_plan(plan.nodes["a"], "0" * 64, 1).sources if one.name == "v2v")
    assert source.limit is not None and implied(source.limit, source)


@pytest.mark.parametrize(("seed", "k"), [(1, 0), (2, 1), (3, 0)])
def test_the_first_message_about_the_crossing_vehicle_is_let_in(path: Path, seed: int, k: int) -> None:
    """And the ego knows soon, at a load that is more than both nodes can work on (seed 1), or near to it."""
    one = prepared(path, seed, (k, 4))
    done = replay_virtual(
        one.plan, one.scenario, one.feeds, one.inputs.options, AUTO, 1, 1, Registry(), only=(k, 4), around=one.around
    )
    (lap,) = done.laps
    messages, knew = lap.verdict.crossing_messages, lap.verdict.found.knew
    assert messages is not None and knew is not None
    assert (messages.refused, messages.policed) == (0, 0), f"seed {seed}, phase {k}/4: {messages}"
    assert messages.shed == 0, f"seed {seed}, phase {k}/4: {messages}"
    assert knew.at_s < 9.9
    assert done.shed["rate"] > 0.5 * len(one.bursts), "others go"


def test_without_the_limit_both_nodes_together_have_more_than_they_can_do(path: Path) -> None:
    one = prepared(path, 1, (0, 4))
    source = replace(one.plan.graph.sources["v2v"], limit=None)
    graph = replace(one.plan.graph, sources={**one.plan.graph.sources, "v2v": source})
    assert sum(utilisation(replace(one.plan, graph=graph), one.sizes, 1.0).values()) > 1.2 * 2
