"""The settings that an agent was started with; the same object in all its processes."""

from dataclasses import dataclass, replace
from pathlib import Path

from node_agent.host.files.state_dir import StateDir
from node_agent.host.network import near_name

Address = tuple[str, int]  # host, port; port 0: any free one
_REACHED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - by which this machine reaches who listens everywhere


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, checked. `data` has its final port before the children are forked, `control` has not.

    In a runtime process `name` and `data` are those of its place, and `core` is that place's number on the node.
    """

    name: str
    control: Address
    data: Address
    state: StateDir
    operators: tuple[Path, ...] = ()  # files given with --operators
    drift_ppm: int = 50
    clock: str = ""  # clock domain
    rt: bool = True  # use the FIFO class where it is allowed
    cores: int = 1  # runtimes of this agent
    core: int = 0
    tls: Path | None = None  # folder of the identity; None: plain, on loopback only
    checks: bool = False  # of what operators change; see `with_mutation_check`
    log_json: bool = False  # lines on stderr are JSON objects
    metrics: Address | None = None  # where they are served; None: nowhere
    sync_s: float = 1.0  # how often the trace is brought to the disk
    places: tuple[tuple[str, Address], ...] = ()  # all of the agent: name and data socket; empty until they listen

    def at(self, core: int) -> "Settings":
        """For the runtime of that place, when all places listen."""
        name, data = self.places[core]
        return replace(self, name=name, data=data, core=core)

    @property
    def reached(self) -> dict[str, str]:
        """host:port by which this machine reaches the data socket of each of the agent's places."""
        return {name: _reached(*address) for name, address in self.places}

    @property
    def neighbours(self) -> dict[Address, str]:
        """Of the agent's other places the Unix socket, by host and port at which this machine reaches them."""
        others = [address for name, address in self.places if name != self.name]
        return {(_REACHED.get(host, host), port): near_name(host, port) for host, port in others}

    def own_routes(self, routes: tuple[tuple[int, str, str], ...]) -> tuple[tuple[int, str, str], ...]:
        """Routes (number, name, host:port) with where this agent's own places listen now.

        A plan is resumed with the ports of the day it was deployed; other nodes have to be told where this one went,
        but its own places know.
        """
        own = self.reached
        return tuple((index, name, own.get(name, address)) for index, name, address in routes)


def _reached(host: str, port: int) -> str:
    """host:port by which this machine reaches what listens there, be it on all addresses."""
    host = _REACHED.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
