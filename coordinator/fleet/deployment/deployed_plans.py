"""Deployed plans of the agents against a plan: is it that one, and which queries would another one end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coordinator.errors import BadInputError, CoordinatorError, Mistake
from coordinator.fleet.agents import AgentError
from coordinator.plan import plan_file
from protos import agent_pb2
from protos.plan_document import Plan

UNDECIDED = "-next"
Statuses = Mapping[str, agent_pb2.StatusReply]


class OtherPlanError(CoordinatorError):
    """The agents do not run what a change begins from, or a deployment would end what it does not mention."""

    exit_code = 2


def beside(path: Path, hash_: str) -> Path:
    """Where the plan of that hash is kept when another takes the place of `path`."""
    return path.with_name(f"{path.stem}-{hash_[:8]}{path.suffix}")


def waiting(path: Path, hash_: str) -> Path:
    """Where the plan of that hash is until it is decided whether it takes the place of `path`."""
    kept = beside(path, hash_)
    return kept.with_name(f"{kept.stem}{UNDECIDED}{kept.suffix}")


def committed(status: agent_pb2.StatusReply) -> agent_pb2.PlanStatus | None:
    """The plan that a node admits tuples under; the latest, should there be several."""
    found = [plan for plan in status.plans if plan.state == agent_pb2.COMMITTED]
    return max(found, key=lambda plan: plan.epoch, default=None)


def expect(plan: Plan, path: Path, statuses: Statuses) -> None:
    """Raises OtherPlanError where any node runs another plan than this one, or none."""
    wanted = bytes.fromhex(plan.hash)
    runs = {name: committed(status) for name, status in statuses.items()}
    others = {name: one for name, one in runs.items() if one is None or one.hash != wanted}
    if not others:
        return
    hashes = {one.hash.hex() for one in others.values() if one is not None}
    whole = len(others) == len(runs)
    short = plan.hash[:8]
    if whole and not hashes:
        text, mend = f"no node runs plan {short} of {path}", f"deploy it first, with 'coordinator deploy {path}'"
        prepared = any(each.hash == wanted for status in statuses.values() for each in status.plans)
        if prepared:
            text, mend = (
                f"no node admits tuples under plan {short} of {path}",
                f"'coordinator deploy {path}' commits it",
            )
        raise OtherPlanError(Mistake("not_running", text, mend, plan.hash), details=_each(runs))
    if whole and len(hashes) == 1:
        (other,) = hashes
        mend = "give the plan that runs, with --plan"
        if (there := file_of(path, other)) is not None:
            mend = f"that is {there}: give it with --plan {there}"
        text = f"the nodes run plan {other[:8]}, {path} is plan {short}"
        raise OtherPlanError(Mistake("other_plan_runs", text, mend, other), details=_each(runs))
    mend = (
        f"a deployment has not reached all of them: 'coordinator deploy {path}' again, or deploy the plan that is meant"
    )
    raise OtherPlanError(
        Mistake("not_running_everywhere", f"not every node runs plan {short} of {path}", mend, plan.hash),
        details=_each(runs),
    )


def file_of(path: Path, hash_: str) -> Path | None:
    """A plan of that hash in the same directory; not the one of a change that is being made, which is gone after it."""
    for each in sorted(path.parent.glob("*.json")):
        if each.stem.endswith(UNDECIDED):
            continue
        try:
            if plan_file.read(each).hash == hash_:
                return each
        except BadInputError:
            continue
    return None


def _each(runs: Mapping[str, agent_pb2.PlanStatus | None]) -> list[str]:
    return [
        f"node {name}: runs {'no plan' if one is None else f'plan {one.hash.hex()[:8]} of {one.query}'}"
        for name, one in runs.items()
    ]


def draining(statuses: Statuses) -> dict[str, list[str]]:
    """Plans that drain, by the first digits of their hash, each with the nodes that still have it."""
    return {hash_[:8]: nodes for hash_, nodes in _in_state(agent_pb2.DRAINING, statuses).items()}


def begun(plan: Plan, statuses: Statuses) -> dict[str, list[str]]:
    """Other plans that were prepared and neither committed nor given up, by hash, each with the nodes that have it."""
    found = _in_state(agent_pb2.PREPARED, statuses)
    return {hash_: nodes for hash_, nodes in found.items() if hash_ != plan.hash}


def refuse_begun(plan: Plan, statuses: Statuses) -> None:
    """Raises OtherPlanError where another deployment has begun: what it changes is not in this plan, and would end."""
    if not (found := begun(plan, statuses)):
        return
    lines = [f"plan {hash_[:8]} is prepared on {', '.join(nodes)}" for hash_, nodes in found.items()]
    text = "another deployment has begun: nothing was changed"
    raise OtherPlanError(Mistake("deployment_begun", text, "try again when it has ended"), details=lines)


def _in_state(state: agent_pb2.PlanState, statuses: Statuses) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, status in statuses.items():
        for plan in status.plans:
            if plan.state == state:
                found.setdefault(plan.hash.hex(), []).append(name)
    return found


def queries(status: agent_pb2.PlanStatus) -> tuple[str, ...]:
    """The queries of a plan, as its agents know them."""
    return tuple(status.queries) or tuple(status.query.split("+"))  # plans of before there were several say no list


def ending(plan: Plan, statuses: Mapping[str, agent_pb2.StatusReply | AgentError]) -> dict[str, list[str]]:
    """Queries that run and are not in the plan, each with the nodes that run it."""
    found: dict[str, list[str]] = {}
    for name, status in statuses.items():
        runs = committed(status) if not isinstance(status, AgentError) else None
        for query in queries(runs) if runs is not None else ():
            if query not in plan.queries:
                found.setdefault(query, []).append(name)
    return found


def refuse_ending(plan: Plan, path: Path, statuses: Statuses) -> None:
    """Raises OtherPlanError where deploying the plan would end queries that it lacks."""
    lacking = ending(plan, statuses)
    if not lacking:
        return
    has = ", ".join(plan.queries)
    lines = [f"query {name} runs on {', '.join(nodes)} and would end" for name, nodes in lacking.items()]
    names = ", ".join(lacking)
    others = f"to end the others: coordinator deploy {path} --replace"
    mend = f"to add a query to what runs: coordinator add QUERY.yaml; {others}"
    text = f"{path} has {has} and lacks {names}, which run there: nothing was deployed"
    raise OtherPlanError(Mistake("would_end_queries", text, subject=names), details=[*lines, mend])
