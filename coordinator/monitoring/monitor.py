"""Monitors agents: polls their status and reads changed files. A node that does not answer stays in view."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from coordinator.errors import CoordinatorError
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import host_of
from coordinator.fleet.agents import AgentError, Agents
from coordinator.monitoring import metrics, status_response
from coordinator.monitoring.metrics import Frame, Look, Output, Plans
from coordinator.monitoring.status_response import PlaceStatus
from protos import agent_pb2

LEAST_SECONDS, MOST_SECONDS = 0.5, status_response.ANSWER_S


class Cost(NamedTuple):
    """Of an operator of one plan: CPU time of the calls that were measured."""

    operator: str
    calls: int
    total_ns: int
    worst_ns: int


class Monitor:
    """Use it in a `with` statement. addresses: addresses.json, read again when it has changed, so that agents that
    `coordinator up` started anew are found. plan: as of `coordinator status`."""

    def __init__(self, addresses: Path, plan: Path) -> None:
        self.addresses, self.plan = addresses, plan
        self._file_ns = _changed_ns(addresses)
        self._agents = Agents(address_file.load(addresses).nodes)
        self._before: Look | None = None
        self._plans: Plans = {}
        self._outputs: tuple[Output, ...] = ()
        self.costs: dict[str, tuple[Cost, ...]] = {}  # by place, as they were asked for
        self._known: tuple[frozenset[str], int] | None = None  # which hashes there were, and the plan file's age

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._agents.__exit__(kind, value, trace)

    def look(self, seconds: float, costs_of: str | None = None) -> Frame:
        """What has happened since the last look; nodes get that long to answer. costs_of: a place whose operators'
        costs are asked for as well."""
        self._again()
        seconds = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
        places = status_response.ask(self._agents, seconds)
        now = Look(time.monotonic(), places)
        self._learn(places)
        if costs_of in places:
            self.costs[costs_of] = self._costs(costs_of, places[costs_of], seconds)
        before, self._before = self._before, now
        frame = metrics.between(before, now, self._plans, self._outputs)
        self._outputs = frame.outputs
        return frame

    def log_of(self, place: str) -> str:
        """Where its agent writes what it says."""
        return status_response.log_of(self._agents.places.get(place))

    def _again(self) -> None:
        changed_ns = _changed_ns(self.addresses)
        if changed_ns == self._file_ns:
            return
        try:
            agents = Agents(address_file.load(self.addresses).nodes)
        except CoordinatorError:  # half written, or gone: what is known still holds
            return
        self._file_ns = changed_ns
        old, self._agents = self._agents, agents
        old.__exit__(None, None, None)

    def _costs(self, place: str, status: PlaceStatus, seconds: float) -> tuple[Cost, ...]:
        """Of the operators of the place's plans; what is not told now is left out."""
        here = {name for plan in status.plans for unit in plan.units for name in unit.operators}
        found: list[Cost] = []
        for plan in status.plans:
            asked = {host_of(place): agent_pb2.ProfileRequest(hash=bytes.fromhex(plan.hash))}
            (reply,) = self._agents.try_all("Profile", asked, seconds).values()
            if not isinstance(reply, AgentError):
                found += [
                    Cost(each.name, each.tuples, each.total_ns, each.worst_ns)
                    for each in reply.costs
                    if each.name in here
                ]
        return tuple(found)

    def _learn(self, places: Mapping[str, PlaceStatus]) -> None:
        """The plans that nodes have, from their files: when other ones come, or a file changes."""
        hashes = frozenset(plan.hash for status in places.values() for plan in status.plans)
        known = hashes, _changed_ns(self.plan)
        if known != self._known:
            self._known = known
            found = status_response.known_plans(self.plan, places, self._agents)
            self._plans = {**self._plans, **found} if hashes else found


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
