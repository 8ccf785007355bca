"""A bag through a query into a bag, and over zenoh, by a real agent."""

from pathlib import Path
from typing import Any

import zenoh
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from node_agent.connectors.mapping import mapping
from node_agent.operators.codecs import Codecs
from protos import plan_pb2, records
from tests.node_agent.connectors.zenoh_router import ZenohRouter, configuration
from tests.node_agent.live import Agent, chain_plan, free_ports, spooled, store, until

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPE, MS = "geometry_msgs/msg/PointStamped", 1_000_000
POINT = mapping(Codecs().get("json"), "cdr", TYPE)


CDR = {"encoding": "cdr", "schema": TYPE}
NAMES = ("bag", "robot", "secret")


def three_chains(sources: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> plan_pb2.LocalPlan:
    """source NAME -> operator O_NAME -> output NAME_out, for each name."""
    long_ns = 10 * 10**9
    names = [name for each in NAMES for name in (each, f"O_{each}")]
    return chain_plan(
        streams=[{"id": i, "name": name, "codec": "json", "deadline_ns": long_ns} for i, name in enumerate(names, 1)],
        sources=[
            {"id": i, "name": name, "stream": 2 * i - 1, "connector": {**CDR, **given}}
            for i, (name, given) in enumerate(zip(NAMES, sources, strict=True), 1)
        ],
        operators=[
            {"id": i, "name": f"O_{name}", "run": "pass", "inputs": [2 * i - 1], "output": 2 * i}
            for i, name in enumerate(NAMES, 1)
        ],
        units=[
            {"id": i, "operators": [i], "sub_deadline_ns": 10**9, "deadline_ns": long_ns, "exits": [2 * i]}
            for i in range(1, len(NAMES) + 1)
        ],
        outputs=[
            {"id": i, "name": f"{name}_out", "stream": 2 * i, "deadline_ns": long_ns, "connector": {**CDR, **given}}
            for i, (name, given) in enumerate(zip(NAMES, outputs, strict=True), 1)
        ],
    )


def point(x: float, at_ns: int) -> bytes:
    return POINT.encode({"header": {"stamp": {"sec": at_ns // 10**9, "nanosec": at_ns % 10**9}}, "point": {"x": x}})


def xs(path: Path) -> list[float]:
    with Reader(path) as bag:
        return [STORE.deserialize_cdr(data, TYPE).point.x for _, _, data in bag.messages()]


def bag(path: Path, count: int, gap_ms: int) -> None:
    """Points that are numbered; the second to last is damaged."""
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        points = writer.add_connection("/point", TYPE, typestore=STORE)
        for i in range(count):
            at_ns = 1_700_000_000 * 10**9 + i * gap_ms * MS
            writer.write(points, at_ns, b"\x00" if i == count - 2 else point(i, at_ns - 20 * MS))


def test_a_bag_zenoh_and_a_file_outside_beside_one_another(tmp_path: Path) -> None:
    """The bag goes into a bag with the ages that it recorded. The router is killed and starts again. A file outside is
    named in vain, and harms neither."""
    state = tmp_path / "a"
    (state / "recordings").mkdir(parents=True)
    bag(state / "recordings" / "run1", 30, 50)
    with ZenohRouter(free_ports(1)[0]) as router:
        zenoh_, bags = {"kind": "zenoh", "url": router.endpoint}, {"kind": "rosbag", "stamp": "header.stamp"}
        sources = [
            {**bags, "url": "run1", "topic": "/point"}, {**zenoh_, "topic": "robot/point"}, {**bags, "url": "../../x"}
        ]  # fmt: skip
        outputs = [
            {"kind": "rosbag", "url": "out"}, {**zenoh_, "topic": "robot/found"}, {"kind": "mcap", "url": "/x.mcap"}
        ]  # fmt: skip
        store(state, three_chains(sources, outputs))
        with Agent(state) as agent:
            answered(router, b"of no type")
            router.kill()
            until(lambda: "source robot" in gone(agent) and "output robot" in gone(agent))
            router.start()
            answered(router, b"")
            until(lambda: "there is no more to read" in agent.log.read_text())
            assert agent.stop() == 0
    log = agent.log.read_text()
    assert f"a message of /point is refused: no {TYPE} in CDR" in log
    assert f"a message of robot/point is refused: no {TYPE} in CDR" in log
    assert "connected again; what came meanwhile is lost" in log
    assert log.count("reads and writes recordings there and nowhere else") == 2
    assert xs(state / "recordings" / "out") == [float(i) for i in range(30) if i != 28]
    admitted = [each for each in spooled(state) if isinstance(each, records.Admitted) and each.source_id == 1]
    ages_ms = [(each.at_ns - each.origin_hi_ns) / MS for each in admitted]
    assert len(ages_ms) == 29
    assert all(20 <= age_ms < 60_000 for age_ms in ages_ms), "20 ms are recorded, and it was years ago"


def gone(agent: Agent) -> str:
    """What has lost its router, as the log says."""
    return "".join(line for line in agent.log.read_text().splitlines() if "has gone" in line)


def answered(router: ZenohRouter, frame: bytes) -> None:
    """Points are put until one comes back."""
    found = []
    with zenoh.open(configuration("client", router.endpoint)) as session:
        session.declare_subscriber("robot/found", found.append)

        def asked() -> bool:
            session.put("robot/point", point(7, 1))
            session.put("robot/point", frame)
            return bool(found)

        until(asked)
    assert POINT.decode(found[0].payload.to_bytes())["point"]["x"] == 7.0
