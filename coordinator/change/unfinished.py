"""A change whose command was killed is finished by the next command that is given the same plan file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coordinator.change import intention
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import host_of
from coordinator.fleet.agents import Agents, Reach
from coordinator.fleet.deployment import deploy, deployed_plans
from coordinator.plan import plan_file
from protos.plan_document import Plan


def finish(
    plan: Path, addresses: Path, tell: Callable[[str], None], progress: deploy.Progress, reach: Reach = Agents
) -> frozenset[str]:
    """Put the plan files in step where the agents have decided the change, and tell those that have not heard of it;
    else what ran goes on. Does nothing where no change was broken off. Where this one is broken off as well, the next
    command does it.
    Returns the queries that it has ended. Raises AgentsError and DeployError."""
    left = intention.left(plan)
    made = put_in_step(plan, addresses, None, tell, reach)
    if left is None or made is None:
        return frozenset()
    with reach(address_file.load(addresses).of_plan(made)) as agents:
        if _is_newest(made, agents.status()):
            deploy.deploy(made, agents, progress)
    intention.forget(plan)
    return frozenset(plan_file.read(left.old).queries).difference(made.queries)


def put_in_step(
    plan: Path, addresses: Path, without: str | None, tell: Callable[[str], None], reach: Reach = Agents
) -> Plan | None:
    """Of that, the files alone. without: a node that is not asked, since it has failed. Returns the plan that they have
    now where the change was decided; `intention.forget` says that all nodes have been told. Raises AgentsError."""
    if intention.left(plan) is None:
        return None
    nodes = address_file.load(addresses).nodes
    with reach({name: agent for name, agent in nodes.items() if host_of(name) != without}) as agents:
        made = intention.settle(plan, agents.status())
    broken = f"a change of {plan} was broken off"
    if made is None:
        tell(f"{broken} before it was decided: what ran goes on")
    else:
        tell(f"{broken} when it was decided: plan {made.hash[:8]} runs, and the files say so now")
    return made


def _is_newest(plan: Plan, statuses: deployed_plans.Statuses) -> bool:
    """No node has committed another plan since then, and it was not stopped."""
    found = [one for one in map(deployed_plans.committed, statuses.values()) if one is not None]
    newest = max(found, key=lambda one: one.epoch, default=None)
    return newest is not None and newest.hash == bytes.fromhex(plan.hash)
