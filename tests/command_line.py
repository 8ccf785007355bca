"""The real commands within the process of the tests: no interpreter starts, nothing is imported again."""

from __future__ import annotations

import contextlib
import io
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import coordinator.__main__
import node_agent.__main__
import sim_vehicles.__main__
from coordinator.errors import BadInputError, Problem
from coordinator.solve.option_checks import BadOptionError
from tests.sentences import fault

MAINS: Mapping[str, Callable[[], None]] = {
    "coordinator": coordinator.__main__.main,
    "node-agent": node_agent.__main__.main,
    "sim-vehicles": sim_vehicles.__main__.main,
}


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str
    error: BaseException | None = None  # behind the exit code

    @property
    def faults(self) -> list[str]:
        """What the coordinator found wrong: in files FILE:LINE CODE SUBJECT, in options CODE OPTION."""
        if isinstance(self.error, BadInputError):
            return [fault(problem) for problem in self.error.problems]
        return [fault(Problem(each)) for each in self.error.mistakes] if isinstance(self.error, BadOptionError) else []


def run(folder: Path, command: str) -> Said:
    """Its exit code and what it prints. Any other exception than SystemExit is a trace back, and goes through."""
    program, *arguments = shlex.split(command)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", [program, *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _signals_kept(),
    ):
        error: BaseException | None = None
        try:
            MAINS[program]()
            code = 0
        except SystemExit as ended:
            code, error = ended.code if isinstance(ended.code, int) else int(bool(ended.code)), ended.__cause__
    return Said(code, out.getvalue(), err.getvalue(), error)


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
