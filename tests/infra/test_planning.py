"""`make bench-planner`: a part runs alone, and the figures of the others stay."""

import json
from functools import partial
from pathlib import Path

import pytest

from infra.bench import figures
from infra.bench.figures import Figure
from infra.planning import __main__ as planning


def test_a_part_alone_leaves_the_figures_of_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "bench-planner.json"
    monkeypatch.setattr(planning, "OUT", out)
    two = [Figure("two", 3.0, "s", None, "")]
    for one, chosen in ((1.0, ["one", "two"]), (2.0, ["one"])):
        made = {"one": [Figure("one", one, "s", 1.5, "as said")], "two": two}
        monkeypatch.setattr(planning, "PARTS", {name: partial(list, each) for name, each in made.items()})
        assert planning.main(chosen) == 0
    found = json.loads(out.read_text())
    assert [(name, each["value"], each["ok"]) for name, each in found.items()] == [("one", 2, False), ("two", 3, True)]
    figures.write([Figure("three", 1.0, "s", None, "")], out)
    assert list(json.loads(out.read_text())) == ["three"]


def test_an_unknown_part_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        planning.main(["gap"])
    said = capsys.readouterr().err
    assert "no part gap" in said and all(name in said for name in planning.PARTS)
