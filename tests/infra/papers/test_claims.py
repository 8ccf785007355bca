"""Bands and verdicts by their definitions, and that no row of the page goes without a check."""

import ast
import statistics
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.papers.claims import SHARE, Band, Claim, always, holds, number, undetermined, value
from infra.papers.reproduction import Figure, finding, said, spoken

ROOM = Path(__file__).parents[3] / "infra" / "papers"
VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_a_band_is_the_median_and_the_outer_tenths(values: list[float]) -> None:
    band = Band.of(values)
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    assert (band.low, band.high) == pytest.approx((tenths[0], tenths[-1]))
    assert band.median == pytest.approx(statistics.median(values))


@given(values=VALUES)
def test_a_band_does_not_depend_on_the_order_and_lies_within_its_values(values: list[float]) -> None:
    band = Band.of(values)
    assert band == Band.of(reversed(values))
    tenths = [min(values), band.low, band.median, band.high, max(values)]
    assert all(low <= high + 1e-6 for low, high in pairwise(tenths))
    assert (band.quantile(0), band.quantile(1)) == pytest.approx((min(values), max(values)))


def test_a_band_needs_a_value() -> None:
    with pytest.raises(ValueError, match="needs a value"):
        Band.of([])
    assert str(Band.of([2.5])) == "2.5" and str(Band.of([0, 100])) == "50 [10, 90]"


@given(values=VALUES, printed=st.floats(-1e6, 1e6), width=st.one_of(st.none(), st.floats(0, 1e6)))
def test_a_printed_value_reproduces_inside_of_the_band_only(
    values: list[float], printed: float, width: float | None
) -> None:
    band, last = Band.of(values), printed + (width or 0)
    claim = value("x", band, printed, None if width is None else last)
    inside = band.low <= printed and last <= band.high
    assert claim.verdict == ("yes" if inside else "no")
    assert claim.found.startswith("inside") == inside and str(band) in claim.found
    assert claim.found.startswith("above") == (printed > band.high)
    assert claim.found.startswith("below") == (last < band.low and not printed > band.high)


@given(cases=st.lists(st.booleans(), min_size=1, max_size=40))
def test_a_statement_holds_in_its_share_of_the_cases(cases: list[bool]) -> None:
    share = cases.count(True) / len(cases)
    assert holds("x", cases).verdict == ("yes" if share >= SHARE else "no")
    assert always("x", cases, "runs").verdict == ("yes" if all(cases) else "no")
    assert f"{cases.count(True)} of {len(cases)} runs" in always("x", cases, "runs").found


def test_a_statement_of_which_nothing_was_checked_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was checked"):
        holds("x", [])


def test_a_figure_is_as_good_as_the_worst_of_its_claims() -> None:
    yes, no, open_ = holds("a", [True]), holds("b", [False]), undetermined("c", "the costs are not printed")
    worst = {(): None, (yes,): "yes", (yes, open_): "not determined", (yes, open_, no): "no"}
    for claims, verdict in worst.items():
        assert Figure("f", list(claims), {}, [no]).reproduces == verdict


def test_verdicts_and_findings_are_written_with_what_was_found() -> None:
    assert said(value("30 below", Band.of([1, 2, 3]), 30)) == "30 below: no (above 2 [1.2, 2.8])"
    assert finding(holds("batches beat tasks", [True])) == "Batches beat tasks (in 1 of 1 draws)."
    assert finding(always("k never grows", [True, False], "runs")).startswith("Does not hold: k never grows (in 1 of 2")
    assert said(undetermined("x", "y")) == "x: not determined (y)"
    assert (spoken([1, 2, 3]), spoken([1, 3]), number(1234.5), number(0.0154)) == ("1 to 3", "1, 3", "1234", "0.0154")


def test_no_verdict_is_written_down_as_a_constant() -> None:
    """A check with True or False in it cannot fail; a claim that is made by hand has no check."""
    for file in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("holds", "always"):
                options = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.keyword)}  # zip(strict=)
                bare = [each for each in ast.walk(node) if isinstance(each, ast.Constant) and id(each) not in options]
                assert not [each for each in bare if isinstance(each.value, bool)], (file, node.lineno)
            assert node.func.id != "Claim" or file.name in ("claims.py", "reproduction.py"), (file, node.lineno)


def test_a_claim_is_a_plain_value() -> None:
    assert Claim("x", "yes", "y") == Claim("x", "yes", "y")
