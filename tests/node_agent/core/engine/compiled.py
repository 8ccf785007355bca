"""Small plans, compiled, for tests of the engine's components."""

from dataclasses import replace

from node_agent.core import plan as plans
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.model import CompiledPlan
from node_agent.core.policies import policy


def passing(payload: object) -> object:
    """What an operator does here."""
    return payload


def compiled(plan: plans.Plan, name: str = "edf") -> CompiledPlan:
    """Ready to run."""
    calls = {operator.id: (passing, True) for operator in plan.operators}
    return compile_plan(plan, calls, policy(name))


def _two_branches(joined: bool) -> plans.Plan:
    """Source 1 -> O1 and O2 -> O3 -> out."""
    return plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json", marked=True) for i in range(1, 5)),
        sources=(plans.Source(1, "in", 1),),
        operators=(
            plans.Operator(1, "O1", "pass", (1,), 2, 1), plans.Operator(2, "O2", "pass", (1,), 3, 1),
            plans.Operator(3, "O3", "pass", (2, 3), 4, 1, join=joined),
        ),
        units=tuple(plans.Unit(i, (i,), 10, 100, (i + 1,)) for i in range(1, 4)),
        outputs=(plans.Output(1, "out", 4, 100),),
    )  # fmt: skip


def diamond() -> CompiledPlan:
    """The branches meet in a join by lineage."""
    return compiled(_two_branches(joined=True))


def union() -> CompiledPlan:
    """What comes by either branch triggers."""
    return compiled(_two_branches(joined=False))


def one_source(**changes: object) -> CompiledPlan:
    """Source 1, changed, -> O1 and O2."""
    plan = _two_branches(joined=False)
    return compiled(replace(plan, sources=(replace(plan.sources[0], **changes),)))  # type: ignore[arg-type]
