"""A planned query with windows, limits and late tuples is one that agents load, on every node."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.policies import policy
from node_agent.operators.registry import Registry
from node_agent.wire.plan_message import core_plan

FOLDER = Path(__file__).parents[2] / "coordinator" / "spec"


@pytest.mark.parametrize("model", ["paper", "sound"])
def test_local_plans_are_loaded(model: str) -> None:
    files = FOLDER / "example_query.yaml", FOLDER / "example_cluster.yaml"
    plan = planner.make_plan(*files, Choices(model=model, quick=True))  # type: ignore[arg-type]
    registry = Registry()
    windows: dict[str, int] = {}
    for node, part in plan.nodes.items():
        local = core_plan(part, 1, 1)
        names = {stream.id: stream.name for stream in local.streams}
        calls = {}
        for operator in local.operators:
            inputs = operator.called or tuple(names[one] for one in operator.inputs)
            calls[operator.id] = registry.calls(operator, inputs)
            if operator.late is not None and operator.late.run:
                calls[-operator.id] = registry.variant(operator, inputs)
        loaded = compile_plan(local, calls, policy(local.policy))
        windows |= {each.name: len(each.window.feeds) for each in loaded.windows}
        assert [each.policy for each in local.sheddings] == (["window-aware"] if node == "b" else [])
        assert len(loaded.shedders) == len(local.sheddings)
    assert windows == {"speeds": 2, "totals": 2, "tens": 1, "pairs": 2}
