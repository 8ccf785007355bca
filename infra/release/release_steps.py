"""One trial after the other, each timed, and the table of all at the end."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infra.release.userland import Userland

TAIL = 2_000  # characters of a failure


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a step. where: the system; note: what is worth a look."""

    where: str
    step: str
    passed: bool
    seconds: float
    note: str = ""


@dataclass(slots=True)
class Trial:
    """Steps on one system. logs: where what they said is kept."""

    where: str
    system: Userland
    logs: Path
    user: str = "root"
    outcomes: list[Outcome] = field(default_factory=list)

    def step(
        self, name: str, words: Sequence[object], seconds: float, expects: str = "", code: int = 0, note: str = "",
        as_root: bool = False,
    ) -> bool:  # fmt: skip
        """Run it; it passes with that exit code where it says what is expected. note: a pattern of what to show."""
        began = time.monotonic()
        returned, said = self.system.run(words, "root" if as_root else self.user, seconds)
        passed = returned == code and re.search(expects, said) is not None
        shown = re.findall(note or r"(?!)", said)
        self.add(name, passed, time.monotonic() - began, shown[-1] if shown else "", f"exit code {returned}\n{said}")
        return passed

    def add(self, name: str, passed: bool, seconds: float, note: str, said: str = "") -> None:
        """Note what came of a step."""
        self.outcomes.append(Outcome(self.where, name, passed, seconds, note))
        log = self.logs / re.sub(r"[^\w.]+", "-", f"{self.where} {name}.log")
        log.write_text(said)
        print(f"{self.where}: {name}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s", flush=True)
        if not passed:
            print(f"{said[-TAIL:]}\n(all of it: {log})", file=sys.stderr, flush=True)


def table(outcomes: Sequence[Outcome]) -> str:
    """All of them, a line each."""
    rows = [("system", "step", "", "s", "")]
    rows += [
        (each.where, each.step, "passed" if each.passed else "FAILED", f"{each.seconds:.0f}", each.note)
        for each in outcomes
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
