"""Queries that ask for a confidence: planned with measured costs, refused without, said in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from coordinator.errors import BadInputError
from coordinator.fleet.profile import profile_file
from coordinator.model.choices import Choices
from coordinator.plan import confidence_lines, deadline_breakdown, reopen
from coordinator.solve import planner
from coordinator.solve.audit import audit_guarantee
from coordinator.spec import costs, input_files, query_reader
from coordinator.spec.files import yaml_source
from coordinator.spec.files.costs_file import MeasuredFile, OperatorCostsFile
from coordinator.spec.runtime_charges import NOTHING
from node_agent.runtime.deployments.cost_meter import bucket, upper_ns
from protos import plan_document
from protos.plan_document import Plan

MS = 1_000_000
QUERY = """\
shimekiri: 1
query: belt
{guarantee}
sources:
  items: {{at: a, type: json, arrival: {{burst: 3, period: 100 ms}}, max_age: 1 ms}}
  other: {{at: b, type: json, arrival: {{burst: 2, period: 100 ms}}, max_age: 1 ms}}
operators:
  clean: {{run: pass, in: items, cost: 1 ms, nodes: [a]}}
  weigh: {{run: pass, in: clean, cost: 1 ms, nodes: [b]}}
  count: {{run: pass, in: other, cost: 1 ms, nodes: [b]}}
outputs:
  arm:   {{from: weigh, at: b, deadline: {deadline}{of_arm}}}
  shown: {{from: count, at: b, deadline: 90 ms}}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms}]
security: insecure-loopback
"""


@cache
def _measured(samples: int, seed: int, distributed: bool = True) -> MeasuredFile:
    """Lognormal calls of about 0.4 ms, in the buckets of agents."""
    dice = Random(seed)
    drawn = [max(1, int(400_000 * math.exp(dice.gauss(0, 0.4)))) for _ in range(samples)]
    calls: dict[int, int] = {}
    for each in drawn:
        end = upper_ns(bucket(each))
        calls[end] = calls.get(end, 0) + 1
    mean = sum(drawn) // samples + 1
    return MeasuredFile.model_construct(
        mean=mean, p99=max(drawn), worst=max(drawn), elapsed=mean, cv=0.4, samples=samples, speed=1.0, rt=True,
        measured="2026-01-31T12:00Z", plan="0" * 8, calls=sorted(calls.items()) if distributed else [],
    )  # fmt: skip


def _files(
    folder: Path, guarantee: str, samples: int = 30_000, deadline: str = "60 ms", distributed: bool = True,
    of_arm: str = "", measured: tuple[str, ...] = ("clean", "weigh", "count"),
) -> tuple[Path, Path, Path]:  # fmt: skip
    query, cluster, file = folder / "query.yaml", folder / "cluster.yaml", folder / "costs.yaml"
    query.write_text(QUERY.format(guarantee=guarantee, deadline=deadline, of_arm=of_arm))
    cluster.write_text(CLUSTER)
    entries = {
        name: OperatorCostsFile.model_construct(
            run="pass", version="1", with_={}, on={"a": _measured(samples, number, distributed)}
        )
        for number, name in enumerate(measured)
    }
    profile_file.write({"belt": entries}, file)
    return query, cluster, file


def _plan(files: tuple[Path, Path, Path], best_effort: bool = False, with_costs: bool = True) -> Plan:
    measured = costs.load(files[2]) if with_costs else None
    query, cluster, types = input_files.read_files(files[0], files[1], measured=measured)
    assert cluster is not None  # a path was given
    return planner.plan(query, cluster, types, Choices(charges=NOTHING, best_effort=best_effort))


def _codes(error: BadInputError) -> list[str]:
    return [problem.mistake.code for problem in error.problems]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("100 %", "confidence_of_all"), ("100.5 %", "confidence_of_all"), ("0 %", "no_confidence"),
        ("-1 %", "no_confidence"), ("99.9", "no_percentage"), ("high", "no_percentage"), ("[1]", "no_percentage"),
        ("99.99999999999 %", "too_fine"),
    ],
)  # fmt: skip
def test_what_is_no_confidence_is_refused(said: str, code: str, tmp_path: Path) -> None:
    files = _files(tmp_path, f"guarantee: {{confidence: {said}}}", samples=100)
    with pytest.raises(BadInputError) as caught:
        query_reader.load(files[0])
    assert _codes(caught.value) == [code]
    assert caught.value.problems[0].line == 3


def test_without_measurements_it_is_refused_and_says_how_to_measure(tmp_path: Path) -> None:
    asked = "guarantee: {confidence: 99 %}"
    for files, with_costs in (
        (_files(tmp_path, asked), False),
        (_files(tmp_path, asked, samples=200, distributed=False), True),
        (_files(tmp_path, asked, measured=("clean", "weigh")), True),
    ):
        with pytest.raises(BadInputError) as caught:
            _plan(files, with_costs=with_costs)
        assert set(_codes(caught.value)) == {"no_distribution"}
        assert "coordinator profile" in str(caught.value)


def test_too_few_calls_are_refused_and_so_many_as_it_says_do(tmp_path: Path) -> None:
    asked = "guarantee: {confidence: 99 %}"
    with pytest.raises(BadInputError) as caught:
        _plan(_files(tmp_path, asked, samples=2000))
    assert set(_codes(caught.value)) == {"too_few_samples"}
    loose = _plan(_files(tmp_path, asked, samples=2000), best_effort=True)
    confident = loose.guarantee["arm"].confident
    assert confident is not None and confident.bound_ns is None and not confident.guaranteed
    assert confident.needed is not None and f"{confident.needed} calls" in str(caught.value)
    enough = max(one.confident.needed or 0 for one in loose.guarantee.values() if one.confident is not None)
    assert enough < 40_000
    held = _plan(_files(tmp_path, asked, samples=enough)).guarantee["arm"].confident
    assert held is not None and held.bound_ns is not None


def test_a_plan_says_what_a_bound_with_a_confidence_rests_on_and_its_audit_finds_the_same(tmp_path: Path) -> None:
    plan = _plan(_files(tmp_path, "guarantee: {confidence: 99 %}"))
    claim = plan.guarantee["arm"]
    found = claim.confident
    assert found is not None and found.guaranteed and found.bound_ns is not None and claim.bound_ns is not None
    assert 0 < found.bound_ns < claim.bound_ns and found.certain_ns == claim.bound_ns
    assert found.late <= 0.01 and sum(one.runs * one.exceeded for one in found.costs.values()) <= 0.01
    assert set(found.costs) == {"clean", "weigh", "count"}
    assert all(one.samples == 30_000 for one in found.costs.values())
    again = plan_document.parse(json.dumps(plan.to_json()).encode())
    assert again.guarantee["arm"].confident == found
    assert audit_guarantee.audit(again) == []
    assert claim.judged_ns == found.bound_ns
    other = replace(found, bound_ns=found.bound_ns - 1)
    wrong = replace(again, guarantee={**again.guarantee, "arm": replace(claim, confident=other)})
    assert any("with a confidence" in line for line in audit_guarantee.audit(wrong))
    query = reopen.query(again, yaml_source.Source(tmp_path, b"", {}))
    assert query.outputs[0].confidence is not None and query.outputs[0].confidence.said == "99 %"
    assert all(one.cost_from is not None and one.cost_from.distributions for one in query.operators)


def test_guaranteed_and_guaranteed_with_a_share_are_told_apart(tmp_path: Path) -> None:
    plan = _plan(_files(tmp_path, "", of_arm=", guarantee: {confidence: 99 %}"))
    assert plan.guarantee["shown"].confident is None
    assert deadline_breakdown.guarantee_status(plan.guarantee["shown"]) == "guaranteed"
    assert deadline_breakdown.guarantee_status(plan.guarantee["arm"]) == "guaranteed with 99 %"
    assert deadline_breakdown.verdict(plan.guarantee) == "2 of 2 outputs guaranteed, 1 of them with 99 %"
    assert any("99 % of the results" in line for line in confidence_lines.lines(plan.guarantee["arm"]))
    assert confidence_lines.lines(plan.guarantee["shown"]) == []


def test_where_no_plan_holds_for_all_results_one_may_for_a_share_of_them(tmp_path: Path) -> None:
    asked = "guarantee: {confidence: 99 %}"
    claim = _plan(_files(tmp_path, asked)).guarantee["arm"]
    assert claim.confident is not None and claim.confident.bound_ns is not None and claim.bound_ns is not None
    between = (claim.confident.bound_ns + claim.bound_ns) // 2
    plan = _plan(_files(tmp_path, asked, deadline=f"{between} ns"))
    assert not plan.guarantee["arm"].guaranteed and plan.guarantee["arm"].holds
    assert deadline_breakdown.unproven(plan) == ""
    assert "1 of them" not in deadline_breakdown.verdict(plan.guarantee)


def test_a_larger_share_and_fewer_calls_make_a_bound_larger_and_independence_smaller(tmp_path: Path) -> None:
    def bound(guarantee: str, samples: int) -> int:
        claim = _plan(_files(tmp_path, f"guarantee: {{{guarantee}}}", samples), best_effort=True).guarantee["arm"]
        assert claim.confident is not None and claim.confident.bound_ns is not None
        return claim.confident.bound_ns

    usual = bound("confidence: 99 %", 30_000)
    assert bound("confidence: 95 %", 30_000) <= usual
    assert bound("confidence: 99 %, independent: true", 30_000) <= usual


def test_calls_that_are_not_the_samples_are_refused(tmp_path: Path) -> None:
    files = _files(tmp_path, "", samples=100)
    files[2].write_text(files[2].read_text().replace("samples: 100", "samples: 101"))
    with pytest.raises(BadInputError) as caught:
        costs.load(files[2])
    assert set(_codes(caught.value)) == {"calls_unlike_samples"}


def test_calls_survive_the_file_and_are_added(tmp_path: Path) -> None:
    files = _files(tmp_path, "", samples=300)
    one = costs.load(files[2]).queries["belt"]["clean"].on["a"]
    assert sum(n for _, n in one.calls) == one.samples == 300
    both = profile_file.together(one, one)
    assert both.calls == [(ns, 2 * n) for ns, n in one.calls]
    assert profile_file.together(one, one.model_copy(update={"calls": []})).calls == []
