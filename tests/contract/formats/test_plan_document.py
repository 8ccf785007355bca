"""plan.json as typed objects: each plan of the corpus is read and written byte for byte, and damage is told by path."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest

from protos import json_shape, plan_document
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan_document import PlanFileError
from tests.seeds import seeds

PLANS = sorted((Path(__file__).parents[2] / "golden" / "corpus" / "plans").glob("*.json"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_what_is_read_is_written_byte_for_byte(path: Path) -> None:
    plan = plan_document.parse(path.read_bytes())
    assert plan.text() == path.read_text()
    assert plan_document.canonical(json.loads(path.read_text())) == plan.canonical()
    for node, local in plan.nodes.items():
        assert local.node == node


def test_values_have_names() -> None:
    plan = plan_document.parse((PLANS[0].parent / "windows.json").read_bytes())
    source, window = plan.graph.sources["left"], plan.graph.operators["pairs.add"].window
    assert (source.arrival.burst, source.arrival.tolerance_ns, source.limit is not None) == (1, 2_000_000, True)
    assert window is not None and window.on == ("id", "number")
    assert plan.graph.outputs["display"].origin == "shown" and plan.cluster.links[0].between == ("a", "b")


def somewhere(value: Any, dice: random.Random) -> tuple[Any, Any, str]:
    """A container of the document, a key or place in it, and the keys that lead to the container."""
    found: list[tuple[Any, Any, str]] = []

    def walk(each: Any, at: str) -> None:
        items = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for name, inner in items:
            found.append((each, name, at))
            walk(inner, f"{at}.{name}" if isinstance(each, dict) else f"{at}[{name}]")

    for part in ("graph", "cluster", "guarantee", "solver", "nodes"):
        found.append((value, part, ""))
        walk(value[part], part)
    return dice.choice(found)


@pytest.mark.parametrize("seed", seeds(range(60)))
def test_any_damage_is_an_error_that_says_where(seed: int) -> None:
    """A key is taken, doubled under another name, or its value is of another kind. Never another exception."""
    dice = random.Random(seed)
    values = json.loads(dice.choice(PLANS).read_text())
    container, name, path = somewhere(values, dice)
    before = copy.deepcopy(container[name])
    if isinstance(container, dict) and dice.random() < 0.5:
        del container[name]
    else:
        container[name] = dice.choice([None, [], {}, "x", -1.5, True, [[1]]])
    if (container.get(name, ...) if isinstance(container, dict) else container[name]) == before:
        return
    with pytest.raises(PlanFileError) as told:
        plan_document.of(values)
    assert told.value.path == "hash" or told.value.path.split(".")[0].split("[")[0] == (path or str(name)).split(".")[0]


@pytest.mark.parametrize(
    ("data", "code", "path"),
    [
        (b"", "not_json", ""), (b"[" * 100_000, "not_json", ""), (b"[]", "not_a_plan", ""), (b"{}", "not_a_plan", ""),
        (b'{"shimekiri": 7}', "other_version", "shimekiri"), (b'{"shimekiri": 1}', "not_a_plan", ""),
    ],
)  # fmt: skip
def test_what_is_no_plan(data: bytes, code: str, path: str) -> None:
    with pytest.raises(PlanFileError) as refused:
        plan_document.parse(data)
    assert (refused.value.code, refused.value.path) == (code, path)


@pytest.mark.parametrize("damage", [{"units": 3}, {"units": [3]}, {"unit": []}, 3, None, {"memory_bytes": "x"}])
def test_damage_of_a_node_s_part_says_whose(damage: Any) -> None:
    values = json.loads(PLANS[0].read_text())
    node = next(iter(values["nodes"]))
    values["nodes"][node] = damage
    with pytest.raises(PlanFileError) as told:
        plan_document.of(values)
    assert told.value.path == f"nodes.{node}"


def test_what_a_class_refuses_is_damage_as_well() -> None:
    values = json.loads(PLANS[0].read_text())
    node = next(iter(values["cluster"]["nodes"]))
    values["cluster"]["nodes"][node]["charges"] = {"decision_ns": 1, "drain_ns": -1, "side_ns": 1}
    with pytest.raises(PlanFileError) as told:
        plan_document.of(values)
    assert told.value.code == "not_a_plan" and told.value.path == f"cluster.nodes.{node}.charges"


def test_a_changed_plan_has_another_hash() -> None:
    values = json.loads(PLANS[0].read_text())
    values["graph"]["operators"][next(iter(values["graph"]["operators"]))]["cost_ns"] += 1
    with pytest.raises(PlanFileError, check=lambda error: error.code == "changed"):
        plan_document.of(values)


@dataclasses.dataclass(frozen=True)
class _Arrives:
    arrival: Arrival


ARRIVALS = [
    ({"kind": "burst", "burst": 2, "period_ns": 5, "tolerance_ns": 1}, BurstArrival),
    ({"kind": "jcp", "burst": 1, "period_ns": 5, "min_gap_ns": 0, "early_ns": 0, "late_ns": 0},
     JcpArrival),
    ({"kind": "rate", "rate_per_s": 5, "burst": 2}, RateArrival),
    ({"kind": "trace", "file": "f", "sha256": "a", "burst": 1, "tuples": 2, "span_ns": 9, "counts": [1],
      "spans_ns": [0]}, TraceArrival),
]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "shape"), ARRIVALS, ids=lambda each: each.get("kind") if isinstance(each, dict) else ""
)
def test_arrivals_are_of_their_kind(values: dict[str, Any], shape: type) -> None:
    found = json_shape.read(_Arrives, {"arrival": values}).arrival
    assert type(found) is shape and json.dumps(json_shape.write(found)) == json.dumps(values)
    with pytest.raises(json_shape.ShapeError) as told:
        json_shape.read(_Arrives, {"arrival": {**values, "kind": "sometimes"}})
    assert told.value.path.startswith("arrival")


def test_a_plan_whose_hash_is_not_looked_at_says_whether_it_is_as_it_was_made() -> None:
    values = json.loads(PLANS[0].read_text())
    assert plan_document.shaped(values).intact
    values["query"] += "s"
    assert not plan_document.shaped(values).intact
    values["query"] = "\ud800"  # has no bytes
    assert not plan_document.shaped(values).intact
