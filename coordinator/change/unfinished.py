"""A change whose command was killed is finished by the next command that is given the same plan file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coordinator.change import intention
from coordinator.fleet import addresses as address_file
from coordinator.fleet.agents import Agents, Reach
from coordinator.fleet.deployment import deploy
from coordinator.plan import plan_file


def finish(
    plan: Path, addresses: Path, tell: Callable[[str], None], progress: deploy.Progress, reach: Reach = Agents
) -> frozenset[str]:
    """Put the plan files in step where the agents have decided the change, and tell those that have not heard of it;
    else what ran goes on. Does nothing where no change was broken off.
    Returns the queries that it has ended. Raises AgentsError and DeployError."""
    left = intention.left(plan)
    if left is None:
        return frozenset()
    file = address_file.load(addresses)
    with reach(file.nodes) as agents:
        made = intention.settle(plan, agents.status())
    if made is None:
        tell(f"a change of {plan} was broken off before it was decided: what ran goes on")
        return frozenset()
    tell(f"a change of {plan} was broken off when it was decided: plan {made.hash[:8]} runs, and the files say so now")
    with reach(file.of_plan(made)) as agents:
        deploy.deploy(made, agents, progress)
    return frozenset(plan_file.read(left.old).queries).difference(made.queries)
