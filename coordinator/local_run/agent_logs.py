"""Logs of local agents on stderr: JSON lines (`--log-json`), read by event, kept in words in the run directory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INFO = "info"
MOST_RAISED = 300  # characters of an exception in a sentence
MOST_BYTES = 16 << 20  # of a log: a line of each kind a minute is far below it, unless operators print
CHECK = "node_agent.operators.mutation_check.ChangedError: "
FRAME = re.compile(r'  File "(.*)", line (\d+), in (.*)')


@dataclass(frozen=True)
class Said:
    """A line of a log. node: the place; fields: what belongs to the event, as values."""

    node: str
    level: str
    event: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def keep(log: Path, copy: Path) -> list[Said]:
    """Write an agent's log to `copy` for people, as an agent without --log-json writes it; returns what is above info.
    Nothing of a log that cannot be read."""
    try:
        with log.open("rb") as file:
            lines = file.read(MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
    said: list[Said] = []
    copied: list[str] = []
    for line in lines:
        found = _parsed(line)
        copied.append(line if found is None else _in_words(found))
        if found is not None and found["level"] != INFO:
            fields = found["fields"] if isinstance(found["fields"], dict) else {}
            node, level, event, text = (str(found[key]) for key in ("node", "level", "event", "text"))
            said.append(Said(node, level, event, text, fields))
    copy.write_text("".join(f"{line}\n" for line in copied), encoding="utf-8", errors="backslashreplace")
    return said


def exception(text: str) -> str:
    """Of a trace back: `ValueError: no 3, at operators.py:7, in same`; empty where there is none, or its end is cut
    off."""
    lines = text.splitlines()
    at = max((number for number, line in enumerate(lines) if FRAME.fullmatch(line)), default=None)
    if at is None:
        return ""
    raised = next((line for line in lines[at + 1 :] if line[:1].strip()), "")
    frame = FRAME.fullmatch(lines[at])
    assert frame is not None
    if len(raised) > MOST_RAISED:
        raised = raised[:MOST_RAISED] + " ..."
    if raised.startswith(CHECK):  # it looks at operators from outside: its own line says nothing to their author
        return plain(raised.removeprefix(CHECK))
    return plain(f"{raised}, at {_here(frame[1])}:{frame[2]}, in {frame[3]}") if raised else ""


def _here(path: str) -> str:
    found, here = Path(path), Path.cwd()
    return str(found.relative_to(here)) if found.is_relative_to(here) else path


def _parsed(line: str) -> dict[str, Any] | None:
    """None for what was printed beside the log."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    wanted = ("at", "node", "part", "level", "event", "text", "fields")
    return found if isinstance(found, dict) and all(key in found for key in wanted) else None


def _in_words(found: Mapping[str, Any]) -> str:
    level = "" if found["level"] == INFO else f" {found['level']}"
    text = "\n".join(_indented(str(found["text"])))
    return f"{found['at']} {found['node']} {found['part']}{level}: {text}"


def _indented(text: str) -> Iterator[str]:
    """Further lines do not look like lines of the log; nothing that a terminal would obey."""
    for number, line in enumerate(text.split("\n")):
        yield f"    {plain(line)}" if number else plain(line)


def plain(line: str) -> str:
    """Without control characters."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)
