"""Pull the traces of a plan's nodes into a run directory. The agents free only what is durable here.

    runs/<utc>-<plan8>/  run.json  plan.json  addresses.json  trace/raw/<node>/<boot>/NNNN.trace

A round asks every node for what it has beyond what is held, appends it, syncs, and says in the next round how much is
held, which the agent then frees. run.json is replaced after every round, so a collection that was killed is gone on
with by naming its directory. A plan that still runs keeps its trace on the agents unless its directory is gone on
with: a collection into a new one would miss the plan's beginning, without which the rest cannot be judged.

Where plans changed during the run, the earlier ones are kept in earlier/<hash>.json and judged together with the last.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coordinator import addresses
from coordinator.addresses import host_of
from coordinator.agents import AgentError, Agents
from coordinator.errors import BadInputError, Problem, unwritable
from coordinator.plan_file import Plan
from coordinator.run_traces import RunTraces, TraceError, place_of
from coordinator.units_of_measure import counted

TRACE_S = 120.0
MOST_ROUNDS = 50
PROGRESS_RECORDS = 50_000

Progress = Callable[[str], None]


@dataclass
class Collected:
    """What a collection brought. problems: nodes that could not be read, one line each; ran: whether any trace tells of
    the plan itself."""

    run: Path
    records: int
    traces: list[dict[str, Any]]
    problems: list[str] = field(default_factory=list)
    ran: bool = True


def check_out(out: Path) -> None:
    """Raises BadInputError where `new_run` could make no directory, before anything is stopped for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(out, error) from error


def new_run(out: Path, plan: Plan, plan_file: Path, addresses_file: Path) -> Path:
    """A fresh run directory below `out`, with copies of the plan and the addresses. Raises BadInputError."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{plan['hash'][:8]}"
    try:
        for number in range(1, 100):
            run = out / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                run.mkdir(parents=True)
            except FileExistsError:
                continue
            _copy(plan_file, addresses_file, run)
            return run
    except OSError as error:
        raise unwritable(out, error) from error
    raise BadInputError([Problem(str(out), 0, f"has a hundred runs called {stamp} already; give another -o")])


def _copy(plan_file: Path, addresses_file: Path, run: Path) -> None:
    try:
        (run / "plan.json").write_bytes(plan_file.read_bytes())
        replace(addresses.load(addresses_file), path=run / "addresses.json").write()  # its `tls` may be beside it
    except (OSError, BadInputError):
        shutil.rmtree(run, ignore_errors=True)  # else it would look like a run
        raise


def collect(
    run: Path,
    plan: Plan,
    agents: Agents,
    progress: Progress = lambda _: None,
    *,
    over: bool = True,
    earlier: Mapping[str, Path] | None = None,
) -> Collected:
    """Bring the run directory up to what the agents have written. Goes on with what is in it already.

    Raises BadInputError where the directory is of another plan or cannot be written; what came until then stays.
    over: the plan has ended and no other runs, so that the agents may free what is held. earlier: files of plans, by
    hash, that are part of the run where it shows that they ran.
    """
    before = _read(run / "run.json")
    if before.get("plan_hash", plan["hash"]) != plan["hash"]:
        text = f"is of plan {before['plan_hash'][:8]}, not {plan['hash'][:8]}; give another directory"
        raise BadInputError([Problem(str(run / "run.json"), 0, text)])
    traces = RunTraces(run / "trace" / "raw", before.get("traces", []))
    collected = Collected(run, 0, [])
    lost: dict[str, str] = {}
    resumed = bool(traces.incarnations)
    try:
        for number in range(MOST_ROUNDS if over or resumed else 1):
            # The last round, which brings next to nothing, tells the agents what is held.
            added = sum(_pull(node, traces, agents, lost, progress) for node in agents.addresses if node not in lost)
            collected.records += added
            hashes = _keep_earlier(run, before.get("earlier", []), earlier or {}, traces)
            collected.traces = traces.entries(plan["hash"], *hashes)
            _write(run / "run.json", _document(run, plan, before, collected.traces, hashes))
            if number and not _behind(traces, lost):
                break
    except OSError as error:
        text = f"cannot be written: {error.strerror or error}; make room and go on with --resume {run}"
        raise BadInputError([Problem(str(run), 0, text)]) from error
    collected.problems = list(lost.values())
    collected.ran = int(plan["hash"][:16], 16) in _ran(traces)
    return collected


def _ran(traces: RunTraces) -> set[int]:
    """The plans that traces tell of, by the start of their hash."""
    return {stamp for each in traces.incarnations.values() for stamp in each.states()}


def _pull(node: str, traces: RunTraces, agents: Agents, lost: dict[str, str], progress: Progress) -> int:
    """One agent's part of a round, all its places; returns the records that came. A failure is noted in `lost`."""
    added, shown, places = Counter[str](), 0, agents.places_of(node)
    held = {boot: records for place in places for boot, records in traces.held(place).items()}
    try:
        for chunk in agents.trace(node, held, TRACE_S):
            place = place_of(chunk, node)
            if place not in places:
                continue  # a core that this plan does not use: its records stay there for a plan that does
            added[place] += traces.incarnation(place, chunk.boot).add(chunk)
            if added.total() - shown >= PROGRESS_RECORDS:
                shown = added.total()
                progress(f"node {node}: {shown} records")
    except (AgentError, TraceError) as error:
        lost[node] = str(error)
        for incarnation in (each for place in places for each in traces.of(place)):
            incarnation.reachable = False
    for place in places:
        for incarnation in traces.of(place):
            incarnation.sync()
        if added[place]:
            progress(f"node {place}: {counted(sum(each.records for each in traces.of(place)), 'record')}")
    return added.total()


def _behind(traces: RunTraces, lost: dict[str, str]) -> bool:
    return any(
        host_of(each.node) not in lost and each.written is not None and each.held < each.written
        for each in traces.incarnations.values()
    )


def _keep_earlier(run: Path, known: list[str], files: Mapping[str, Path], traces: RunTraces) -> list[str]:
    """Copies those plans that ran into the run; the hashes of all that are there, in the order given."""
    ran, found = _ran(traces), list(known)
    for hash_, path in files.items():
        if hash_ not in found and int(hash_[:16], 16) in ran:
            (run / "earlier").mkdir(exist_ok=True)
            shutil.copyfile(path, run / "earlier" / f"{hash_}.json")
            found.append(hash_)
    return found


def _document(
    run: Path, plan: Plan, before: dict[str, Any], traces: list[dict[str, Any]], earlier: list[str]
) -> dict[str, Any]:
    own = ("run", "plan_hash", "virtual", "traces", "earlier")
    kept = {key: value for key, value in before.items() if key not in own}
    return {
        "run": run.resolve().name,
        "plan_hash": plan["hash"],
        "virtual": False,
        "traces": traces,
        "scenario": {},
        **({"earlier": earlier} if earlier else {}),
        **kept,
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInputError([Problem(str(path), 0, f"cannot be read ({error}); give another directory")]) from error
    if not isinstance(values, dict):
        raise BadInputError([Problem(str(path), 0, "is not a run; give another directory")])
    return values


def _write(path: Path, values: dict[str, Any]) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
