"""Files with a check of their content, and damaged ones out of the way."""

import contextlib
import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.ports import Disk
from protos import digests

DAMAGED = ".damaged"
SCARCE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # another time there may be more: nothing is damaged
TAKEN = {errno.ENOTEMPTY, errno.EEXIST}  # by a folder


def with_check(values: Mapping[str, Any]) -> bytes:
    """JSON, with the SHA-256 of the rest as `check`."""
    return json.dumps({**values, "check": _check(values)}, indent=1).encode()


def checked(data: bytes) -> dict[str, Any]:
    """What `with_check` wrote, without the check. Raises ValueError where it is anything else."""
    try:
        values = json.loads(data)
    except RecursionError:
        raise ValueError("it is not what was written") from None
    if not isinstance(values, dict) or values.pop("check", None) != _check(values):
        raise ValueError("its content and its check differ")
    return values


def _check(values: Mapping[str, Any]) -> str:
    return digests.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def keep_copy(path: Path, data: bytes, disk: Disk) -> None:
    """As `set_aside`, of a file that is going to be replaced: there is no instant without it. Where there is no room,
    no copy is kept."""
    with contextlib.suppress(OSError):
        disk.replace(path.with_name(path.name + DAMAGED), data)


def set_aside(path: Path, disk: Disk = SYSTEM_DISK) -> str:
    """Give a damaged file or folder another name, for people to look at; the latest one of a name is kept. Returns the
    name. Raises OSError."""
    aside = path.with_name(path.name + DAMAGED)
    if disk.exists(path):
        try:
            disk.rename(path, aside)
        except OSError as error:
            if error.errno not in TAKEN:
                raise
            disk.remove_folder(aside)
            disk.rename(path, aside)
    return aside.name
