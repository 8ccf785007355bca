"""A replay: scenario and plan in, tuples into live agents, what happened out (replay.json)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim_vehicles.errors import BadInputError, FeedError
from sim_vehicles.feed import Feed, bursts, feeds, read_json
from sim_vehicles.live import Connect, Live, Tally
from sim_vehicles.load import utilisation
from sim_vehicles.scene import Scenario, load_scenario
from sim_vehicles.sense import Burst, Senses, inputs_hash


@dataclass(frozen=True)
class Options:
    """What the user asked for. Times in ns of the recording; `start_ns` None: where the scene says, else its start."""

    scenario: str
    addresses: Path
    plan: Path | None = None
    duration_ns: int = 10_000_000_000
    start_ns: int | None = None
    rate: float = 1.0
    v2v: int | None = None
    age_ns: int = 100_000_000
    seed: int = 1
    ego: str | None = None
    skip_bad_rows: bool = False


@dataclass(frozen=True)
class Prepared:
    """Everything that is decided before the first tuple leaves."""

    options: Options
    scenario: Scenario
    plan: dict[str, Any]
    feeds: list[Feed]
    addresses: dict[str, str]
    bursts: list[Burst]
    numbers: dict[str, int]
    inputs_hash: str
    utilisation: dict[str, float]

    @property
    def start_ns(self) -> int:
        return self.bursts[0].at_ns


def prepare(options: Options) -> Prepared:
    """Reads and computes all input; BadInputError says what cannot be used. The same options give the same bursts."""
    _check(options)
    scenario = load_scenario(options.scenario, options.ego, options.skip_bad_rows)
    path = options.plan or options.addresses.with_name("plan.json")
    plan = read_json(path, "a plan made by `coordinator plan`; name it with --plan")
    found = feeds(plan, path, options.v2v)
    addresses = _addresses(options.addresses, found)
    senses = Senses(scenario, options.seed)
    start_ns = _start_ns(scenario, options.start_ns)
    sent = bursts(found, senses, start_ns, start_ns + options.duration_ns, options.age_ns)
    if not sent:
        raise BadInputError(f"{path}: the plan has no source, so there is nothing to send")
    sizes = {feed.name: (feed.n, feed.period_ns) for feed in found}
    try:
        load = utilisation(plan, sizes, options.rate)
    except (KeyError, TypeError, AttributeError) as bad:
        raise BadInputError(
            f"{path}: is no complete plan: {type(bad).__name__} {bad}; make it with `coordinator plan`"
        ) from None
    return Prepared(options, scenario, plan, found, addresses, sent, senses.numbers, inputs_hash(sent), load)


def start(prepared: Prepared, connect: Connect, on_burst: Callable[[Burst], None] = lambda burst: None) -> Live:
    """The live replay, ready to `run(prepared.bursts)`."""
    return Live(prepared.feeds, prepared.addresses, connect, prepared.options.rate, on_burst)


def summary(prepared: Prepared, live: Live, failure: FeedError | None = None) -> dict[str, Any]:
    """What replay.json holds. `verdict` is null: judging needs the warnings, and a replay does not read them back."""
    options = prepared.options
    sources = {feed.name: _source(feed, live.tallies.get(feed.name, Tally())) for feed in prepared.feeds}
    counts = ("bursts", "sent", "admitted", "refused", "unanswered")
    total = {key: sum(source[key] for source in sources.values()) for key in counts}
    ended = "failed" if failure else "done" if total["bursts"] == len(prepared.bursts) else "interrupted"
    return {
        "shimekiri": 1,
        "scenario": prepared.scenario.scene.name,
        "inputs_hash": prepared.inputs_hash,
        "plan_hash": prepared.plan.get("hash"),
        "rate": options.rate,
        "seed": options.seed,
        "start_ns": prepared.start_ns,
        "duration_ns": options.duration_ns,
        "v2v_age_ns": options.age_ns,
        **total,
        "bursts_planned": len(prepared.bursts),
        "ended": ended,
        "why": str(failure) if failure else None,
        "sources": sources,
        "utilisation": prepared.utilisation,
        "ids": prepared.numbers,
        "skipped_rows": prepared.scenario.motion.skipped,
        "verdict": None,
    }


def write_summary(folder: Path, what: dict[str, Any]) -> Path:
    """Writes replay.json into the run's folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replay.json"
    part = folder / ".replay.json.part"
    part.write_text(json.dumps(what, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def _source(feed: Feed, tally: Tally) -> dict[str, Any]:
    late_ns = sorted(tally.late_ns)
    return {
        "node": feed.node,
        "type": feed.type,
        "burst": feed.n,
        "period_ns": feed.period_ns,
        "bursts": tally.bursts,
        "sent": tally.sent,
        "admitted": tally.admitted,
        "refused": tally.refused,
        "unanswered": tally.sent - tally.admitted - tally.refused,
        "refused_why": dict(tally.why.most_common(10)),
        "late_ns": {"p50": _rank(late_ns, 0.5), "max": _rank(late_ns, 1.0)},
    }


def _rank(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _check(options: Options) -> None:
    if not 0 < options.rate <= 1000:
        raise BadInputError(f"--rate: {options.rate:g} must be above 0 and at most 1000")
    if options.duration_ns <= 0:
        raise BadInputError("--duration: must be above 0")
    if options.v2v is not None and not 1 <= options.v2v <= 4096:
        raise BadInputError(f"--v2v: {options.v2v} must be from 1 to 4096, the most that one batch holds")
    if options.age_ns > 1_000_000_000:
        raise BadInputError("--age: over 1 s is older than any station's measurement")


def _start_ns(scenario: Scenario, asked_ns: int | None) -> int:
    motion, scene = scenario.motion, scenario.scene
    if asked_ns is None:
        return round((motion.start_s if scene.start_s is None else scene.start_s) * 1e9)
    if not motion.start_s <= asked_ns / 1e9 <= motion.end_s:
        raise BadInputError(
            f"--start: {asked_ns / 1e9:g} s is outside the recording ({motion.start_s:g} to {motion.end_s:g} s)"
        )
    return asked_ns


def _addresses(path: Path, found: list[Feed]) -> dict[str, str]:
    nodes = read_json(path, "the addresses.json that `coordinator up` writes").get("nodes")
    if not isinstance(nodes, dict):
        raise BadInputError(f'{path}: "nodes" is missing; it should be the addresses.json that `coordinator up` writes')
    result = {}
    for feed in found:
        node = nodes.get(feed.node)
        if not isinstance(node, dict) or not isinstance(node.get("data"), str):
            raise BadInputError(f"{path}: node {feed.node}, where source {feed.name} enters, has no data address here")
        result[feed.node] = node["data"]
    return result
