"""The chain: operators of a query run one after the other, called as a node calls them."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from node_agent.operators.registry import Registry
from protos.vehicle_pb2 import Cpm, Warning
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.operators.chain import NO_DEADLINE_NS, WARNING_QUERY, Chain
from sim_vehicles.readers.scenarios import load_scenario
from tests.sentences import Wording

SAID = Wording("operators", "chain")

QUERY = Path(__file__).resolve().parents[3] / "sim_vehicles" / "queries" / "collision_warning.yaml"
OPERATORS = """
from node_agent.sdk import At, Many, operator

@operator("t.twice", inputs={"n": "json"})
def twice(n: int) -> Many:
    return Many(n, None, n + 1)

@operator("t.odd", inputs={"n": "json"})
def odd(n: int) -> int | None:
    return n if n % 2 else None

@operator("t.with_side", inputs={"n": "json"}, side={"last": "json"})
class WithSide:
    def __init__(self, factor: int = 1) -> None:
        self.factor = factor
    def __call__(self, n: int, *, last: int | None, at: At) -> list:
        return [n * self.factor, last, at.now_ns, at.origin_ns, at.deadline_ns]
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    file = tmp_path / "chain_operators.py"
    file.write_text(OPERATORS)
    return Registry([file])


def graph(operators: dict[str, dict[str, Any]], outputs: dict[str, str]) -> dict[str, Any]:
    return {
        "sources": {"a": {}, "b": {}},
        "operators": operators,
        "outputs": {name: {"from": stream} for name, stream in outputs.items()},
    }


def test_the_constant_is_the_query_of_the_file() -> None:
    query = YAML(typ="safe").load(QUERY.read_text(encoding="utf-8"))
    kept = ("run", "in", "side", "with")
    assert {name: {"type": one["type"]} for name, one in query["sources"].items()} == WARNING_QUERY["sources"]
    operators = {name: {key: one[key] for key in kept if key in one} for name, one in query["operators"].items()}
    assert operators == WARNING_QUERY["operators"]
    assert {name: {"from": one["from"]} for name, one in query["outputs"].items()} == WARNING_QUERY["outputs"]


def test_none_ends_a_tuple_and_many_multiplies_it(registry: Registry) -> None:
    chain = Chain(
        graph({"T": {"run": "t.twice", "in": ["a"]}, "O": {"run": "t.odd", "in": "T"}}, {"all": "T", "odd": "O"}),
        registry,
    )
    assert chain.admit("a", 4, 0, 0) == [("all", 4), ("all", 5), ("odd", 5)]
    assert chain.admit("b", 4, 0, 0) == []


def test_a_side_input_triggers_nothing_and_is_none_before_its_first_value(registry: Registry) -> None:
    chain = Chain(
        graph({"W": {"run": "t.with_side", "in": "b", "side": {"last": "a"}, "with": {"factor": 3}}}, {"out": "W"}),
        registry,
        parameters={"W": {"factor": 2}},
    )
    assert chain.admit("b", 1, 7, 5) == [("out", [2, None, 7, (5, 5), 5 + NO_DEADLINE_NS])]
    assert chain.admit("a", 9, 8, 8) == []
    assert chain.admit("b", 1, 9, (3, 4)) == [("out", [2, 9, 9, (3, 4), 3 + NO_DEADLINE_NS])]


def test_a_side_input_of_the_same_tuple_comes_first(registry: Registry) -> None:
    chain = Chain(
        graph(
            {
                "W": {"run": "t.with_side", "in": "a", "side": {"last": "P"}},
                "P": {"run": "pass", "in": "a"},
            },
            {"out": "W"},
        ),
        registry,
    )
    assert [value[:2] for _, value in chain.admit("a", 5, 0, 0)] == [[5, 5]]


def test_a_union_takes_every_input_and_state_stays_between_tuples(registry: Registry) -> None:
    chain = Chain(
        graph({"U": {"run": "union", "in": ["a", "b"]}, "F": {"run": "filter", "in": "U"}}, {"out": "F", "raw": "b"}),
        registry,
    )
    got = [chain.admit(source, n, 0, 0) for n, source in enumerate("abab")]
    assert got == [[], [("raw", 1), ("out", 1)], [], [("raw", 3), ("out", 3)]]


def test_costs_are_added_up_by_operator(registry: Registry) -> None:
    ticks = count()
    chain = Chain(
        graph({"T": {"run": "t.twice", "in": "a"}, "O": {"run": "t.odd", "in": "T"}}, {}),
        registry,
        clock_ns=lambda: next(ticks),
    )
    chain.admit("a", 1, 0, 0)
    assert chain.calls == {"T": 1, "O": 2}
    assert chain.spent_ns == {"T": 1, "O": 2}


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        ({"X": {"run": "pass", "in": "nobody"}}, "nobody"),
        ({"X": {"run": "pass", "in": "Y"}, "Y": {"run": "pass", "in": "X"}}, "cycle"),
        ({"J": {"run": "join", "in": ["a", "b"]}}, "joins 2 inputs"),
    ],
)
def test_a_graph_that_cannot_run_is_refused(registry: Registry, operators: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Chain(graph(operators, {}), registry)


def test_what_a_node_refuses_is_refused(registry: Registry) -> None:
    with SAID.refuses("unknown_parameter speed"):
        Chain(graph({"W": {"run": "t.with_side", "in": "a", "with": {"speed": 2}}}, {}), registry)
    with pytest.raises(ValueError, match="no operator of the query"):
        Chain(graph({}, {}), registry, parameters={"W": {}})
    with pytest.raises(ValueError, match="no source"):
        Chain(graph({}, {}), registry).admit("c", 1, 0, 0)


# -- the whole query on the recorded crossings

MS = 1_000_000
LATENCY_NS = 200 * MS
FEEDS = (
    Feed("v2v", "a", "vehicle.Cpm", 20, 500 * MS),
    Feed("sensor", "a", "vehicle.Sensor", 10, 500 * MS),
    Feed("centre", "b", "vehicle.Hazard", 4, 500 * MS),
)
CONFIRMED = 10  # objectPerceptionQuality with which one measurement is enough for O13; two are enough in any case


@pytest.mark.parametrize("phase_ms", [0, 175])
@pytest.mark.parametrize("kmh", [30, 50, 70])
def test_the_crossing_vehicle_is_warned_of_from_the_first_burst_on_and_nobody_else(kmh: int, phase_ms: int) -> None:
    scenario = load_scenario(f"crossing_{kmh}")
    options = StimulusOptions(start_ns=7_000 * MS, until_ns=12_000 * MS, phase_ns=phase_ms * MS)
    inputs = Stimuli(FEEDS, scenario, options)
    chain = Chain(parameters={"O9": {"map": f"crossing_{kmh}"}})
    arriving = sorted(
        (
            (max(burst.at_ns, burst.at_ns - burst.age_ns + (LATENCY_NS if burst.source == "v2v" else 0)), burst)
            for burst in inputs.bursts()
        ),
        key=lambda one: one[0],
    )
    crossing = inputs.numbers["X"]
    heard_ns: int | None = None
    measured: set[tuple[int, int]] = set()
    about: list[tuple[int, Warning]] = []
    advices = 0
    for now_ns, burst in arriving:
        for value in burst.values:
            if isinstance(value, Cpm) and value.object.object_id == crossing:
                measured.add((value.station, value.generation_ms - value.object.measurement_delta_ms))
                if heard_ns is None and (value.object.quality >= CONFIRMED or len(measured) == 2):
                    heard_ns = now_ns
            for output, result in chain.admit(burst.source, value, now_ns, burst.at_ns - burst.age_ns):
                advices += output == "advisory"
                if output == "warning" and result.level:
                    about.append((now_ns, result))
    assert heard_ns is not None and about[0][0] == heard_ns
    assert {warning.object_id for _, warning in about} == {crossing}
    assert advices
