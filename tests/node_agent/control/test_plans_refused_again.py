"""A runtime that refuses a plan which it had, as its own read of the file failed, is asked again, less and less."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from node_agent.control import deploy_driver
from node_agent.control.deploy_driver import DeployDriver
from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.control.runtime_channel import RuntimeLink
from node_agent.host import ipc

HASH = "a" * 64


class _Runtime:
    """Refuses so often."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.prepared = refusals, list[float]()
        self.committed = False

    async def ask_within(self, question: Callable[[int], ipc.Message], seconds: float) -> ipc.PlanAnswer:
        assert isinstance(question(1), ipc.Prepare) and seconds > 0
        self.prepared.append(asyncio.get_running_loop().time())
        accepted = len(self.prepared) > self.refusals
        why = "" if accepted else "it cannot be read (Input/output error)"
        return ipc.PlanAnswer(1, accepted, why, State.PREPARED if accepted else State.ENDED)

    def ask(self, question: Callable[[int], ipc.Message]) -> asyncio.Future[ipc.Message | None]:
        self.committed = isinstance(question(1), ipc.Commit)
        answer: asyncio.Future[ipc.Message | None] = asyncio.get_running_loop().create_future()
        answer.set_result(None)
        return answer


def test_a_plan_that_drains_and_is_damaged_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_driver, "AGAIN_S", 0.01)
    monkeypatch.setattr(deploy_driver, "DRAINED_S", 0.03)
    monkeypatch.setattr(PlanStore, "damage", lambda store, hash_, core: "it is damaged")
    runtime = _Runtime(refusals=0)

    async def end() -> None:
        driver = DeployDriver(PlanStore(tmp_path))
        driver.machine.durable = Durable(1, 0, (Deployment(HASH, 1, State.DRAINING, "q", ()),))
        driver.links[0] = cast(RuntimeLink, runtime)
        driver._do(driver.machine.runtime_up(0))
        while driver.machine.durable.deployments:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(end(), 20))
    assert not runtime.prepared, "a bit of it may read as another plan"


def test_a_plan_is_loaded_as_soon_as_its_runtime_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_driver, "AGAIN_S", 0.01)
    monkeypatch.setattr(deploy_driver, "REFUSED_S", 0.04)
    monkeypatch.setattr(PlanStore, "damage", lambda store, hash_, core: "")
    runtime = _Runtime(refusals=4)

    async def load() -> DeployDriver:
        driver = DeployDriver(PlanStore(tmp_path))
        driver.machine.durable = Durable(1, 0, (Deployment(HASH, 1, State.COMMITTED, "q", ()),))
        driver.links[0] = cast(RuntimeLink, runtime)
        driver._do(driver.machine.runtime_up(0))
        while not runtime.committed:
            await asyncio.sleep(0.001)
        return driver

    driver = asyncio.run(asyncio.wait_for(load(), 20))
    assert len(runtime.prepared) == 5 and not driver.machine.failed
    pauses = [after - before for before, after in zip(runtime.prepared, runtime.prepared[1:], strict=False)]
    assert all(pause >= least for pause, least in zip(pauses, (0.01, 0.02, 0.04, 0.04), strict=True)), pauses
