"""What windows have to give, from the admitted tuples alone, and what a run gave."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from node_agent.virtual.run import Simulation
from protos import records
from tests.simulation.windows.window_queries import Planned, Query, Source, Windows, tuples

FAR = 1 << 62
Ended = dict[int, tuple[int, int, int]]  # number -> state, start, end


@dataclass
class Ran:
    """By trial: origins of admitted tuples by source and number; how windows ended, by operator."""

    origins: dict[tuple[int, str], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    opened: dict[tuple[int, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    ended: dict[tuple[int, str], Ended] = field(default_factory=lambda: defaultdict(dict))
    shed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    lost: int = 0


def read(query: Query, done: Simulation) -> Ran:
    """From the trace; no window ends twice, or opens after it has ended."""
    found = Ran()
    plans = {plan.epoch: plan for plan in done.schedule.plans}
    names = {(epoch, source.id): source.name for epoch, plan in plans.items() for source in plan.sources}
    operators = {
        (epoch, op.id): op.name.removesuffix(".add")
        for epoch, plan in plans.items()
        for local in plan.nodes
        for op in local.operators
    }
    for trace in done.traces:
        for fact in records.unpack_records(trace.records):
            epoch = fact.plan_epoch_low
            if isinstance(fact, records.Admitted) and (epoch, fact.source) in names:
                found.origins[fact.epoch, names[epoch, fact.source]][fact.seq] = fact.origin_lo_ns
            elif isinstance(fact, records.Shed):
                found.shed[records.Shed.policy.text(fact.policy)] += 1
            elif isinstance(fact, (records.Lost, records.GaveUp)):
                found.lost += 1
            elif isinstance(fact, records.Window):
                _window(found, fact, operators[epoch, fact.operator])
    return found


def _window(found: Ran, fact: records.Window, operator: str) -> None:
    key, state = (fact.epoch, operator), fact.state
    opened, ended = found.opened[key], found.ended[key]
    if state == records.WINDOW_OPENED:
        assert fact.seq not in opened and fact.seq not in ended
        opened.add(fact.seq)
        return
    last = fact.last_number if state == records.WINDOW_SKIPPED else fact.seq
    for number in range(fact.seq, last + 1):
        assert number not in ended, "a window ends twice"
        assert (number in opened) == (state != records.WINDOW_SKIPPED)
        ended[number] = state, fact.start, fact.end


def exact(query: Query, windows: Windows, ran: Ran, trial: int, start: int, end: int) -> dict[str, Any]:
    """The result over positions start to end, as JSON has it, without its bounds."""
    kept = {source.name: _kept(query, source, windows, ran, trial) for source in windows.sources}
    if windows.kind == "sized":
        (only,) = windows.sources
        first = next(((at, each) for _, at, each in kept[only.name] if only.keeps(each) and at >= start), None)
        told = first is not None and first[0] < start + windows.length * 1_000_000
        length = windows.length * 1_000_000
        if first is not None and told:
            length = max(1, min(first[1]["size"], length))
        assert end == start + length
    inside = {
        source.name: [
            payload
            for number, at, payload in kept[source.name]
            if start <= (number if windows.kind == "count" else at) < end and source.keeps(payload)
        ]
        for source in windows.sources
    }
    if windows.kind == "join":
        left, right = (inside[source.name] for source in windows.sources)
        keys = sorted({str(each["k"]) for each in left})
        one, two = (source.stream for source in windows.sources)
        pairs = [
            {one: a, two: b} for key in keys for a in left if str(a["k"]) == key for b in right if str(b["k"]) == key
        ]
        return {"count": len(left) + len(right), "pairs": pairs}
    every = [payload for source in windows.sources for payload in inside[source.name]]
    if not windows.by:
        return {"count": len(every)} | _figures(windows, every)
    groups = sorted({str(payload["k"]) for payload in every})
    return {
        "count": len(every),
        "groups": {key: _figures(windows, [each for each in every if str(each["k"]) == key]) for key in groups},
    }


def _figures(windows: Windows, payloads: list[dict[str, Any]]) -> dict[str, Any]:
    if windows.own:
        return {"result": [payload["n"] for payload in payloads]}
    values = [payload["v"] for payload in payloads]
    return {"n": len(values), "v": sum(values), "top": max(values, default=None)}


def _kept(
    query: Query, source: Source, windows: Windows, ran: Ran, trial: int
) -> list[tuple[int, int, dict[str, Any]]]:
    """(number, origin, payload) of what is not late, by number."""
    origins = ran.origins[trial, source.name]
    found, youngest = [], -FAR
    for number, (_, _, payload) in enumerate(tuples(query, source, trial), start=1):
        origin = origins[number]
        if windows.kind == "count" or origin >= youngest - windows.lateness_ns:
            found.append((number, origin, payload))
        youngest = max(youngest, origin)
    return found


def check(query: Query, done: Simulation, world: Planned) -> Ran:
    """Every delivered result is the exact one of a window that closed."""
    ran = read(query, done)
    by_output = {f"out_{each.name}": each for each in query.windows}
    seen = set()
    for trial, delivery in world.delivered:
        windows = by_output[delivery.output]
        assert delivery.source == windows.name
        key = trial, delivery.output, delivery.seq
        assert key not in seen, "a result comes twice"
        seen.add(key)
        state = ran.ended[trial, windows.name][delivery.seq][0]
        assert state == records.WINDOW_CLOSED
        result = dict(delivery.payload)
        start, end = bounds(windows, result, delivery.seq)
        assert result == exact(query, windows, ran, trial, start, end), (key, start, end)
    for (trial, name), ended in ran.ended.items():
        numbers = sorted(ended.keys() | ran.opened[trial, name])
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "a window is left out"
    return ran


def bounds(windows: Windows, result: dict[str, Any], number: int) -> tuple[int, int]:
    """Takes a result's own bounds off it: positions, the last one not included."""
    assert result.pop("window") == number
    if windows.kind == "count":
        return result.pop("first"), result.pop("last") + 1
    start, end = result.pop("start_ns"), result.pop("end_ns")
    assert start == number * windows.hop * 1_000_000
    assert windows.kind == "sized" or end == start + windows.length * 1_000_000
    return start, end


def missing(query: Query, ran: Ran, world: Planned) -> list[tuple[int, str, int]]:
    """(trial, windows, number) of those that an admitted tuple lies in, are complete, and gave no result."""
    given = {(trial, each.output, each.payload["window"]) for trial, each in world.delivered}
    left = []
    for windows in query.windows:
        for trial in {trial for trial, _ in ran.origins}:
            for number in _complete(query, windows, ran, trial):
                if (trial, f"out_{windows.name}", number) not in given:
                    left.append((trial, windows.name, number))
    return left


def _complete(query: Query, windows: Windows, ran: Ran, trial: int) -> set[int]:
    if windows.kind == "count":  # window i holds the numbers from 1 + i times hop on
        (source,) = windows.sources
        last = len(ran.origins[trial, source.name])
        return {i for i in range(last) if i * windows.hop + windows.length <= last}
    hop, length = windows.hop * 1_000_000, windows.length * 1_000_000
    found: set[int] = set()
    for source in windows.sources:
        for _, origin, _ in _kept(query, source, windows, ran, trial):
            found.update(range((origin - length) // hop + 1, origin // hop + 1))
    return found


__all__ = ["check", "exact", "missing", "read"]
