"""The demo leaves no agents behind, whenever it is interrupted."""

import signal
from pathlib import Path

import pytest

from coordinator.spec import input_files
from infra import demo


class Commands:
    """In place of `demo.run`: notes each command, and is interrupted at some of them, counted from 0."""

    def __init__(self, interrupted: set[int], writes_addresses: bool = True) -> None:
        self.interrupted, self.writes_addresses = interrupted, writes_addresses
        self.names: list[str] = []

    def __call__(self, program: str, name: str, *arguments: str | Path, fine: tuple[int, ...] = (0,)) -> str:
        self.names.append("virtual" if "--virtual" in arguments else name)
        if name == "up" and self.writes_addresses:
            Path(arguments[arguments.index("--addresses") + 1]).write_text("{}")
        if len(self.names) - 1 in self.interrupted:
            raise KeyboardInterrupt
        return ""


def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands) -> list[str]:
    """The commands of a demo that was interrupted."""
    monkeypatch.setattr(demo, "run", commands)
    with pytest.raises(KeyboardInterrupt):
        demo.play(demo.PAPER, demo.PAPER.variants[0], tmp_path / "way")
    return commands.names


@pytest.mark.parametrize("at", [2, 3, 4, 5])
def test_agents_are_stopped_when_a_command_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    commands = ["plan", "virtual", "up", "deploy", "replay", "collect"]
    assert played(tmp_path, monkeypatch, Commands({at})) == [*commands[: at + 1], "down"]


def test_stopping_that_is_interrupted_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = played(tmp_path, monkeypatch, Commands({4, 5}))
    assert names == ["plan", "virtual", "up", "deploy", "replay", "down", "down"]


def test_agents_that_were_never_there_are_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert played(tmp_path, monkeypatch, Commands({2}, writes_addresses=False)) == ["plan", "virtual", "up"]


def test_a_policy_by_name_is_the_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = demo.under(["qed", "bts:phi=10ms,k=5"])
    assert case.query == demo.PAPER.query
    (qed, bts) = case.variants
    assert qed.policy == "qed" and bts.folder == "deadline-bts-phi-10ms-k-5"
    words: list[str | Path] = []

    def first(*arguments: str | Path, **_: object) -> str:
        words.extend(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", first)
    with pytest.raises(KeyboardInterrupt):
        demo.play(case, bts, tmp_path / "way")
    assert words[words.index("--policy") + 1] == "bts:phi=10ms,k=5"


def test_a_policy_for_virtual_time_is_refused_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--policy", "ideal"]) == 2
    assert "its decisions cost nothing" in capsys.readouterr().err


def test_a_second_signal_is_ignored() -> None:
    before = {each: signal.getsignal(each) for each in demo.ENDING}
    try:
        with pytest.raises(KeyboardInterrupt):
            demo.interrupt(signal.SIGINT, None)
        assert all(signal.getsignal(each) is signal.SIG_IGN for each in demo.ENDING)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_without_its_limit_the_query_is_the_same_but_for_what_it_declares(tmp_path: Path) -> None:
    """All that comes goes on; declared is as much as a placement has room for."""
    path = tmp_path / "query.yaml"
    path.write_text(demo.all_in(demo.STREETS.query.read_text()))
    ours, _, _ = input_files.read_files(demo.STREETS.query, None)
    theirs, _, _ = input_files.read_files(path, None)
    assert (ours.operators, ours.outputs, ours.sources[1:]) == (theirs.operators, theirs.outputs, theirs.sources[1:])
    assert ours.sources[0].limit is not None and theirs.sources[0].limit is None
    assert theirs.sources[0].arrival.burst == 20
    assert theirs.sources[0].max_age_ns == 10**9
