"""Ctrl-C that somebody swallowed still ends a deployment before it is decided."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from coordinator import signals
from coordinator.fleet.deployment import deploy
from coordinator.fleet.deployment.two_phase import TwoPhase, Verb
from protos import agent_pb2


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
    signals.watch()
    yield
    signals.watch()  # forgets what has come
    for one, handler in before.items():
        signal.signal(one, handler)


class Calls:
    """Agents that agree; `at`: the method during which a signal comes and is swallowed."""

    def __init__(self, at: str, number: int) -> None:
        self.at, self.number, self.made = at, number, list[str]()

    def try_all(self, method: str, requests: Mapping[str, Any], _seconds: float) -> dict[str, Any]:
        self.made.append(method)
        if method == self.at:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                signal.raise_signal(self.number)
        return dict.fromkeys(requests, agent_pb2.PlanReply(accepted=True))


def _driven(agents: Any) -> None:
    requests = dict.fromkeys(Verb)
    deploy._drive(TwoPhase(("a", "b")), agents, requests, lambda _: None, lambda: None)


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_before_the_decision_what_was_prepared_is_given_up(number: int, raised: type[BaseException]) -> None:
    agents = Calls("Prepare", number)
    with pytest.raises(raised):
        _driven(agents)
    assert agents.made == ["Prepare", "Abort"]


def test_before_the_deployment_no_agent_is_asked_to_prepare() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    agents = Calls("", 0)
    with pytest.raises(KeyboardInterrupt):
        _driven(agents)
    assert "Prepare" not in agents.made and "Commit" not in agents.made


def test_once_it_is_decided_it_is_carried_out() -> None:
    agents = Calls("Commit", signal.SIGINT)
    _driven(agents)
    assert agents.made == ["Prepare", "Commit"]


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.watch()
    signal.raise_signal(signal.SIGHUP)
    signals.check()
