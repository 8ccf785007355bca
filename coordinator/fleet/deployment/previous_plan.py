"""Keeps the plan that runs when another one is written in its place.

The file is kept beside the new one, as `add` and `remove` keep theirs, so `plan && deploy` goes on working and what
runs can be gone back to. Whether it runs is asked of the agents of the addresses.json beside it; where one does not
answer, it may.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import BadInputError, CoordinatorError, unwritable
from coordinator.plan import plan_file

ADDRESSES = "addresses.json"
ASK_S = 2.0


@dataclass(frozen=True)
class PreviousPlan:
    """nodes: that run it, or, where `sure` is false, that do not answer."""

    hash: str
    path: Path
    beside: Path
    nodes: tuple[str, ...]
    sure: bool

    def sentence(self) -> str:
        """What was kept, why, and what goes back to it."""
        on = ", ".join(self.nodes)
        why = f"runs on {on}" if self.sure else f"may run on {on}, which cannot be asked"
        return (
            f"plan {self.hash[:8]}, which was {self.path}, {why}: it is kept as {self.beside}; "
            f"'coordinator deploy {self.path}' replaces it, 'coordinator deploy {self.beside}' goes back to it"
        )


def keep(path: Path, hash_: str) -> PreviousPlan | None:
    """Copies the plan of that file aside where it runs and the next has another hash; None: there is none to keep.
    Raises BadInputError where the copy cannot be written."""
    addresses = path.parent / ADDRESSES
    try:
        old = plan_file.read(path).hash if path.is_file() and addresses.exists() else hash_
    except BadInputError:
        return None
    if old == hash_:
        return None
    nodes, sure = _runs(old, addresses)
    if not nodes:
        return None
    from coordinator.fleet.deployment import deployed_plans

    beside = deployed_plans.beside(path, old)
    try:
        shutil.copyfile(path, beside)
    except OSError as error:
        raise unwritable(beside, error) from error
    return PreviousPlan(old, path, beside, nodes, sure)


def _runs(hash_: str, addresses: Path) -> tuple[tuple[str, ...], bool]:
    """The nodes that have the plan; else those that cannot be asked, and false."""
    from coordinator.fleet import addresses as address_file
    from coordinator.fleet.agents import AgentError, Agents
    from protos import agent_pb2

    try:
        with Agents(address_file.load(addresses).nodes) as agents:
            replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), ASK_S)
    except CoordinatorError:
        return (), False
    silent = tuple(node for node, reply in replies.items() if isinstance(reply, AgentError))
    found = tuple(
        node
        for node, reply in replies.items()
        if not isinstance(reply, AgentError) and any(plan.hash.hex() == hash_ for plan in reply.plans)
    )
    return (found, True) if found else (silent, False)
