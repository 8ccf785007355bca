"""Random plans of two to four nodes whose operators' costs were measured, by the way that users take: costs.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.fleet.profile import profile_file
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import costs, input_files
from coordinator.spec.costs import MARGIN
from coordinator.spec.files.costs_file import MeasuredFile, OperatorCostsFile
from coordinator.spec.runtime_charges import NOTHING
from infra.bench.confidence.cost_laws import Sample, sample
from infra.bench.tightness.drawn_queries import Case, case
from protos.plan_document import Plan

OPERATOR = re.compile(r"  (o\d+): \{run: (\w+),.* cost: (\d+) us\}")
AGE = "max_age: 1 ns"


@dataclass(frozen=True)
class Measured:
    """A plan, and the samples that it rests on, by operator."""

    plan: Plan
    samples: Mapping[str, Sample]


def measured(kind: str, load: float, seed: int, law: str, calls: int, guarantee: str) -> Measured:
    """A plan of `infra.bench.tightness`, as full as the load says by its certain costs; so many calls of each operator
    are drawn of a law. `guarantee`: as the query says it."""
    drawn = case(kind, load, seed)
    samples = {
        name: sample(law, 1000 * int(cost_us) / float(MARGIN), drawn.place[name], calls, f"{kind} {load} {seed} {name}")
        for name, _, cost_us in OPERATOR.findall(drawn.query)
    }
    return Measured(_plan(drawn, samples, guarantee), samples)


def _plan(drawn: Case, samples: Mapping[str, Sample], guarantee: str) -> Plan:
    query = drawn.query.replace("type: json,", f"type: json, {AGE},")
    query = query.replace("query: random\n", f"query: random\nguarantee: {guarantee}\n")
    runs = {name: run for name, run, _ in OPERATOR.findall(drawn.query)}
    entries = {name: _entry(runs[name], one) for name, one in samples.items()}
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "query.yaml").write_text(query)
        (folder / "cluster.yaml").write_text(drawn.cluster)
        profile_file.write({"random": entries}, folder / "costs.yaml")
        found, cluster, types = input_files.read_files(
            folder / "query.yaml", folder / "cluster.yaml", measured=costs.load(folder / "costs.yaml")
        )
        assert cluster is not None  # a path was given
        choices = Choices(
            allocator="sqpr", place=drawn.place, sub_deadlines="proportional", policy="edf", charges=NOTHING,
            best_effort=True,
        )  # fmt: skip
        return planner.plan(found, cluster, types, choices)


def _entry(run: str, one: Sample) -> OperatorCostsFile:
    on = MeasuredFile.model_construct(
        mean=one.mean_ns, p99=one.worst_ns, worst=one.worst_ns, elapsed=one.mean_ns, cv=0.5, samples=one.calls.samples,
        speed=1.0, rt=True, measured="2026-01-31T12:00Z", plan="0" * 8, calls=list(one.calls.calls),
    )  # fmt: skip
    return OperatorCostsFile.model_construct(run=run, version="1", with_={}, on={one.calls.node: on})


__all__ = ["Measured", "measured"]
