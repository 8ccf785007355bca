"""What an agent was started with; the same object in all three processes."""

from dataclasses import dataclass
from pathlib import Path

from node_agent.state_dir import StateDir

Address = tuple[str, int]  # host, port; port 0: any free one


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, checked. `data` has its final port before the children are forked, `control` has not."""

    name: str
    control: Address
    data: Address
    state: StateDir
    operators: tuple[Path, ...] = ()  # files given with --operators
    drift_ppm: int = 50
    clock: str = ""  # clock domain
    rt: bool = True  # use the FIFO class where it is allowed
