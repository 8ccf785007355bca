"""Local agents of addresses.json that have ended while others go on: `coordinator up` starts those again as they were,
so that their peers find them and they resume the last committed plan from their state directories."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.errors import BadInputError, Mistake, bad_file
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses, AgentAddress, host_of, join, split
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgentError, Wanted


@dataclass(frozen=True)
class Missing:
    """wanted: what has to be started. known: addresses.json, with the pids of those that run, which are `running`."""

    wanted: list[Wanted]
    running: list[str]
    known: Addresses

    def sentence(self) -> str:
        """In a sentence."""
        names = ", ".join(each.name for each in self.wanted)
        are, had = ("is", "it had") if len(self.wanted) == 1 else ("are", "they had")
        run = "runs" if len(self.running) == 1 else "run"
        here = f"{', '.join(self.running)} {run} already: only {names} {are} started"
        return f"{here}, with the ports and the state {had}"

    def moved(self, found: Mapping[str, AgentAddress]) -> list[str]:
        """Places that could not get the port for data that they had. found: what was started, by place."""
        return [name for name, place in found.items() if place.data != self.known.nodes[name].data]

    def whole(self, found: Mapping[str, AgentAddress]) -> Addresses:
        """addresses.json with what was started."""
        nodes = {name: found.get(name, place) for name, place in self.known.nodes.items()}
        return Addresses(self.known.path, nodes, self.known.started_by)


def running(path: Path) -> tuple[Addresses, dict[str, int]] | None:
    """addresses.json, and the pids of those of its local agents that run, by node; None without such a file."""
    if not path.exists():
        return None
    try:
        known = address_file.load(path)
    except BadInputError:
        return None
    found = {name: local_agents.find(places[0]) for name, places in _by_host(known).items()}
    return known, {name: each.pid for name, each in found.items() if not isinstance(each, str)}


def refuse_running(path: Path, why: str = "") -> None:
    """Agents that this file speaks of would be forgotten if it were overwritten. Raises LocalAgentError."""
    found = running(path)
    if found and found[1]:
        raise LocalAgentError(
            Mistake(
                "runs_already",
                f"{path}: the agents of {', '.join(found[1])} are running already{why}",
                f"stop them with 'coordinator down --addresses {path}', or give another --addresses",
                str(path),
            )
        )


def of(
    path: Path, cluster: Path, wanted: Sequence[Wanted], state: Path | None, operators: Sequence[Path]
) -> Missing | None:
    """What is missing of the agents of addresses.json; None where none of them runs. wanted: what the cluster file asks
    for; state: only where --state was given.

    Raises LocalAgentError where all of them run, or they are of another cluster, and BadInputError where operators are
    left out that the others have.
    """
    found = running(path)
    if found is None or not found[1]:
        return None
    known, pids = found
    hosts = _by_host(known)
    refuse = why_not(hosts, wanted, state, known.tls is not None)
    if refuse or len(pids) == len(hosts):
        refuse_running(path, f", but not as {cluster} has it: {refuse}" if refuse and len(pids) < len(hosts) else "")
    _check_operators(path, cluster, pids, operators)
    nodes = {name: replace(place, pid=pids.get(host_of(name), place.pid)) for name, place in known.nodes.items()}
    left = [_as_it_was(each, hosts[each.name]) for each in wanted if each.name not in pids]
    return Missing(left, list(pids), replace(known, nodes=nodes))


def why_not(
    hosts: Mapping[str, Sequence[AgentAddress]], wanted: Sequence[Wanted], state: Path | None, tls: bool
) -> str:
    """Why agents of addresses.json are not those that a cluster file asks for; empty: they are."""
    asked = {each.name: each for each in wanted}
    if set(asked) != set(hosts):
        return f"that has {', '.join(asked)}, addresses.json {', '.join(hosts)}"
    for name, places in hosts.items():
        if places[0].pid is None or places[0].state is None:
            return f"node {name} was not started here"
        if asked[name].cores != len(places):
            return f"node {name} has {len(places)} and is to have {asked[name].cores} cores"
        if state is not None and asked[name].state != Path(places[0].state):
            return f"node {name} has its state in {places[0].state}"
        if (asked[name].tls is not None) != tls:
            return f"the agents {'speak' if tls else 'do not speak'} TLS"
    return ""


def _by_host(known: Addresses) -> dict[str, list[AgentAddress]]:
    """Places by node; local_agents knows an agent by its node's name."""
    hosts: dict[str, list[AgentAddress]] = {}
    for name, place in known.nodes.items():
        hosts.setdefault(host_of(name), []).append(place)
    return hosts


def _as_it_was(wanted: Wanted, places: Sequence[AgentAddress]) -> Wanted:
    """At the ports and with the state that it had. Data ports of several runtimes follow one another, or are any."""
    host, first = split(places[0].data)
    ports = [split(place.data)[1] for place in places]
    data = join(host, first if ports == list(range(first, first + len(ports))) else 0)
    assert places[0].state is not None
    return replace(wanted, control=places[0].control, data=data, state=Path(places[0].state))


def _check_operators(path: Path, cluster: Path, pids: Mapping[str, int], operators: Sequence[Path]) -> None:
    """Raises BadInputError where an agent that runs has files of operators that are not given: what is started without
    them could not resume the plan."""
    had = dict.fromkeys(file for pid in pids.values() for file in local_agents.operators_of(pid))
    given = {file.resolve() for file in operators}
    if missing := [file for file in had if file not in given]:
        options = [word for file in dict.fromkeys([*had, *given]) for word in ("--operators", str(file))]
        at = [] if path == Path("addresses.json") else ["--addresses", str(path)]
        command = shlex.join(["coordinator", "up", str(cluster), *at, *options])
        text = f"{', '.join(pids)} run with operators of {', '.join(map(str, missing))}, which were not given"
        raise bad_file(path, "operators_not_given", text, f"start the others with them, too: {command}")
