"""costs.yaml written: from measurements, merged with what a file had."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path

from coordinator import durable_files
from coordinator.errors import unwritable
from coordinator.fleet.profile.profiling import RESOLUTION, Profiled, speed
from coordinator.spec import overload_given
from coordinator.spec.files import schema
from coordinator.spec.files.costs_file import DEGRADED, MeasuredFile, OperatorCostsFile
from coordinator.units import exact
from protos.json_shape import Json
from protos.plan_document import Plan

Queries = dict[str, dict[str, OperatorCostsFile]]
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
HEAD = f"""\
# What operators cost, as 'coordinator profile' measured it; 'coordinator plan QUERY CLUSTER --costs costs.yaml' plans
# with it. CPU time of a call on that node, at its speed (cluster.yaml); without waiting, preemption and emulation.
# p99 is an upper bound, {RESOLUTION}; cv: standard deviation over mean; samples: calls that were
# measured, at most one instance in a millisecond; elapsed: mean by the clock. W.add is a tuple into the window of W,
# W the window's end; O.degraded what runs in place of O when tuples are late; a source: a call that makes its tuple.
# calls: [[at most so long, so many of the calls], ...], which bounds with a confidence ('guarantee:') count on.
# Another 'run', 'version' or 'with' than the query's: not used.
shimekiri: 1
costs:
"""


def measured(plan: Plan, found: Mapping[tuple[str, str], Profiled], rt: Mapping[str, bool], at: str) -> Queries:
    """Measurements of a plan by query, as its file calls the operators; what several queries share is in each of them.
    `at`: when, like 2026-01-31T12:00Z."""
    queries: Queries = {}
    for query, member in plan.queries.items():
        for (name, node), one in found.items():
            base = name.removesuffix(DEGRADED)
            if base not in member.operators and base not in member.sources:
                continue
            own = member.called.get(base, base) + name.removeprefix(base)
            entry = MeasuredFile.model_construct(
                mean=one.mean_ns,
                p99=one.p99_ns,
                worst=one.worst_ns,
                elapsed=one.elapsed_ns,
                cv=one.cv,
                samples=one.samples,
                speed=speed(plan, node),
                rt=rt.get(node, False),
                measured=at,
                plan=plan.hash[:8],
                calls=list(one.calls),
            )
            operators = queries.setdefault(query, {})
            if own not in operators:
                operators[own] = _what(plan, base, name != base)
            operators[own].on[node] = entry
    return queries


def _what(plan: Plan, name: str, degraded: bool) -> OperatorCostsFile:
    run, parameters = _run(plan, name, degraded)
    installed = plan.cluster.installed.operators.get(run)
    version = "1" if installed is None else installed.version
    return OperatorCostsFile.model_construct(run=run, version=version, with_=dict(parameters), on={})


def _run(plan: Plan, name: str, degraded: bool) -> tuple[str, Mapping[str, Json]]:
    """What is called, and its parameters."""
    source = plan.graph.sources.get(name)
    if source is not None and source.pull is not None:
        return source.pull.run, source.pull.parameters
    operator = plan.graph.operators[name]
    of = operator.on_late if degraded and operator.on_late is not None else operator
    return of.run, of.parameters


def merged(old: Mapping[str, Mapping[str, OperatorCostsFile]], new: Queries) -> Queries:
    """Both: calls of the same operator on the same node are taken together; where it is another one by now (`run`,
    `version`, `with`, a node's `speed`) the new one stands."""
    queries: Queries = {query: dict(operators) for query, operators in old.items()}
    for query, operators in new.items():
        there = queries.setdefault(query, {})
        for name, one in operators.items():
            before = there.get(name)
            if before is None or not _same(before, one):
                there[name] = one
                continue
            on = dict(before.on)
            for node, entry in one.on.items():
                had = on.get(node)
                on[node] = together(had, entry) if had is not None and had.speed == entry.speed else entry
            there[name] = one.model_copy(update={"on": on})
    return queries


def _same(one: OperatorCostsFile, other: OperatorCostsFile) -> bool:
    alike = one.run == other.run and one.version == other.version
    return alike and overload_given.plain(one.with_) == overload_given.plain(other.with_)


def together(one: MeasuredFile, other: MeasuredFile) -> MeasuredFile:
    """Calls of two measurements as one. The larger 99th percentile is an upper bound of that of both."""
    samples = one.samples + other.samples
    mean = (one.mean * one.samples + other.mean * other.samples) / samples
    squares = sum(each.samples * each.mean**2 * (1 + each.cv**2) for each in (one, other)) / samples
    elapsed = (one.elapsed * one.samples + other.elapsed * other.samples) / samples
    newer = max(one, other, key=lambda each: (each.measured, each.plan))
    worst = max(one.worst, other.worst)
    return newer.model_copy(
        update={
            "samples": samples,
            "mean": min(worst, ceil(mean)),
            "p99": max(one.p99, other.p99),
            "worst": worst,
            "elapsed": ceil(elapsed),
            "cv": round(sqrt(max(0.0, squares - mean * mean)) / mean, 4),
            "rt": one.rt and other.rt,
            "calls": _added(one.calls, other.calls),
        }
    )


def _added(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Both; nothing where either is not known."""
    if not one or not other:
        return []
    found = Counter(dict(one))
    found.update(dict(other))
    return sorted(found.items())


def text(queries: Mapping[str, Mapping[str, OperatorCostsFile]]) -> str:
    """The file."""
    lines = [f"# yaml-language-server: $schema={schema.path('costs').resolve().as_uri()}\n{HEAD}"]
    for query, operators in queries.items():
        lines.append(f"  {_quoted(query)}:\n")
        for name, one in operators.items():
            given = f"    with: {json.dumps(overload_given.plain(one.with_), allow_nan=False)}\n" if one.with_ else ""
            lines.append(f"    {_quoted(name)}:\n")
            lines.append(f"      run: {_quoted(one.run)}\n      version: {json.dumps(one.version)}\n")
            lines.append(f"  {given}" if given else "")
            lines.append("      on:\n")
            lines += [f"        {_quoted(node)}: {_entry(entry)}\n" for node, entry in one.on.items()]
    return "".join(lines)


def _entry(one: MeasuredFile) -> str:
    figures = ", ".join(f"{what}: {exact(getattr(one, what))}" for what in ("mean", "p99", "worst", "elapsed"))
    where = f"speed: {one.speed!r}, rt: {'true' if one.rt else 'false'}"
    calls = f", calls: [{', '.join(f'[{exact(ns)}, {n}]' for ns, n in one.calls)}]" if one.calls else ""
    return (
        f'{{{figures}, cv: {one.cv:.4f}, samples: {one.samples}, {where}, measured: "{one.measured}", '
        f'plan: "{one.plan}"{calls}}}'
    )


def _quoted(name: str) -> str:
    return name if PLAIN.fullmatch(name) and name.lower() not in WORDS else json.dumps(name)


def write(queries: Mapping[str, Mapping[str, OperatorCostsFile]], path: Path) -> None:
    """Durably, and a reader never sees half of it. Raises BadInputError where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable_files.replace(path, text(queries).encode())
    except OSError as error:
        raise unwritable(path, error) from error
