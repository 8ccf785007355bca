"""`plan --what-if`: the same as editing the files, and errors that name the option."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from coordinator.guarantee.bounds import documents
from coordinator.plan import deadline_breakdown
from coordinator.solve import option_checks, what_if
from coordinator.spec import input_files
from protos.plan.arrivals import JcpArrival
from protos.plan_document import Plan
from tests import command_line
from tests.coordinator.wording import Wording
from tests.simulation.random_plans import documents as random_plans

WORDING = Wording("plan", "--what-if")
ROOT = Path(__file__).parents[3]
Paper = Callable[[int], tuple[Path, Path]]


def _plan(query: Path, cluster: Path, *options: object) -> subprocess.CompletedProcess[str]:
    words = list(map(str, ("coordinator", "plan", query, cluster, "--model", "paper", *options)))
    said = command_line.run(ROOT, shlex.join(words))
    return subprocess.CompletedProcess(words, said.code, said.out, said.err)


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        (["v2v.burst=18"], "burst: 15", "burst: 18"),
        (["sources.v2v.max_age=20 ms"], "max_age: 1 s", "max_age: 20 ms"),
        (["v2v.max_age=null"], ", max_age: 1 s", ""),
        (["v2v.rate=3"], "{burst: 15,  period: 500 ms}", "{rate: 3, burst: 15}"),
        (["*.period=1 s"], "period: 500 ms", "period: 1 s"),
        (["warning.deadline=250 ms"], "300 ms", "250 ms"),
        (["O3.nodes=[a]"], "run: filter", "run: filter\n    nodes: [a]"),
        (["O4.nodes=null"], "in: O3, cost: 1 ms, nodes: [b]", "in: O3, cost: 1 ms"),
        (["O7..O21.cost=0.5 ms"], "in: O4, cost: 1 ms", "in: O4, cost: 0.5 ms"),
        (
            ["O8.cost=0.5 ms"],
            "chain: pass",
            f"chain: [pass, {{run: pass, cost: 0.5 ms}}, {', '.join(['pass'] * 13)}]",
        ),
        (["O3.with.of=3", "O3.selectivity=null"], "keep: 1, of: 2", "keep: 1, of: 3"),
        (["b.speed=2"], "b: {", "b: {speed: 2, "),
        (["nodes.*.emulate.cost_per_tuple=0.5 ms"], "cost_per_tuple: 1 ms", "cost_per_tuple: 0.5 ms"),
        (["b-a.latency=5 ms"], "latency: 1 ms", "latency: 5 ms"),
    ],
)
def test_it_is_the_same_as_editing_the_files(paper: Paper, options: list[str], before: str, after: str) -> None:
    query, cluster = paper(15)
    changed = what_if.load(query, cluster, options)
    texts = {path: path.read_text() for path in (query, cluster)}
    assert any(before in text for text in texts.values())
    for path, text in texts.items():
        edited = text.replace(before, after)
        if "O3.selectivity=null" in options:
            edited = edited.replace("    selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}\n", "")
        path.write_text(edited)
    expected = input_files.read_files(query, cluster)
    assert _facts(changed) == _facts(expected)


def _facts(loaded: tuple[Any, Any, Any]) -> Any:
    """Everything but the files themselves and where in them things stand."""
    query, cluster, types = loaded
    operators = [{k: v for k, v in vars(one).items() if k != "keys"} for one in query.operators]
    return query.sources, operators, query.outputs, cluster.nodes, cluster.links, types


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("v2v", "no_change"),
        ("v2v.burst=", "no_change"),
        ("v3v.burst=3", "unknown_name"),
        ("nodes.v2v.speed=3", "unknown_name"),
        ("v2v.brst=3", "unknown_field"),
        ("*.brst=3", "unknown_field"),
        ("v2v.burst=0", "out_of_range"),
        ("v2v.burst=[", "not_yaml"),
        ("O8.cost=2", "missing_unit"),
        ("O8.nodes=[a]", "field_of_chain"),
        ("O3.nodes=[c]", "unknown_node"),
        ("a-c.latency=1 ms", "unknown_name"),
        ("b.speed=0", "out_of_range"),
    ],
)
def test_what_cannot_be_changed_names_the_option(paper: Paper, option: str, code: str) -> None:
    with pytest.raises(option_checks.BadOptionError) as error:
        what_if.load(*paper(15), ["sensor.burst=9", option])
    assert error.value.exit_code == 2
    assert [mistake.code for mistake in error.value.mistakes] == [code]
    assert error.value.mistakes[0].text.startswith(f"--what-if '{option}'") and error.value.mistakes[0].mend
    WORDING.check(option, error.value.lines())


def test_fields_that_are_right_only_together_may_come_in_any_order(paper: Paper) -> None:
    options = ["v2v.jcp.min_gap=20 ms", "v2v.jcp.period=40 ms"]
    for each in (options, options[::-1]):
        query, _, _ = what_if.load(*paper(15), each)
        written = query.sources[0].arrival.written
        assert isinstance(written, JcpArrival) and written.period_ns == 40_000_000


def test_the_command_tells_both_sides_and_writes_only_where_it_is_told(paper: Paper) -> None:
    query, cluster = paper(20)
    done = _plan(query, cluster, "--what-if", "v2v.burst=18", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    control = told["outputs"]["control"]
    assert control["before"]["from_admission_ns"] > control["after"]["from_admission_ns"]
    assert not (ROOT / "plan.json").exists()
    out = query.parent / "changed.json"
    done = _plan(query, cluster, "--what-if", "O3.nodes=[a]", "-o", out)
    assert done.returncode == 0 and "O3 moves from b to a" in done.stdout and "traffic 20 -> 10" in done.stdout
    assert json.loads(out.read_text())["placement"]["O3"] == "a"


def test_a_change_without_a_plan_is_told_and_exits_with_3(paper: Paper) -> None:
    query, cluster = paper(20)
    done = _plan(query, cluster, "--what-if", "v2v.burst=30")
    assert done.returncode == 3
    assert "with the change infeasible: output warning" in done.stdout


def test_explain_mends_a_query_without_a_plan(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    """As a user does it: the hint of plan, the options of explain, and plan again."""
    query, cluster = files(
        "shimekiri: 1\nquery: one\n"
        "sources: {s: {at: n, type: json, arrival: {burst: 10, period: 1 s}, max_age: 1 ms}}\n"
        "operators: {p: {run: pass, in: s, cost: 9 ms, nodes: [n]}}\noutputs: {o: {from: p, at: n, deadline: 50 ms}}\n",
        'shimekiri: 1\nnodes: {n: {address: "127.0.0.1:7700"}}\n',
    )
    done = _plan(query, cluster, "--place", "p=n", "-o", query.parent / "plan.json")
    hint = done.stderr.splitlines()[-1]
    said = f"the smallest changes that mend it: coordinator explain {query} {cluster} --model paper --place p=n"
    assert (done.returncode, hint) == (3, said)
    command = [sys.executable, "-m", *hint.split(": ")[1].split(), "--json"]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert {mend["way"] for mend in found["mends"]["mends"]} == {"speed", "deadline", "input", "cost"}
    assert "Query one is infeasible" in found["sections"]
    mend = next(mend for mend in found["mends"]["mends"] if mend["way"] == "deadline")
    options = [part for change in mend["what_if"] for part in ("--what-if", change)]
    assert _plan(query, cluster, *options).returncode == 0


@settings(max_examples=20, deadline=None)
@given(random_plans())
def test_the_parts_of_a_deadline_sum_up_to_it(plan: Plan) -> None:
    guarantee, analysis = documents(plan)
    plan = replace(plan, guarantee=guarantee, analysis=analysis)
    for name, claim in plan.guarantee.items():
        parts = deadline_breakdown.shares(plan, name)
        if claim.from_admission_ns is None:
            assert not parts
        else:
            assert sum(part.ns for part in parts) == claim.deadline_ns
            assert sum(deadline_breakdown.totals(plan, name).values()) == claim.deadline_ns
            assert all(part.ns > 0 for part in parts[:-1]) and parts[-1].kind == "slack"
        assert deadline_breakdown.sentences(plan, name)[0].startswith(f"{name}: ")
