"""A run is everything that ran: every plan since the last collection, on every node, with nothing but the addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator import deploy, plan_file, planner
from coordinator.report.reader import Run, read_run
from coordinator.report.verdict import verdict
from tests.coordinator.test_deploy_live import Street, cli


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    street = Street(tmp_path)
    yield street
    street.close()


def deploy_next(street: Street, deadline: str) -> dict[str, Any]:
    """Another plan of the same query takes the place of the one that runs."""
    query = street.root / "query.yaml"
    query.write_text(query.read_text().replace("deadline: 2 s", f"deadline: {deadline}"))
    street.plan = planner.make_plan(query, street.root / "cluster.yaml", planner.Choices(model="paper"))
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
    assert (run.plan.hash, run.earlier) == (second["hash"], (first["hash"],))
    report = verdict(run)
    assert report["completeness"]["complete"] and report["conservation"]["balanced"]
    assert report["conservation"]["admitted"] == report["conservation"]["accounted"] == 50
    assert sum(each["other_plans"] for each in report["completeness"]["incarnations"]) == 0
    third = deploy_next(street, "4 s")
    assert street.send(10) == 10
    again = collected(street)
    assert (again.plan.hash, again.earlier) == (third["hash"], ()), "what was collected is no part of the next run"
    assert verdict(again)["conservation"]["admitted"] == 10
    empty = cli("collect", cwd=street.root)
    assert empty.returncode == 1 and "nothing has run on these nodes" in empty.stderr
