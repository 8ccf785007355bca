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


def test_it_says_so_where_a_conventional_method_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    made = figures(monkeypatch, [outcome(1, EVERY), outcome(2, {"HOPA"}, Reason.SEARCH)])
    shares = made["with every output in time (%)"]
    assert "HOPA (fixed priorities: 2)" in shares.why and "Ours has 1, 1 fewer than" in shares.why
    better = made["where a conventional method is better than ours"]
    assert better.measured["in time by some conventional method, not by ours"] == 1
    assert better.why.startswith(f"1: {Reason.SEARCH.value}")


def test_it_says_so_where_ours_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = figures(monkeypatch, [outcome(1, EVERY), outcome(2, {"ours"})])
    assert "Ours has 2, 1 more than the best conventional method" in made["with every output in time (%)"].why
    better = made["where a conventional method is better than ours"]
    assert better.measured["in time by ours, by no conventional method"] == 1 and better.why == "No query is."


def test_shares_and_means_by_hand() -> None:
    of = [outcome(1, EVERY), outcome(2, set())]
    assert share_held(of, OURS) == 50
    assert mean_share(of, OURS) == 0.75
    assert mean_share(of[1:], OURS) is None
