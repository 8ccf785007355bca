"""addresses.json: where the agents of a cluster are.

`coordinator up` writes it, and every command that talks to agents reads it.

An entry is a place: a node, or one of its further cores (`a.1`). The places of one node have data sockets of their own
and share an agent, so they have one `control` (and `pid`). `tls` at the top, where the agents speak TLS, is the folder
with the coordinator's identity.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator import durable_files
from coordinator.error_codes import Code
from coordinator.errors import BadInputError, bad_file, unwritable
from coordinator.spec.files.yaml_source import nearest

if TYPE_CHECKING:
    from protos.plan_document import Plan


@dataclass(frozen=True)
class AgentAddress:
    """One place of an agent. control, data: host:port. pid, state: of a local agent, else None. tls: the identity to
    talk to it with, None: without TLS; one for all agents of a file."""

    name: str
    control: str
    data: str
    pid: int | None = None
    rt: bool = False
    state: str | None = None
    tls: Path | None = None


@dataclass(frozen=True)
class Addresses:
    """All places, by name; `started_by`: the command that started them."""

    path: Path
    nodes: Mapping[str, AgentAddress]
    started_by: str = ""

    @property
    def tls(self) -> Path | None:
        """The identity that all of them are talked to with."""
        return next((agent.tls for agent in self.nodes.values()), None)

    def of_plan(self, plan: Plan) -> dict[str, AgentAddress]:
        """The agents of a plan's nodes, in the plan's order. Raises BadInputError where one is not here."""
        return self.of(plan.nodes)

    def of(self, places: Collection[str]) -> dict[str, AgentAddress]:
        """The agents of places that a plan needs. Raises BadInputError where one is not here."""
        missing = [name for name in places if name not in self.nodes]
        if missing:
            code: Code = "unknown_node"
            text, mend = f"has no node '{missing[0]}', which the plan needs", nearest(missing[0], self.nodes)
            if (node := host_of(missing[0])) in self.nodes:
                cores = int(missing[0].rpartition(".")[2]) + 1
                code = "too_few_cores"
                text = f"has no place '{missing[0]}', which the plan needs: the agent of node {node} runs fewer cores"
                mend = f"start it with --cores {cores}, as 'coordinator up' does with 'cores: {cores}' in cluster.yaml"
            raise bad_file(self.path, code, text, mend)
        return {name: self.nodes[name] for name in places}

    def write(self) -> None:
        """Write the file in one piece. Raises BadInputError where it cannot be written."""
        nodes = {name: _facts(agent) for name, agent in self.nodes.items()}
        values: dict[str, Any] = {"nodes": nodes, "started_by": self.started_by}
        if self.tls is not None:
            values["tls"] = _beside(self.tls, self.path.parent)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            durable_files.replace(self.path, (json.dumps(values, indent=1) + "\n").encode())
        except OSError as error:
            raise unwritable(self.path, error) from error


def load(path: Path) -> Addresses:
    """Read the file. Raises BadInputError where it is missing or none."""

    def refuse(code: Code, text: str) -> BadInputError:
        return bad_file(path, code, text, "start the agents with 'coordinator up', which writes it")

    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise refuse("unreadable", f"cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise refuse("not_json", f"is not JSON ({error})") from error
    nodes = values.get("nodes") if isinstance(values, dict) else None
    if not isinstance(nodes, dict) or not nodes:
        raise refuse("no_nodes", "names no nodes")
    tls = values.get("tls")
    if tls is not None and (not isinstance(tls, str) or not tls):
        raise refuse("bad_tls_folder", "has a 'tls' that is no folder, like \"certs/coordinator\"")
    agents = {}
    for name, node in nodes.items():
        if not isinstance(node, dict) or not all(_is_address(node.get(key)) for key in ("control", "data")):
            raise refuse("no_address", f"nodes.{name} has no 'control' and 'data', each host:port")
        pid, state = node.get("pid"), node.get("state")
        agents[name] = AgentAddress(
            name,
            node["control"],
            node["data"],
            pid if isinstance(pid, int) and pid > 1 else None,
            node.get("rt") is True,
            state if isinstance(state, str) else None,
            path.parent / tls if tls else None,
        )
        first = next(agent for agent in agents.values() if host_of(agent.name) == host_of(name))
        if agents[name].control != first.control:
            text = f"nodes.{name} and nodes.{first.name} are places of one agent, but have not the same 'control'"
            raise refuse("agent_twice", text)
    return Addresses(path, agents, str(values.get("started_by") or ""))


def host_of(place: str) -> str:
    """The node that a place is of: `a` of `a`, `a.1` and `a.2`."""
    return place.partition(".")[0]


def split(address: str) -> tuple[str, int]:
    """host and port; an IPv6 host without its brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def join(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _facts(agent: AgentAddress) -> dict[str, Any]:
    """An entry of the file: what is known. The identity stands at the top."""
    return {key: value for key, value in asdict(agent).items() if value is not None and key != "tls"}


def _beside(tls: Path, folder: Path) -> str:
    """As a path from that folder where it is below it, so that both may be moved together; else absolute."""
    whole = tls.resolve()
    return str(whole.relative_to(folder.resolve()) if whole.is_relative_to(folder.resolve()) else whole)


def _is_address(value: object) -> bool:
    if not isinstance(value, str):
        return False
    host, _, port = value.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536
