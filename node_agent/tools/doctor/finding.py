"""One finding about the machine, and how all of them are told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "wrong"]

_WIDTH = 7  # of the first column


@dataclass(frozen=True)
class Finding:
    """state: ok; note: the agent runs, but know this; wrong: it does not start or cannot keep what plans promise.
    what and mend are one line each; an ok finding has no mend."""

    subject: str
    state: State
    what: str
    mend: str = ""


def ok(subject: str, what: str) -> Finding:
    """Nothing to do."""
    return Finding(subject, "ok", what)


def note(subject: str, what: str, mend: str) -> Finding:
    """Worth knowing."""
    return Finding(subject, "note", what, mend)


def wrong(subject: str, what: str, mend: str) -> Finding:
    """To be mended."""
    return Finding(subject, "wrong", what, mend)


def exit_code(findings: Sequence[Finding]) -> int:
    """0 where nothing is wrong, else 1."""
    return int(any(found.state == "wrong" for found in findings))


def table(findings: Sequence[Finding]) -> str:
    """Lines for a terminal, readable without colour: state, subject, what; the mend below where there is one."""
    wide = max((len(found.subject) for found in findings), default=0) + 2
    lines = []
    for found in findings:
        lines.append(f"{found.state:<{_WIDTH}}{found.subject:<{wide}}{found.what}")
        if found.mend:
            lines.append(f"{'':<{_WIDTH}}{'':<{wide}}-> {found.mend}")
    return "\n".join([*lines, "", _sum(findings)])


def document(findings: Sequence[Finding]) -> dict[str, object]:
    """For machines: `findings` with subject, state, what, mend; how many of each state."""
    listed = [
        {"subject": found.subject, "state": found.state, "what": found.what, "mend": found.mend} for found in findings
    ]
    return {"findings": listed, **_count(findings)}


def _count(findings: Sequence[Finding]) -> dict[str, int]:
    return {state: sum(found.state == state for found in findings) for state in ("ok", "note", "wrong")}


def _sum(findings: Sequence[Finding]) -> str:
    count = _count(findings)
    notes = f"{count['note']} note{'' if count['note'] == 1 else 's'}"
    return f"{count['wrong']} wrong, {notes}, {count['ok']} ok"
