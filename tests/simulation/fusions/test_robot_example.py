"""The robot of coordinator/examples: guaranteed as it is shipped, and steered by what is there."""

import json
from pathlib import Path

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from node_agent.virtual.run import operators_here, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer

EXAMPLE = Path(__file__).resolve().parents[3] / "coordinator" / "examples" / "robot"
MS = 1_000_000
PERIODS = {"camera": 50 * MS, "lidar": 100 * MS, "odometry": 20 * MS}


class Corridor:
    """What the example's files hold, each source in its period; odometry ends before the others."""

    def __init__(self) -> None:
        self.steered: list[dict[str, object]] = []

    def begin(self, trial: int) -> list[Admission]:
        found = []
        for name, period_ns in PERIODS.items():
            lines = (EXAMPLE / f"{name}.jsonl").read_text().splitlines()
            for number, line in enumerate(lines[:50] if name == "odometry" else lines):
                found.append(Admission(number * period_ns, name, (Offer(json.loads(line)),)))
        return sorted(found, key=lambda each: each.at_ns)

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> None:
        self.steered.append(delivery.payload)


def test_the_robot_is_guaranteed_and_steers_only_with_a_fresh_pose(tmp_path: Path) -> None:
    operators = operators_here([EXAMPLE / "operators.py"])
    for name in ("query.yaml", "cluster.yaml"):
        (tmp_path / name).write_text((EXAMPLE / name).read_text())
    (tmp_path / "operators.json").write_text(json.dumps(operators.describe()))
    plan = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", Choices(model="sound"))
    claim = plan.guarantee["wheels"]
    assert claim.guaranteed and claim.missing == (
        "steer sheds a tuple while its side input pose has no value of at most 100 ms",
    )
    assert claim.is_fresh and (claim.age_ns, claim.reaction_ns) == (200 * MS, 300 * MS)
    assert {(path.of, path.source) for path in claim.data_paths} == {
        (of, source) for of in ("age", "reaction") for source in PERIODS
    }
    assert audit(plan) == []
    world = Corridor()
    done = simulate(plan, Scenario(), operators, world)
    assert not done.failures and {each["sure"] for each in world.steered} == {True, False}
    assert 15 < len(world.steered) < 35 and done.shed["stale"] > 5  # for a second, then without a pose
