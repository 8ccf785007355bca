"""A process of the agent that stands still is replaced, as one that has crashed is."""

import os
import signal
import socket
import time
from pathlib import Path

import psutil
import pytest

from node_agent.client.client import Admitted, Sink, Source
from tests.node_agent.live import Agent, alive, chain_plan, spooled, store, until


def test_a_runtime_that_stands_still_is_replaced_and_the_plan_runs_on(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        frozen = agent.runtime()
        os.kill(frozen, signal.SIGSTOP)
        until(lambda: not alive(frozen), 300)
        until(lambda: len(agent.children()) == 2, 300)
        with Sink(agent.data, "out") as sink, Source(agent.data, "in", timeout=20) as source:
            assert isinstance(source.send(1), Admitted)
            assert sink.get(10).value == 1
        assert agent.stop() == 0
        assert "runtime stood still" in agent.log.read_text()
    found = spooled(tmp_path / "s")
    assert {record.epoch for record in found if type(record).__name__ == "Admitted"} == {2}


def test_a_control_that_stands_still_is_replaced_and_the_runtime_is_left_alone(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        runtime = agent.runtime()
        (frozen,) = [pid for pid in agent.children() if pid != runtime]
        os.kill(frozen, signal.SIGSTOP)
        until(lambda: not alive(frozen), 300)
        until(lambda: len(agent.children()) == 2, 300)
        assert agent.runtime() == runtime
        assert agent.stop() == 0
        assert "control stood still" in agent.log.read_text()


def test_an_agent_that_was_stopped_as_a_whole_goes_on_with_the_processes_that_it_has(tmp_path: Path) -> None:
    """The time in which the supervisor stood still as well counts for nothing."""
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s") as agent:
        before = agent.children()
        family = [psutil.Process(agent.process.pid), *(psutil.Process(pid) for pid in before)]
        for process in family:
            process.suspend()
        time.sleep(12)  # beyond every patience
        for process in family:  # the supervisor first: it finds the others as silent as they were
            process.resume()
        with Sink(agent.data, "out") as sink, Source(agent.data, "in", timeout=20) as source:
            assert isinstance(source.send(1), Admitted)
            assert sink.get(10).value == 1
        assert agent.children() == before


def test_the_service_manager_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store(tmp_path / "s", chain_plan())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        with Agent(tmp_path / "s") as agent:
            first = heard.recv(4096).decode().splitlines()
            assert "READY=1" in first and f"MAINPID={agent.process.pid}" in first
            assert any(line.startswith("STATUS=") for line in first)
            alive_ = [heard.recv(4096).decode() for _ in range(3)]
            assert all("WATCHDOG=1" in each for each in alive_)
            agent.process.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in heard.recv(4096).decode():
                pass
            assert agent.process.wait(30) == 0
