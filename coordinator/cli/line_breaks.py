"""Sentences as a terminal shows them: what is wider than it goes on in the next line, further in.

Programs read pipes and files line by line, so a sentence stays one line there. What is there to be copied is never
broken: a command in quotes, behind a colon or on a line of its own, and a line for a file in braces.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TextIO

NARROWEST = 44  # columns; in a narrower terminal it is left to the terminal
FURTHER = " " * 4
COPIED = re.compile(r"(?<!\w)'[^']+'(?!\w)|(?:(?<=: )|(?<=  ))(?:coordinator|node-agent) [^;]*|\{[^}]*\}")
BLANK = "\x00"  # stands for a space that is no place for a break


def fitted(text: str, stream: TextIO) -> str:
    """The text for that stream, each of its lines broken where it has to be."""
    columns = _columns(stream)
    return "\n".join(_filled(line, columns) for line in text.split("\n")) if columns else text


def fitted_mistake(text: str, stream: TextIO) -> str:
    """The same of the sentence of a mistake: where it does not fit, what to do begins a line of its own."""
    columns = _columns(stream)
    wrong, joint, remedy = text.partition("; ")
    if not columns or len(text) <= columns or not joint:
        return fitted(text, stream)
    return fitted(f"{wrong};\n{FURTHER}{remedy}", stream)


def _columns(stream: TextIO) -> int:
    """0: no terminal, where nothing is broken."""
    return max(shutil.get_terminal_size().columns, NARROWEST) if stream.isatty() else 0


def _filled(line: str, columns: int) -> str:
    lead = " " * (len(line) - len(line.lstrip()))
    whole = COPIED.sub(lambda found: found[0].replace(" ", BLANK), line)
    return textwrap.fill(
        whole.strip(), max(columns, NARROWEST + len(lead)), initial_indent=lead, subsequent_indent=f"{lead}{FURTHER}",
        break_long_words=False, break_on_hyphens=False,
    ).replace(BLANK, " ")  # fmt: skip


__all__ = ["fitted", "fitted_mistake"]
