"""In virtual time: sources and operators that break their promise, with and without policing."""

from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written
from tests.simulation.guarantees.test_guarantee_soundness import busy_plans
from tests.simulation.random_plans import registry

# `innocent` keeps its promise; `guilty` sends twice its burst, and `drop` passes everything instead of every other one.
QUERY = """
shimekiri: 1
query: broken
sources:
  innocent: {at: a, type: json, arrival: {burst: 1, period: 100 ms}, max_age: 1 ms}
  guilty:   {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
operators:
  calm: {run: pass, in: innocent, cost: 5 ms}
  drop: {run: pass, in: guilty, cost: 2 ms, selectivity: {mean: 0.5, at_most: [[2, 1]]}, nodes: [a]}
  dear: {run: pass, in: drop, cost: 8 ms, nodes: [b]}
  mark: {run: pass, in: guilty, cost: 1 ms, nodes: [b]}
  both: {run: join, in: [dear, mark], cost: 1 ms, nodes: [b]}
outputs:
  safe: {from: calm, at: a, deadline: 40 ms}
  late: {from: both, at: b, deadline: 90 ms}
"""


def plan(policed: bool = True) -> Plan:
    made = written(QUERY, cluster("ab", "{between: [a, b]}"), model="sound", charges=NOTHING)
    assert made.model == "sound" and all(each.guaranteed for each in made.guarantee.values())
    if not policed:
        for local in made.nodes.values():
            for source in local.sources:
                source.ClearField("paces")
            for operator in local.operators:
                operator.ClearField("at_most")
    return made


def over(made: Plan, done: Simulation) -> dict[str, int]:
    """By how much the slowest result of each output exceeds its bound from admission on, in ns."""
    bounds = {name: each.from_admission_ns or 0 for name, each in made.guarantee.items()}
    return {name: max(output.latencies_ns) - bounds[name] for name, output in done.outputs.items()}


BROKEN = Scenario(bursts=12, burst={"guilty": 8}, phase_ns={"guilty": MS})


def test_a_guarantee_stays_true_when_a_source_and_an_operator_break_their_promise(tmp_path: Path) -> None:
    free, held = plan(policed=False), plan()
    assert max(over(free, simulate(free, BROKEN, registry())).values()) > 0, "without policing a bound is exceeded"
    done = simulate(held, BROKEN, registry())
    assert max(over(held, done).values()) <= 0
    write_run(done, tmp_path / "run")
    told = verdict(read_run(tmp_path / "run")).document()
    books, outputs = told["conservation"], told["outputs"]
    assert books["balanced"] and books["admitted"] == books["accounted"] == done.admitted == 12 * 9
    # 48 of 96 come beyond the burst, at two consumers each; of the others every second one may pass.
    assert books["by_cause"] == {"shed(arrivals)": 96, "shed(selectivity)": 24}
    assert outputs["safe"]["met"] == 12 and outputs["safe"]["miss_ratio_hi"] == 0
    assert outputs["late"]["met"] == 24 and outputs["late"]["late"] == 0
    # An operator that is declared to pass every other tuple might have passed none of these.
    assert outputs["late"]["shed"] + outputs["late"]["shed_unsure"] == 72


def test_whoever_keeps_the_promise_is_not_shed(tmp_path: Path) -> None:
    made = written(
        QUERY.replace("drop: {run: pass", "drop: {run: filter, with: {keep: 1, of: 2}"),
        cluster("ab", "{between: [a, b]}"),
        model="sound",
        charges=NOTHING,
    )
    done = simulate(made, Scenario(bursts=30, phase_ns={"guilty": MS}), registry())
    write_run(done, tmp_path / "run")
    books = verdict(read_run(tmp_path / "run")).document()["conservation"]
    assert books["balanced"] and books["by_cause"] == {} and books["admitted"] == 150
    assert max(over(made, done).values()) <= 0


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(busy_plans(), st.integers(2, 12), st.lists(st.integers(0, 30), min_size=2, max_size=2), st.integers(0, 99))
def test_no_bound_is_exceeded_whatever_sources_send(drawn: Plan, times: int, phases: list[int], seed: int) -> None:
    """Several times what is declared, at every instant at which something may come."""
    analysis = analyse(read(drawn), NOTHING)
    told = claims(analysis)
    drawn = replace(drawn, nodes=policing.enforced(drawn, analysis)[0])
    sources = drawn.graph.sources
    phase_ns = {name: phases[i % 2] * MS for i, name in enumerate(sources)}
    burst = {name: times * source.arrival.burst for name, source in sources.items()}
    done = simulate(drawn, Scenario(bursts=8, seed=seed, phase_ns=phase_ns, burst=burst), registry())
    for name, output in done.outputs.items():
        bound_ns = told[name].from_admission_ns
        assert bound_ns is None or max(output.latencies_ns, default=0) <= bound_ns, name
