"""For tests: a query and a cluster file planned, and the plan in virtual time on given tuples.

`coordinator plan` makes the plan in a process of its own: agents do not import the coordinator, and a plan is a file.
The simulation runs in the process of the test, where a breakpoint in an operator holds it.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from node_agent.problems import ProblemError
from node_agent.testing import simulated_plan
from node_agent.testing.plan_choices import Choices
from node_agent.testing.simulated_plan import Operators, Simulated, Tuples
from node_agent.virtual.errors import BadInputError, bad_input
from node_agent.virtual.scenario import Scenario
from protos import plan_document
from protos.plan_document import Plan

Files = str | Path | Sequence[str | Path]
BAD_INPUT, INFEASIBLE, OPEN = 2, 3, 4  # exit codes of `coordinator plan`; OPEN: unproven with a plan, else out of time
REASON = "infeasible: "  # begins each line with a reason; what follows is a command with files that are gone by then
RECORDING = b"trace"  # a query with this word may name a recording of arrivals, which is a part of it
_EXTRA = "pip install 'shimekiri["  # in the coordinator's own sentence about a library that is missing
_NO_ROOM = "No module named coordinator"  # Python's own words

_plans: dict[str, bytes] = {}  # plan.json by the hash of what it was made of


class PlanningError(ProblemError):
    """The coordinator made no plan; its own sentences, a line each."""


class InfeasibleError(PlanningError):
    """It is proven that no plan holds every deadline: a reason per line."""


class OutOfTimeError(PlanningError):
    """The solver found neither a plan nor a proof that there is none within `Choices.time_limit_s`."""


class NoCoordinatorError(PlanningError):
    """The coordinator, or a library of its extra, is not installed here."""


def simulated(
    query: Files,
    cluster: str | Path,
    tuples: Tuples,
    operators: Operators = (),
    scenario: Scenario | None = None,
    choices: Choices | None = None,
    may_fail: bool = False,
) -> Simulated:
    """Plan the query, or several, and run the plan in virtual time, which takes no time of its own and is the same
    every time.

    query, cluster: the files, as of `coordinator plan`. operators: Python files as of `--operators`, or the classes and
    functions themselves; the cluster's operators.json is made of them, not read from the file. tuples, scenario,
    may_fail and what comes back: as of `node_agent.testing.simulated_plan.simulated`. choices, and errors: as of
    `planned`. Needs the extra [coordinator].
    """
    registry = simulated_plan.registered(operators)
    return simulated_plan.simulated(planned(query, cluster, registry, choices), tuples, registry, scenario, may_fail)


def planned(query: Files, cluster: str | Path, operators: Operators = (), choices: Choices | None = None) -> Plan:
    """The plan of these files; one that is neither guaranteed nor disproven, too. choices: the options of `coordinator
    plan`, as `Choices(place={"weigh": "a"}, best_effort=True)`.

    Equal files, operators and choices are planned once in a process. Raises BadInputError (file:line: what is wrong,
    for each), InfeasibleError where no plan holds every deadline, OutOfTimeError, NoCoordinatorError with what to
    install, and PlanningError with what the coordinator said where it failed in any other way.
    """
    queries = [Path(query)] if isinstance(query, str | Path) else [Path(each) for each in query]
    listing = json.dumps(simulated_plan.registered(operators).describe()).encode()
    options = (choices or Choices()).options()
    key = _key(queries, Path(cluster), listing, options)
    made = _plans.get(key) if key is not None else None
    if made is None:
        made = _made([*queries, Path(cluster)], listing, options)
        if key is not None:
            _plans[key] = made
    return plan_document.parse(made)


def _key(queries: Sequence[Path], cluster: Path, listing: bytes, options: Sequence[str]) -> str | None:
    """Of everything that a plan is made of; None where that cannot be told: a file that cannot be read, or a query that
    may name further files."""
    try:
        files = [path.read_bytes() for path in (*queries, cluster)]
    except OSError:
        return None
    if any(RECORDING in each for each in files[:-1]):
        return None
    hashes = [sha256(each).hexdigest() for each in (*files, listing)]
    return json.dumps([hashes, list(options)])


def _made(files: Sequence[Path], listing: bytes, options: Sequence[str]) -> bytes:
    """plan.json as `coordinator plan` writes it."""
    with TemporaryDirectory(prefix="shimekiri-") as folder:
        installed, output = Path(folder) / "operators.json", Path(folder) / "plan.json"
        installed.write_bytes(listing)
        given = [*options, "--json", f"--installed={installed}", f"--out={output}", "--", *map(str, files)]
        command = [sys.executable, "-m", "coordinator", "plan", *given]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if done.returncode in (0, OPEN) and output.exists():
            return output.read_bytes()
    raise _error(done.returncode, done.stderr.strip())


def _error(code: int, said: str) -> Exception:
    """What the coordinator's end means."""
    if code == BAD_INPUT:
        return bad_input("not_planned", said)
    if code == INFEASIBLE:
        reasons = [line.removeprefix(REASON) for line in said.splitlines() if line.startswith(REASON)]
        return InfeasibleError("infeasible", "\n".join(reasons))
    if code == OPEN:
        return OutOfTimeError("out_of_time", said)
    if _NO_ROOM in said:
        text = f"planning needs the coordinator, which is not installed: {_EXTRA}coordinator]'"
        return NoCoordinatorError("not_installed", text, subject="coordinator")
    if _EXTRA in said:
        return NoCoordinatorError("not_installed", said, subject="coordinator")
    return PlanningError("planning_failed", said or f"the coordinator ended with exit code {code}")


__all__ = [
    "BadInputError", "Choices", "InfeasibleError", "NoCoordinatorError", "OutOfTimeError", "PlanningError", "planned",
    "simulated",
]  # fmt: skip
