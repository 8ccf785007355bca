"""What the coordinator makes of an expression is what an agent evaluates."""

from typing import Any

import pytest

from coordinator.spec.expressions import MessageFields, parse
from node_agent.core.shedding.utility import LEAST, compiled
from protos import vehicle_pb2
from protos.expressions import COUNTS, FUNCTIONS

CAR = {"speed": 4.0, "kind": "car", "braking": False, "lane": None, "car": {"speed": 3, "tags": [1]}, "dist": 8}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("speed", 4),
        ("speed > 3", 1),
        ("not braking and speed > 3 and kind == 'car'", 1),
        ("if(speed > 3 and kind == 'car', car.speed * 2, 1 / dist)", 6),
        ("1 / dist - -speed + 2 * 3 + 1", 11.125),
        ("1 + 2 + speed + (dist > 3)", 8),
        ("2 * 3 * dist", 48),
        ("min(speed, dist, 5) + max(1, car.speed) + abs(-2)", 9),
        ("lane == null", 1),
        ("lane != 'x' or unknown", 1),
        ("'a' < kind", 1),
        ("this.car.speed", 3),
        ("speed / (dist - 8)", LEAST),
        ("unknown", LEAST),
        ("if(braking, unknown, 2)", 2),
        ("kind + 1", LEAST),
        ("kind < 3", LEAST),
        ("car", LEAST),
        ("car.tags", LEAST),
        ("car.tags == 1", LEAST),
        ("lane + 1", LEAST),
        ("speed and braking", LEAST),
        ("car.speed.x", LEAST),
        ("kind.upper", LEAST),
        ("1e308 * 10", LEAST),
        ("1 / (1e308 * dist)", LEAST),
    ],
)
def test_values_of_json(text: str, value: float) -> None:
    assert compiled(parse(text))(CAR) == value


def test_values_of_messages() -> None:
    message = vehicle_pb2.Cpm(station=3)
    message.object.vx_cms = -5
    known = MessageFields(vehicle_pb2.Cpm.DESCRIPTOR)
    assert compiled(parse("abs(object.vx_cms) * 2 + station", known))(message) == 13
    assert compiled(parse("object.quality", known))(message) == 0  # not set: the default
    assert compiled(parse("station == 'x'"))(message) == 0
    for text in ("unknown", "DESCRIPTOR", "SerializeToString", "object", "ByteSize"):
        assert compiled(parse(text))(message) == LEAST


def test_every_operation_can_be_written() -> None:
    texts: dict[str, str] = {one: f"1 {one} 2" for one in COUNTS}
    texts |= {"neg": "-x", "not": "not x", "and": "x and y", "or": "x or y", "abs": "abs(x)", "if": "if(x, 1, 2)"}
    texts |= {name: f"{name}(1, 2)" for name in ("min", "max", "since")}
    for operation, text in texts.items():
        tree: Any = parse(text)
        assert tree[0] == operation
        compiled(tree)
    assert set(FUNCTIONS) < set(COUNTS)
