"""Pull what ran on some nodes into a run directory: traces and plans. The agents free only what is durable here.

    runs/<utc>-<plan8>/  run.json  plan.json  addresses.json  trace/raw/<node>/<boot>/NNNN.trace

A round asks every node for what it has beyond what is held, appends it, syncs, and says in the next round how much is
held, which the agent then frees. run.json is replaced after every round, so a collection that was killed is gone on
with by naming its directory. A plan that still runs keeps its trace on the agents unless its directory is gone on
with: a collection into a new one would miss the plan's beginning, without which the rest cannot be judged.

Every plan that ran is part of the run (`run_plans.py`): the last one in plan.json, those before in earlier/.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coordinator import durable_files
from coordinator.errors import BadInputError, bad_file, unwritable
from coordinator.fleet import addresses
from coordinator.fleet.addresses import host_of
from coordinator.fleet.agents import AgentError, Agents
from coordinator.fleet.collection import run_plans
from coordinator.fleet.collection.run_traces import RunTraces, TraceError, place_of
from coordinator.plan import plan_file
from coordinator.units import counted
from protos import run_document
from protos.plan_document import Plan
from protos.records import STAMP, stamp_of

TRACE_S = 120.0
MOST_ROUNDS = 50
PROGRESS_RECORDS = 50_000

Progress = Callable[[str], None]


@dataclass
class Collected:
    """What a collection brought. problems: nodes that could not be read and plans that nobody has, one line each; ran:
    whether any trace tells of the plan itself."""

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


def new_run(out: Path, plan: Plan, plan_path: Path | None, addresses_file: Path) -> Path:
    """A fresh run directory below `out`, with the plan and the addresses. plan_path: copied where there is one. Raises
    BadInputError."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{plan.hash[:8]}"
    try:
        for number in range(1, 100):
            run = out / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                run.mkdir(parents=True)
            except FileExistsError:
                continue
            _begin(plan, plan_path, addresses_file, run)
            return run
    except OSError as error:
        raise unwritable(out, error) from error
    raise bad_file(out, "too_many_runs", f"has a hundred runs called {stamp} already", "give another -o")


def _begin(plan: Plan, plan_path: Path | None, addresses_file: Path, run: Path) -> None:
    try:
        if plan_path is None:
            plan_file.write(plan, run / "plan.json")
        else:
            durable_files.replace(run / "plan.json", plan_path.read_bytes())
        replace(addresses.load(addresses_file), path=run / "addresses.json").write()  # its `tls` may be beside it
    except (OSError, BadInputError):
        shutil.rmtree(run, ignore_errors=True)  # else it would look like a run
        raise


def last_plan(run: Path) -> Plan:
    """The plan of a run directory that is gone on with. Raises BadInputError."""
    return plan_file.read(run / "plan.json")


def collect(
    run: Path,
    plan: Plan,
    agents: Agents,
    progress: Progress = lambda _: None,
    *,
    over: bool = True,
    plans: Mapping[str, Plan] | None = None,
    going_on: Collection[str] = (),
) -> Collected:
    """Bring the run directory up to what the agents have written. Goes on with what is in it already.

    Raises BadInputError where the directory is of another plan or cannot be written; what came until then stays.
    over: all that ran has ended, so that the agents may free what is held. plans: more documents, by hash, than the
    agents have. going_on: hashes of plans that run on, and are another run's.
    """
    before = _read(run / "run.json")
    there = {str(before.get("plan_hash", plan.hash)), *map(str, before.get("earlier", []))}
    if plan.hash not in there and not before.get("collecting"):  # else it was killed before plan.json was the latest
        text = f"is of plan {before['plan_hash'][:8]}, not {plan.hash[:8]}"
        raise bad_file(run / "run.json", "run_of_another_plan", text, "give another directory")
    kept = run_plans.RunPlans(run, last_plan(run))
    traces = RunTraces(run / "trace" / "raw", before.get("traces", []))
    collected = Collected(run, 0, [])
    resumed = bool(traces.incarnations)
    found, lost = run_plans.fetch(agents, kept.known)
    kept.add(found)
    kept.add(plans or {})
    stamps = frozenset(hash_[:STAMP] for hash_ in going_on)
    missing: list[str] = []
    acknowledged = False
    try:
        for number in range(MOST_ROUNDS if over or resumed else 1):
            # The last round, which brings next to nothing, tells the agents that all before it is held.
            begun = len(traces.incarnations)
            added = sum(_pull(node, traces, agents, lost, progress) for node in agents.addresses if node not in lost)
            collected.records += added
            for each in traces.incarnations.values():
                each.reachable = host_of(each.node) not in lost
            earlier, missing = kept.settle(traces.ran(), stamps)
            collected.traces = traces.entries(kept.last.hash, *earlier)
            state = _State(kept.last.hash, collected.traces, earlier, sorted(stamps), collecting=True)
            _write(run / "run.json", _document(run, before, state))
            kept.write_last()
            if acknowledged and len(traces.incarnations) == begun:  # else a full disk had no room for it before
                break
            acknowledged = number > 0 and not _behind(traces, lost)
        _write(run / "run.json", _document(run, before, replace(state, collecting=False)))
    except OSError as error:
        raise _full(run, error) from error
    if over or resumed:
        run_plans.forget(agents, kept.known, [node for node in agents.addresses if node not in lost])
    mend = f"give it with --resume {run} --earlier FILE"
    unknown = (
        f"plan {stamp[:8]} ran and no agent has it any more: its records are not judged; {mend}" for stamp in missing
    )
    collected.problems = [*lost.values(), *unknown]
    collected.ran = stamp_of(plan.hash) in traces.ran()
    return collected


def _full(run: Path, error: OSError) -> BadInputError:
    mend = f"make room and go on with --resume {run}: the agents keep what is not here"
    return bad_file(run, "unwritable", f"cannot be written: {error.strerror or error}", mend)


@dataclass(frozen=True)
class _State:
    """What run.json says of a collection. going_on: starts of hashes of plans that run on; collecting: it is not over,
    and was interrupted if nobody is at it."""

    plan_hash: str
    traces: list[dict[str, Any]]
    earlier: list[str]
    going_on: list[str]
    collecting: bool


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


def _document(run: Path, before: dict[str, Any], state: _State) -> dict[str, Any]:
    own = ("run", "plan_hash", "virtual", "traces", "earlier", "going_on", "collecting")
    kept = {key: value for key, value in before.items() if key not in own}
    return {
        "run": run.resolve().name,
        "plan_hash": state.plan_hash,
        "virtual": False,
        "traces": state.traces,
        "scenario": {},
        **({"earlier": state.earlier} if state.earlier else {}),
        **({"going_on": state.going_on} if state.going_on else {}),
        **({"collecting": True} if state.collecting else {}),
        **kept,
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        found = run_document.unpacked(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise bad_file(path, "unreadable", f"cannot be read ({error})", "give another directory") from error
    if found.damage:
        text, mend = (
            f"is not as it was written: {found.damage}",
            "put a copy of it in its place, or give another directory",
        )
        raise bad_file(path, "damaged", text, mend)
    return found.values


def _write(path: Path, values: dict[str, Any]) -> None:
    durable_files.replace(path, run_document.packed(values))
