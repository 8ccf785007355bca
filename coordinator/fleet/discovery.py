"""Agents that nobody here started, asked what they are: for addresses.json, which carries IP addresses and data ports.

The cluster file says where control is, by IP address or host name; where the data sockets are, the agents tell.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from coordinator import signals
from coordinator.fleet import dns
from coordinator.fleet.addresses import AgentAddress, join, split
from coordinator.fleet.agents import AgentError, Agents, AgentsError
from coordinator.spec.cluster import Machines
from coordinator.spec.files.security import COORDINATOR, MUTUAL_TLS
from protos import agent_pb2

POLL_S = 0.3
CALL_S = 5.0  # at first; a machine that is slow or busy gets twice as long each time
Progress = Callable[[str], None]


class NotItError(AgentError):
    """What answers is not what was asked for; waiting does not change that."""


@dataclass(frozen=True)
class Found:
    """One agent. places: where its data sockets are; version: of the product there; cores: of its machine."""

    name: str
    control: str
    places: tuple[AgentAddress, ...]
    version: str
    cores: int
    memory_bytes: int

    @property
    def rt(self) -> bool:
        """Whether all its runtimes have real-time priorities."""
        return all(place.rt for place in self.places)


def find(machines: Machines, wait_s: float, progress: Progress = lambda _: None) -> list[Found]:
    """Ask every node of the cluster file, until all have answered or `wait_s` seconds are over.

    Raises AgentsError with a line for each that did not answer, is another node, or cannot be resolved.
    """
    tls = machines.certificates / COORDINATOR if machines.security == MUTUAL_TLS else None
    end, found = time.monotonic() + wait_s, dict[str, Found]()
    limit_s = CALL_S
    while True:
        errors = []
        for name, node in machines.nodes.items():
            if name not in found:
                answer = _ask(name, node.address, tls, limit_s)
                if isinstance(answer, NotItError):
                    raise AgentsError([answer])
                if isinstance(answer, AgentError):
                    errors.append(answer)
                else:
                    found[name] = answer
        if not errors:
            break
        if time.monotonic() >= end:
            raise AgentsError(errors)
        limit_s = max(CALL_S, min(2 * limit_s, end - time.monotonic()))
        progress(f"waiting: {errors[0]}")
        signals.check()
        time.sleep(POLL_S)
    refuse_own_loopback(found)
    return [found[name] for name in machines.nodes]


def _ask(name: str, address: str, tls: Path | None, limit_s: float) -> Found | AgentError:
    """The agent at the first of the address's IP addresses that one answers at."""
    host, port = split(address)
    if not port:
        return AgentError(
            name, "no_port", f"address {address} has no port to ask at", f"write the agent's, like {host}:7700"
        )
    try:
        there = dns.resolve(host)
    except dns.UnknownHostError as error:
        (mistake,) = error.mistakes
        return AgentError(name, mistake.code, mistake.text, mistake.mend)
    failures = []
    for ip in there:
        control = join(ip, port)
        with Agents({name: AgentAddress(name, control, control, tls=tls)}) as agents:
            reply = agents.try_all("Describe", {name: agent_pb2.DescribeRequest()}, limit_s)[name]
        if not isinstance(reply, AgentError):
            return _found(name, ip, control, tls, reply)
        failures.append(reply)
    return failures[0]


def _found(name: str, ip: str, control: str, tls: Path | None, said: agent_pb2.Description) -> Found | AgentError:
    if said.node != name:
        mend = "correct the address in the cluster file, or the agent's --name"
        return NotItError(name, "other_node", f"the agent at {control} is node '{_plain(said.node)}', not {name}", mend)
    own = said.places or (agent_pb2.Place(name=name, data_port=said.data_port, rt=said.rt),)
    expected = [f"{name}.{core}" if core else name for core in range(len(own))]
    if [place.name for place in own] != expected or not all(0 < place.data_port < 65536 for place in own):
        return NotItError(
            name,
            "other_places",
            f"the agent at {control} names places that are none of {name}'s",
            "is it of this release?",
        )
    places = tuple(AgentAddress(place.name, control, join(ip, place.data_port), rt=place.rt, tls=tls) for place in own)
    return Found(name, control, places, _plain(said.version), said.cores, said.memory_bytes)


def refuse_own_loopback(found: Mapping[str, Found]) -> None:
    """Of several nodes none may be on loopback if another is not: peers would look for it on themselves. A machine's
    own name often leads there (127.0.1.1 in /etc/hosts)."""
    loopback = {name: ipaddress.ip_address(split(agent.control)[0]).is_loopback for name, agent in found.items()}
    if all(loopback.values()) or not any(loopback.values()):
        return
    far = next(name for name, here in loopback.items() if not here)
    raise AgentsError(
        [
            AgentError(
                name,
                "own_loopback",
                f"its address leads to {found[name].control}, where node {far} cannot reach it",
                "write this machine's address in their network in the cluster file",
            )
            for name, here in loopback.items()
            if here
        ]
    )


def _plain(text: str) -> str:
    """As it may be shown: an agent's words are not to move a cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:64])


def own_version() -> str:
    """Of the product here; empty where it is not installed."""
    try:
        return metadata.version("shimekiri")
    except metadata.PackageNotFoundError:
        return ""
