"""`coordinator adapt`: shows the change, writes it where that is asked, and nothing where something is wrong."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from coordinator.errors import BadInputError
from coordinator.solve.repair.what_if_runs import Outcome
from coordinator.solve.repair.within_ranges import adaptation
from tests.command_line import Said, run
from tests.coordinator.wording import Wording

QUERY = """\
# pumps, as of May
shimekiri: 1
query: pumps
sources:
  s: {at: a, type: json,   arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}  # measured
operators:
  X:
    run: pass   # the work
    in: s
    cost: 20 ms
outputs:
  x: {from: X, at: a, deadline: 50 ms}  # the hall's

may_change:   # agreed with the hall
  outputs.x.deadline: 50..70 ms
  sources.s.arrival.burst: 2..4
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}   # the only one
"""
ADAPTED = QUERY.replace("burst: 4, ", "burst: 2, ")
WORDING = Wording("adapt", "command")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path


def _run(folder: Path, command: str = "adapt", *options: str, files: str = "query.yaml cluster.yaml") -> Said:
    return run(folder, f"coordinator {command} {files} {shlex.join(options)}")


def _unchanged(folder: Path) -> bool:
    """The files, and nothing beside them."""
    names = sorted(path.name for path in folder.iterdir())
    return (
        names == ["cluster.yaml", "query.yaml"]
        and (folder / "query.yaml").read_text() == QUERY
        and (folder / "cluster.yaml").read_text() == CLUSTER
    )


def test_the_change_is_shown_and_not_written(folder: Path) -> None:
    done = _run(folder)
    assert done.code == 0 and _unchanged(folder)
    WORDING.check("shown", done.out.splitlines())


def test_what_is_written_keeps_every_other_byte_and_plans_guaranteed(folder: Path) -> None:
    (folder / "query.yaml").chmod(0o640)
    refused = _run(folder, "plan", "--json")
    assert refused.code == 3 and "ranges: coordinator adapt query.yaml cluster.yaml;" in refused.err
    done = _run(folder, "adapt", "--write")
    assert done.code == 0 and (folder / "query.yaml").read_text() == ADAPTED
    assert (folder / "query.yaml").stat().st_mode & 0o777 == 0o640
    assert (folder / "cluster.yaml").read_text() == CLUSTER
    next_step = done.out.splitlines()[-1].partition("next: ")[2]
    assert next_step == "coordinator plan query.yaml cluster.yaml" and run(folder, next_step).code == 0
    plan = json.loads((folder / "plan.json").read_bytes())
    assert plan["guarantee"]["x"]["guaranteed"]
    again = _run(folder, "adapt", "--write")
    assert again.code == 0 and (folder / "query.yaml").read_text() == ADAPTED
    WORDING.check("guaranteed already", again.out.splitlines())


def test_a_link_leads_to_the_file_that_changes(folder: Path) -> None:
    (folder / "real.yaml").write_text(QUERY)
    (folder / "query.yaml").unlink()
    (folder / "query.yaml").symlink_to("real.yaml")
    assert _run(folder, "adapt", "--write").code == 0
    assert (folder / "query.yaml").is_symlink() and (folder / "real.yaml").read_text() == ADAPTED


def test_the_query_goes_elsewhere_changed_or_not(folder: Path) -> None:
    done = _run(folder, "adapt", "-o", "next.yaml", "--overhead", "none")
    assert done.code == 0 and (folder / "next.yaml").read_text() == ADAPTED
    assert (folder / "query.yaml").read_text() == QUERY
    assert done.out.splitlines()[-1].endswith("next: coordinator plan next.yaml cluster.yaml --overhead none")
    done = _run(folder, "adapt", "-o", "same.yaml", files="next.yaml cluster.yaml")
    assert done.code == 0 and (folder / "same.yaml").read_text() == ADAPTED


def test_both_files_change_where_both_have_ranges(folder: Path) -> None:
    (folder / "query.yaml").write_text(QUERY.replace("cost: 20 ms", "cost: 20 ms\n    memory: 100 MiB"))
    nodes = CLUSTER.replace(':7700"', ':7700", memory: 64 MiB')
    (folder / "cluster.yaml").write_text(nodes + "may_change: {nodes.a.memory: 64..128 MiB}\n")
    refused = _run(folder, "adapt", "-o", "next.yaml")
    assert refused.code == 2 and "--out-cluster" in refused.err
    done = _run(folder, "adapt", "-o", "next.yaml", "--out-cluster", "machines.yaml", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["written"] == ["next.yaml", "machines.yaml"] and len(found["change"]["changes"]) == 2
    assert [file["kind"] for file in found["files"]] == ["query", "cluster"]
    assert _run(folder, "plan", files="next.yaml machines.yaml").code == 0


def test_machines_get_all_of_it(folder: Path) -> None:
    done = _run(folder, "adapt", "--json")
    found = json.loads(done.out)
    assert done.code == 0 and found.keys() == {
        "guaranteed", "infeasible", "missed", "change", "decided", "outside", "attempts", "files", "written",
    }  # fmt: skip
    assert not found["guaranteed"] and found["infeasible"] and found["written"] == []
    edit = {"file": "query", "key": "sources.s.arrival.burst", "value": "2", "add": False}
    assert found["change"]["changes"][0]["edits"] == [edit] and found["change"]["settled"]
    (file,) = found["files"]
    assert file["file"] == "query.yaml" and "+  s: {at: a, type: json,   arrival: {burst: 2," in file["diff"]


def test_where_nothing_within_the_ranges_helps_the_nearest_beyond_is_named(folder: Path) -> None:
    (folder / "query.yaml").write_text(QUERY.replace("2..4", "4..4"))
    done = _run(folder, "adapt", "--write")
    assert done.code == 3 and (folder / "query.yaml").read_text() == QUERY.replace("2..4", "4..4")
    WORDING.check("nothing within", [line for line in done.err.splitlines() if "ms" not in line or "range" in line])
    assert "relax the deadline: x" in done.err


def test_what_is_written_to_a_file_during_the_search_is_not_lost(folder: Path) -> None:
    search = adaptation.adapt

    def meanwhile(*given: Any) -> Any:
        (folder / "query.yaml").write_text(QUERY + "# saved from an editor\n")
        return search(*given)

    with mock.patch.object(adaptation, "adapt", meanwhile):
        done = _run(folder, "adapt", "--write")
    assert done.code == 2 and "query.yaml" in done.err
    assert (folder / "query.yaml").read_text() == QUERY + "# saved from an editor\n"
    WORDING.check("changed meanwhile", done.err.splitlines())


def test_out_of_time_is_no_proof(folder: Path) -> None:
    late = Outcome(None, undecided=True)
    with mock.patch.object(adaptation, "adapt", lambda *_: adaptation.Adaptation(late, None, decided=False)):
        done = _run(folder, "adapt", "--write")
    assert done.code == 4 and _unchanged(folder)
    WORDING.check("out of time", done.err.splitlines())


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("50..70 ms", "70..50 ms", "query.yaml:15 range_reversed may_change.outputs.x.deadline"),
        ("50..70 ms", "50..70 GB", "query.yaml:15 unknown_unit may_change.outputs.x.deadline"),
        ("outputs.x.deadline", "outputs.x.dedline", "query.yaml:15 unknown_field may_change.outputs.x.dedline"),
        ("50..70 ms", "60..70 ms", "query.yaml:15 value_outside_range may_change.outputs.x.deadline"),
        ("outputs.x.deadline: 50", "outputs.x.wait: 50", "query.yaml:15 nothing_to_change outputs.x.wait"),
        (QUERY.partition("\nmay_change")[2], "", "query.yaml nothing_may_change may_change"),
    ],
)
def test_a_bad_range_is_told_and_nothing_is_written(folder: Path, before: str, after: str, fault: str) -> None:
    text = QUERY.replace(before, after).replace("\nmay_change\n", "\n").removesuffix("may_change")
    (folder / "query.yaml").write_text(text)
    done = _run(folder, "adapt", "--write")
    assert done.code == 2 and done.faults == [fault]
    assert (folder / "query.yaml").read_text() == text and len(list(folder.iterdir())) == 2
    assert isinstance(done.error, BadInputError)


def test_a_range_that_is_wrong_is_found_by_validate_too(folder: Path) -> None:
    (folder / "query.yaml").write_text(QUERY.replace("50..70 ms", "70..50 ms"))
    assert _run(folder, "validate").faults == ["query.yaml:15 range_reversed may_change.outputs.x.deadline"]


@pytest.mark.parametrize("options", [("--write", "-o", "next.yaml"), ("--out-cluster", "c.yaml")])
def test_options_that_contradict_each_other_are_refused(folder: Path, options: tuple[str, ...]) -> None:
    assert _run(folder, "adapt", *options).code == 2 and _unchanged(folder)


@pytest.mark.parametrize("at", ["adapt", "guaranteed"])
def test_ctrl_c_leaves_the_files(folder: Path, at: str) -> None:
    """While it looks for a change, and while it plans with the changed files."""
    with mock.patch.object(adaptation, at, mock.Mock(side_effect=KeyboardInterrupt)):
        done = _run(folder, "adapt", "--write")
    assert done.code == 130 and done.err.splitlines()[-1] == "interrupted: nothing was written" and _unchanged(folder)


def test_a_file_that_cannot_be_written_leaves_the_others(folder: Path) -> None:
    with mock.patch(
        "coordinator.durable_files.write_new", mock.Mock(side_effect=PermissionError(13, "no", "query.yaml"))
    ):
        done = _run(folder, "adapt", "--write")
    assert done.code == 2 and done.faults == ["query.yaml unwritable"] and _unchanged(folder)


def test_a_value_behind_an_anchor_is_refused(folder: Path) -> None:
    text = QUERY.replace("{burst: 4, period: 100 ms}", "&every {burst: 4, period: 100 ms}")
    text = text.replace("operators:\n", "  t: {at: a, type: json, arrival: *every, max_age: 1 ms}\noperators:\n", 1)
    text = text.replace(
        "outputs:\n", "  T: {run: pass, in: t, cost: 1 us}\noutputs:\n  t: {from: T, at: a, deadline: 3 s}\n"
    )
    (folder / "query.yaml").write_text(text)
    done = _run(folder, "adapt", "--write")
    assert done.faults == ["query.yaml not_in_place sources.s.arrival.burst"]
    assert done.code == 2 and (folder / "query.yaml").read_text() == text


OTHER = """\
shimekiri: 1
query: tanks
sources:
  s: {at: a, type: json, arrival: {burst: 4, period: 100 ms}, max_age: 1 ms}
operators:
  Y: {run: filter, in: s, cost: 1 ms, with: {keep: 1, of: 2}}
outputs:
  y: {from: Y, at: a, deadline: 300 ms}
"""


def test_a_source_that_two_queries_share_changes_where_both_allow_it(folder: Path) -> None:
    files = "query.yaml tanks.yaml cluster.yaml"
    (folder / "tanks.yaml").write_text(OTHER)
    alone = _run(folder, "adapt", "--write", "--time-limit", "20", files=files)
    assert alone.code == 3 and "sources.s.arrival.burst stays as it is" in alone.err
    assert (folder / "query.yaml").read_text() == QUERY and (folder / "tanks.yaml").read_text() == OTHER
    (folder / "tanks.yaml").write_text(OTHER + "may_change: {sources.s.arrival.burst: 1..4}\n")
    both = _run(folder, "adapt", "--write", files=files)
    assert both.code == 0, both.err
    assert (folder / "query.yaml").read_text() == ADAPTED
    assert "arrival: {burst: 2, period: 100 ms}" in (folder / "tanks.yaml").read_text()
    assert _run(folder, "plan", files=files).code == 0


def test_a_cost_that_is_measured_has_no_range(folder: Path) -> None:
    text = QUERY.replace("outputs.x.deadline: 50..70 ms", "operators.X.cost: 5..20 ms")
    (folder / "query.yaml").write_text(text)
    times = "mean: 20 ms, p99: 20 ms, worst: 20 ms, elapsed: 20 ms, cv: 0.1"
    figures = f"{{{times}, samples: 10, measured: '2026-01-01T00:00Z', plan: '0a0a0a0a'}}"
    (folder / "costs.yaml").write_text(f"shimekiri: 1\ncosts: {{pumps: {{X: {{run: pass, on: {{a: {figures}}}}}}}}}\n")
    done = _run(folder, "adapt", "--costs", "costs.yaml")
    assert done.faults == ["query.yaml:15 measured_cost operators.X.cost"], (done.err, done.out)
