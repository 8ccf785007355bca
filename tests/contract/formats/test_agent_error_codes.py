"""Codes of mistakes outside the coordinator: named once, in snake case, and given by some room of their package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import node_agent
import sim_vehicles
from node_agent import error_codes as agents
from protos import plan_document, policies
from sim_vehicles import error_codes as vehicles
from tests import sentences

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize(("package", "code"), [(node_agent, agents.Code), (sim_vehicles, vehicles.Code)])
def test_every_code_is_named_once_and_given_somewhere(package: object, code: object) -> None:
    codes = get_args(code)
    assert len(set(codes)) == len(codes)
    room = Path(str(getattr(package, "__file__", ""))).parent
    sources = [path for path in room.rglob("*.py") if path.name != "error_codes.py"]
    written = "".join(path.read_text() for path in (*sources, Path(plan_document.__file__), Path(policies.__file__)))
    given = set(re.findall(r'"([a-z0-9_]+)"', written))
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", each) for each in codes)
    assert [each for each in codes if each not in given] == []


def test_every_group_of_sentences_is_compared_by_one_file() -> None:
    by_group: dict[tuple[str, str], set[Path]] = {}
    for path in TESTS.rglob("test_*.py"):
        for command, group in re.findall(r'Wording\("([^"]+)", "([^"]+)"\)', path.read_text()):
            by_group.setdefault((command, group), set()).add(path)
    kept = {(path.stem, group) for path in sentences.FOLDER.glob("*.json") for group in sentences.read(path.stem)}
    assert kept == by_group.keys()
    assert [group for group, paths in by_group.items() if len(paths) != 1] == []


def test_an_entry_that_nothing_compares_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "FOLDER", tmp_path)
    monkeypatch.setattr(sentences, "_checked", {})
    monkeypatch.setattr(sentences, "WRITES", False)
    (tmp_path / "plan.json").write_text('{"cluster": {"one": ["a"], "two": ["b"]}, "other": {"three": ["c"]}}')
    said = sentences.Wording(*("plan", "cluster"))
    said.check("one", ["a"])
    assert sentences.stale() == ["plan cluster: two"]
    with pytest.raises(AssertionError):
        said.check("two", ["a"])
    assert sentences.stale() == []
