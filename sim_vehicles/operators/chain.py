"""Runs a query's operators one after the other, without nodes, queues or time of their own.

For measurements and tests of what the operators compute: the operators, their parameters and the way they are called
are those of a node (`node_agent.operators.registry`), only placement, scheduling and links are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from node_agent.operators.registry import Registry
from node_agent.operators.signature import Bound
from node_agent.sdk import At, Many
from sim_vehicles.world.lane_network import LaneNetwork

# The same graph as queries/collision_warning.yaml, for programs that have no YAML reader; a test holds the two equal.
_EGO = {"ego": "O1"}
WARNING_QUERY: Mapping[str, Any] = {
    "sources": {
        "v2v": {"type": "vehicle.Cpm"},
        "sensor": {"type": "vehicle.Sensor"},
        "centre": {"type": "vehicle.Hazard"},
    },
    "operators": {
        "O1": {"run": "vehicle.localise", "in": "sensor"},
        "O2": {"run": "vehicle.decode", "in": "v2v"},
        "O3": {"run": "vehicle.closing", "in": "O2", "side": _EGO, "with": {"min_closing_mps": 0.5, "horizon_s": 8}},
        "O4": {"run": "vehicle.attach", "in": "O3", "side": _EGO},
        "O7": {"run": "vehicle.plane", "in": "O4"},
        "O8": {"run": "vehicle.extrapolate", "in": "O7"},
        "O9": {"run": "vehicle.lane", "in": "O8", "with": {"map": "crossing_50"}},
        "O10": {"run": "vehicle.gate", "in": "O9"},
        "O11": {"run": "vehicle.associate", "in": "O10"},
        "O12": {"run": "vehicle.filter", "in": "O11"},
        "O13": {"run": "vehicle.confirm", "in": "O12"},
        "O14": {"run": "vehicle.predict", "in": "O13", "with": {"horizon_s": 4, "step_s": 0.1}},
        "O15": {"run": "vehicle.zone", "in": "O14"},
        "O16": {"run": "vehicle.arrival", "in": "O15"},
        "O17": {"run": "vehicle.encroachment", "in": "O16"},
        "O18": {"run": "vehicle.deceleration", "in": "O17"},
        "O19": {"run": "vehicle.risk", "in": "O18"},
        "O20": {"run": "vehicle.hysteresis", "in": "O19"},
        "O21": {"run": "vehicle.warn", "in": "O20"},
        "O6": {"run": "vehicle.hazard", "in": "centre", "side": _EGO},
        "O5": {"run": "vehicle.advise", "in": "O6"},
    },
    "outputs": {"control": {"from": "O1"}, "warning": {"from": "O21"}, "advisory": {"from": "O5"}},
}
NO_DEADLINE_NS = 1 << 62  # `at.deadline_ns`, counted from the origin: nothing is dropped as too late here


@runtime_checkable
class OnRoads(Protocol):
    """An operator that uses a map."""

    def drive_on(self, network: LaneNetwork) -> None:
        """Takes a network of lanes in place of the map that its parameters name."""


class _Step(NamedTuple):
    name: str
    bound: Bound
    inputs: tuple[str, ...]
    sides: tuple[tuple[str, str], ...]  # (port, stream)


class Chain:
    """The operators of one query, with their state.

    query: `graph` of a plan.json, or anything of that shape: `operators` {name: {`run`, `in`: [stream] or stream,
    `side`: {port: stream}, `with`: {parameter: value}}}, `sources` {name: ...}, `outputs` {name: {`from`: stream}}.
    parameters: {operator: {parameter: value}}, instead of or beside those of the query (such as another map).
    clock_ns: with it the time of every call is added up in `spent_ns` and `calls`, by operator.
    network: lanes for every operator that uses a map (`OnRoads`), in place of what its parameter `map` names.

    Raises ValueError for a graph that cannot run here: an operator that reads a stream that nobody makes, a cycle,
    a join of several inputs by lineage (nothing of a lineage waits here). Raises OperatorError as a node would.
    """

    def __init__(
        self,
        query: Mapping[str, Any] = WARNING_QUERY,
        registry: Registry | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        clock_ns: Callable[[], int] | None = None,
        network: LaneNetwork | None = None,
    ) -> None:
        registry = Registry() if registry is None else registry
        operators: Mapping[str, Mapping[str, Any]] = query["operators"]
        given = dict(parameters or {})
        unknown = sorted(set(given) - set(operators))
        if unknown:
            raise ValueError(f"parameters for {unknown[0]!r}, which is no operator of the query")
        self.sources = tuple(query["sources"])
        self._outputs: dict[str, list[str]] = {}
        for name, output in query["outputs"].items():
            self._outputs.setdefault(output["from"], []).append(name)
        self._steps = [
            _step(registry, name, operators[name], given.get(name, {})) for name in _order(self.sources, operators)
        ]
        if network is not None:
            for user in (step.bound.instance for step in self._steps):
                if isinstance(user, OnRoads):
                    user.drive_on(network)
        self._read = {stream for step in self._steps for _, stream in step.sides}
        self._sides: dict[str, Any] = {}
        self._clock_ns = clock_ns
        self.spent_ns = dict.fromkeys(operators, 0)
        self.calls = dict.fromkeys(operators, 0)

    def admit(self, source: str, payload: Any, now_ns: int, origin_ns: int | tuple[int, int]) -> list[tuple[str, Any]]:
        """Run one tuple through everything that it triggers; what comes out: (output, payload), in the order made.

        now_ns: the instant at which every operator runs; origin_ns: when the tuple's content was true, or the interval
        (lo, hi) that holds it. Side inputs made by this tuple count from here on; an operator that reads one made by
        the same tuple gets the new value. What an operator raises goes to the caller.
        """
        if source not in self.sources:
            raise ValueError(f"no source {source!r}; the query has {', '.join(self.sources)}")
        origin = origin_ns if isinstance(origin_ns, tuple) else (origin_ns, origin_ns)
        at = At(now_ns, origin, origin[0] + NO_DEADLINE_NS)
        made: dict[str, list[Any]] = {source: [payload]}
        results = [(output, payload) for output in self._outputs.get(source, ())]
        self._keep(source, payload)
        for step in self._steps:
            for value in [value for stream in step.inputs for value in made.get(stream, ())]:
                for result in self._call(step, value, at):
                    made.setdefault(step.name, []).append(result)
                    self._keep(step.name, result)
                    results += [(output, result) for output in self._outputs.get(step.name, ())]
        return results

    def _keep(self, stream: str, value: Any) -> None:
        if stream in self._read:
            self._sides[stream] = value

    def _call(self, step: _Step, value: Any, at: At) -> Sequence[Any]:
        bound, clock_ns = step.bound, self._clock_ns
        sides = {port: self._sides.get(stream) for port, stream in step.sides}
        began_ns = clock_ns() if clock_ns else 0
        result = bound.call(value) if bound.plain else bound.call((value,), sides, at)
        if clock_ns:
            self.spent_ns[step.name] += clock_ns() - began_ns
            self.calls[step.name] += 1
        if isinstance(result, Many):
            return [each for each in result.values if each is not None]
        return () if result is None else (result,)


def _inputs(operator: Mapping[str, Any]) -> list[str]:
    given = operator["in"]
    return [given] if isinstance(given, str) else list(given)


def _step(registry: Registry, name: str, operator: Mapping[str, Any], parameters: Mapping[str, Any]) -> _Step:
    inputs = _inputs(operator)
    with_ = {**operator.get("with", {}), **parameters}
    bound = registry.make(operator["run"], json.dumps(with_), inputs)
    if bound.joins:
        raise ValueError(f"{name} joins {len(inputs)} inputs by lineage, which a chain without nodes does not do")
    return _Step(name, bound, tuple(inputs), tuple(operator.get("side", {}).items()))


def _order(sources: Sequence[str], operators: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Producers before consumers; among those, where that is possible, the producer of a side input before its reader
    (a side input is applied before a release at the same instant); else the order given."""
    known, left, order = set(sources), list(operators), list[str]()
    for name in left:
        for stream in (*_inputs(operators[name]), *operators[name].get("side", {}).values()):
            if stream not in known and stream not in operators:
                raise ValueError(f"{name} reads {stream!r}, which is neither a source nor an operator")
    while left:
        ready = [name for name in left if known.issuperset(_inputs(operators[name]))]
        if not ready:
            raise ValueError(f"{left[0]} reads what it leads to: the operators form a cycle")
        first = next((name for name in ready if known.issuperset(operators[name].get("side", {}).values())), ready[0])
        order.append(first)
        known.add(first)
        left.remove(first)
    return order
