"""Policies with parameters in cluster.yaml and on the command line, what a plan says of them, and what nodes run that
name none."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.explain import explanation
from coordinator.guarantee.bounds import bounds
from coordinator.plan import policy_choice, reopen
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.spec.runtime_charges import NOTHING
from coordinator.units import duration_ns
from node_agent.core.policies import policy as live_policy
from node_agent.virtual.errors import BadInputError
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario, as_run, virtual_plan
from node_agent.wire.plan_error import PlanError
from node_agent.wire.plan_message import core_plan
from protos.plan_document import Plan
from protos.policies import NAMES, PARAMETERS, Chosen, PolicyError, chosen
from tests.coordinator.guarantee.written_plans import MS, written
from tests.sentences import Wording, refused

SAID = Wording("simulate", "policies said twice")

QUERY = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, tolerance: 0 s, max_age: 1 ms}
operators:
  X: {run: pass, in: s, cost: 1 ms, nodes: [a]}
  Y: {run: pass, in: X, cost: 1 ms, nodes: [b]}
outputs:
  out: {from: Y, at: b, deadline: 80 ms}
"""
VALUES = {"phi": "3 ms", "hop_phi": "7ms", "k": "4", "share": "0.25%", "batch": "5"}


def plan(a: str = "", b: str = "", query: str = QUERY, **choices: Any) -> Plan:
    """`a`, `b`: what the nodes' `policy` is, empty: not named."""
    named = [f", policy: {each}" if each else "" for each in (a, b)]
    cluster = (
        f'shimekiri: 1\nnodes:\n  a: {{address: "127.0.0.1:7700"{named[0]}}}\n'
        f'  b: {{address: "127.0.0.1:7710"{named[1]}}}\nlinks: [{{between: [a, b]}}]\n'
    )
    return written(query, cluster, **choices)


def runs(made: Plan) -> list[str]:
    return [policy_choice.of_node(facts).written for facts in made.cluster.nodes.values()]


# -- the grammar


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_reaches_the_node_s_plan_and_what_it_runs(name: str) -> None:
    takes = PARAMETERS[name]
    text = f"{name}:{','.join(f'{key}={VALUES[key]}' for key in takes)}" if takes else name
    made = plan(f"'{text}'", "edf", model="paper")
    local = virtual_plan(made).nodes[0]
    asked = chosen(text, duration_ns)
    assert (local.policy, local.largest_batch) == (name, asked.largest_batch)
    found = {field.name: getattr(local.parameters, field.name) for field in fields(local.parameters)}
    assert asked.parameters.items() - {("largest_batch", 5)} <= found.items()
    assert set(asked.parameters) == {{"batch": "largest_batch", "k": "first_k", "share": "share_ppm"}.get(
        key, f"{key}_ns") for key in takes}  # fmt: skip
    live_policy(local.policy, local.largest_batch, local.parameters)
    assert audit(made) == []


def test_the_three_ways_to_write_a_policy_are_one() -> None:
    mapping, text = plan("{name: bts, phi: 10 ms, k: 5}", "fifo"), plan("'bts:phi=10ms,k=5'", "fifo")
    assert mapping.nodes == text.nodes and runs(mapping) == ["bts:phi=10000000ns,k=5", "fifo"]
    option = plan("edf", "fifo", policy="bts:k=5,phi=10 ms")
    assert option.nodes["a"].policy == mapping.nodes["a"].policy == option.nodes["b"].policy
    shown = simulate(plan("edf", "fifo"), Scenario(policy="bts:phi=10ms,k=5"))
    assert shown.document()["scenario"]["policy"] == "bts:phi=10ms,k=5"


@given(
    st.sampled_from(NAMES).flatmap(
        lambda name: st.builds(
            Chosen,
            st.just(name),
            phi_ns=st.integers(0, 10**12) if "phi" in PARAMETERS[name] else st.just(0),
            hop_phi_ns=st.integers(0, 10**12) if "hop_phi" in PARAMETERS[name] else st.just(0),
            share_ppm=st.integers(0, 999_999) if "share" in PARAMETERS[name] else st.just(0),
            first_k=st.integers(0, 10**6) if "k" in PARAMETERS[name] else st.just(0),
            largest_batch=st.integers(0, 10**6) if "batch" in PARAMETERS[name] else st.just(1),
        )
    )
)
def test_a_policy_is_written_as_it_is_read(policy: Chosen) -> None:
    assert chosen(policy.written, duration_ns) == policy


@given(st.text(alphabet="edfbts:=,%0123456789. khpi_oneshare-", max_size=40))
def test_any_other_text_is_refused_in_a_sentence(text: str) -> None:
    try:
        assert chosen(text, duration_ns).name in NAMES
    except PolicyError as error:
        assert len(str(error)) > 20


def test_simulate_takes_the_same_and_refuses_what_is_said_twice() -> None:
    made = plan("{name: bts, phi: 10 ms}", "bts")
    local = as_run(virtual_plan(made).nodes[0], Scenario(policy="ats1:k=3"))
    assert (local.policy, local.parameters.first_k) == ("ats1", 3)
    assert local.parameters.phi_ns == 0  # not that of the plan's policy
    assert as_run(virtual_plan(made).nodes[0], Scenario(first_k=3)).parameters.phi_ns == 10 * MS
    for scenario, expected in (
        (Scenario(policy="bts:k=3", first_k=2), "given_twice --first-k"),
        (Scenario(policy="edf:batch=3", batch="burst"), "given_twice --batch"),
        (Scenario(policy="nope"), "unknown_policy --policy"),
        (Scenario(policy="bts:phi=3"), "bad_policy_duration --policy"),
    ):
        with SAID.refuses(expected, kind=BadInputError):
            simulate(made, scenario)


# -- phi


@pytest.mark.parametrize(
    ("policy", "phi_ms", "by"),
    [
        ("bts", None, "a tenth of the least sub-deadline there, 100 ms at most"),
        ("{name: bts1, phi: 3 ms}", 3, "given"),
        ("{name: ats, hop_phi: 20 ms}", 20, "the error bound of window hops, the larger one"),
        ("{name: ats1, phi: 3 ms, hop_phi: 2 ms}", 3, "given"),
    ],
)
def test_a_plan_says_which_phi_its_nodes_will_use_and_they_do(policy: str, phi_ms: int | None, by: str) -> None:
    made = plan(policy, "fifo")
    sub_ns = made.tasks["a"][0].sub_deadline_ns
    used_ns = sub_ns // 10 if phi_ms is None else phi_ms * MS
    told = [line for lines in explanation.short(made).values() for line in lines if "phi" in line]
    assert len(told) == 1 and told[0].startswith("node a runs ") and f"({by})" in told[0]
    local = virtual_plan(made).nodes[0]
    tuner = live_policy(local.policy, 1, local.parameters).tuner
    assert tuner is not None

    class Units:
        units = local.units

    running: Any = tuner(Units(), local.parameters)  # type: ignore[arg-type]
    running.loaded()
    assert running.phi_ns == used_ns == policy_choice.of_node(made.cluster.nodes["a"]).phi([sub_ns])


# -- guarantees


def test_batches_of_edf_are_covered_and_count() -> None:
    alone, batched = plan("edf", "edf", model="sound"), plan("{name: edf, batch: 4}", "edf", model="sound")
    assert alone.guarantee["out"].guaranteed and batched.guarantee["out"].guaranteed
    assert virtual_plan(batched).nodes[0].largest_batch == 4
    assert bounds(batched, NOTHING)["out"].bound_ns == batched.guarantee["out"].bound_ns
    unlimited = plan("{name: edf, batch: burst}", "edf", model="sound")
    assert "batches on node a have no limit" in unlimited.guarantee["out"].why
    assert not plan("{name: bts, phi: 1 ms}", "edf", model="sound").guarantee["out"].guaranteed


# -- nodes that name none


def test_nodes_that_name_none_run_edf_where_it_guarantees_an_output() -> None:
    for model in ("sound", "paper"):
        made = plan(model=model)
        assert made.guarantee["out"].guaranteed and runs(made) == ["edf", "edf"] and not made.policy_why


LATE = QUERY.replace("80 ms", "5 ms")  # of 6 that a burst takes


@pytest.mark.parametrize("choices", [{"model": "sound", "best_effort": True}, {"allocator": "sqpr"}])
def test_and_slack_where_nothing_is_guaranteed(choices: dict[str, Any]) -> None:
    made = plan(query=LATE, **choices)
    assert runs(made) == ["slack", "slack"] and made.policy_why.startswith("no output is guaranteed: policy slack")
    assert "; under edf: the bound exceeds the deadline by" in made.guarantee["out"].why
    assert any(made.policy_why in lines for lines in explanation.short(made).values())
    assert audit(made) == []


def test_a_policy_that_is_named_stays() -> None:
    assert runs(plan("edf", query=LATE, model="sound", best_effort=True)) == ["edf", "slack"]
    assert runs(plan("edf", "fifo", query=LATE, model="sound", best_effort=True)) == ["edf", "fifo"]
    assert runs(plan(query=LATE, policy="edf", model="sound", best_effort=True)) == ["edf", "edf"]
    assert runs(plan("fifo", "")) == ["fifo", "slack"]


def test_from_admission_on_is_a_promise_too() -> None:
    made = plan(query=QUERY.replace(", max_age: 1 ms", ""))
    assert not made.guarantee["out"].guaranteed and runs(made) == ["edf", "edf"]


def test_planning_again_from_plan_json_chooses_again() -> None:
    made = plan("{name: bts, phi: 3 ms}", query=LATE, allocator="sqpr")
    query, cluster, types, choices = reopen.inputs(made, Path("plan.json"))
    assert [node.policy for node in cluster.nodes.values()] == [Chosen("bts", phi_ns=3 * MS), None]
    assert planner.plan(query, cluster, types, choices).nodes == made.nodes


def test_an_agent_refuses_services_that_contradict() -> None:
    made = plan("qed", "edf")
    local = made.nodes["a"]
    local.units[0].service.add(latency_ns=3, first=True)
    with refused("no_service unit 1", PlanError):
        core_plan(local, 1, 1)
    local.units[0].service.add(latency_ns=3, period_ns=4, tuples=1, first=True)
    with refused("idle_service_with_period unit 1", PlanError):
        core_plan(local, 1, 1)
