"""Ends of plans that a full disk refuses are written again, all of them by one timer."""

import asyncio
import errno
from pathlib import Path

import pytest

from node_agent.control import deploy_driver
from node_agent.control.deploy_driver import DeployDriver
from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore

HASHES = ("a" * 64, "b" * 64, "c" * 64)
TURNS = 6


def test_several_ends_wait_for_one_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_driver, "AGAIN_S", 0.01)
    driver = DeployDriver(PlanStore(tmp_path))
    draining = [Deployment(each, 1 + at, State.DRAINING, "q", ()) for at, each in enumerate(HASHES)]
    driver.machine.durable = Durable(3, 0, tuple(draining))
    tries = 0

    def write(store: PlanStore, durable: Durable, also: frozenset[str] = frozenset()) -> None:
        nonlocal tries
        tries += 1
        if tries <= TURNS * len(HASHES):
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(PlanStore, "write", write)

    async def drain() -> int:
        for each in HASHES:
            driver._do(driver.machine.drained(each))
        most = 0
        while driver.machine.durable.deployments:
            most = max(most, len(asyncio.all_tasks()))
            await asyncio.sleep(0.001)
        return most

    assert asyncio.run(drain()) == 2, "this one and the timer"
    assert tries == (TURNS + 1) * len(HASHES)
