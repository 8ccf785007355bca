"""Which file a plan may name. A plan comes over the network, so it names nothing but what is in the node's directory
for recordings, wherever links lead."""

from pathlib import Path

from node_agent.connectors.connector_ports import Credentials, NotConnectableError


def allowed(credentials: Credentials, url: str) -> Path:
    """The path that a plan names: relative to the node's directory for recordings, or absolute and in it. Raises
    NotConnectableError."""
    folder = credentials.recordings
    if folder is None or not folder.is_dir():
        text = "this node reads and writes no recordings"
        mend = f"make the directory {folder or 'for them'}, or a link to the one that plans may use"
        raise NotConnectableError("outside", text, mend, subject=url)
    try:
        root = folder.resolve(strict=True)
        path = (root / url).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise NotConnectableError("outside", f"{url} is no path ({error})", subject=url) from None
    if not path.is_relative_to(root) or path == root:
        text, mend = f"{url} is not in {root}", "this node reads and writes recordings there and nowhere else"
        raise NotConnectableError("outside", text, mend, subject=url)
    return path


def new(path: Path) -> Path:
    """That path where nothing is there, else the first free one of path-2, path-3 ...: nothing is written over."""
    found, number = path, 1
    while found.exists() or found.is_symlink():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found
