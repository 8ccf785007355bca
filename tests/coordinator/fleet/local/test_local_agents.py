"""Local agents that cannot start: why, in the words of this start alone."""

from pathlib import Path

import pytest

from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, LocalAgentError, Wanted
from tests.coordinator.wording import has


def test_the_last_words_are_those_of_this_start(tmp_path: Path) -> None:
    (tmp_path / "agent.log").write_text("of an agent before\n")
    with pytest.raises(LocalAgentError) as said:
        local_agents.start([Wanted("bad name", "127.0.0.1:0", "127.0.0.1:0", tmp_path)])
    assert "letters" in str(said.value) and "before" not in str(said.value)


def test_a_state_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalAgentError, check=has(("unwritable", "a"))):
        local_agents.start([Wanted("a", "127.0.0.1:0", "127.0.0.1:0", tmp_path / "file" / "a")])


SAID = {
    "what went wrong, of words": "2026-01-01T00:00:00.000Z a supervisor: ready\n"
    "2026-01-01T00:00:00.000Z a supervisor error: port 7 is taken\n",
    "what went wrong, of JSON": '{"level":"info","text":"ready"}\n{"level":"error","text":"port 7 is taken"}\n',
}


@pytest.mark.parametrize("log", SAID.values(), ids=SAID)
def test_the_last_words_are_what_went_wrong(tmp_path: Path, log: str) -> None:
    (tmp_path / "agent.log").write_text(log)
    agent = LocalAgent(Wanted("a", "127.0.0.1:0", "127.0.0.1:0", tmp_path), None)  # type: ignore[arg-type]
    assert agent.last_words() == "port 7 is taken"
    (tmp_path / "agent.log").write_text("".join(log.splitlines(keepends=True)[:1]))
    assert agent.last_words() == "ready"
