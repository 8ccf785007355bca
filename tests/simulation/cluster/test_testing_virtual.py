"""A whole query in virtual time inside a test: the examples of docs/how_to/test_operators.md, and what goes wrong."""

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import Int64Value

from coordinator.cli import app
from node_agent.operators import api
from node_agent.problems import ProblemError
from node_agent.sdk import Tick, aggregate, operator, source
from node_agent.testing import (
    BadInputError,
    Choices,
    FailedError,
    InfeasibleError,
    Scenario,
    planned,
    simulated,
    simulated_query,
)
from node_agent.testing import simulated_plan as testing
from node_agent.testing.simulated_query import NoCoordinatorError, OutOfTimeError, PlanningError
from protos.plan_document import Plan
from tests.sentences import Wording, fault

SAID = Wording("simulate", "testing")

ROOT = Path(__file__).parents[3]
MANUAL = ROOT / "docs" / "how_to" / "test_operators.md"
MS = 1_000_000
QUERY = """
shimekiri: 1
query: q
sources:
  p: {at: a, type: json, arrival: {burst: 2, period: 100 ms}}
  s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}
operators:
  tens: {run: t.tens, in: p, side: {base: s}, cost: 3 ms, nodes: [b]}
outputs:
  o: {from: tens, at: b, deadline: DEADLINE}
"""
WINDOWS = """
shimekiri: 1
query: w
sources:
  p: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 s}
operators:
  sums: {run: t.sum, in: p, cost: 1 ms, window: {count: 2}, nodes: [b]}
outputs:
  o: {from: sums, at: b, deadline: 1 s}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7701"}
links: [{between: [a, b], latency: 1 ms}]
security: insecure-loopback
"""


@operator("t.tens", inputs={"n": "json"}, side={"base": "json"})
def tens(n: int, *, base: int | None) -> int | None:
    if n < 0:
        raise ValueError("below 0")
    return None if n == 5 else 10 * n + (base or 0)


@operator("t.tens", inputs={"n": "json"}, side={"base": "json"})
def emptying(n: list[int], *, base: int | None) -> int:
    n.clear()
    return 0


@operator("t.tens", inputs={"n": "t.Number"}, side={"base": "json"})
def raised(n: Int64Value, *, base: int | None) -> int:
    return n.value + 1


@aggregate("t.sum")
class Sum:
    def start(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        return state + value

    def result(self, state: int) -> int:
        return state


def files(folder: Path, deadline: str = "50 ms") -> tuple[Path, Path]:
    (folder / "query.yaml").write_text(QUERY.replace("DEADLINE", deadline))
    (folder / "cluster.yaml").write_text(CLUSTER)
    return folder / "query.yaml", folder / "cluster.yaml"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return planned(*files(tmp_path_factory.mktemp("plan")), [tens])


def test_values_latencies_and_counts(plan: Plan) -> None:
    done = testing.simulated(plan, {"p": [1, 2, 5, 7]}, [tens])
    assert list(done) == ["o"] and done["o"].values == [10, 20, 70] and done.admitted == 4
    first, second, fourth = done["o"].latencies_ns
    assert first >= 4 * MS and second - first == 3 * MS and fourth == second
    assert (done["o"].met, done["o"].late, done["o"].deadline_ns) == (3, 0, 50 * MS)
    assert [(each.source, each.seq) for each in done["o"].deliveries] == [("p", 1), ("p", 2), ("p", 4)]
    assert done["o"].deliveries[-1].at_ns - fourth == 100 * MS, "the second burst came a period later"
    assert not done.failures and not done.shed and not done.refused
    with SAID.refuses("unknown_output x", kind=KeyError):
        done["x"]


def test_every_tuple_is_admitted_once_whatever_the_other_sources_do(plan: Plan) -> None:
    done = testing.simulated(plan, {"p": [1, 2, 3], "s": list(range(25))}, [tens])
    assert done.admitted == 28 and len(done["o"].values) == 3 and done["o"].values[0] == 10
    assert testing.simulated(plan, {}, [tens])["o"].values == []
    twice = testing.simulated(plan, {"p": [1]}, [tens], Scenario(trials=2, ages_ns={"p": 60 * MS}))
    assert twice["o"].values == [10, 10] and twice["o"].late == 2


def test_operators_that_fail_fail_the_test(plan: Plan) -> None:
    with SAID.refuses("raised", kind=FailedError):
        testing.simulated(plan, {"p": [-1, 1, -2]}, [tens])
    done = testing.simulated(plan, {"p": [-1, 1, -2]}, [tens], may_fail=True)
    assert done["o"].values == [10] and len(done.failures) == 1
    with SAID.refuses("raised", kind=FailedError):
        testing.simulated(plan, {"p": [[1]]}, [emptying])


def test_what_does_not_fit_is_said(plan: Plan, tmp_path: Path) -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: testing.simulated(plan, {"q": [1]}, [tens]), "unknown_source q"),
        (lambda: testing.simulated(plan, {"p": [1, {2}]}, [tens]), "not_a_tuple p"),
        (lambda: testing.simulated(plan, {"p": [1]}), "unknown_operator b"),
        (lambda: testing.simulated(plan, {"p": [1]}, "ops.py"), "not_a_list operators"),
        (lambda: testing.simulated(plan, {"p": [1]}, [tmp_path / "no.py"]), "no.py no_file"),
        (lambda: testing.simulated(tmp_path / "no.json", {}), "no.json no_file"),
        (lambda: testing.simulated(plan, {"p": [1]}, [tens], Scenario(burst={"p": 0})), "tuples_never_come p"),
    ]
    for call, why in cases:
        with SAID.refuses(why):
            call()


def test_what_cannot_be_planned_is_said_as_the_planner_says_it(tmp_path: Path) -> None:
    query, cluster = files(tmp_path, "5 ms")
    with SAID.refuses("not_planned"):
        planned(query, cluster)
    with pytest.raises(InfeasibleError) as impossible:
        planned(query, cluster, [tens])
    assert str(impossible.value).startswith("operator tens: 2 tuples ")
    assert fault(impossible.value.problem) == "infeasible"
    assert "operators.json" not in str(impossible.value), "a command with a file that is gone"
    tried = simulated(query, cluster, {"p": [1, 2]}, [tens], choices=Choices(best_effort=True, policy="edf"))
    assert tried["o"].values == [10, 20] and (tried["o"].met, tried["o"].late) == (1, 1)
    hopeless = simulated(query, cluster, {"p": [1, 2]}, [tens], choices=Choices(best_effort=True, policy="slack"))
    assert hopeless["o"].values in ([10], [20]) and hopeless["o"].late == 0 and hopeless.shed == {"excess": 1}
    cluster.write_text("- a\n")
    with SAID.refuses("not_planned"):
        planned(query, cluster, [tens])
    with SAID.refuses("not_planned"):
        planned(tmp_path / "none.yaml", cluster, [tens])


def test_windows_and_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "declared_codecs", [])
    query, cluster = files(tmp_path)
    query.write_text(WINDOWS)
    done = simulated(query, cluster, {"p": [3, 4, 6, 1, 9]}, [Sum], choices=Choices(best_effort=True))
    assert [(each["first"], each["result"]) for each in done["o"].values] == [(1, 7), (3, 7)]

    api.codec("t.Number", Int64Value)
    query.write_text(QUERY.replace("DEADLINE", "50 ms").replace("p: {at: a, type: json", "p: {at: a, type: t.Number"))
    plan = planned(query, cluster, [raised])
    assert testing.simulated(plan, {"p": [1, Int64Value(value=2)]}, [raised])["o"].values == [2, 3]
    with SAID.refuses("not_a_tuple p"):
        testing.simulated(plan, {"p": ["x"]}, [raised])


def test_equal_files_operators_and_choices_are_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query, cluster = files(tmp_path)
    monkeypatch.setattr(simulated_query, "_plans", {})
    begun: list[int] = []
    made = simulated_query._made
    monkeypatch.setattr(simulated_query, "_made", lambda *given: (begun.append(1), made(*given))[1])
    first = planned(query, cluster, [tens])
    (tmp_path / "copy").mkdir()
    assert planned(*files(tmp_path / "copy"), [tens]) == first and len(begun) == 1
    others: list[Callable[[], Plan]] = [
        lambda: planned(*files(tmp_path, "60 ms"), [tens]),
        lambda: planned(query, cluster, [tens, Sum]),
        lambda: planned(query, cluster, [tens, Sum], Choices(place={"tens": "b"})),
    ]
    for count, other in enumerate(others, 2):
        other()
        assert len(begun) == count
    query.write_text(query.read_text().replace("{burst: 2, period: 100 ms}", "{trace: arrivals.csv}"))
    for _ in range(2):
        with SAID.refuses("not_planned"):
            planned(query, cluster, [tens])


@pytest.mark.parametrize(
    ("code", "said", "kind", "called"),
    [
        (2, "query.yaml:8: wrong", BadInputError, "not_planned"),
        (3, "infeasible: output o: late", InfeasibleError, "infeasible"),
        (4, "no placement was found within 1 s", OutOfTimeError, "out_of_time"),
        (1, "/usr/bin/python: No module named coordinator", NoCoordinatorError, "not_installed coordinator"),
        (1, "audit: output o", PlanningError, "planning_failed"),
        (-9, "", PlanningError, "planning_failed"),
    ],
)
def test_the_end_of_the_planner_is_an_error_of_its_own(
    code: int, said: str, kind: type[Exception], called: str
) -> None:
    error = simulated_query._error(code, said)
    assert type(error) is kind and str(error)
    assert isinstance(error, ProblemError | BadInputError) and fault(error.problem) == called


def test_a_choice_has_the_name_and_the_default_of_its_option() -> None:
    app.register()
    (command,) = (each.callback for each in app.app.registered_commands if each.callback.__name__ == "plan")  # type: ignore[union-attr]
    options = {name: each.default for name, each in inspect.signature(command).parameters.items()}  # type: ignore[arg-type]
    made = Choices()
    called = {"time_limit_s": "time_limit"}
    for name in Choices.__dataclass_fields__.keys() - {"sharing"}:
        assert options[called.get(name, name)] == (getattr(made, name) or options[called.get(name, name)]), name
    assert made.sharing is not options["no_sharing"] and not any((made.place, made.tighten, made.policy, made.survive))
    assert not any(options[name] for name in ("place", "tighten", "policy", "survive", "best_effort"))


def test_every_choice_is_an_option(tmp_path: Path) -> None:
    chosen = Choices(
        allocator="deadline", model="sound", units="operator", policy="edf", place={"tens": "b"}, overhead="none",
        tighten="o", sharing=False, time_limit_s=5.0, seed=3, best_effort=True, solver="highs",
    )  # fmt: skip
    made = planned(*files(tmp_path), [tens], chosen)
    assert (made.solver.seed, made.solver.tighten, made.placement["tens"]) == (3, "o", "b")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "missing").mkdir()
    gone = "raise ModuleNotFoundError(\"No module named 'pydantic'\", name='pydantic')"
    (tmp_path / "missing" / "pydantic.py").write_text(gone)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "missing"))
    query, cluster = files(tmp_path, "51 ms")
    with SAID.refuses("not_installed coordinator"):
        planned(query, cluster, [tens])


def test_the_pages_example_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python sorting.py", "yaml query.yaml", "yaml cluster.yaml"):
        (found,) = re.findall(rf"```{re.escape(name)}\n(.*?)```", MANUAL.read_text(), re.S)
        (tmp_path / name.split()[1]).write_text(found)
    monkeypatch.chdir(tmp_path)
    example = re.findall(r"```python example\n(.*?)```", MANUAL.read_text(), re.S)[4]
    names: dict[str, Any] = {}
    exec(compile(example, "example 5", "exec"), names)
    names["test_the_gates_open_in_time"]()
    assert "sorting" not in sys.modules, "operators of a file are loaded as such"


OWN = """
shimekiri: 1
query: own
sources:
  beat: {at: a, every: 10 ms, offset: 4 ms, max_age: 5 ms}
  camera: {at: b, run: t.camera, every: 25 ms, max_age: 20 ms, cost: 100 us}
  p: {at: a, type: json, arrival: {burst: 1, period: 10 ms}, max_age: 5 ms}
operators:
  all: {run: union, in: [beat, p], cost: 100 us, nodes: [b]}
  see: {run: pass, in: camera, cost: 100 us, nodes: [a]}
  beats: {run: aggregate, in: beat, with: {n: count}, window: {time: 100 ms}, cost: 50 us, nodes: [a]}
outputs:
  o: {from: all, at: b, deadline: 100 ms}
  seen: {from: see, at: a, deadline: 100 ms}
  counted: {from: beats, at: a, deadline: 500 ms}
"""


@source("t.camera")
def camera(*, tick: Tick) -> int | None:
    if tick.planned_ns % (500 * MS) == 0:
        raise OSError("no frame")
    return tick.planned_ns if tick.number % 4 else None


def test_sources_that_nodes_make_themselves_need_no_tuples(tmp_path: Path) -> None:
    """As often as bursts are asked for, and on to the last of a client's; ticks in windows as any other tuple."""
    query, cluster = tmp_path / "own.yaml", tmp_path / "cluster.yaml"
    query.write_text(OWN)
    cluster.write_text(CLUSTER)
    done = simulated(query, cluster, {}, [camera], Scenario(bursts=40), may_fail=True)
    ticks = [value for value in done["o"].values if value]
    assert len(ticks) == 40 and {value["planned_ns"] % (10 * MS) for value in ticks} == {4 * MS}
    planned = [value["planned_ns"] for value in ticks]
    assert planned == list(range(planned[0], planned[0] + 400 * MS, 10 * MS))
    assert len(done["seen"].values) == 40 - 10 and done.refused == 2 and done["seen"].late == 0
    assert done.failures == ("source camera on node b raised 2 times, first: OSError: no frame",)
    assert [value["n"] for value in done["counted"].values][:3] == [10, 10, 10], "the first window had begun before"
    again = simulated(query, cluster, {}, [camera], Scenario(bursts=40), may_fail=True)
    assert again["seen"].deliveries == done["seen"].deliveries, "the same every time"
    query.write_text(OWN.replace("burst: 1, period: 10 ms", "burst: 1, period: 100 ms"))
    fed = simulated(query, cluster, {"p": [{}] * 4}, [camera], may_fail=True)
    ticks = [value for value in fed["o"].values if value]
    assert len(ticks) == 30 and len(fed["o"].values) == 34, "until the fourth burst, 300 ms after the first"
    with pytest.raises(FailedError):
        simulated(query, cluster, {}, [camera], Scenario(bursts=40))
    with SAID.refuses("made_here beat"):
        simulated(query, cluster, {"beat": [{}]}, [camera])
    with SAID.refuses("made_here --phase"):
        simulated(query, cluster, {}, [camera], Scenario(phase_ns={"beat": 5}))
