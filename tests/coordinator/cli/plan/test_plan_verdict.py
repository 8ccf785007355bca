"""What `coordinator plan` says first: how many outputs are guaranteed, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from coordinator.cli.commands import plan
from coordinator.plan.deadline_breakdown import verdict
from protos.plan.guarantee import Claim

QUERY = """
shimekiri: 1
query: two
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 ms}
operators:
  one: {run: pass, in: s, cost: 2 ms}
outputs:
  out: {from: one, at: a, deadline: DEADLINE}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: edf}
security: insecure-loopback
"""


def _told(directory: Path, query: str, cluster: str = CLUSTER) -> str:
    (directory / "query.yaml").write_text(query)
    (directory / "cluster.yaml").write_text(cluster)
    app = typer.Typer()
    plan.register(app)
    files = [str(directory / name) for name in ("query.yaml", "cluster.yaml")]
    done = CliRunner().invoke(app, [*files, "-o", str(directory / "plan.json"), "--best-effort", "-v"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("old", "new", "first", "then"),
    [
        ("", "", "1 of 1 output guaranteed\n", "model sound: guaranteed;"),
        (", max_age: 1 ms", "", "0 of 1 output guaranteed; guaranteed from admission on only: out\n",
         "model sound: guaranteed if tuples came in without age;"),
        ("policy: edf", "policy: fifo", "0 of 1 output guaranteed; NOT guaranteed: out\n",
         "model sound: guaranteed if every node ran edf;"),
    ],
)  # fmt: skip
def test_what_is_guaranteed_is_told_first(tmp_path: Path, old: str, new: str, first: str, then: str) -> None:
    query = QUERY.replace("DEADLINE", "50 ms")
    told = _told(tmp_path, query.replace(old, new) if old else query, CLUSTER.replace(old, new) if old else CLUSTER)
    assert first in told and then in told, told


def test_outputs_are_listed_by_what_is_promised() -> None:
    def claim(guaranteed: bool, admitted: int | None) -> Claim:
        bound_ns = 5 if guaranteed else None
        return Claim(
            deadline_ns=10, bound_ns=bound_ns, guaranteed=guaranteed, why="", from_admission_ns=admitted, trail=()
        )

    claims = {"a": claim(True, 5), "b": claim(False, None), "c": claim(False, 6), "d": claim(False, 12)}
    assert verdict(claims) == "1 of 4 outputs guaranteed; NOT guaranteed: b, d; guaranteed from admission on only: c"
