"""Files that a crash leaves whole, the old or the new, and damaged ones out of the way."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DAMAGED = ".damaged"


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
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def set_aside(path: Path) -> str:
    """Give a damaged file another name, for people to look at; the latest one of a name is kept. Returns the name."""
    aside = path.with_name(path.name + DAMAGED)
    if path.exists():
        path.replace(aside)
    return aside.name


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file's content so that a crash leaves the old or the new, and the new is on disk on return."""
    temporary = path.parent / f".{path.name}.{os.getpid()}"  # one writer per process; a left-over is overwritten
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
