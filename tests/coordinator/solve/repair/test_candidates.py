"""Every key that may be the cause: its change is found, and each change that is found is applied and holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from coordinator.explain import repair_lines
from coordinator.model.choices import Choices
from coordinator.solve import what_if
from coordinator.solve.repair.candidates import candidates
from coordinator.solve.repair.relaxation import inputs
from coordinator.solve.repair.remedy import least
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.repair_search import Findings, find
from coordinator.solve.repair.what_if_runs import Case, WhatIfRuns, outcome
from coordinator.spec.runtime_charges import MEASURED
from coordinator.units import step_of
from tests.coordinator.solve.repair.infeasible_cases import CASES, GIVEN_UP, ONE, PAIRS, THREE, Written, cluster, query
from tests.sampling import sample

MS = 10**6
SECONDS = 3600.0  # no test is by the clock


def _case(folder: Path, written: Written, options: tuple[str, ...] = ()) -> Case:
    queries, nodes = folder / "query.yaml", folder / "cluster.yaml"
    queries.write_text(written.query)
    nodes.write_text(written.cluster)
    return Case(*what_if.load(queries, nodes, options), Choices(charges=MEASURED))


def _applied(folder: Path, written: Written, repair: Repair) -> Case:
    """As a user does it: by options, or in the files."""
    added = [edit for edit in repair.edits if not edit.name]
    nodes = YAML().load(written.cluster)
    for edit in added:
        nodes[edit.section] = [*(nodes.get(edit.section) or []), YAML(typ="safe").load(edit.after)]
    if added:
        with (folder / "changed.yaml").open("w") as file:
            YAML().dump(nodes, file)
        written = Written(written.query, (folder / "changed.yaml").read_text(), written.key)
    case = _case(folder, written, tuple(edit.option for edit in repair.edits if edit.name))
    return Case(case.query, case.cluster, case.types, Choices(charges=MEASURED, place=dict(repair.place)))


def _check(folder: Path, written: Written, found: Findings) -> None:
    assert not found.untried and found.repairs
    assert any(written.key in edit.key for repair in found.repairs for edit in repair.edits), written.key
    for repair in found.repairs:
        assert outcome(_applied(folder, written, repair)).holds, repair.text


@pytest.mark.parametrize("name", sample(CASES, 2))
def test_the_key_that_is_the_cause_is_a_candidate(name: str, tmp_path: Path) -> None:
    """Its least change holds where it is applied."""
    written = CASES[name]
    case = _case(tmp_path, written)
    now = outcome(case)
    assert not now.holds or now.ageless
    if now.ageless:  # ages are not declared: the plan itself has room for them
        _check(tmp_path, written, find(case, SECONDS))
        return
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), SECONDS)
    likely = [
        one
        for one in candidates(case, now.missed, now.plan)
        if any(written.key in edit.key for edit in one.change(case, one.utmost).edits)
    ]
    found = [repair for one in likely if (repair := least(trials, one)) is not None]
    assert found
    for repair in found:
        assert outcome(_applied(tmp_path, written, repair)).holds, repair.text


@pytest.mark.parametrize("name", sample(CASES, 8))
def test_all_that_is_found_holds_where_it_is_applied(name: str, tmp_path: Path) -> None:
    found = find(_case(tmp_path, CASES[name]), SECONDS)
    assert all(len(repair.changes) == 1 for repair in found.repairs)
    _check(tmp_path, CASES[name], found)


def test_windows_wait_for_as_long_as_tuples_may_take(tmp_path: Path) -> None:
    """The deadline holds, but windows may be given up: with the wait that is found none is."""
    case = _case(tmp_path, GIVEN_UP)
    assert outcome(case).holds and outcome(case).lossy == 1
    (repair,) = find(case, SECONDS).repairs
    assert [edit.key for edit in repair.edits] == [GIVEN_UP.key]
    after = outcome(_applied(tmp_path, GIVEN_UP, repair))
    assert after.holds and not after.lossy
    window = next(one.window for one in repair.case.query.operators if one.window is not None)
    short = f"{GIVEN_UP.key}={window.wait_ns - step_of(MS)} ns"
    assert outcome(_case(tmp_path, GIVEN_UP, (short,))).lossy == 1


@pytest.mark.parametrize("name", sample(PAIRS, 4))
def test_two_keys_are_changed_where_one_does_not_do(name: str, tmp_path: Path) -> None:
    case = _case(tmp_path, PAIRS[name])
    found = find(case, SECONDS)
    assert all(len(repair.changes) == 2 for repair in found.repairs)
    _check(tmp_path, PAIRS[name], found)
    (lines,) = repair_lines.sections(found, case).values()
    assert lines[0] == "no single change mends it: every key that may be the cause was tried; two together do"


def test_where_no_two_do_it_is_said_after_all_were_tried(tmp_path: Path) -> None:
    case = _case(tmp_path, THREE)
    found = find(case, SECONDS)
    assert found.exhausted and not found.repairs and not found.untried_pairs
    (lines,) = repair_lines.sections(found, case).values()
    assert lines[0].endswith("every key that may be the cause was tried, nor do any two together")


def test_what_there_was_no_time_for_is_named(tmp_path: Path) -> None:
    """Nothing was tried, so nothing is said to be of no use."""
    case = _case(tmp_path, CASES["node memory"])
    found = find(case, 0.0)
    assert not found.repairs and not found.useless and "more 'memory' of a" in found.untried
    (lines,) = repair_lines.sections(found, case).values()
    assert lines[0] == "no single change was found in time that mends it"
    assert any(line.startswith("not tried in time") and "more 'memory' of a" in line for line in lines)


def test_a_change_names_the_line_of_its_file(tmp_path: Path) -> None:
    case = _case(tmp_path, CASES["node memory"])
    found = find(case, SECONDS)
    (lines,) = repair_lines.sections(found, case).values()
    assert f"    {tmp_path}/cluster.yaml:3: nodes.a.memory: 100 MiB" in lines
    documents = found.document()["mends"]
    edit = {"file": "cluster", "key": "nodes.a.memory", "value": "100 MiB", "add": False}
    assert [edit] in [mend["changes"][0]["edits"] for mend in documents]


def test_a_change_of_arrivals_names_their_line(tmp_path: Path) -> None:
    written = CASES["burst"]
    arrival = "arrival: {burst: 60, period: 100 ms}"
    assert arrival in written.query
    broken = written.query.replace(f", {arrival}", f",\n    {arrival}")
    line = next(number for number, text in enumerate(broken.splitlines(), 1) if arrival in text)
    case = _case(tmp_path, replace(written, query=broken))
    now = outcome(case)
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), SECONDS)
    (one,) = inputs(case)
    repair = least(trials, one)
    assert repair is not None
    (lines,) = repair_lines.sections(Findings(now, (repair,)), case).values()
    assert any(f"query.yaml:{line}: sources.s.arrival.burst: " in told for told in lines)


@pytest.mark.parametrize("cost, alone", [("1 ms", True), ("3 ms", False)])
def test_an_age_of_a_whole_deadline_leaves_the_deadline_and_the_age(cost: str, alone: bool, tmp_path: Path) -> None:
    """A longer deadline does alone; a shorter age where there is time for the work, and else with another change."""
    aged = "at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 5 ms"
    written = Written(
        query(ONE.replace("1 ms", cost), "{from: X, at: a, deadline: 5 ms}", aged), cluster(), "outputs.x.deadline"
    )
    found = find(_case(tmp_path, written), SECONDS)
    _check(tmp_path, written, found)
    single = {edit.key for repair in found.repairs if len(repair.changes) == 1 for edit in repair.edits}
    assert single == {"outputs.x.deadline"} | ({"sources.s.max_age"} if alone else set())
    assert all(all(change.edits for change in repair.changes) for repair in found.repairs)


def test_a_source_of_any_age_has_one_with_every_repair_of_another_cause(tmp_path: Path) -> None:
    arrival = "at: a, type: json, arrival: {burst: 4, period: 100 ms}"
    written = Written(query(ONE.replace("1 ms", "20 ms"), source=arrival), cluster(), "sources.s.max_age")
    found = find(_case(tmp_path, written), SECONDS)
    _check(tmp_path, written, found)
    assert {"deadline", "speed", "cost"} <= {repair.way for repair in found.repairs}
    for repair in found.repairs:
        assert not outcome(_applied(tmp_path, written, repair)).ageless, repair.text


def test_a_part_that_queries_share_is_changed_in_each_of_their_files(tmp_path: Path) -> None:
    written = CASES["cost"]
    text = written.query.replace("  s: {", "  s:\n    {", 1)
    first, second, nodes = (tmp_path / name for name in ("first.yaml", "second.yaml", "cluster.yaml"))
    first.write_text(written.query)
    second.write_text(text.replace("query: q", "query: r").replace("  x: {", "  z: {"))
    nodes.write_text(written.cluster)
    case = Case(*what_if.load([first, second], nodes, ()), Choices(charges=MEASURED))
    now = outcome(case)
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), SECONDS)
    one = next(each for each in candidates(case, now.missed, now.plan) if each.name == "less 'cost' of X")
    repair = least(trials, one)
    assert repair is not None
    (lines,) = repair_lines.sections(Findings(now, (repair,)), case).values()
    (edit,) = repair.edits
    told = [f"    {first}:6: {edit.line}", f"    {second}:7: {edit.line}"]
    assert [line for line in lines if line.endswith(f": {edit.line}")] == told


def test_what_is_not_proven_to_be_of_no_use_is_not_said_to_be(tmp_path: Path) -> None:
    """The plan misses a wish, and nothing proves that no other plan meets it."""
    case = _case(tmp_path, CASES["output queue"])
    now = outcome(case)
    assert now.missed and now.undecided
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), SECONDS)
    one = next(each for each in candidates(case, now.missed, now.plan) if each.name == "more 'cap' of a")
    assert least(trials, one) is None and trials.doubt
    found = Findings(now, useless=(one.name,), doubtful=(one.name,))
    (lines,) = repair_lines.sections(found, case).values()
    assert not found.exhausted
    assert lines[0] == "no single change was found that mends it, and it is not proven that none does"


def test_an_age_that_does_alone_comes_without_another_change(tmp_path: Path) -> None:
    arrival = "at: a, type: json, arrival: {burst: 4, period: 100 ms}"
    written = Written(query(ONE, "{from: X, at: a, deadline: 5 ms}", arrival), cluster(), "sources.s.max_age")
    found = find(_case(tmp_path, written), SECONDS)
    assert [[edit.key for edit in repair.edits] for repair in found.repairs] == [["sources.s.max_age"]]
    assert not outcome(_applied(tmp_path, written, found.repairs[0])).ageless
