"""What every command takes alike: -h, -q and -v, and what they leave out or add."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coordinator.__main__ import main
from coordinator.cli import lines
from tests.coordinator.conftest import EXAMPLE


def _run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["coordinator", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_plan_in_brief_and_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("plan", *EXAMPLE, "-o", tmp_path / "plan.json", "--best-effort")
    assert _run(monkeypatch, *given) == 0
    brief = capsys.readouterr().out.splitlines()
    assert _run(monkeypatch, *given, "-v") == 0
    whole = capsys.readouterr().out.splitlines()
    assert len(brief) < len(whole) and "outputs guaranteed" in brief[0]
    assert len(set(brief)) == len(brief), "no line is said twice"
    assert brief[-1].endswith("plan.json; -v tells more")
    assert any(line.startswith("model sound: ") for line in whole)
    assert not any(line.startswith("model sound: ") for line in brief)


def test_quiet_leaves_progress_out_and_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lines, "_quiet", False)
    assert _run(monkeypatch, "validate", *EXAMPLE, "-q") == 0
    assert "valid" in capsys.readouterr().out and lines.is_quiet()
    lines.tell("goes on")
    lines.tell("an operator failed", "operator_failed")
    assert capsys.readouterr().err == "an operator failed\n"
    assert _run(monkeypatch, "validate", "none.yaml", "-q") == 2
    assert "none.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("-h",), ("deploy", "-h"), ("deploy", "--help")])
def test_help_by_either_name(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, *words) == 0
    assert "-h, --help" in capsys.readouterr().out
