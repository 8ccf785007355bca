"""The collision warning as the contest's query: free to be placed, at a cost that makes the load, fed by stations.

The query is that of `sim_vehicles/queries/collision_warning.yaml` without its roads and without its places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from sim_vehicles.contest.encounter_run import FEEDS, WITHOUT_MAP

QUERIES = Path(__file__).parents[2] / "sim_vehicles" / "queries"
NODES = 2
SPAN_MS = 100
AGE_MS = 160  # of a measurement when it comes in: 100 ms as it is sent, 45 ms in the radio, and what is between
SHORT_QUEUE = "20 KiB"  # some 200 tuples: about what is worked on within 300 ms
URGENCY = "if(closest_ms > 0, 1e9 / (1000 + closest_ms) / (90000 + closest_cm * closest_cm), 0)"  # soon, and close
VALUE = f"{URGENCY} * min(since(object.object_id), 1)"  # and not known already


@dataclass(frozen=True)
class Traffic:
    """What the stations make of the query: V2V tuples per second, and of each operator the tuples per tuple of its
    input that leave it."""

    v2v_per_s: float
    passed: Mapping[str, float]


def cost_us(traffic: Traffic, load: float) -> float:
    """What an operator takes per tuple, so that all of them take `load` of both nodes."""
    return load * NODES * 1e6 / sum(_per_s(traffic).values())


def query(
    traffic: Traffic, load: float, per_span: int | None = None, worst_case: bool = False, drop_tail: bool = False
) -> str:
    """query.yaml. per_span: so many tuples of V2V come in within `SPAN_MS`, the most urgent first; None: all.
    worst_case: no operator is counted on to filter, and old news is refused. drop_tail: what comes while queues are
    full is shed."""
    made = _read(QUERIES / "collision_warning.yaml")
    made["query"] = "collision_contest"
    sources = made["sources"]
    for feed in FEEDS:
        arrival: dict[str, Any] = {"burst": feed.n, "period": f"{feed.period_ns // 1_000_000} ms"}
        sources[feed.name] = {"at": feed.node, "type": feed.type, "arrival": arrival, "max_age": "10 ms"}
    sources["v2v"]["arrival"] = {"rate": round(traffic.v2v_per_s)}
    sources["v2v"]["max_age"] = f"{AGE_MS} ms" if worst_case else "1 s"
    if per_span is not None:
        sources["v2v"] |= {"max_rate": {"tuples": per_span, "per": f"{SPAN_MS} ms"}, "value": VALUE}
    if drop_tail:
        for source in sources.values():
            source["on_full"] = "drop-tail"
    cost = f"{cost_us(traffic, load):.0f} us"
    for name, operator in made["operators"].items():
        operator.pop("nodes", None)
        operator.pop("selectivity", None)
        operator["cost"] = cost
        if name in WITHOUT_MAP:
            operator["with"] = {**operator["with"], **WITHOUT_MAP[name]}
        if not worst_case and traffic.passed[name] < 1:
            operator["selectivity"] = {"mean": round(traffic.passed[name], 3)}
    text = StringIO()
    YAML().dump(made, text)
    return text.getvalue()


def cluster(drop_tail: bool = False) -> str:
    """cluster.yaml: two equal nodes in the ego; drop_tail: with queues for what is worked on within the deadline."""
    made = _read(QUERIES / "cluster_paper.yaml")
    for node in made["nodes"].values():
        for key in ("policy", "emulate", "cpu"):
            del node[key]
        if drop_tail:
            node["memory"] = SHORT_QUEUE
    made["operators"] = str(QUERIES / "operators.json")
    text = StringIO()
    YAML().dump(made, text)
    return text.getvalue()


def _per_s(traffic: Traffic) -> dict[str, float]:
    """Tuples per second that each operator works on, if none is shed."""
    leave = {feed.name: feed.n * 1e9 / feed.period_ns for feed in FEEDS} | {"v2v": traffic.v2v_per_s}
    found: dict[str, float] = {}
    waiting = dict(_read(QUERIES / "collision_warning.yaml")["operators"])
    while waiting:
        ready = [name for name, operator in waiting.items() if operator["in"] in leave]
        for name in ready:
            found[name] = leave[waiting.pop(name)["in"]]
            leave[name] = found[name] * traffic.passed[name]
    return found


def _read(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as text:
        read: dict[str, Any] = YAML().load(text)
    return read


__all__ = ["SPAN_MS", "Traffic", "cluster", "cost_us", "query"]
