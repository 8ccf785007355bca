"""Plans of model `sound` in virtual time: no output is ever later than its claim says."""

from pathlib import Path

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from tests.coordinator.solve.guaranteed.sound_graphs import texts
from tests.sampling import sample
from tests.seeds import seeds

MS = 1_000_000


@pytest.mark.parametrize("seed", sample(seeds(range(100, 125)), 3))
def test_no_run_exceeds_its_claims(seed: int, tmp_path: Path) -> None:
    query, cluster = texts(seed)
    (tmp_path / "query.yaml").write_text(query)
    (tmp_path / "cluster.yaml").write_text(cluster)
    choices = Choices(model="sound", charges=NOTHING, quick=True)
    try:
        plan = planner.make_plan(tmp_path / "query.yaml", tmp_path / "cluster.yaml", choices)
    except InfeasibleError:
        return  # nothing is claimed
    for phases in ({}, {"s1": 1}, {"s2": 1}, {"s1": 3 * MS}, {"s2": 7 * MS}):
        done = simulate(plan, Scenario(bursts=3, phase_ns=phases), trace=False)
        for name, output in done.outputs.items():
            allowed = plan.guarantee[name].from_admission_ns
            if allowed is not None:
                assert max(output.latencies_ns, default=0) <= allowed, f"seed {seed}, {phases}: {name}"
