"""What is said once where it is true of several outputs; windows in `validate --json`; what `stop` has stopped."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from coordinator.__main__ import main
from coordinator.fleet.agents import AgentError
from coordinator.fleet.deployment import deploy
from coordinator.plan import deadline_breakdown
from protos import agent_pb2
from protos.plan.guarantee import Claim
from tests.coordinator.conftest import EXAMPLE

HELD = Claim(deadline_ns=2, bound_ns=1, guaranteed=True, why="", from_admission_ns=1, trail=())
CLAIMS = {
    "one": replace(HELD, missing=("sheds windows of w", "its own reason")),
    "two": replace(HELD, missing=("sheds windows of w",)),
    "three": HELD,
}


def test_what_is_left_out_of_several_outputs_is_said_once() -> None:
    several = deadline_breakdown.left_out_of_several(CLAIMS)
    assert list(several.values()) == ["what comes of one and two is in time, but not all may come: sheds windows of w"]
    assert deadline_breakdown.left_out(CLAIMS["two"], several) == []
    assert deadline_breakdown.left_out(CLAIMS["one"], several) == [
        "what comes is in time, but not all may come: its own reason"
    ]


def test_validate_lists_windows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["coordinator", "validate", "--json", *map(str, EXAMPLE)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    windows = json.loads(capsys.readouterr().out)["windows"]
    assert set(windows) == {"speeds", "totals", "tens", "pairs"}
    speeds = windows["speeds"]
    assert (speeds["kind"], speeds["length"], speeds["hop"], speeds["by"]) == ("time", 5 * 10**9, 4 * 10**9, "lane")
    assert speeds["sources"] and windows["tens"]["kind"] == "count"


class Told:
    """Agents that say this."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self.addresses, self.replies = dict.fromkeys(replies), replies

    def try_all(self, *_: object) -> dict[str, Any]:
        return self.replies


def test_who_has_a_plan() -> None:
    status = agent_pb2.StatusReply()
    status.plans.add(hash=b"\x12" * 32, query="q")
    status.plans.add(hash=b"\x34" * 32, query="p+r")
    told: Any = Told({"a": status, "b": AgentError("b", "unreachable", "gone"), "c": status})
    assert deploy.holders({b"\x12" * 32}, told) == {"12121212 of q": ["a", "c"]}
    assert list(deploy.holders(None, told)) == ["12121212 of q", "34343434 of p+r"]
    assert deploy.holders(set(), told) == {}
