"""Queries with windows together, and one after the other: what is before windows is shared, equal windows are one
operator, and a window operator comes and goes as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.change import next_plan
from coordinator.errors import BadInputError
from coordinator.explain import sharing_lines
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.plan import plan_file
from coordinator.solve import planner
from coordinator.spec import input_files
from protos.plan_document import Plan
from tests.coordinator.conftest import EXAMPLE
from tests.coordinator.wording import facts

QUERY = """\
shimekiri: 1
query: NAME
sources:
  s: {at: a, type: json, max_age: 200 ms, arrival: {burst: 1, period: 20 ms}}
operators:
  f: {run: filter, in: s, cost: 1 ms}
  w: {run: aggregate, in: f, cost: 1 ms, with: {n: count}, window: {time: 2 s, hop: 1 s}}
outputs:
  out_NAME: {from: w, at: b, deadline: 1 s}
"""


@pytest.fixture
def several(tmp_path: Path) -> list[Path]:
    """Two alike, one with longer windows, one whose closing costs more, and the cluster."""
    texts = {
        "one": QUERY,
        "two": QUERY,
        "longer": QUERY.replace("2 s, hop", "3 s, hop"),
        "dearer": QUERY.replace("hop: 1 s", "hop: 1 s, close: 2 ms"),
    }
    paths = []
    for name, text in texts.items():
        paths.append(tmp_path / f"{name}.yaml")
        paths[-1].write_text(text.replace("NAME", name))
    return [*paths, EXAMPLE[1]]


def test_equal_windows_are_one_operator_and_others_share_what_is_before(several: list[Path]) -> None:
    query, cluster, _ = input_files.read_files(several[:-1], several[-1])
    assert cluster is not None
    found = {one.name: (one.inputs, one.closes) for one in query.operators}
    assert found == {
        "f": (("s",), ""),
        "w.add": (("f",), ""),
        "w": (("w.add",), "w.add"),
        "longer/w.add": (("f",), ""),
        "longer/w": (("longer/w.add",), "longer/w.add"),
        "dearer/w.add": (("f",), ""),
        "dearer/w": (("dearer/w.add",), "dearer/w.add"),
    }
    lines = sharing_lines.planned_sentences(query, cluster)
    assert "run once for one and two: w" in lines
    assert "w (one and two) and longer/w (longer) are not shared: window length 2 s; window length 3 s" in lines
    assert "w (one and two) and dearer/w (dearer) are not shared: closing cost 1 ms; closing cost 2 ms" in lines


def test_halves_keep_one_name(tmp_path: Path) -> None:
    """Where a name is taken, both halves get another one, the same for both."""
    there = QUERY.replace("  f: {", "  two-w: {run: pass, in: s, cost: 1 ms}\n  f: {")
    there = there.replace("outputs:", "outputs:\n  more: {from: two-w, at: a, deadline: 1 s}").replace("NAME", "one")
    joining = QUERY.replace("2 s, hop", "4 s, hop").replace("NAME", "two")
    for name, text in (("one", there), ("two", joining)):
        (tmp_path / f"{name}.yaml").write_text(text)
    query, _, _ = input_files.read_files([tmp_path / "one.yaml", tmp_path / "two.yaml"], EXAMPLE[1])
    by_name = {one.name: one for one in query.operators}
    assert by_name["two/w"].closes == "two/w.add" and by_name["two/w.add"].said == "two/w"


def _windows(plan: Plan | None) -> list[str]:
    assert plan is not None
    return sorted(plan.graph.windows)


def test_windows_come_and_go_whole(several: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan = planner.make_plan(several[:2], several[-1], Choices(quick=True))
    plan_file.write(plan, path)
    assert _windows(plan) == ["w"]
    wish = next_plan.Wish(Limits(20))
    more = next_plan.added(plan, path, several[2], wish)
    assert more.verdict.admitted and more.shared == ("f",)
    assert _windows(more.after) == ["longer/w", "w"]
    assert more.after is not None
    assert more.after.placement["w"] == plan.placement["w"] == more.after.placement["w.add"]
    plan_file.write(more.after, path)
    less = next_plan.removed(more.after, path, ["one", "two"])
    assert less.verdict.admitted and _windows(less.after) == ["longer/w"]
    assert less.after is not None
    assert list(less.after.graph.operators) == ["f", "longer/w.add", "longer/w"]
    back = next_plan.removed(more.after, path, ["one"])
    assert _windows(back.after) == ["longer/w", "w"]


def test_a_source_is_limited_alike_in_all_queries(several: list[Path]) -> None:
    several[1].write_text(several[1].read_text().replace("period: 20 ms}}", "period: 20 ms}, max_rate: 5}"))
    with pytest.raises(BadInputError) as raised:
        input_files.read_files(several[:2], several[-1])
    (problem,) = raised.value.problems
    assert facts(problem) == ("two.yaml", 4, "source_declared_differently", "sources.s")
    assert "max_rate" in problem.mistake.text and "5 per 1 s" in problem.mistake.text
