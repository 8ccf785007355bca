"""What the page says of random queries follows from what came out, not from what was expected."""

import pytest

from infra.papers.conventional import method_comparison as comparison
from infra.papers.conventional.method_outcomes import Outcome, Reason, mean_share, share_held
from infra.papers.conventional.methods import METHODS, OURS
from infra.papers.reproduction import Figure


def outcome(number: int, held: set[str], reason: Reason | None = None) -> Outcome:
    shares = {method.name: [0.5, 1.0 if method.name in held else 1.5] for method in METHODS}
    return Outcome(number, 0.5, shares, accepted=True, reason=reason)


def figures(monkeypatch: pytest.MonkeyPatch, found: list[Outcome]) -> dict[str, Figure]:
    monkeypatch.setattr(comparison, "outcomes", lambda seeds, level: iter(found))
    made = comparison.random_queries("tiny", lambda what: None)
    return {each.name.removeprefix("conventional: random queries").strip(" ,"): each for each in made}


EVERY = {method.name for method in METHODS}


def verdict(figure: Figure, begins: str) -> str:
    (found,) = (each.verdict for each in figure.findings if each.says.startswith(begins))
    return found


def test_it_says_so_where_a_conventional_method_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    made = figures(monkeypatch, [outcome(1, EVERY), outcome(2, {"HOPA"}, Reason.SEARCH)])
    shares = made["with every output in time (%)"]
    assert shares.measured["HOPA"] == "0.5: 100; in all 2" and shares.measured["ours"] == "0.5: 50; in all 1"
    assert verdict(shares, "ours holds as many") == "no"
    assert verdict(shares, "of fixed priorities none holds more than HOPA") == "yes"
    better = made["where a conventional method is better than ours"]
    assert better.measured["in time by some conventional method, not by ours"] == 1
    assert better.measured["of these by search"] == 1 and better.measured["of these by sums"] == 0
    assert verdict(better, "sums are no reason") == "yes"
    assert verdict(better, "more are in time by ours alone") == "no"


def test_it_says_so_where_sums_are_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    made = figures(monkeypatch, [outcome(1, {"HOPA"}, Reason.SUMS)])
    better = made["where a conventional method is better than ours"]
    assert better.measured["of these by sums"] == 1 and verdict(better, "sums are no reason") == "no"
    assert verdict(made["with every output in time (%)"], "ours holds queries that the holistic") == "no"


def test_it_says_so_where_ours_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = figures(monkeypatch, [outcome(1, EVERY), outcome(2, {"ours"})])
    shares = made["with every output in time (%)"]
    assert verdict(shares, "ours holds as many") == "yes"
    assert verdict(shares, "ours holds queries that the holistic") == "yes"
    better = made["where a conventional method is better than ours"]
    assert better.measured["in time by ours, by no conventional method"] == 1
    assert verdict(better, "more are in time by ours alone") == "yes"


def test_shares_and_means_by_hand() -> None:
    of = [outcome(1, EVERY), outcome(2, set())]
    assert share_held(of, OURS) == 50
    assert mean_share(of, OURS) == 0.75
    assert mean_share(of[1:], OURS) is None
