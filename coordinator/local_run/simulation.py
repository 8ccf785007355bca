"""A plan in virtual time, by the agent's own engine in a child process: a crash of an operator ends the child alone.

The contract is files and lines: plan.json, a scenario and a run directory's name go in, JSON lines come out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordinator import signals
from coordinator.errors import CoordinatorError, Mistake

END_S = 5.0


class SimulationError(CoordinatorError):
    """The child has ended without a result; its own words are on stderr. exit_code: the child's."""

    def __init__(self, code: int) -> None:
        text = f"the simulation was ended by signal {-code}"
        killed = [] if code > 0 else [Mistake("simulation_killed", text, "look at the operators")]
        super().__init__(*killed)  # nothing where the child has said it
        self.exit_code = code if code > 0 else 128 - code


@dataclass(frozen=True, slots=True)
class Simulated:
    """What to simulate. scenario: as `node-agent simulate --scenario` reads it; run: a new directory or none."""

    plan: Path
    scenario: Mapping[str, Any]
    operators: Sequence[Path] = ()
    run: Path | None = None
    checks: bool = True


def simulate(asked: Simulated, trial: Callable[[int, int], None]) -> dict[str, Any]:
    """The result, as `node-agent simulate` tells it. trial: called after each one, with its number and of how many.

    Raises SimulationError. On Ctrl-C the child is ended before this returns.
    """
    with tempfile.TemporaryDirectory(prefix="shimekiri-") as folder:
        scenario = Path(folder) / "scenario.json"
        scenario.write_text(json.dumps(asked.scenario), encoding="utf-8")
        with _child(_command(asked, scenario)) as child:
            result = _result(child, trial)
            code = child.wait()
    if code or result is None:
        raise SimulationError(code or 1)
    return result


def _command(asked: Simulated, scenario: Path) -> list[str]:
    words = [sys.executable, "-m", "node_agent", "simulate", str(asked.plan), "--scenario", str(scenario), "--json"]
    for file in asked.operators:
        words += ["--operators", str(file)]
    if asked.run is not None:
        words += ["--out", str(asked.run)]
    return words if asked.checks else [*words, "--no-check-operators"]


@contextmanager
def _child(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that never outlives this block."""
    with ExitStack() as at_end:
        with signals.held():  # a signal as it starts would leave a child that nobody knows
            child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
            at_end.callback(_end, child)
        yield child


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _result(child: subprocess.Popen[str], trial: Callable[[int, int], None]) -> dict[str, Any] | None:
    assert child.stdout is not None
    for line in child.stdout:
        match _parsed(line):
            case {"event": "trial", "trial": int(number), "of": int(trials)}:
                trial(number, trials)
            case {"event": "done", "result": dict(result)}:
                return result
            case None:
                sys.stderr.write(line)  # a library's own words
    return None


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
