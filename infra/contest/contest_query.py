"""The collision warning as the contest's query: free to be placed, at a cost that makes the load, fed by stations.

The operators are those of `sim_vehicles/queries/collision_warning.yaml`, without its roads and without its places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sim_vehicles.contest.encounter_run import FEEDS

OPERATORS = Path(__file__).parents[2] / "sim_vehicles" / "queries" / "operators.json"
NODES = 2
SPAN_MS = 100
AGE_MS = 160  # of a measurement when it comes in: 100 ms as it is sent, 45 ms in the radio, and what is between
DEADLINE_S = 0.3  # of a warning
URGENCY = "if(closest_ms > 0, 1e9 / (1000 + closest_ms) / (90000 + closest_cm * closest_cm), 0)"  # soon, and close
VALUE = f"{URGENCY} * min(since(object.object_id), 1)"  # and not known already
CHAIN = {  # what a message about an object goes through, one after the other
    "O2": "vehicle.decode",
    "O3": "vehicle.closing, side: {ego: O1}, with: {min_closing_mps: 0.5, horizon_s: 8}",
    "O4": "vehicle.attach, side: {ego: O1}",
    "O7": "vehicle.plane",
    "O8": "vehicle.extrapolate",
    "O9": 'vehicle.lane, with: {map: ""}',
    "O10": "vehicle.gate",
    "O11": "vehicle.associate",
    "O12": "vehicle.filter",
    "O13": "vehicle.confirm",
    "O14": "vehicle.predict, with: {horizon_s: 4, step_s: 0.1}",
    "O15": "vehicle.zone",
    "O16": "vehicle.arrival",
    "O17": "vehicle.encroachment",
    "O18": "vehicle.deceleration",
    "O19": "vehicle.risk",
    "O20": "vehicle.hysteresis",
    "O21": "vehicle.warn",
}
OTHERS = {
    "O1": ("sensor", "vehicle.localise"),
    "O6": ("centre", "vehicle.hazard, side: {ego: O1}"),
    "O5": ("O6", "vehicle.advise"),
}
OUTPUTS = """outputs:
  control:  {from: O1,  at: a, deadline: 30 ms}
  warning:  {from: O21, at: b, deadline: 300 ms}
  advisory: {from: O5,  at: b, deadline: 3 s}"""


@dataclass(frozen=True)
class Traffic:
    """What the stations make of the query: V2V tuples per second, of each operator of the chain the tuples per tuple of
    its input that leave it, and the bytes that a V2V tuple takes of a queue, in the mean."""

    v2v_per_s: float
    passed: Mapping[str, float]
    queued_bytes: float


def cost_us(traffic: Traffic, load: float) -> float:
    """What an operator takes per tuple, so that all of them take `load` of both nodes."""
    per_s, all_per_s = traffic.v2v_per_s, 0.0
    for name in CHAIN:
        all_per_s += per_s
        per_s *= traffic.passed[name]
    fed = {feed.name: feed.n * 1e9 / feed.period_ns for feed in FEEDS}
    all_per_s += fed["sensor"] + 2 * fed["centre"]
    return load * NODES * 1e6 / all_per_s


def query(
    traffic: Traffic, load: float, per_span: int | None = None, worst_case: bool = False, drop_tail: bool = False
) -> str:
    """query.yaml. per_span: so many tuples of V2V come in within `SPAN_MS`, the most urgent first; None: all.
    worst_case: no operator is counted on to filter, and old news is refused. drop_tail: what comes of it while queues
    are full is shed."""
    limit = "" if per_span is None else f", max_rate: {{tuples: {per_span}, per: {SPAN_MS} ms}}, value: '{VALUE}'"
    passed = {} if worst_case else traffic.passed
    lines = ["shimekiri: 1", "query: collision_contest", "sources:"]
    for feed in FEEDS:
        arrival, age, more = f"burst: {feed.n}, period: {feed.period_ns // 1_000_000} ms", "10 ms", ""
        if feed.name == "v2v":
            arrival, age, more = f"rate: {traffic.v2v_per_s:.0f}", f"{AGE_MS} ms" if worst_case else "1 s", limit
            more += ", on_full: drop-tail" if drop_tail else ""
        lines.append(
            f"  {feed.name}: {{at: {feed.node}, type: {feed.type}, arrival: {{{arrival}}}, max_age: {age}{more}}}"
        )
    lines += ["operators:", *_operators(cost_us(traffic, load), passed), OUTPUTS]
    return "\n".join(lines) + "\n"


def bytes_within_deadline(traffic: Traffic, load: float) -> float:
    """What the V2V tuples that both nodes work on within the deadline of a warning take of a queue."""
    return DEADLINE_S * traffic.v2v_per_s / load * traffic.queued_bytes


def _operators(cost: float, passed: Mapping[str, float]) -> Iterator[str]:
    for stream, name in pairwise(("v2v", *CHAIN)):
        share = passed.get(name, 1.0)
        lets = f", selectivity: {{mean: {share:.3f}}}" if share < 1 else ""
        yield f"  {name}: {{in: {stream}, run: {CHAIN[name]}, cost: {cost:.0f} us{lets}}}"
    for name, (stream, run) in OTHERS.items():
        yield f"  {name}: {{in: {stream}, run: {run}, cost: {cost:.0f} us}}"


def cluster(queue_bytes: float | None = None) -> str:
    """cluster.yaml: two equal nodes in the ego. queue_bytes: of a node's queues; None: as many as tuples come."""
    memory = "256 MiB" if queue_bytes is None else f"{max(1, round(queue_bytes / 1024))} KiB"
    nodes = [
        f'  {name}: {{address: "127.0.0.1:{port}", memory: {memory}}}' for name, port in (("a", 7700), ("b", 7710))
    ]
    links = "links: [{between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}]"
    last = [links, f"operators: {OPERATORS}", "security: insecure-loopback"]
    return "\n".join(["shimekiri: 1", "nodes:", *nodes, *last]) + "\n"


__all__ = ["CHAIN", "OTHERS", "SPAN_MS", "Traffic", "bytes_within_deadline", "cluster", "cost_us", "query"]
