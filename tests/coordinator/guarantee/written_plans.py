"""Plans for the analysis: the query of [P] without link delays, and small ones written in place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from protos import plan_document
from protos.plan_document import Plan

MS = 1_000_000
QUERIES = Path(__file__).parents[3] / "sim_vehicles" / "queries"
FREE = "links: [{between: [a, b]}]"


def written(query: str, cluster: str, **choices: Any) -> Plan:
    """The plan of two texts, bounds without charges for the runtime unless given."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(cluster)
        (folder / "operators.json").write_text((QUERIES / "operators.json").read_text())
        given = replace(Choices(charges=NOTHING, model="paper"), **choices)
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", given)


@cache
def _paper(n: int, node: str, every: bool, ages: bool) -> str:
    query = (QUERIES / "collision_paper.yaml").read_text()
    query = query.replace("burst: 20", f"burst: {n}").replace("500 ms", "1000 ms")
    if every:
        query = query.replace("with: {keep: 1, of: 2}", "with: {keep: 1, of: 1}")
        query = query.replace("selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}", "selectivity: {mean: 0.5}")
    query = query.replace(", max_age: 1 s", "")
    if ages:
        query = query.replace("period: 1000 ms}", "period: 1000 ms}, max_age: 1 ns")
    cluster = (QUERIES / "cluster_paper.yaml").read_text()
    line = next(line for line in cluster.splitlines() if line.startswith("links"))
    return written(query, cluster.replace(line, FREE), place={"O3": node}).text()


def paper(n: int, node: str = "b", every: bool = False, ages: bool = False, **sub_deadlines_ms: float) -> Plan:
    """Period 1000 ms, O3 on that node, no link delay; sub-deadlines of units by their first operator.

    every: sigma(k) = k. ages: 1 ns, the least that can be declared; else none is.
    """
    plan = plan_document.parse(_paper(n, node, every, ages).encode())
    for local in plan.nodes.values():
        names = {operator.id: operator.name for operator in local.operators}
        for unit in local.units:
            if names[unit.operators[0]] in sub_deadlines_ms:
                unit.sub_deadline_ns = round(sub_deadlines_ms[names[unit.operators[0]]] * MS)
    return plan


def cluster(nodes: str = "a", links: str = "", **facts: str) -> str:
    """cluster.yaml; facts: more keys of each node."""
    lines = ["shimekiri: 1", "nodes:"]
    more = "".join(f", {key}: {value}" for key, value in facts.items())
    lines += [f'  {name}: {{address: "127.0.0.1:77{i:02}"{more}}}' for i, name in enumerate(nodes)]
    return "\n".join([*lines, f"links: [{links}]", "security: insecure-loopback"])
