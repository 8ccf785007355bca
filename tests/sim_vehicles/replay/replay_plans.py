"""A small plan for replays: what comes by radio goes through one operator, which warns of one vehicle. One node."""

import json
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from protos import plan_pb2
from tests.whole_plans import whole

MS = 1_000_000
OPERATORS = '''
"""Warns of every message about one vehicle."""
from node_agent.sdk import operator
from protos.vehicle_pb2 import Warning

@operator("t.alarm", inputs={"v2v": "vehicle.Cpm"}, output="vehicle.Warning")
class Alarm:
    def __init__(self, about: int = 0):
        self.about = about

    def __call__(self, v2v, *, at):
        seen = v2v.object
        measured_ms = (v2v.generation_ms - seen.measurement_delta_ms) % 65536
        level = 2 if seen.object_id == self.about else 0
        return Warning(object_id=seen.object_id, station=v2v.station, measured_ms=measured_ms, level=level)
'''


def small_plan(about: int, warns: bool = True, cost_ns: int = MS) -> dict[str, Any]:
    """The document of plan.json. about: number of the vehicle that is warned of; warns False: no operator warns."""
    run, type_ = ("t.alarm", "vehicle.Warning") if warns else ("pass", "vehicle.Cpm")
    with_ = {"about": about} if warns else {}
    local = plan_pb2.LocalPlan(
        version=1, query="small", node="a", index=0, policy={"name": "edf", "largest_batch": 1},
        streams=[
            {"id": 1, "name": "v2v", "codec": "vehicle.Cpm", "deadline_ns": 300 * MS},
            {"id": 2, "name": "sensor", "codec": "vehicle.Sensor", "deadline_ns": 300 * MS},
            {"id": 3, "name": "W", "codec": type_, "deadline_ns": 300 * MS},
            {"id": 4, "name": "S", "codec": "vehicle.Sensor", "deadline_ns": 300 * MS},
        ],
        sources=[{"id": 1, "name": "v2v", "stream": 1}, {"id": 2, "name": "sensor", "stream": 2}],
        operators=[
            {"id": 1, "name": "W", "run": run, "with_json": json.dumps(with_), "inputs": [1], "output": 3},
            {"id": 2, "name": "S", "run": "pass", "with_json": "{}", "inputs": [2], "output": 4},
        ],
        units=[
            {"id": 1, "operators": [1], "sub_deadline_ns": 300 * MS, "deadline_ns": 300 * MS, "exits": [3]},
            {"id": 2, "operators": [2], "sub_deadline_ns": 300 * MS, "deadline_ns": 300 * MS, "exits": [4]},
        ],
        outputs=[
            {"id": 1, "name": "warning", "stream": 3, "deadline_ns": 300 * MS},
            {"id": 2, "name": "control", "stream": 4, "deadline_ns": 300 * MS},
        ],
        cpu=-1,
    )  # fmt: skip
    for one in local.operators:
        one.hang_ns, one.cost_ns = 1000 * MS, cost_ns

    def source(id_: int, type_: str, burst: int) -> dict[str, Any]:
        arrival = {"kind": "burst", "burst": burst, "period_ns": 500 * MS}
        return {"id": id_, "at": "a", "type": type_, "stream": id_, "max_age_ns": 1000 * MS, "arrival": arrival}

    def operator(id_: int, run: str, source: str) -> dict[str, Any]:
        return {
            "id": id_,
            "run": run,
            "in": [source],
            "side": {},
            "cost_ns": cost_ns,
            "selectivity": None,
            "join": False,
        }

    document = {
        "shimekiri": 1,
        "query": "small",
        "graph": {
            "sources": {"v2v": source(1, "vehicle.Cpm", 20), "sensor": source(2, "vehicle.Sensor", 10)},
            "operators": {"W": operator(1, run, "v2v"), "S": operator(2, "pass", "sensor")},
            "streams": {"W": {"id": 3, "type": type_}, "S": {"id": 4, "type": "vehicle.Sensor"}},
            "outputs": {
                "warning": {"id": 1, "from": "W", "at": "a", "deadline_ns": 300 * MS},
                "control": {"id": 2, "from": "S", "at": "a", "deadline_ns": 300 * MS},
            },
        },
        "placement": {"W": "a", "S": "a"},
        "cluster": {"nodes": {"a": {"index": 0, "speed": 1, "emulate_cost_ns": 0}}, "links": []},
        "nodes": {"a": json_format.MessageToDict(local, preserving_proto_field_name=True)},
    }
    return whole(document)


def write(folder: Path, plan: dict[str, Any], data: str = "127.0.0.1:2") -> Path:
    """plan.json, addresses.json (one node, at `data`) and operators.py; gives the path of plan.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "addresses.json").write_text(json.dumps({"nodes": {"a": {"control": "127.0.0.1:1", "data": data}}}))
    (folder / "operators.py").write_text(OPERATORS)
    return folder / "plan.json"
