"""`coordinator help`: what an error code means, and the line that leads there from an error without a mend."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from coordinator import error_codes, error_reference
from coordinator.cli import app, completion
from coordinator.errors import CoordinatorError, Mistake
from infra import error_remedies
from node_agent import error_codes as agent_codes
from sim_vehicles import error_codes as vehicle_codes
from tests.command_line import run

CODES = {
    "coordinator": set(get_args(error_codes.Code)),
    "node_agent": set(get_args(agent_codes.Code)),
}
PAGES = CODES | {"sim_vehicles": set(get_args(vehicle_codes.Code))}
RAW = json.loads(error_reference.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("program", CODES)
def test_every_code_has_a_sentence_and_what_to_do(program: str) -> None:
    assert RAW[program].keys() == CODES[program]
    for code, entry in RAW[program].items():
        assert all(place["sentence"] and place["where"] for place in entry["places"]), code
        assert entry["places"], code
        assert entry["remedy"] or any(place["mend"] for place in entry["places"]), code


@pytest.mark.parametrize("program", CODES)
def test_what_is_written_by_hand_is_used(program: str) -> None:
    for code in error_remedies.REMEDIES[program]:
        assert any(not place["mend"] for place in RAW[program][code]["places"]), code
    assert [code for code in error_remedies.SENTENCES[program] if len(RAW[program][code]["places"]) != 1] == []


@pytest.mark.parametrize("program", PAGES)
def test_the_page_has_every_code(program: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "errors" / f"{program}.md"
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == PAGES[program]
    rows = re.findall(r"^\| (?:`(\w+)`)? \| .* \|(.*)\|$", text, re.MULTILINE)
    said: dict[str, bool] = {}
    for code, remedy in rows:
        last = code or list(said)[-1]
        said[last] = said.get(last, False) or bool(remedy.strip())
    assert [code for code, has in said.items() if not has] == []


def test_a_code_is_explained(tmp_path: Path) -> None:
    said = run(tmp_path, "coordinator help hop_beyond_length")
    assert said.code == 0
    assert said.out.startswith(
        "hop_beyond_length (coordinator)\n  query.yaml, cluster.yaml, costs.yaml: KEY has a hop of"
    )
    assert "to do: make the hop at most" in said.out


def test_a_code_of_several_programs_is_explained_for_each(tmp_path: Path) -> None:
    said = run(tmp_path, "coordinator help not_ready")
    assert re.findall(r"^\w+ \((\S+)\)$", said.out, re.MULTILINE) == ["coordinator", "node-agent"]


def test_an_unknown_code_names_the_nearest(tmp_path: Path) -> None:
    said = run(tmp_path, "coordinator help unknown_nod")
    assert (said.code, said.out) == (2, "")
    assert "unknown_node" in said.err and len(said.err.splitlines()) == 1


def test_a_misspelt_command_names_that_command(tmp_path: Path) -> None:
    said = run(tmp_path, "coordinator help plann")
    assert said.code == 2 and "did you mean plan or " in said.err


def test_a_command_has_its_help(tmp_path: Path) -> None:
    assert run(tmp_path, "coordinator help plan").out == run(tmp_path, "coordinator plan --help").out
    assert "deploy" in run(tmp_path, "coordinator help").out


def test_completion_offers_codes() -> None:
    assert completion.codes("hop_be") == ["hop_beyond_length"]
    assert set(completion.codes("")) == set.union(*CODES.values())


def test_an_error_without_a_mend_leads_to_its_entry() -> None:
    silent, mended = Mistake("not_ready", "the agent was not ready"), Mistake("no_node", "names no node", "name one")
    assert error_reference.hint([silent]) == "'coordinator help not_ready' has what to do"
    assert error_reference.hint([silent, mended]) == ""
    assert error_reference.hint([Mistake("not_ready", "the agent was not ready; wait")]) == ""
    assert error_reference.hint([Mistake("hop_beyond_length", "a code without a remedy")]) == ""


def test_the_line_is_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise CoordinatorError(*(Mistake("not_ready", f"agent {name} was not ready") for name in "ab"))

    app.register()
    monkeypatch.setattr(app, "app", fail)
    said = run(tmp_path, "coordinator status")
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines() == [
        "agent a was not ready", "agent b was not ready", "'coordinator help not_ready' has what to do",
    ]  # fmt: skip
