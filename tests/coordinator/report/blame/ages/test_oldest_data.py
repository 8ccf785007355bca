"""Who made the data old: on one clock the hops of the oldest datum are the whole of a result's age."""

from pathlib import Path

import pytest

from coordinator.report.blame.ages.oldest_data import with_hops
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from tests.coordinator.report.aged_worlds import world
from tests.coordinator.report.ledger.test_report_ages_of_ports import two_ports
from tests.coordinator.report.synthetic import MS
from tests.seeds import seeds


@pytest.mark.parametrize("seed", seeds(range(8)))
def test_the_hops_of_an_age_are_the_whole_of_it(seed: int, tmp_path: Path) -> None:
    world(seed, ["a"], tmp_path / "run")
    run = read_run(tmp_path / "run")
    for name, found in with_hops(run, verdict(run)).items():
        age = found.age
        assert age is not None
        if age.worst:
            above = [each for each in age.worst if each.age_least_ns > age.limit_ns] or age.worst[:1]
            whole = sum(each.age_ns or 0 for each in above)
            assert age.blamed == len(above)
            assert abs(sum(hop.mean_ns for hop in age.hops) - whole // len(above)) <= len(age.hops), (name, seed)
            assert not [hop for hop in age.hops if hop.kind == "rest"], (name, seed, age.hops)


def test_between_clocks_little_is_left_unexplained(tmp_path: Path) -> None:
    world(3, ["a", "b"], tmp_path / "run")
    run = read_run(tmp_path / "run")
    shares = {
        name: sum(hop.share or 0 for hop in found.age.hops if hop.kind == "rest")
        for name, found in with_hops(run, verdict(run)).items()
        if found.age is not None
    }
    assert max(shares.values()) < 0.3, shares


def test_a_value_that_was_too_old_by_its_origin_is_not_blamed(tmp_path: Path) -> None:
    run = read_run(two_ports(10, 10, way_ms=19).save(tmp_path / "run"))
    age = with_hops(run, verdict(run))["moves"].age
    assert age is not None and age.age_ns.max == MS
    assert {hop.kind for hop in age.hops} == {"run"} and sum(hop.mean_ns for hop in age.hops) == MS
