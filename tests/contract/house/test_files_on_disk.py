"""What an agent keeps goes through the disk that is handed to it: nothing opens, lists or removes files by itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3] / "node_agent"
ROOMS = ("control", "runtime", "host/files", "core", "link", "wire")
LIVE = {  # what a process of this computer is made of, and what is not kept: operators' own files
    "control/server.py", "control/service.py", "control/entry.py", "control/identities.py", "runtime/in_process.py",
    "host/files/state_lock.py",
}  # fmt: skip
OF_PATHS = {
    "read_bytes", "read_text", "write_bytes", "write_text", "unlink", "mkdir", "rmdir", "stat", "lstat", "glob",
    "rglob", "iterdir", "touch", "exists", "is_dir", "is_file", "symlink_to", "hardlink_to", "chmod",
}  # fmt: skip
PORTS = {"disk", "rings"}


def test_files_are_touched_through_the_disk_alone() -> None:
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    kept = [path for path in files if str(path.relative_to(ROOT)) not in LIVE]
    assert len(kept) > 100
    assert [f"{path.relative_to(ROOT)}:{call}" for path in kept for call in calls(path.read_text())] == []


def test_a_file_that_is_touched_otherwise_is_found() -> None:
    text = (
        "path.read_bytes()\nself.disk.exists(path)\nopen(path)\n(a / b).unlink()\nrings.open(path)\npath.open('rb')\n"
    )
    assert list(calls(text)) == ["1", "3", "4", "6"]


def calls(text: str) -> Iterator[str]:
    """Lines with calls that touch files."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield str(node.lineno)
            case ast.Call(func=ast.Attribute(attr="open", value=ast.Name(id="path"))):
                yield str(node.lineno)
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in OF_PATHS:
                if not (isinstance(value, ast.Attribute | ast.Name) and _name(value) in PORTS):
                    yield str(node.lineno)


def _name(value: ast.Attribute | ast.Name) -> str:
    return value.attr if isinstance(value, ast.Attribute) else value.id
