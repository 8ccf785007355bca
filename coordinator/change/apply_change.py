"""Applies a change: deploys the next plan and keeps the plan files in step with it.

The next plan is written beside the old one before any agent is told, so that after any interruption the plan that
runs is in a file; it takes the old one's name once the deployment is decided, and the old one is kept, since its run
can still be collected. Where this process is killed in between, the next command does the rest (intention.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from coordinator.change import intention
from coordinator.errors import Mistake
from coordinator.fleet.agents import AgentError, Agents
from coordinator.fleet.deployment import deploy, deployed_plans
from coordinator.plan import plan_file
from protos import agent_pb2
from protos.plan_document import Plan

STATUS_S = 5.0
DRAIN_S, POLL_S = 30.0, 0.1
BEGUN_S = deploy.PREPARE_S + deploy.COMMIT_S  # a deployment is decided or given up by then


@dataclass(frozen=True)
class AppliedChange:
    """`path`: where the next plan is; `old`: where the old one is kept; `deployed`: as of any deployment; `held_ns`:
    the longest that work on plans has kept each node's scheduling thread since it was started."""

    path: Path
    old: Path
    deployed: deploy.Deployed
    held_ns: Mapping[str, int]


def apply(
    before: Plan,
    after: Plan,
    path: Path,
    agents: Agents,
    output: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> AppliedChange:
    """`before`, read from `path`, gives way to `after`; `agents`: of the nodes of both; `output`: where that is
    written, None: it takes the place of `path`. Waits until an earlier plan has drained, and another deployment has
    ended. Raises OtherPlanError where something else runs, DeployError and AgentsError; unless the deployment was
    decided by then, nothing has changed."""
    if output is not None and output.resolve() == path.resolve():
        output = None
    target = output or path
    meant = intention.Intention(str(path), str(target), before.hash, after.hash)

    def check(statuses: deployed_plans.Statuses) -> None:  # by what also says in which epoch it is deployed
        deployed_plans.expect(before, path, statuses)
        deployed_plans.refuse_begun(after, statuses)

    _wait_for_others(after, agents, progress)
    with intention.written(meant) as begun:
        anothers = begun.left is not None and meant.waiting.exists()  # the same change, left by a killed command

        def on_decided() -> None:
            begun.decided = True

        try:
            plan_file.write(after, meant.waiting)
            done = deploy.deploy(after, agents, progress, check, on_decided)
        except KeyboardInterrupt:
            progress(
                f"interrupted: the nodes go on to plan {after.hash[:8]} by themselves; it is in {target}"
                if begun.decided
                else "interrupted: nothing has changed"
            )
            raise
        finally:
            if begun.decided:
                meant.put_in_step()
            elif not anothers:
                meant.waiting.unlink(missing_ok=True)
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STATUS_S)
    held = {name: each.longest_hold_ns for name, each in replies.items() if not isinstance(each, AgentError)}
    return AppliedChange(target, meant.old, done, held)


def _wait_for_others(after: Plan, agents: Agents, progress: Callable[[str], None]) -> None:
    """Wait until no plan drains, since the bounds of a change are those of two plans and not of three, and until no
    other deployment is on its way. One that was broken off between its phases is given up when it could not go on any
    more. Raises OtherPlanError."""
    began_s = agents.monotonic()
    while True:
        statuses, waited_s = agents.status(), agents.monotonic() - began_s
        left, begun = deployed_plans.draining(statuses), deployed_plans.begun(after, statuses)
        if not left and not begun:
            return
        if begun and waited_s >= BEGUN_S:
            progress(f"giving up {_listed(begun)}, which nobody commits")
            deploy.give_up(set(begun), agents)
            continue
        if left and waited_s >= DRAIN_S:
            raise deployed_plans.OtherPlanError(
                Mistake(
                    "still_draining",
                    f"what ran before the present plan still drains after {DRAIN_S:g} s: {_listed(left)}",
                    "nothing was changed",
                ),
                details=["a change begins where one plan is left: 'coordinator status' says what that one waits for"],
            )
        progress(
            f"waiting until {_listed(left)} has drained" if left else f"waiting for the deployment of {_listed(begun)}"
        )
        agents.sleep(POLL_S)


def _listed(plans: Mapping[str, list[str]]) -> str:
    return ", ".join(f"plan {hash_[:8]} on {', '.join(nodes)}" for hash_, nodes in plans.items())
