"""Brakes as a user writes them, and the drivers that are drawn."""

from dataclasses import replace
from statistics import fmean, stdev

import pytest

from sim_vehicles.encounter.brake import AUTO, DRIVER, NONE, Brake
from sim_vehicles.encounter.brake_option import parse_brake
from tests.sentences import Wording

SAID = Wording("replay", "brake")


def test_ways_to_brake_as_a_user_writes_them() -> None:
    assert parse_brake("auto") == AUTO == Brake("auto", 7.0, 0.2, 0.3)
    assert parse_brake("driver") == DRIVER
    assert parse_brake("none") == NONE
    assert parse_brake("auto:deceleration=5.5, actuation=150ms") == Brake("auto", 5.5, 0.15)
    assert parse_brake("auto:build-up=0s,friction=0.3") == replace(AUTO, build_up_s=0.0, friction=0.3)
    assert parse_brake("driver:reaction=1.5s,spread=0s") == replace(DRIVER, reaction_s=1.5, reaction_sd_s=0.0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "unknown_word"), ("hard", "unknown_word"), ("auto:", "wrong_form"), ("auto:7,0.2s", "wrong_form"),
        ("auto:reaction=1s", "wrong_form"), ("none:friction=1", "wrong_form"), ("auto:friction=", "wrong_form"),
        ("auto:friction=1,friction=1", "given_twice"), ("auto:deceleration=x", "no_number"),
        ("auto:deceleration=0", "out_of_range"), ("auto:deceleration=nan", "out_of_range"),
        ("auto:deceleration=99", "out_of_range"), ("auto:friction=0", "out_of_range"),
        ("auto:actuation=1", "no_unit"), ("auto:build-up=1h", "no_unit"), ("driver:reaction=11s", "out_of_range"),
    ],
)  # fmt: skip
def test_a_brake_that_cannot_be_is_refused_with_its_mend(text: str, code: str) -> None:
    with SAID.refuses(f"{code} --brake"):
        parse_brake(text)


def test_drivers_differ_by_seed_and_phase_and_by_nothing_else() -> None:
    one = DRIVER.drawn(1, 25_000_000)
    assert one == DRIVER.drawn(1, 25_000_000) == one.drawn(2, 0), "who is drawn stays"
    assert len({DRIVER.drawn(seed, phase).reaction_s for seed in range(3) for phase in range(3)}) == 9
    assert replace(one, reaction_s=1.25, reaction_sd_s=0.46) == DRIVER
    softer = replace(DRIVER, deceleration_mps2=3.0)
    assert softer.drawn(1, 25_000_000).reaction_s == one.reaction_s
    assert AUTO.drawn(1, 0) is AUTO


def test_reactions_have_the_mean_and_spread_that_were_asked_for() -> None:
    drawn = [DRIVER.drawn(seed, 0).reaction_s for seed in range(4000)]
    assert min(drawn) > 0
    assert fmean(drawn) == pytest.approx(1.25, abs=0.03)
    assert stdev(drawn) == pytest.approx(0.46, abs=0.03)
