"""Plans and their states on disk: a crash leaves the old or the new, and what is read is checked by its hash.

The layout is plan_files.py's; control adds to state.json what the deployment machine needs (`fence`, each plan's
`query`) and what tells a damaged file from a good one: `check`, the SHA-256 of the rest of state.json, and each plan's
`local`, the SHA-256 of its .local file, with `locals` for those of further cores. The whole plan's name is its own
SHA-256. A damaged file is set aside as *.damaged and reported; what it names is not resumed. Where state.json itself is
lost, every sound document counts as a plan that ran, so that a collection still has what the traces are read by.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from node_agent.control.deployment import Deployment, Durable, Ran, State
from node_agent.host.files.durable_files import SCARCE, checked, set_aside, with_check
from node_agent.host.files.plan_files import STATE_FILE, local_path, missing_cores, read_locals, whole_path
from node_agent.host.files.reserve import Reserve
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.ports import Disk
from protos import digests
from protos.records import STAMP


@dataclass(slots=True)
class PlanStore:
    """One directory of plans. `problems`: what was found damaged, one sentence each; told: the plans that the traces
    here speak of, by the start of their hash, with the highest epoch of each. It may take long: asked where the states
    are lost."""

    directory: Path
    problems: list[str] = field(default_factory=list)
    node: str = ""
    cores: int = 1  # of the agent: a plan that needs more is not resumed
    epochs_in_spool: Callable[[], Mapping[str, int]] = dict
    disk: Disk = SYSTEM_DISK
    reserve: Reserve = field(init=False)
    _locals: dict[str, dict[int, str]] = field(default_factory=dict)  # plan -> core -> SHA-256 of the .local file

    def __post_init__(self) -> None:
        self.reserve = Reserve(self.directory, self.disk)

    def load(self) -> Durable:
        """What is on disk and intact; at the start. Raises OSError where this process may not open more files."""
        path = self.directory / STATE_FILE
        with contextlib.suppress(OSError):  # an earlier process may have been killed between its rename and its sync
            self.disk.sync((self.directory,))
        try:
            durable = self._parse(self.disk.read(path))
        except FileNotFoundError:
            epochs_in_spool = self.epochs_in_spool()
            return self._lost(f"{path} is missing", epochs_in_spool) if epochs_in_spool else Durable()
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, OSError) and error.errno in SCARCE:
                raise
            return self._lost(
                f"{path} is damaged ({error}), set aside as {set_aside(path, self.disk)}", self.epochs_in_spool()
            )
        for each in durable.deployments:
            if why := missing_cores(each.places, self.cores, self.node) or self._damage(each.hash):
                durable = durable.without(each.hash)
                self.problems.append(f"plan {each.hash[:8]} is not resumed: {why}; deploy it again")
        return durable

    def put_plan(self, hash_: str, whole: bytes, local_plans: Mapping[int, bytes]) -> None:
        """Store a plan's files; parts: the local plan of each core. They count only once a state names them. Raises
        OSError."""
        self._locals[hash_] = {core: digests.sha256(local).hexdigest() for core, local in local_plans.items()}
        self.disk.replace(whole_path(self.directory, hash_), whole)
        for core, local in local_plans.items():
            self.disk.replace(local_path(self.directory, hash_, core), local)

    def write(self, durable: Durable, keep: frozenset[str] = frozenset()) -> None:
        """Replace the state; plan files of neither `durable` nor `keep` go. On a full disk it takes the reserve, since
        plans have to be stopped and drained there as well. Raises OSError where it is not on disk."""
        plans = [self._entry(each) for each in sorted(durable.deployments, key=_resume_order)]
        ran = [[each.hash, each.bytes] for each in durable.ran]
        values = {"epoch": durable.seen, "fence": durable.fence, "plans": plans, "ran": ran}
        self.reserve.write(lambda: self.disk.replace(self.directory / STATE_FILE, with_check(values)))
        self.remove_left_overs(durable, keep)

    def remove_left_overs(self, durable: Durable, keep: frozenset[str] = frozenset()) -> None:
        """Plan files of neither `durable` nor `keep` go: of refused requests, of forgotten plans. Those that the disk
        does not let go are tried again with the next write: what was written stands."""
        here = {each.hash for each in durable.deployments} | keep
        kept = {".local": here, ".json": here | {each.hash for each in durable.ran} | {Path(STATE_FILE).stem}}
        with contextlib.suppress(OSError):
            for path in self.disk.entries(self.directory):
                hash_ = path.name.partition(".")[0]
                if path.suffix in kept and hash_ not in kept[path.suffix]:
                    with contextlib.suppress(FileNotFoundError):
                        self.disk.remove(path)
                    self._locals.pop(hash_, None)

    def whole(self, hash_: str) -> bytes:
        """The whole plan of that hash. Raises ValueError where it is not here any more, or damaged."""
        path = whole_path(self.directory, hash_)
        try:
            data = self.disk.read(path)
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror})") from None
        if digests.sha256(data).hexdigest() != hash_:
            raise ValueError(f"{path} is damaged")
        return data

    def damage(self, hash_: str, core: int) -> str:
        """What is wrong with the local plan of a core, whose file may have rotted since; empty: it is as accepted."""
        path = local_path(self.directory, hash_, core)
        try:
            found = digests.sha256(self.disk.read(path)).hexdigest()
        except OSError as error:
            return f"{path.name} cannot be read ({error.strerror}); deploy it again"
        return "" if found == self._locals.get(hash_, {}).get(core) else f"{path.name} is damaged; deploy it again"

    def _entry(self, plan: Deployment) -> dict[str, Any]:
        local_plans = self._locals.get(plan.hash, {})
        others = {str(core): sha for core, sha in local_plans.items() if core}
        entry: dict[str, Any] = {
            "hash": plan.hash,
            "epoch": plan.epoch,
            "state": int(plan.state),
            "query": plan.query,
            "routes": plan.routes,
            "bytes": plan.bytes,
            "local": local_plans.get(0, ""),
        }
        entry |= {"again": plan.again} if plan.again else {}
        entry |= {"moved": plan.moved} if plan.moved else {}
        return entry | {"locals": others} if others else entry

    def _parse(self, data: bytes) -> Durable:
        values = checked(data)
        deployments = []
        for each in values["plans"]:
            routes = tuple((int(index), str(node), str(address)) for index, node, address in each["routes"])
            hash_, state, local_plans = str(each["hash"]), State(each["state"]), read_locals(each)
            places = tuple(sorted(local_plans))
            size, again, moved = (int(each.get(key, 0)) for key in ("bytes", "again", "moved"))
            deployments.append(
                Deployment(hash_, int(each["epoch"]), state, str(each["query"]), routes, places, size, again, moved)
            )
            self._locals[hash_] = local_plans
        ran = tuple(Ran(str(hash_), int(size)) for hash_, size in values.get("ran", ()))
        return Durable(int(values["epoch"]), int(values["fence"]), tuple(deployments), ran)

    def _damage(self, hash_: str) -> str:
        """What is wrong with this plan's files; empty: nothing. A damaged one is set aside. One that cannot be read now
        may be read later, and the runtime may have it: the plan stays."""
        files = [(whole_path(self.directory, hash_), hash_)]
        files += [(local_path(self.directory, hash_, core), sha) for core, sha in self._locals[hash_].items()]
        for file, wanted in files:
            try:
                if digests.sha256(self.disk.read(file)).hexdigest() == wanted:
                    continue
            except FileNotFoundError:
                return f"{file.name} is missing"
            except OSError as error:
                self.problems.append(f"{file.name} cannot be read now ({error.strerror}); its plan stays")
                continue
            return f"{file.name} is damaged, set aside as {set_aside(file, self.disk)}"
        return ""

    def _lost(self, why: str, epochs_in_spool: Mapping[str, int]) -> Durable:
        """Without the states of the plans: their documents are here, and the traces tell how far the epochs were."""
        self.problems.append(f"{why}: the states of all plans are lost; collect what ran, then deploy again")
        found = sorted(
            (
                epochs_in_spool.get(path.stem[:STAMP], 0),
                self.disk.modified_ns(path),
                Ran(path.stem, self.disk.size(path)),
            )
            for path in self.disk.entries(self.directory)
            if path.suffix == ".json" and self._is_document(path)
        )
        return Durable(seen=max(epochs_in_spool.values(), default=0), ran=tuple(ran for _, _, ran in found))

    def _is_document(self, path: Path) -> bool:
        try:
            return digests.sha256(self.disk.read(path)).hexdigest() == path.stem
        except OSError:
            return False


def _resume_order(deployment: Deployment) -> tuple[bool, int]:
    """A runtime that starts reads from the top: committing a plan lets the earlier ones of its query drain."""
    return deployment.state is not State.DRAINING, deployment.epoch
