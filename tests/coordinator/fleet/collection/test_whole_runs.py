"""A run is everything that ran: every plan since the last collection, on every node, with nothing but the addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.fleet.collection import collect
from coordinator.fleet.collection.run_plans import RunPlans
from coordinator.fleet.deployment import deploy
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.report.facts.reader import Run, read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from protos.plan_document import Plan
from tests.coordinator.fleet.deployment.test_deploy_live import Street, cli


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    street.close()


def deploy_next(street: Street, deadline: str) -> Plan:
    """Another plan of the same query takes the place of the one that runs."""
    query = street.root / "query.yaml"
    query.write_text(query.read_text().replace("deadline: 2 s", f"deadline: {deadline}"))
    made = planner.make_plan(query, street.root / "cluster.yaml", Choices(model="paper"))
    street.plan = made
    plan_file.write(street.plan, street.root / "plan.json")
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
    return street.plan


def collected(street: Street, *words: str) -> Run:
    done = cli("collect", "--addresses", "addresses.json", *words, cwd=street.root)
    assert done.returncode == 0, done.stderr
    return read_run(street.root / done.stdout.strip())


def test_a_machine_with_the_addresses_alone_collects_all_plans(street: Street) -> None:
    first = street.plan
    with street.connect() as agents:
        deploy.deploy(first, agents)
    assert street.send(20) == 20
    second = deploy_next(street, "3 s")
    assert street.send(30) == 30
    for path in street.root.glob("plan*.json"):
        path.unlink()
    run = collected(street)
    assert (run.plan.hash, run.earlier) == (second.hash, (first.hash,))
    report = verdict(run).document()
    assert report["completeness"]["complete"] and report["conservation"]["balanced"]
    assert report["conservation"]["admitted"] == report["conservation"]["accounted"] == 50
    assert sum(each["other_plans"] for each in report["completeness"]["incarnations"]) == 0
    third = deploy_next(street, "4 s")
    assert street.send(10) == 10
    again = collected(street)
    assert (again.plan.hash, again.earlier) == (third.hash, ()), "what was collected is no part of the next run"
    assert verdict(again).document()["conservation"]["admitted"] == 10
    empty = cli("collect", cwd=street.root)
    assert empty.returncode == 1 and "nothing has run on these nodes" in empty.stderr


def test_a_collection_that_is_killed_before_plan_json_is_the_latest_is_gone_on_with(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = street.plan
    with street.connect() as agents:
        deploy.deploy(first, agents)
    assert street.send(20) == 20
    run = collect.new_run(street.root / "runs", first, None, street.root / "addresses.json")
    with street.connect() as agents:
        collect.collect(run, first, agents, over=False)
    second = deploy_next(street, "3 s")
    assert street.send(10) == 10
    with monkeypatch.context() as killed, pytest.raises(GeneratorExit), street.connect() as agents:
        killed.setattr(RunPlans, "write_last", _killed)
        collect.collect(run, collect.last_plan(run), agents, over=False)
    found = collected(street, "--resume", str(run))
    assert (found.plan.hash, found.earlier) == (second.hash, (first.hash,))
    assert verdict(found).document()["conservation"]["admitted"] == 30


def _killed(_: RunPlans) -> None:
    raise GeneratorExit


@pytest.fixture
def bereft(street: Street) -> Street:
    """20 tuples were sent, then both agents were killed, and a bit of each state.json flipped."""
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
    assert street.send(20) == 20
    for name in street.agents:
        street.kill(name)
        path = street.root / "state" / name / "plans" / "state.json"
        data = bytearray(path.read_bytes())
        data[30] ^= 2
        path.write_bytes(data)
    return street


def test_a_run_whose_states_are_lost_is_told_and_collected(bereft: Street) -> None:
    for name in bereft.agents:
        bereft.restart(name)
    (bereft.root / "plan.json").unlink()
    status = cli("status", cwd=bereft.root)
    assert status.returncode == 1 and "state.json is damaged" in status.stdout, status.stdout
    run = collected(bereft)
    assert run.plan.hash == bereft.plan.hash
    report = verdict(run).document()
    assert report["conservation"]["balanced"] and report["conservation"]["admitted"] == 20
    assert cli("status", cwd=bereft.root).returncode == 0, "nothing is left to be done"
    assert "nothing has run on these nodes" in cli("collect", cwd=bereft.root).stderr


def test_a_run_of_which_no_agent_has_the_plan_any_more_is_named(bereft: Street) -> None:
    for name in bereft.agents:
        (bereft.root / "state" / name / "plans" / f"{bereft.plan.hash}.json").unlink()
        bereft.restart(name)
    done = cli("collect", cwd=bereft.root)
    assert done.returncode == 1 and "nothing has run" not in done.stderr
    assert f"plan {bereft.plan.hash[:8]} ran on a, b" in done.stderr and "--plan plan.json" in done.stderr
    assert verdict(collected(bereft, "--earlier", "plan.json")).document()["conservation"]["admitted"] == 20


def test_a_collection_is_landed_and_may_drop_what_it_was_landed_from(street: Street) -> None:
    with street.connect() as agents:
        deploy.deploy(street.plan, agents)
    assert street.send(20) == 20
    run = collected(street, "--drop-raw")
    assert not (run.path / "trace" / "raw").exists() and (run.path / "trace" / "parquet" / "seal.json").exists()
    report = verdict(run).document()
    assert report["completeness"]["complete"] and report["conservation"]["balanced"]
    assert report["conservation"]["admitted"] == 20
    again = cli("collect", "--addresses", "addresses.json", "--resume", str(run.path), cwd=street.root)
    assert again.returncode == 2 and "has no raw segments any more" in again.stderr
