"""costs.yaml: read, refused, merged, taken by plans; costs that nobody wrote."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt, ulp
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.errors import BadInputError
from coordinator.explain import cost_lines
from coordinator.fleet.profile import profile_file, profiling
from coordinator.model.choices import Choices
from coordinator.plan import reopen
from coordinator.solve import planner, what_if
from coordinator.spec import costs, input_files
from coordinator.spec.files.costs_file import MeasuredFile, OperatorCostsFile
from coordinator.spec.query import GUESS_NS
from node_agent.runtime.deployments.cost_meter import Cost
from protos import agent_pb2, plan_document
from protos.plan.costs import CostOrigin
from protos.plan_document import Plan
from tests.coordinator.wording import Wording, facts, mended, printed
from tests.whole_plans import whole

WORDING = Wording("plan", "--costs")
QUERY = """\
shimekiri: 1
query: belt
sources:
  items: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 50 ms}
operators:
  clean: {run: pass, in: items, cost: 1 ms}
  sort:  {run: busy, in: clean, with: {cpu_us: 500}, on_late: {degrade: {run: pass, cost: 100 us}}, cost: 2 ms}
  count: {run: aggregate, in: clean, cost: 50 us, with: {n: count}, window: {time: 1 s, close: 100 us}}
outputs:
  out: {from: sort, at: b, deadline: 200 ms}
  sum: {from: count, at: a, deadline: 500 ms}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", speed: 2}
  b: {address: "127.0.0.1:7710"}
"""
COSTS = """\
shimekiri: 1
costs:
  belt:
    clean:
      run: pass
      on:
        a: {mean: 10 us, p99: 20 us, worst: 30 us, elapsed: 12 us, cv: 0.5, samples: 500, speed: 2.0,
            measured: "2026-01-02T03:04Z", plan: "0123abcd"}
        b: {mean: 10 us, p99: 20 us, worst: 50 us, elapsed: 12 us, cv: 0.5, samples: 90,
            measured: "2026-01-02T03:05Z", plan: "0123abcd"}
    sort:
      run: busy
      with: {cpu_us: 500}
      on:
        b: {mean: 510 us, p99: 550 us, worst: 600 us, elapsed: 520 us, cv: 0.1, samples: 500,
            measured: "2026-01-03T03:04Z", plan: "0123abcd"}
"""
Files = Callable[[str, str], tuple[Path, Path]]
RUN = CliRunner()


@pytest.fixture(autouse=True, scope="module")
def _commands() -> None:
    app.register()


def planned(files: Files, text: str = COSTS, query: str = QUERY, **use: Any) -> Plan:
    paths = files(query, CLUSTER)
    path = paths[0].with_name("costs.yaml")
    path.write_text(text)
    loaded, cluster, types = input_files.read_files(*paths, measured=costs.load(path, costs.Use(**use)))
    assert cluster is not None
    return planner.plan(loaded, cluster, types, Choices())


def test_a_plan_takes_the_worst_of_all_nodes_at_speed_1_and_a_margin(files: Files) -> None:
    made = planned(files)
    operators = made.graph.operators
    assert operators["clean"].cost_ns == 72_000, "30 us at speed 2 are 60 us, more than b's 50 us; times 1.2"
    assert operators["sort"].cost_ns == 720_000 and operators["count.add"].cost_ns == 50_000
    assert made.costs is not None
    assert replace(made.costs["clean"], why="") == CostOrigin(
        kind="measured", declared_ns=1_000_000, file="costs.yaml", of="worst", margin="1.2",
        samples=90, nodes=("a", "b"), measured="2026-01-02T03:05Z",
    )  # fmt: skip
    assert set(made.costs) == {"clean", "sort"}
    told = cost_lines.lines(made)
    assert told[0].startswith("costs: 2 of 4 measured (costs.yaml, 2026-01-02 to 2026-01-03; worst times 1.2); 2 as ")
    assert told[1:] == ["measured in fewer than 100 calls, too few to trust: clean"]
    slower = planned(files, of="p99", margin=Fraction(1))
    assert slower.graph.operators["clean"].cost_ns == 40_000
    assert any("p99" in line for line in cost_lines.lines(slower))
    assert cost_lines.on_guesses(slower) == ", if no call takes longer than p99 with the margin"
    assert cost_lines.on_guesses(made) == ""
    assert (made.guarantee["out"].bound_ns or 0) > (slower.guarantee["out"].bound_ns or 0) > 0, "bounds follow"


def test_a_plan_made_of_a_plan_knows_where_costs_come_from(files: Files, tmp_path: Path) -> None:
    made = planned(files)
    again = planner.plan(*reopen.inputs(made, tmp_path / "plan.json"))
    assert again.costs == made.costs and again.guarantee == made.guarantee


def test_what_was_measured_of_something_else_is_not_used(files: Files) -> None:
    made = planned(files, query=QUERY.replace("cpu_us: 500", "cpu_us: 700"))
    assert made.graph.operators["sort"].cost_ns == 2_000_000
    assert "the measured cost of sort is not used: measured with other parameters" in cost_lines.lines(made)
    made = planned(files, COSTS.replace("run: pass", "run: pass\n      version: '2'"))
    assert any("measured was version 2, installed is 1" in line for line in cost_lines.lines(made))


def test_a_cost_that_is_asked_what_if_of_is_not_the_measured_one(files: Files) -> None:
    planned(files)
    paths = files(QUERY, CLUSTER)
    measured = costs.load(paths[0].with_name("costs.yaml"))
    query, _, _ = what_if.load(*paths, ["clean.cost=3 ms"], measured=measured)
    by_name = {one.name: one for one in query.operators}
    assert (by_name["clean"].cost_ns, by_name["sort"].cost_ns) == (3_000_000, 720_000)


def _of_parts() -> str:
    """Costs also of a window, and of what runs in place of `sort`."""
    part = COSTS[COSTS.index("      run: pass") : COSTS.index("    sort:")]
    window = part.replace("run: pass", "run: aggregate\n      with: {n: count}")
    return COSTS + f"    sort.degraded:\n{part}    count.add:\n{window}    count:\n{window}"


def test_a_window_and_what_runs_in_place_of_the_late_have_costs_of_their_own(files: Files) -> None:
    operators = planned(files, _of_parts()).graph.operators
    late = operators["sort"].on_late
    assert late is not None and late.cost_ns == 72_000
    assert operators["count.add"].cost_ns == operators["count"].cost_ns == 72_000


@pytest.mark.parametrize(
    ("change", "costs_ns"),
    [
        ("count.cost=3 ms", (3_000_000, 100_000, 72_000)),
        ("count.window.close=3 ms", (72_000, 3_000_000, 72_000)),
        ("count.window={time: 2 s, close: 3 ms}", (72_000, 3_000_000, 72_000)),
        ("count.window.time=2 s", (72_000, 72_000, 72_000)),
        ("sort.on_late.degrade.cost=300 us", (72_000, 72_000, 300_000)),
        ("sort.cost=5 ms", (72_000, 72_000, 72_000)),
    ],
)
def test_a_part_of_a_cost_that_is_asked_what_if_of(files: Files, change: str, costs_ns: tuple[int, int, int]) -> None:
    planned(files, _of_parts())
    paths = files(QUERY, CLUSTER)
    measured = costs.load(paths[0].with_name("costs.yaml"))
    query, _, _ = what_if.load(*paths, [change], measured=measured)
    by_name = {one.name: one for one in query.operators}
    assert (late := by_name["sort"].on_late) is not None
    assert (by_name["count.add"].cost_ns, by_name["count"].cost_ns, late.cost_ns) == costs_ns


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "subject"),
    [
        ("    sort:", "    sotr:", 11, "unknown_measured_operator", "costs.belt.sotr"),
        ("    sort:", "    sort.late:", 11, "bad_name", "costs.belt.sort.late"),
        ("  belt:", "  blet:", 2, "query_not_measured", "costs"),
        ("worst: 600 us", "worst: 5 us", 15, "worst_below_mean", "costs.belt.sort.on.b"),
        ("cv: 0.1", "cv: .nan", 15, "not_finite", "costs.belt.sort.on.b.cv"),
        ("cv: 0.1", "cv: -1", 15, "out_of_range", "costs.belt.sort.on.b.cv"),
        ("samples: 90,", "samples: 0,", 9, "out_of_range", "costs.belt.clean.on.b.samples"),
        ("speed: 2.0", "speed: 0", 7, "out_of_range", "costs.belt.clean.on.a.speed"),
        ("mean: 510 us", "mean: 510", 15, "missing_unit", "costs.belt.sort.on.b.mean"),
        ("mean: 510 us", "maen: 510 us", 15, "unknown_key", "costs.belt.sort.on.b.maen"),
        ("mean: 510 us, ", "", 15, "missing_key", "costs.belt.sort.on.b.mean"),
        ("2026-01-03T03:04Z", "yesterday", 16, "bad_name", "costs.belt.sort.on.b.measured"),
        ("shimekiri: 1", "shimekiri: 2", 1, "other_version", "shimekiri"),
        ("run: busy", "run: [busy]", 12, "wrong_shape", "costs.belt.sort.run"),
        ("      run: busy\n", "", 11, "missing_key", "costs.belt.sort.run"),
        ("    sort:", "    clean:", 11, "key_twice", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    files: Files, tmp_path: Path, old: str, new: str, line: int, code: str, subject: str
) -> None:
    assert COSTS.count(old) == 1, old
    with pytest.raises(BadInputError) as raised:
        planned(files, COSTS.replace(old, new))
    assert ("costs.yaml", line, code, subject) in map(facts, raised.value.problems) and mended(raised.value.problems)
    WORDING.check(f"{old} -> {new}", printed(raised.value, tmp_path))


def test_a_hang_limit_that_the_measured_cost_exceeds(files: Files, tmp_path: Path) -> None:
    query = QUERY.replace("cost: 1 ms", "cost: 1 us, hang: 50 us")
    with pytest.raises(BadInputError) as raised:
        planned(files, query=query)
    assert [facts(one) for one in raised.value.problems] == [("query.yaml", 6, "hang_too_short", "operators.clean")]
    WORDING.check("hang", printed(raised.value, tmp_path))


def test_a_cost_that_nobody_wrote_is_guessed_aloud(files: Files, tmp_path: Path) -> None:
    paths = files(QUERY.replace(", cost: 1 ms}", "}"), CLUSTER)
    asked = RUN.invoke(app.app, ["validate", *map(str, paths)])
    assert asked.exit_code == 0 and "1 GUESSED, since the query has no 'cost:' for clean" in asked.output
    plan = tmp_path / "plan.json"
    made = RUN.invoke(app.app, ["plan", *map(str, paths), "-o", str(plan)])
    assert "guaranteed, if the guessed costs hold" in made.output and "clean takes longer than 1 ms" in made.output
    document = json.loads(plan.read_text())
    assert document["graph"]["operators"]["clean"]["cost_ns"] == GUESS_NS
    assert document["costs"]["clean"]["kind"] == "guessed" and set(document["costs"]) == {"clean"}
    told = RUN.invoke(app.app, ["explain", str(plan), "--time-limit", "0"])
    assert "GUESSED" in told.output
    (tmp_path / "costs.yaml").write_text(COSTS)
    options = ["--costs", str(tmp_path / "costs.yaml"), "--costs-of", "p99", "--margin", "2", "-o", str(plan), "--json"]
    values = json.loads(RUN.invoke(app.app, ["plan", *map(str, paths), *options]).output)
    assert values["costs"]["clean"]["declared_ns"] == 0 and values["costs"]["clean"]["margin"] == "2"


def test_a_plan_of_declared_costs_says_so_and_its_hash_is_what_it_was(files: Files) -> None:
    made = planner.make_plan(*files(QUERY, CLUSTER), Choices())
    assert made.costs is None
    assert cost_lines.lines(made) == [
        "costs: all 4 as declared in the query, guesses until 'coordinator profile' has measured them"
    ]


def test_a_query_that_joins_takes_measured_costs_and_shares_what_has_them(files: Files, tmp_path: Path) -> None:
    paths = files(QUERY, CLUSTER)
    (tmp_path / "costs.yaml").write_text(COSTS + COSTS[COSTS.index("  belt:") :].replace("  belt:", "  other:"))
    joins, plan, costs_file = tmp_path / "other.yaml", tmp_path / "plan.json", str(tmp_path / "costs.yaml")
    joins.write_text(
        QUERY.replace("query: belt", "query: other").replace("  out:", "  out2:").replace("  sum:", "  s2:")
    )
    made = RUN.invoke(app.app, ["plan", *map(str, paths), "-o", str(plan), "--costs", costs_file])
    assert made.exit_code == 0, made.output
    shared = []
    for more in ([], ["--costs", costs_file]):
        done = RUN.invoke(
            app.app, ["add", str(joins), "--plan", str(plan), "--dry-run", "-o", str(tmp_path / "n.json"), *more]
        )
        assert done.exit_code == 0 and "costs: " in done.output, done.output
        document = json.loads((tmp_path / "n.json").read_text())
        assert document["costs"]["clean"]["kind"] == "measured", "what runs keeps its costs, and where they are from"
        both = [set(member["operators"]) for member in document["queries"].values()]
        shared.append(set.intersection(*both))
    assert shared == [set(), {"clean", "sort", "count.add", "count"}]


# -- figures from counts

SPENT = st.lists(st.integers(1, 10**9), min_size=1, max_size=60)


def told(spent: list[int], before: Cost | None = None) -> agent_pb2.OperatorCost:
    cost = before or Cost(1, "O")
    for ns in spent:
        cost.add(ns, ns)
    values = cost.row()
    return agent_pb2.OperatorCost(
        operator_id=1, name="O", tuples=values[3], total_ns=values[4], elapsed_ns=values[5], worst_ns=values[6],
        later_worst_ns=values[7], squares_ns2=values[8], bucket_ns=values[9], bucket_calls=values[10],
    )  # fmt: skip


@given(SPENT, SPENT)
@example([2**28], [3])
def test_two_profiles_subtract(first: list[int], then: list[int]) -> None:
    cost = Cost(1, "O")
    before, key = told(first, cost), ("O", "a")
    after = told(then, cost)
    found = profiling.since({key: before}, {key: after})[key]
    assert found.samples == len(then) and abs(found.mean_ns - mean(then)) <= 1
    assert max(then) <= found.worst_ns <= max(then) * 17 / 16 + 1
    rank = ceil(len(then) * 99 / 100)
    assert sorted(then)[rank - 1] <= found.p99_ns <= found.worst_ns
    exact, rounded = (pstdev(then) / mean(then)) ** 2, (len(first) + len(then)) * ulp(after.squares_ns2)
    apart = rounded / len(then) / mean(then) ** 2  # the sum of squares is a double
    assert sqrt(max(0, exact - apart)) * 0.999 - 2e-2 <= found.cv <= sqrt(exact + apart) * 1.001 + 2e-2
    whole = profiling.since({}, {key: after})[key]
    assert whole.samples == len(first) + len(then) and whole.worst_ns == max(first + then)
    assert profiling.since({key: after}, {key: after}) == {}
    assert profiling.since({key: after}, {key: before})[key].samples == len(first), "an agent that has begun again"


def test_what_an_agent_should_not_tell_is_left_out() -> None:
    plan = plan_document.of(whole({"graph": {"operators": {"O": {}, "late": {"on_late": {"run": "pass"}}}}}))
    good = told([5, 7])

    def kept(**changes: Any) -> list[tuple[str, str]]:
        cost = agent_pb2.OperatorCost()
        cost.CopyFrom(good)
        for name, value in changes.items():
            setattr(cost, name, value)
        return list(profiling.counts(plan, {"a": agent_pb2.ProfileReply(costs=[cost])}))

    assert kept() == [("O", "a")] and kept(name="late", degraded=True) == [("late.degraded", "a")]
    for wrong in ({"name": "P"}, {"degraded": True}, {"squares_ns2": float("nan")}, {"worst_ns": 2**63}):
        assert kept(**wrong) == [], wrong
    bare = agent_pb2.OperatorCost(name="O", tuples=2, total_ns=12, worst_ns=7)
    assert profiling.since({}, {("O", "a"): bare})["O", "a"].p99_ns == 7, "without buckets, the worst"


def entry(spent: list[int], plan: str = "0123abcd", minute: int = 0) -> MeasuredFile:
    ((_, found),) = profiling.since({}, {("O", "a"): told(spent)}).items()
    return MeasuredFile.model_construct(
        mean=found.mean_ns, p99=found.p99_ns, worst=found.worst_ns, elapsed=found.elapsed_ns, cv=found.cv,
        samples=found.samples, speed=1.5, rt=True, measured=f"2026-01-02T03:{minute:02}Z", plan=plan,
    )  # fmt: skip


def operator(**on: MeasuredFile) -> OperatorCostsFile:
    return OperatorCostsFile.model_construct(run="my.op", version="1", with_={"x": 0.1, "on": ["a", None]}, on=on)


@given(SPENT, SPENT)
@example([2**28], [3])
def test_measurements_merge_to_what_all_calls_together_had(first: list[int], then: list[int]) -> None:
    one, other = entry(first), entry(then, minute=5)
    both, all_ = profile_file.together(one, other), entry(first + then)
    assert both == profile_file.together(other, one)
    assert (both.samples, both.worst, both.measured) == (all_.samples, all_.worst, "2026-01-02T03:05Z")
    assert all_.mean <= both.mean <= all_.mean + 2
    rank = ceil(len(first + then) * 99 / 100)
    assert sorted(first + then)[rank - 1] <= both.p99 <= both.worst, "an upper bound still"
    spread = sqrt(sum(each.samples * (each.mean * each.cv) ** 2 for each in (one, other)))
    assert both.cv == pytest.approx(all_.cv, rel=1e-2, abs=2e-2) or spread < 1


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)


ON = st.dictionaries(NAMES, SPENT, min_size=1, max_size=2)
OPERATORS = st.dictionaries(NAMES, ON, min_size=1, max_size=3)


@settings(max_examples=10)
@given(st.dictionaries(NAMES, OPERATORS, min_size=1, max_size=3))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, spent: dict[str, dict[str, dict[str, list[int]]]]
) -> None:
    queries = {
        query: {name: operator(**{node: entry(each) for node, each in on.items()}) for name, on in operators.items()}
        for query, operators in spent.items()
    }
    path = tmp_path_factory.getbasetemp() / "written" / "costs.yaml"
    profile_file.write(queries, path)
    read = costs.load(path).queries
    assert {query: {name: one.model_dump() for name, one in each.items()} for query, each in read.items()} == {
        query: {name: one.model_dump() for name, one in each.items()} for query, each in queries.items()
    }
    merged = profile_file.merged(read, {})
    assert profile_file.text(merged) == profile_file.text(queries)


def test_merging_keeps_other_nodes_and_replaces_what_is_something_else_by_now() -> None:
    old = {"q": {"O": operator(a=entry([10]), b=entry([20])), "P": operator(a=entry([5]))}, "r": {"O": operator()}}
    merged = profile_file.merged(old, {"q": {"O": operator(a=entry([40], minute=1))}})
    assert merged["q"]["O"].on["a"].samples == 2 and merged["q"]["O"].on["b"].worst == 20
    assert set(merged["q"]) == {"O", "P"} and "r" in merged
    newer = operator(a=entry([40])).model_copy(update={"version": "2"})
    assert set(profile_file.merged(old, {"q": {"O": newer}})["q"]["O"].on) == {"a"}
    slower = entry([40]).model_copy(update={"speed": 0.5})
    assert profile_file.merged(old, {"q": {"O": operator(a=slower)}})["q"]["O"].on["a"].samples == 1


PULLED = """\
shimekiri: 1
query: belt
sources:
  items: {at: a, run: my.items, every: 100 ms, max_age: 50 ms%s, with: {w: 1}}
operators: {clean: {run: pass, in: items, cost: 1 ms}}
outputs: {out: {from: clean, at: a, deadline: 200 ms}}
"""
ITEMS = """\
shimekiri: 1
costs:
  belt:
    items:
      run: my.items
      with: {w: %s}
      on:
        a: {mean: 10 us, p99: 20 us, worst: 3 ms, elapsed: 50 ms, cv: 0.5, samples: 500, speed: 2.0,
            measured: "2026-01-02T03:04Z", plan: "0123abcd"}
"""


@pytest.mark.parametrize("declared", ["", ", cost: 4 ms"])
def test_the_measured_cost_of_a_source_that_its_node_calls_is_taken(tmp_path: Path, declared: str) -> None:
    (tmp_path / "query.yaml").write_text(PULLED % declared)
    (tmp_path / "cluster.yaml").write_text(f"{CLUSTER}operators: operators.json\n")
    made_by = {"code": "0" * 64, "kind": "source", "inputs": {}, "output": "json", "with": {"w": {"type": "integer"}}}
    (tmp_path / "operators.json").write_text(json.dumps({"shimekiri": 1, "operators": {"my.items": made_by}}))
    (tmp_path / "costs.yaml").write_text(ITEMS % 1)
    query, _, _ = input_files.read_files(
        tmp_path / "query.yaml", tmp_path / "cluster.yaml", measured=costs.load(tmp_path / "costs.yaml")
    )
    (source,) = query.sources
    assert source.pull is not None and source.pull.cost_ns == 7_200_000 and not source.pull.guessed
    assert source.cost_from is not None and source.cost_from.declared_ns == (4_000_000 if declared else 0)
    (tmp_path / "costs.yaml").write_text(ITEMS % 2)
    query, cluster, types = input_files.read_files(
        tmp_path / "query.yaml", tmp_path / "cluster.yaml", measured=costs.load(tmp_path / "costs.yaml")
    )
    assert cluster is not None
    made = planner.plan(query, cluster, types, Choices(best_effort=True))
    pull = made.graph.sources["items"].pull
    assert pull is not None and pull.cost_ns == (4_000_000 if declared else 1_000_000)
    assert "the measured cost of items is not used: measured with other parameters" in cost_lines.lines(made)
    again = planner.plan(*reopen.inputs(made, tmp_path / "plan.json"))
    assert again.hash == made.hash or again.costs == made.costs


def test_a_source_that_clients_feed_has_no_cost(tmp_path: Path) -> None:
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "costs.yaml").write_text(ITEMS % 1)
    with pytest.raises(BadInputError) as refused:
        input_files.read_files(tmp_path / "query.yaml", None, measured=costs.load(tmp_path / "costs.yaml"))
    assert "costs.belt has operator 'items', which the query lacks" in str(refused.value)
