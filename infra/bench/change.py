"""Benchmark of plan changes: how long they keep a live runtime's scheduling thread while instances are always ready.

A plan of N operators is loaded from its file in slices, committed, and the plan before it unloaded, again and again;
every stretch that is not a task instance is measured: each slice, the commit, the unloading. Half of the operators are
in the plan before as well and keep their instances, half are new.
"""

import gc
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time_ns

from infra.bench.engine.runtime_loop import MEMORY
from infra.bench.figures import Figure, percentile
from node_agent.core.incremental import Incremental
from node_agent.host.clock import now_ns
from node_agent.host.files import plan_files
from node_agent.runtime.background import BackgroundWork
from node_agent.runtime.deployments.deployed_plan import MOST_QUIET_NS
from node_agent.runtime.in_process import in_process, queue
from node_agent.runtime.loop import Runtime
from node_agent.runtime.process import COLLECT
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2

SECOND = 10**9
OPERATORS, CHANGES = 20, 60
QUEUED = 1000  # task instances that are ready when a change begins; topped up when they get few


@dataclass
class Held:
    """Of all changes, ns."""

    increments: list[int] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    unloads: list[int] = field(default_factory=list)

    @property
    def all(self) -> list[int]:
        """Every stretch."""
        return [*self.increments, *self.commits, *self.unloads]


def local_plan(operators: int, version: int) -> plan_pb2.LocalPlan:
    """A row of operators, each a task unit. Every second one is new in each version."""
    plan = plan_pb2.LocalPlan(
        version=1, query="row", node="a", index=0, policy=plan_pb2.Policy(name="edf", largest_batch=1), cpu=-1
    )
    plan.streams.add(id=1, name="in", codec="json", deadline_ns=SECOND)
    plan.sources.add(id=1, name="in", stream=1)
    for i in range(1, operators + 1):
        given = f'{{"keep":1,"of":{version + 1}}}' if i % 2 else '{"keep":1,"of":1}'
        plan.streams.add(id=i + 1, name=f"O{i}", codec="json", deadline_ns=SECOND)
        plan.operators.add(
            id=i, name=f"O{i}", run="filter", with_json=given, cost_ns=1000, inputs=[i], output=i + 1, hang_ns=SECOND
        )
        plan.units.add(id=i, operators=[i], sub_deadline_ns=SECOND, deadline_ns=SECOND, exits=[i + 1])
    plan.outputs.add(id=1, name="out", stream=operators + 1, deadline_ns=SECOND)
    return plan


def change_ns(operators: int = OPERATORS, changes: int = CHANGES) -> Held:
    """Plan after plan on one runtime under load."""
    held, memory, collect = Held(), MEMORY if MEMORY.is_dir() else None, gc.get_threshold()
    gc.set_threshold(*COLLECT)
    try:
        with TemporaryDirectory(dir=memory) as name:
            folder = Path(name)
            first = core_plan(local_plan(operators, 0), 1 << 60, 1)
            with in_process(first, folder / "ring") as runtime:
                # CPU time: what others do with this core meanwhile is not the runtime's.
                runtime.sliced = BackgroundWork(lambda: runtime.plans.carries_tuples, thread_time_ns)
                for version in range(1, changes + 1):
                    _change(runtime, folder, operators, version, held)
    finally:
        gc.set_threshold(*collect)
    return held


def _change(runtime: Runtime, folder: Path, operators: int, version: int, held: Held) -> None:
    plans, hash_ = runtime.plans, f"{version + 1:04x}".ljust(64, "0")
    plan_files.local_path(folder, hash_).write_bytes(local_plan(operators, version).SerializeToString())
    before = plans.committed
    assert before is not None
    done: list[bool] = []

    def load() -> Incremental[None]:
        accepted, why = yield from plans.preparing(folder, hash_, version + 1)
        assert accepted, why
        runtime.add_plan(plans.by_hash[hash_], ())
        done.append(True)

    sliced = runtime.sliced
    sliced.add(load())
    while not done:  # a slice when it would be overdue, task instances in between
        if runtime.backpressure.ready < QUEUED // 2:
            queue(runtime, QUEUED)
        sliced.due_ns = 0
        sliced.longest_ns = 0
        runtime.step(wait=False)
        held.increments.append(sliced.longest_ns)
    sliced.longest_ns = 0
    sliced.at_once(_commit(runtime, hash_))
    held.commits.append(sliced.longest_ns)
    sliced.longest_ns = 0
    while before.ready:
        runtime.step(wait=False)
    sliced.timed(lambda: plans.unload_drained(now_ns() + MOST_QUIET_NS))
    held.unloads.append(sliced.longest_ns)


def _commit(runtime: Runtime, hash_: str) -> Incremental[None]:
    accepted, why = runtime.plans.commit(hash_)
    assert accepted, why
    yield


def change(operators: int = OPERATORS, changes: int = CHANGES) -> list[Figure]:
    """The longest stretch, and the usual one."""
    held = change_ns(operators, changes)
    how = (
        f"CPU time; {changes} plans of {operators} operators in a row, half of them new, each loaded in"
        f" {len(held.increments) // changes} slices and committed, the one before unloaded;"
        f" {QUEUED // 2} task instances or more are ready"
    )
    return [
        Figure(
            "plan_hold_p50_us", percentile(held.all, 0.5) / 1000, "us", None, f"one stretch without instances; {how}"
        ),
        Figure(
            "plan_hold_p99_us", percentile(held.all, 0.99) / 1000, "us", None, f"one stretch without instances; {how}"
        ),
        Figure("plan_hold_max_us", max(held.all) / 1000, "us", 1000, f"the longest of all stretches; {how}"),
        Figure("plan_commit_us", percentile(held.commits, 0.5) / 1000, "us", None, f"median of the commits; {how}"),
    ]


if __name__ == "__main__":
    for count in (int(word) for word in sys.argv[1:] or ("2", "20", "200")):
        found = change_ns(count)
        for kind in ("slices", "commits", "unloads"):
            values = getattr(found, kind)
            sys.stdout.write(
                f"{count:4} operators, {len(values):5} {kind:8} p50 {percentile(values, 0.5) / 1000:7.1f}"
                f"  p99 {percentile(values, 0.99) / 1000:7.1f}  max {max(values) / 1000:7.1f} us\n"
            )
