"""Deploys what is in a plan file: the plan, or what remains of it without a node that has failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coordinator.change import intention, unfinished
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses, host_of
from coordinator.fleet.agents import Agents, Reach
from coordinator.fleet.deployment import deploy, deployed_plans
from coordinator.plan import plan_file
from protos.plan_document import Plan


def deploy_file(
    plan: Path,
    addresses: Path,
    without: str | None,
    replace: bool,
    tell: Callable[[str], None],
    progress: deploy.Progress,
    reach: Reach = Agents,
) -> deploy.Deployed:
    """`without`: a node, to deploy its fail-over plan on the others; `replace`: queries that run and are not in the
    plan end. Raises BadInputError, OtherPlanError, and what `deploy.deploy` raises."""
    decided = unfinished.put_in_step(plan, addresses, without, tell, reach)
    made = plan_file.read(plan)
    if without is not None:
        made, beside = plan_file.after(made, without, plan)
        tell(f"what remains without {without} is in {beside}, for collect and report")
    file, replacing = address_file.load(addresses), replace or without is not None
    given_up: set[bytes] = set()
    with reach(file.of_plan(made)) as agents:

        def check(statuses: deployed_plans.Statuses) -> None:
            if not replacing:
                deployed_plans.refuse_ending(made, plan, statuses)
            given_up.update(one.hash for one in map(deployed_plans.committed, statuses.values()) if one is not None)

        done = deploy.deploy(made, agents, progress, check)
    if decided is not None:  # all nodes have been told of it, or of what follows it
        intention.forget(plan)
    _end_elsewhere(made, given_up - {bytes.fromhex(made.hash)}, file, without, reach)
    return done


def _end_elsewhere(made: Plan, hashes: set[bytes], file: Addresses, without: str | None, reach: Reach) -> None:
    """Nodes that the plan does not have, and the one before had, admit nothing more under that one."""
    hosts = {host_of(name) for name in made.nodes} | ({without} if without else set())
    others = {name: agent for name, agent in file.nodes.items() if host_of(name) not in hosts}
    if hashes and others:
        with reach(others) as agents:
            deploy.end(hashes, agents)
