"""Runs whose pages are looked at: one that missed with causes, one that did not, and names that would be markup."""

from dataclasses import replace
from pathlib import Path

from coordinator.report.facts.reader import Run, read_run
from coordinator.report.report_document import Cause, Miss, Misses, MissHop, Report, WaitedFor
from coordinator.report.verdict import verdict
from tests.coordinator.report.synthetic import MS, everything, play

EVIL = "</script><img src=x onerror=alert(1)>"
Judged = tuple[Run, Report]


def judged(path: Path, seed: int = 3, mishaps: float = 0.05) -> Judged:
    """With the slowest results as misses."""
    run = read_run(play(everything(), seed, tuples=60, mishaps=mishaps, many=0).save(path))
    return run, replace(verdict(run), misses=misses(run))


def misses(run: Run, name: str = "split") -> Misses:
    """Two; `name` is that of an operator in their sentences."""
    boot = run.incarnations[0].boot_hex
    waited = (WaitedFor((name,), name, "a", 3, 2 * MS),)
    hops = (
        MissHop("admission", ("car",), "a", 0, MS, MS, 0, ()),
        MissHop("queue", (name,), "a", MS, 4 * MS, 3 * MS, 0, waited),
        MissHop("run", (name,), "a", 4 * MS, 5 * MS, 0, MS, ()),
        MissHop("link", ("a", "b"), "a", 5 * MS, 6 * MS, 0, 0, ()),
    )
    cause = Cause("blocked", "a", name, "q", 3 * MS, f"it waited 3 ms for {name}")
    late = Miss(
        output="near", query="q", source="car", epoch=1, seq=2, ordinal=0, outcome="late", node="a", boot=boot,
        at_ns=20 * MS, latency_ns=20 * MS, deadline_ns=15 * MS, hops=hops, causes=(cause,),
    )  # fmt: skip
    lost = replace(late, outcome="lost", latency_ns=None, hops=(), causes=(), seq=3)
    return Misses(
        {"near": {"blocked": 1, "unknown": 1}}, (late, lost), (f"near: car 1/2 came late. It waited for {name}.",)
    )
