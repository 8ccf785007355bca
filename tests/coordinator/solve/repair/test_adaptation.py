"""The least change within declared ranges, beside every change of a grid, each planned from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import log
from pathlib import Path
from random import Random
from unittest import mock

import pytest

from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.solve import what_if
from coordinator.solve.repair.what_if_runs import Case, Outcome, outcome
from coordinator.solve.repair.within_ranges import adaptation, edited_files, ranged
from coordinator.solve.repair.within_ranges.adaptation import Adaptation, adapt, guaranteed
from coordinator.solve.repair.within_ranges.least_sum import CLOSE
from coordinator.spec import input_files
from tests.coordinator.solve.repair.infeasible_cases import CASES, ONE, WINDOW, cluster, query
from tests.sampling import sample

SECONDS = 3600.0  # no test is by the clock
MS = 10**6


def _case(folder: Path, text: str, nodes: str, options: tuple[str, ...] = ()) -> Case:
    queries, clusters = folder / "query.yaml", folder / "cluster.yaml"
    queries.write_text(text)
    clusters.write_text(nodes)
    return Case(*what_if.load(queries, clusters, options), Choices(quick=True))


def _adapted(case: Case) -> Adaptation:
    return adapt(case, ranged.adjustables(case), SECONDS)


def _with(text: str, *ranges: str) -> str:
    return "\n".join([text.rstrip(), "may_change:", *(f"  {one}" for one in ranges), ""])


def _check_written(folder: Path, case: Case, found: Adaptation) -> None:
    """The files as they are written make the case that was planned."""
    assert found.within is not None
    for one in edited_files.edited(case, found.within.edits):
        one.path.write_bytes(one.data)
    query_, cluster_, types = input_files.read_files(folder / "query.yaml", folder / "cluster.yaml")
    assert cluster_ is not None
    assert guaranteed(outcome(Case(query_, cluster_, types, Choices())))


def test_what_holds_is_not_changed_where_the_first_plan_of_it_is_not_found_in_time(tmp_path: Path) -> None:
    text = _with(query(ONE), "outputs.x.deadline: 50 ms..1 s")
    case = _case(tmp_path, text, cluster())
    assert guaranteed(outcome(case))
    plans = iter([Outcome(None, undecided=True)])
    with mock.patch.object(adaptation, "outcome", lambda given: next(plans, None) or outcome(given)):
        found = _adapted(case)
    assert found.is_guaranteed and found.within is None


# -- oracle

Grid = Mapping[str, tuple[float, ...]]  # values by key, the one that is declared first


def _least(folder: Path, text: str, nodes: str, grid: Grid, units: Mapping[str, str]) -> tuple[int, float] | None:
    """How many values change and by how much, of the least change on the grid; None: none of them holds."""
    best: tuple[int, float] | None = None
    for values in product(*grid.values()):
        pairs = list(zip(grid, values, strict=True))
        changed = [(key, value) for key, value in pairs if value != grid[key][0]]
        size = len(changed), sum(abs(log(value / grid[key][0])) for key, value in changed)
        if best is not None and size >= best:
            continue
        options = tuple(f"{key}={value:g}{units[key]}" for key, value in changed)
        if guaranteed(outcome(_case(folder, text, nodes, options))):
            best = size
    return best


def _drawn(random: Random) -> tuple[str, str, Grid, dict[str, str]]:
    """A query of one or two operators on a node, which does not hold, and what may change of it."""
    burst, cost = random.randint(3, 6), random.choice((3, 5, 8))
    operators = f"  X: {{run: pass, in: s, cost: {cost} ms}}"
    if random.random() < 0.5:
        operators += "\n  Y: {run: pass, in: s, cost: 2 ms}"
    deadline = int(burst * cost * random.uniform(0.55, 0.95))
    text = query(
        operators,
        f"{{from: X, at: a, deadline: {deadline} ms}}"
        + ("\n  y: {from: Y, at: a, deadline: 80 ms}" * ("Y" in operators)),
        f"at: a, type: json, arrival: {{burst: {burst}, period: 200 ms}}, max_age: 1 ms",
    )
    far = random.uniform(1.02, 1.9)
    steps = sorted({round(deadline * (1 + (far - 1) * part / 6)) for part in range(7)} - {deadline})
    grid: dict[str, tuple[float, ...]] = {
        "outputs.x.deadline": (deadline, *steps),
        "sources.s.arrival.burst": tuple(range(burst, random.randint(1, burst - 1) - 1, -1)),
        "operators.X.cost": (cost, *(cost - 0.5 * part for part in range(1, random.randint(2, 4)))),
    }
    units = {"outputs.x.deadline": " ms", "sources.s.arrival.burst": "", "operators.X.cost": " ms"}
    chosen = random.sample(list(grid), random.randint(2, 3))
    return text, cluster(), {key: grid[key] for key in chosen}, units


@pytest.mark.parametrize("number", sample(range(24), 24))
def test_nothing_on_a_grid_within_the_ranges_changes_less(number: int, tmp_path: Path, seed: int) -> None:
    """Fewest values first; then the sum of the logarithms is within what is close. Where nothing is found nothing on
    the grid holds."""
    text, nodes, grid, units = _drawn(Random(f"{seed} {number}"))
    ranges = [f"{key}: {min(values):g}..{max(values):g}{units[key]}" for key, values in grid.items()]
    written = _with(text, *ranges)
    case = _case(tmp_path, written, nodes)
    found = _adapted(case)
    least = _least(tmp_path, written, nodes, grid, units)
    if found.is_guaranteed:
        assert least == (0, 0.0)
    elif found.within is None:
        assert least is None or not found.decided, (ranges, least)
    else:
        assert least is not None or found.within.settled  # between the points of the grid
        if least is not None:
            assert len(found.within.changes) <= least[0]
            if len(found.within.changes) == least[0]:
                assert found.within.size <= least[1] + CLOSE, (ranges, found.within.text)
        _case(tmp_path, written, nodes)
        _check_written(tmp_path, case, found)
        _check_in_ranges(case, found)


def _check_in_ranges(case: Case, found: Adaptation) -> None:
    """Each value is within its range, as the changed file is read again."""
    assert found.within is not None
    known = {one.key: one for one in (*case.query.ranges, *case.cluster.ranges)}
    assert {edit.key for edit in found.within.edits} <= known.keys()


def test_one_step_less_of_any_value_does_not_hold(tmp_path: Path) -> None:
    """Neither value alone is enough."""
    text = _with(
        query("  X: {run: pass, in: s, cost: 20 ms}"), "outputs.x.deadline: 50..80 ms", "operators.X.cost: 15..20 ms"
    )
    case = _case(tmp_path, text, cluster())
    found = _adapted(case).within
    assert found is not None and found.settled and len(found.changes) == 2
    deadline, cost = (edit.after for edit in found.edits)
    for less in (
        (f"{float(deadline.split()[0]) - 0.02:g} ms", cost),
        (deadline, f"{float(cost.split()[0]) + 0.03:g} ms"),
    ):
        options = (f"outputs.x.deadline={less[0]}", f"operators.X.cost={less[1]}")
        assert not guaranteed(outcome(_case(tmp_path, text, cluster(), options))), options


# -- each kind of value

RANGES = {
    "deadline": "outputs.x.deadline: 50..200 ms",
    "cost": "operators.X.cost: 1..30 ms",
    "chain": "operators.X1..X3.cost: 1..5 ms",
    "burst": "sources.s.arrival.burst: 10..60",
    "every": "sources.s.every: 10..100 ms",
    "size": "sources.s.max_size: 1..512 KiB",
    "output wait": "outputs.x.wait: 2..100 ms",
    "throughput": "outputs.x.throughput: 1..500",
    "output queue": "outputs.x.queue: 3..100 KiB",
    "operator memory": "operators.X.memory: 10..100 MiB",
    "max_age": "sources.s.max_age: 1..48 ms",
    "no max_age": "sources.s.max_age: 1..5 ms",
    "window close": "operators.X.window.close: 1..80 ms",
    "window hop": "operators.X.window.hop: 10..100 ms",
    "fusion timeout": "operators.X.sync.timeout: 1..60 ms",
}
CLUSTER_RANGES = {
    "speed": "nodes.a.speed: 1..10",
    "emulate": "nodes.a.emulate.cost_per_tuple: 1..15 ms",
    "cap": "nodes.a.cap: 0.05..0.9",
    "batch": "nodes.a.policy.batch: 1..8",
    "node memory": "nodes.a.memory: 64..200 MiB",
    "bandwidth": "links.a-b.bandwidth: 10..100000 kbit/s",
    "latency": "links.a-b.latency: 1..60 ms",
}


@pytest.mark.parametrize("name", sample({**RANGES, **CLUSTER_RANGES}, 6))
def test_a_value_of_each_kind_is_changed_within_its_range(name: str, tmp_path: Path) -> None:
    written = CASES[name]
    text = _with(written.query, RANGES[name]) if name in RANGES else written.query
    nodes = _with(written.cluster, CLUSTER_RANGES[name]) if name in CLUSTER_RANGES else written.cluster
    case = _case(tmp_path, text, nodes)
    found = _adapted(case)
    assert found.within is not None and len(found.within.changes) == 1, name
    assert written.key in found.within.edits[0].key
    _check_written(tmp_path, case, found)


OTHER = {
    "max_rate": (
        query(
            ONE.replace("1 ms", "20 ms"),
            source="at: a, type: json, arrival: {burst: 4, period: 1 s}, max_rate: 4, max_age: 1 ms",
        ),
        cluster(),
        "sources.s.max_rate: 1..4",
    ),
    "period": (
        query(ONE.replace("1 ms", "30 ms"), "{from: X, at: a, deadline: 200 ms}"),
        cluster(),
        "sources.s.arrival.period: 100..300 ms",
    ),
    "rate": (
        query(ONE.replace("1 ms", "30 ms"), source="at: a, type: json, arrival: {rate: 50}, max_age: 1 ms"),
        cluster(),
        "sources.s.arrival.rate: 10..50",
    ),
    "jcp": (
        query(
            ONE.replace("1 ms", "20 ms"),
            source="at: a, type: json, arrival: {jcp: {period: 50 ms, late: 120 ms}}, max_age: 1 ms",
        ),
        cluster(),
        "sources.s.arrival.jcp.late: 0..120 ms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sample(OTHER, 3))
def test_what_only_a_range_may_change(name: str, tmp_path: Path) -> None:
    text, nodes, one = OTHER[name]
    case = _case(tmp_path, _with(text, one), nodes)
    found = _adapted(case)
    assert found.within is not None, found.now
    _check_written(tmp_path, case, found)


def test_windows_wait_less_within_a_range(tmp_path: Path) -> None:
    """A number that a candidate of explain changes as well; without a value of its own the wait is a second."""
    case = _case(tmp_path, _with(query(WINDOW % "time: 100 ms"), "operators.X.window.wait: 0.01..1 s"), cluster())
    ((one,),) = (value.remedies for value in ranged.adjustables(case))
    assert one.change(case, one.utmost).edits[0].line == "operators.X.window.wait: 10 ms"


# -- where nothing within helps


def test_the_nearest_change_beyond_the_ranges_is_named(tmp_path: Path) -> None:
    text = _with(CASES["deadline"].query, "outputs.x.deadline: 50..60 ms")
    case = _case(tmp_path, text, CASES["deadline"].cluster)
    found = _adapted(case)
    assert found.within is None and found.decided
    assert [edit.key for edit in found.outside[0].edits] == ["outputs.x.deadline"]


def test_without_time_nothing_is_said_to_be_of_no_use(tmp_path: Path) -> None:
    text = _with(CASES["deadline"].query, "outputs.x.deadline: 50..200 ms")
    case = _case(tmp_path, text, CASES["deadline"].cluster)
    found = adapt(case, ranged.adjustables(case), 0.0)
    assert found.within is None and not found.decided and not found.outside


def _refused(folder: Path, text: str, nodes: str) -> Iterator[tuple[str, str]]:
    with pytest.raises(BadInputError) as raised:
        ranged.adjustables(_case(folder, text, nodes))
    return ((problem.mistake.code, problem.subject) for problem in raised.value.problems)


def test_a_range_of_a_value_that_is_not_there_is_refused(tmp_path: Path) -> None:
    text = _with(CASES["deadline"].query, "outputs.x.wait: 1..2 s", "sources.s.max_rate: 1..2")
    assert list(_refused(tmp_path, text, cluster())) == [
        ("nothing_to_change", "outputs.x.wait"),
        ("nothing_to_change", "sources.s.max_rate"),
    ]


def test_a_value_that_is_not_written_is_compared_with_its_range_too(tmp_path: Path) -> None:
    text = CASES["deadline"].query
    nodes = _with(cluster(), "nodes.a.cap: 0.5..0.6")
    assert list(_refused(tmp_path, text, nodes)) == [("value_outside_range", "nodes.a.cap")]


def test_values_of_both_files_change_together(tmp_path: Path) -> None:
    """A link in the cluster and a deadline in the query."""
    text = _with(CASES["latency"].query, "outputs.x.deadline: 50..60 ms")
    nodes = _with(CASES["latency"].cluster, "links.a-b.latency: 48..60 ms")
    case = _case(tmp_path, text, nodes)
    found = _adapted(case)
    assert found.within is not None and {edit.file for edit in found.within.edits} == {"query", "cluster"}
    _check_written(tmp_path, case, found)
