"""Plans on disk: control writes, the runtime reads when it starts or prepares. No grpc, no JSON of megabytes here.

    plans/<64 hex>.json     canonical bytes of the whole plan, as the coordinator sent them; control's business
    plans/<64 hex>.local    LocalPlan of this node, binary protobuf: what the runtime reads
    plans/<64 hex>.N.local  the same for the runtime of core N, from 1 on, of an agent with several
    plans/state.json        highest epoch seen, and the state of every plan; replaced in one piece

A plan counts only if state.json names it; files without an entry are left-overs of a crash and may be removed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from node_agent.host.files.durable_files import checked
from node_agent.host.files.place_names import place_name
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.ports import Disk
from protos import digests

STATE_FILE = "state.json"
PREPARED, COMMITTED, DRAINING, ENDED = range(1, 5)  # agent.proto PlanState

Routes = tuple[tuple[int, str, str], ...]  # node number, name, host:port of its data socket


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """One entry of state.json. state: PREPARED, COMMITTED or DRAINING; latest: the epoch of the last decision;
    routed: the epoch of the deployment that its routes are of."""

    hash: str  # 64 hex digits
    epoch: int
    state: int
    routes: Routes
    locals: Mapping[int, str] = field(default_factory=dict)  # core: SHA-256 of its .local file, 64 hex digits
    latest: int = 0
    routed: int = 0


@dataclass(frozen=True, slots=True)
class StoredState:
    """state.json. epoch: the highest that was ever seen here."""

    epoch: int = 0
    plans: tuple[StoredPlan, ...] = ()


def local_path(directory: Path, plan_hash: str, core: int = 0) -> Path:
    """Where the local plan of that hash is."""
    return directory / (f"{plan_hash}.{core}.local" if core else f"{plan_hash}.local")


def whole_path(directory: Path, plan_hash: str) -> Path:
    """Where the whole plan of that hash is."""
    return directory / f"{plan_hash}.json"


def damage(directory: Path, plan: StoredPlan, core: int = 0, disk: Disk = SYSTEM_DISK) -> str:
    """What is wrong with the local plan's file; empty: it is the one that was accepted."""
    path = local_path(directory, plan.hash, core)
    try:
        found = digests.sha256(disk.read(path)).hexdigest()
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror})"
    return "" if found == plan.locals.get(core) else f"{path.name} is damaged; deploy it again"


def read_state(directory: Path, disk: Disk = SYSTEM_DISK) -> StoredState:
    """What is stored; an empty state where nothing is. Raises ValueError where the file is damaged."""
    path = directory / STATE_FILE
    try:
        values = checked(disk.read(path))
        plans = tuple(
            StoredPlan(
                each["hash"], int(each["epoch"]), int(each["state"]),
                tuple((int(index), str(node), str(address)) for index, node, address in each["routes"]),
                read_locals(each),
                latest=max(int(each["epoch"]), int(each.get("again", 0))),
                routed=max(int(each[key]) for key in ("epoch", "again", "moved") if key in each),
            )
            for each in values["plans"]
        )  # fmt: skip
        return StoredState(int(values["epoch"]), plans)
    except FileNotFoundError:
        return StoredState()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): remove it and deploy again") from None


def read_locals(entry: Mapping[str, Any]) -> dict[int, str]:
    """Of an entry of state.json: core -> SHA-256. `local` is the first core's, `locals` those of the others."""
    others = {int(core): str(sha) for core, sha in entry.get("locals", {}).items()}
    return ({0: str(entry["local"])} if entry["local"] or not others else {}) | others


def missing_cores(cores: Collection[int], here: int, node: str) -> str:
    """Why a plan that has parts for these cores of the node cannot run on an agent with `here`; empty: it can."""
    beyond = sorted(core for core in cores if core >= here)
    if not beyond:
        return ""
    return (
        f"it needs place {place_name(node, beyond[0])}, and this agent has --cores {here}; start it with"
        f" --cores {beyond[-1] + 1}, or plan with 'cores: {here}' for node {node}"
    )
