"""Every reproduction runs, small; what does not depend on its size is as the page tells it."""

import json
from functools import cache
from pathlib import Path

import pytest

from infra.papers import results
from infra.papers.claims import holds
from infra.papers.page import page
from infra.papers.registry import PAPERS, REPRODUCTIONS, named
from infra.papers.reproduction import Curve, Figure, Plot, Reproduction, forget, keep, read
from tests.sampling import sample


@cache
def figures(reproduction: Reproduction) -> dict[str, Figure]:
    return {each.name: each for each in reproduction.run("tiny", lambda what: None)}


@pytest.mark.parametrize("reproduction", sample(REPRODUCTIONS, 4), ids=lambda each: each.key)
def test_every_reproduction_runs_small(reproduction: Reproduction, tmp_path: Path) -> None:
    """And what it says can be written, drawn and put in a table; fixed ones say what the page says."""
    made = figures(reproduction)
    assert made and all(each.claims or each.findings for each in made.values()), "a row without a check"
    keep(reproduction.paper, made.values(), "full", tmp_path)
    written = read(tmp_path / f"{reproduction.paper}.json")
    assert {name: each.figure for name, each in written.items()} == made
    assert "Plotly.newPlot" in page(PAPERS[reproduction.paper], written)
    if reproduction.fixed:
        assert results.differences(tmp_path) == []


def test_the_page_tells_every_figure_of_a_verdict_once() -> None:
    told = results.PAGE.read_text()
    rows = results.rows()
    for reproduction in REPRODUCTIONS:
        for name in figures(reproduction) if reproduction.fixed else ():
            assert told.count(f"\n| {name} | ") == 1 and name in rows


def test_a_short_run_does_not_get_into_the_page(tmp_path: Path) -> None:
    keep("placement", [Figure("figure 0", [], {"x": 1})], "quick", tmp_path)
    with pytest.raises(ValueError, match="--quick"):
        results.write(tmp_path)


def test_figures_are_replaced_by_name_and_others_stay(tmp_path: Path) -> None:
    plot = Plot("t", "x", "y", [Curve("ours", [1, 2], [0.5, None]), Curve("ours, printed", [1], [0.4], printed=True)])
    keep(
        "placement",
        [Figure("a", [], {"x": 1}), Figure("b", [holds("x is 2", [1 == 2])], {"x": 1})],
        "full",
        tmp_path,
    )
    keep("placement", [Figure("a", [], {"x": 3}, seeds=[1], plots=[plot])], "full", tmp_path)
    kept = json.loads((tmp_path / "placement.json").read_text())
    forget("placement", ["b"], tmp_path)
    assert set(read(tmp_path / "placement.json")) == {"b"}
    assert kept["a"]["measured"] == {"x": 3} and kept["b"]["reproduces"] == "no"
    assert kept["a"]["plots"][0]["curves"][1]["printed"] is True


def test_names_are_papers_or_reproductions() -> None:
    assert [each.key for each in named(["placement.figure6"])] == ["placement.figure6"]
    assert len(named(["placement"])) > 1 and named([]) == list(REPRODUCTIONS)
    with pytest.raises(ValueError, match=r"placement\.figure6"):
        named(["figure66"])
