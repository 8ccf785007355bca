"""What this node proves with who it is: connectors.json in the agent's state directory. Plans carry no secret.

    {"mqtts://broker.example:8883": {"username": "robot", "password": "...", "ca": "/etc/ssl/broker.pem",
                                     "certificate": "robot.pem", "key": "robot.key"}}

Each key is optional; paths are relative to that directory. Nobody but the agent's user may read the file.
"""

import json
from pathlib import Path
from typing import Any

from node_agent.connectors.connector_ports import Credentials, NotConnectableError

FILE = "connectors.json"
_TEXTS, _PATHS = ("username", "password"), ("ca", "certificate", "key")


def of(folder: Path, address: str) -> Credentials:
    """For that address, as `protos.connectors.Broker` writes it; empty ones where the file has none, or there is no
    file. Raises NotConnectableError."""
    path = folder / FILE
    try:
        if path.stat().st_mode & 0o077:
            text = "can be read by others than its owner, and may have passwords"
            raise NotConnectableError("open_to_all", text, f"chmod 600 {path}", file=path)
        values: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return Credentials()
    except (OSError, ValueError) as error:
        raise NotConnectableError("unreadable", f"cannot be read ({error})", file=path) from None
    given = values.get(address, {}) if isinstance(values, dict) else None
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise _wrong(path, address, "no mapping of texts")
    if unknown := given.keys() - {*_TEXTS, *_PATHS}:
        raise _wrong(path, address, ", ".join(sorted(unknown)))
    paths = {key: folder / given[key] for key in _PATHS if key in given}
    return Credentials(given.get("username", ""), given.get("password", ""), **paths)


def _wrong(path: Path, address: str, what: str) -> NotConnectableError:
    text = f"{address!r} has {what}"
    return NotConnectableError("wrong_shape", text, f"there may be {', '.join((*_TEXTS, *_PATHS))}", file=path)
