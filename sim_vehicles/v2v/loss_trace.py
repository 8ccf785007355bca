"""Recorded loss: which of a sender's messages a receiver got, in the order in which they were sent.

Two kinds of file: a plain list of 1 (received) and 0 (lost), separated by spaces, commas or line ends; or a CSV log of
received safety messages (columns `time_utc`, `id`, `source`, `msgCnt`; further ones are ignored), in which the sender's
counter (SAE J2735: 0 to 127, one more with every message) says what is missing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from sim_vehicles.errors import bad_input

COUNTER = 128
REMOTE = "RV"  # the received ones; a log also holds what its own vehicle sent
COLUMNS = ("time_utc", "id", "source", "msgCnt")
MOST = 1_000_000


def read_trace(path: Path) -> tuple[bool, ...]:
    """True for received. BadInputError with file and line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise bad_input("no_file", "there is no such file", "it should hold a loss trace", file=path) from None
    except (OSError, UnicodeDecodeError) as bad:
        raise bad_input("unreadable", f"cannot be read: {bad}", file=path) from None
    first = text.split("\n", 1)[0]
    trace = tuple(_counted(path, text) if "msgCnt" in first else _listed(path, text))
    if not any(trace):
        raise bad_input(
            "nothing_received", "no message of this trace was received; every message would be lost", file=path
        )
    if len(trace) > MOST:
        raise bad_input("too_many_rows", f"{len(trace)} entries", f"a trace may have {MOST}", file=path)
    return trace


def _listed(path: Path, text: str) -> Iterator[bool]:
    for line, row in enumerate(text.splitlines(), 1):
        for word in row.replace(",", " ").split():
            if word not in ("0", "1"):
                raise bad_input(
                    "no_mark",
                    f"{word!r} is neither 1 (received) nor 0 (lost)",
                    f"or give a log with the columns {','.join(COLUMNS)}",
                    file=path,
                    line=line,
                )
            yield word == "1"


def _counted(path: Path, text: str) -> list[bool]:
    """The loss pattern of the remote sender of whom most was received."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise bad_input(
            "missing_column",
            f"column {missing[0]} is missing",
            f"the columns must be {','.join(COLUMNS)}",
            subject=missing[0],
            file=path,
            line=1,
        )
    counts: dict[str, list[int]] = {}
    for row in reader:
        if row["source"] == REMOTE:
            counts.setdefault(row["id"] or "", []).append(_count(path, reader.line_num, row["msgCnt"]))
    if not counts:
        raise bad_input(
            "no_messages", f"no row has the source {REMOTE} (a message received from another vehicle)", file=path
        )
    return _pattern(max(counts.values(), key=len))


def _pattern(counts: list[int]) -> list[bool]:
    """A count that is not the next one says how many in between were lost; the same count again is the same message."""
    received = [True]
    for i in range(1, len(counts)):
        step = (counts[i] - counts[i - 1]) % COUNTER
        if step:
            received += [False] * (step - 1) + [True]
    return received


def _count(path: Path, line: int, text: str | None) -> int:
    try:
        value = int(text or "")
    except ValueError:
        value = -1
    if not 0 <= value < COUNTER:
        raise bad_input(
            "out_of_range",
            f"msgCnt is {text!r}",
            f"it must be a whole number from 0 to {COUNTER - 1}",
            subject="msgCnt",
            file=path,
            line=line,
        )
    return value
