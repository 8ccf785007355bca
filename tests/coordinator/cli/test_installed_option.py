"""`--installed FILE`: a list of operators that was made elsewhere, in place of the one that the cluster file names."""

import json
import shlex
from pathlib import Path

import pytest

from coordinator.plan import plan_file
from tests.command_line import Said, run

QUERY = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 1 s}, max_age: 1 ms}
operators:
  f: {run: t.tens, in: s, cost: 1 ms}
outputs:
  o: {from: f, at: a, deadline: DEADLINE}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700"}}
operators: gone.json
security: insecure-loopback
"""
TENS = {"version": "1", "code": "0" * 64, "kind": "map", "inputs": {"n": "json"}, "output": "json", "with": {}}


def coordinator(folder: Path, *arguments: str) -> Said:
    return run(folder, shlex.join(["coordinator", *arguments]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A query, a cluster whose own list is missing, and a list in a folder of its own."""
    (tmp_path / "query.yaml").write_text(QUERY.replace("DEADLINE", "50 ms"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "device").mkdir()
    listing = {"shimekiri": 1, "codecs": ["json"], "operators": {"t.tens": TENS}}
    (tmp_path / "device" / "operators.json").write_text(json.dumps(listing))
    return tmp_path


GIVEN = ("query.yaml", "cluster.yaml", "--installed", "device/operators.json")


def test_a_plan_is_made_with_the_list_that_is_given(folder: Path) -> None:
    refused = coordinator(folder, "plan", *GIVEN[:2])
    assert refused.code == 2 and refused.faults == ["cluster.yaml:4 unreadable operators"]
    done = coordinator(folder, "plan", *GIVEN, "--json")
    assert done.code == 0, done.err
    installed = plan_file.read(folder / "plan.json").cluster.installed
    assert list(installed.operators) == ["t.tens"] and installed.operators["t.tens"].code == "0" * 64


def test_a_cluster_that_names_no_list_takes_it_as_well(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(CLUSTER.replace("operators: gone.json\n", ""))
    assert coordinator(folder, "plan", *GIVEN).code == 0


def test_a_list_that_is_not_there_is_told(folder: Path) -> None:
    done = coordinator(folder, "plan", *GIVEN[:3], "nowhere.json")
    assert done.code == 2 and done.faults == ["cluster.yaml:4 unreadable operators"]
    assert f"'{folder / 'nowhere.json'}' cannot be read" in done.err


def test_changes_and_explanations_take_it_too(folder: Path) -> None:
    assert coordinator(folder, "plan", *GIVEN, "--what-if", "f.cost=2 ms").code == 0
    (folder / "query.yaml").write_text(QUERY.replace("DEADLINE", "1500 us"))
    impossible = coordinator(folder, "plan", *GIVEN)
    assert impossible.code == 3
    (hint,) = [line for line in impossible.err.splitlines() if "coordinator explain" in line]
    command = hint.partition("coordinator explain ")[2].partition(";")[0]
    assert "--installed device/operators.json" in command
    assert coordinator(folder, "explain", *shlex.split(command), "--time-limit", "0").code == 0


def test_a_plan_has_its_operators(folder: Path) -> None:
    assert coordinator(folder, "plan", *GIVEN).code == 0
    done = coordinator(folder, "explain", "plan.json", *GIVEN[2:])
    assert done.code == 2 and "a plan has its operators: plan again" in done.err
