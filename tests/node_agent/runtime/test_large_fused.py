"""Large payloads that wait for each other: each counts once, and is given back."""

import gc
from pathlib import Path
from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.host.clock import now_ns
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from node_agent.wire.plan_message import core_plan
from tests.node_agent.live import chain_plan

MIB = 1 << 20
SYNCS = {
    "all": {},
    "within": {"by_stamp": True, "within_ns": 10**9, "keep": 2},
    "each": {"by_stamp": True, "within_ns": 10**9, "keep": 2, "each": True},
}  # fmt: skip


def fused(kind: str) -> core.Plan:
    """s1, s2 -> fused, and s1 -> look."""
    streams = [
        {"id": number, "name": f"s{number}", "codec": "bytes", "deadline_ns": 10**10, "max_bytes": 3 * MIB}
        for number in (1, 2, 3)
    ]
    message = chain_plan(
        streams=[*streams, {"id": 4, "name": "fused", "codec": "json", "deadline_ns": 10**10}],
        sources=[{"id": number, "name": f"s{number}", "stream": number} for number in (1, 2)],
        operators=[
            {"id": 1, "name": "fused", "run": "join", "inputs": [1, 2], "output": 4, "join": True, "sync": SYNCS[kind]},
            {"id": 2, "name": "look", "run": "pass", "inputs": [1], "output": 3},
        ],
        units=[
            {"id": 1, "operators": [1], "sub_deadline_ns": 10**8, "deadline_ns": 10**10},
            {"id": 2, "operators": [2], "sub_deadline_ns": 10**8, "deadline_ns": 10**10},
        ],
        outputs=[],
        memory_bytes=64 * MIB,
    )
    return core_plan(message, 1, 1)


def admit(runtime: Runtime, source: int, number: int, payload: Any) -> None:
    deployed, at_ns = runtime.plans.committed, now_ns()
    assert deployed is not None
    runtime.backpressure.arrived(len(payload), payload)
    lineage = (source, 1, number, 0, at_ns, at_ns)
    deployed.engine_slot.engine.admit(at_ns, deployed.loaded.source_routes[source], lineage, payload, len(payload))


def run_all(runtime: Runtime) -> None:
    while runtime.step(wait=False):
        pass
    gc.collect()


@pytest.mark.parametrize(("kind", "keeps"), [("all", 0), ("within", 0), ("each", 4)])
def test_what_waits_to_be_fused_counts_once_and_goes_with_its_set(tmp_path: Path, kind: str, keeps: int) -> None:
    """A tuple that waits has run elsewhere, and counts once in both. An interval join keeps the latest of each."""
    with in_process(fused(kind), tmp_path) as runtime:
        large = runtime.shared.large
        admit(runtime, 1, 1, bytes(MIB))
        assert MIB <= large.bytes < MIB + 1000, "queued for one unit, waiting at the other"
        run_all(runtime)
        assert MIB <= large.bytes < MIB + 1000
        admit(runtime, 2, 1, bytes(2 * MIB))
        assert 3 * MIB <= large.bytes < 3 * MIB + 1000
        run_all(runtime)
        for number in range(2, 8):
            admit(runtime, 1, number, bytes(MIB))
            admit(runtime, 2, number, bytes(MIB))
            run_all(runtime)
        assert large.bytes < keeps * (MIB + 1000) + 1


@pytest.mark.parametrize("kind", ["all", "within"])
def test_those_that_are_replaced_while_their_partner_never_comes_are_given_back(tmp_path: Path, kind: str) -> None:
    with in_process(fused(kind), tmp_path) as runtime:
        for number in range(1, 20):
            admit(runtime, 1, number, bytes(MIB))
            run_all(runtime)
        kept = 1 if kind == "all" else 2
        assert kept * MIB <= runtime.shared.large.bytes < kept * (MIB + 1000)
