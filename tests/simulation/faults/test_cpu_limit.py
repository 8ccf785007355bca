"""A seed that does not end is ended, counts as failed, and the next one is not touched by it."""

import pytest

from node_agent.virtual.simulated.virtual_time import Process, VirtualTime
from tests.simulation.agents import agent_campaign
from tests.simulation.faults import campaign, cpu_limit
from tests.simulation.faults.cpu_limit import Endless

SHORT_SECONDS = 0.05  # each of the seeds below needs many times as long


def test_a_process_in_virtual_time_that_goes_on_ends_though_it_catches_what_it_can() -> None:
    time = VirtualTime()

    def goes_on() -> None:
        while True:
            try:
                time.now_ns += 1
            except Exception:
                continue

    Process(time, goes_on)
    with pytest.raises(Endless), cpu_limit.cpu_limit(SHORT_SECONDS):
        time.run_until(1)


def test_what_catches_it_once_is_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_limit, "AGAIN_SECONDS", SHORT_SECONDS)
    caught = 0
    with pytest.raises(Endless), cpu_limit.cpu_limit(SHORT_SECONDS):
        while True:
            try:
                while True:
                    pass
            except Endless:
                caught += 1
                if caught == 2:
                    raise
    assert caught == 2


def test_a_seed_that_takes_too_long_has_failed_and_the_next_one_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    before = campaign.run(3).digest
    with monkeypatch.context() as short:
        short.setattr(cpu_limit, "MOST_SECONDS", SHORT_SECONDS)
        short.setattr(cpu_limit, "AGAIN_SECONDS", SHORT_SECONDS)
        for outcome in (campaign.run(3, ["cut"]), agent_campaign.run(3, ["cut"])):
            assert outcome.told.startswith(f"{outcome.command}\n  Traceback")
            assert f"it has taken {SHORT_SECONDS:g} s of CPU time" in outcome.problems[0]
    assert campaign.run(3).digest == before
