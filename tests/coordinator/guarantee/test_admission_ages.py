"""Ages that a plan proposes: they hold, none can be raised by a step, and no common age on a grid beats the least."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

from coordinator.guarantee import admission_ages
from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.solve.audit import audit_guarantee
from coordinator.spec.runtime_charges import NOTHING, RuntimeOverhead
from coordinator.units import step_of
from protos.plan.analysis import ProposedAges
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written
from tests.sampling import examples
from tests.simulation.fusions import fusion_worlds

SOUND: dict[str, Any] = {"model": "sound", "best_effort": True}
ONE = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}}
  known: {at: a, type: json, max_age: 3 ms, arrival: {burst: 1, period: 100 ms}}
operators:
  F: {run: pass, in: s, cost: 1 ms}
  G: {run: pass, in: s, cost: 1 ms}
  H: {run: pass, in: known, cost: 1 ms}
outputs:
  f: {from: F, at: a, deadline: 60 ms}
  g: {from: G, at: a, deadline: 40 ms}
  h: {from: H, at: a, deadline: 60 ms}
"""


def _without_ages(text: str, draw: Random) -> str:
    """Some or all sources of any age."""
    lines = []
    for line in text.splitlines():
        if ", max_age: " in line and draw.random() < 0.8:
            before, _, after = line.partition(", max_age: ")
            lines.append(before + after[after.index(",") :])
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _analysed(plan: Plan) -> Analysis:
    return analyse(read(plan), RuntimeOverhead.read(plan.analysis.charges))


def _held(analysis: Analysis, ages_ns: dict[str, int]) -> set[str]:
    found = admission_ages.with_ages(analysis, ages_ns)
    return {name for name, claim in claims(found).items() if claim.guaranteed}


def _readable(analysis: Analysis, ages_ns: dict[str, int]) -> bool:
    """Whether no fresh tuple is refused."""
    drains = admission_ages.with_ages(analysis, ages_ns).delays.drains
    return all(age_ns > drains.get(analysis.system.sources[name].node, 0) for name, age_ns in ages_ns.items())


@pytest.mark.parametrize("seed", range(examples(60, 12)))
@pytest.mark.parametrize("charged", [False, True])
def test_no_age_on_a_grid_is_beyond_what_is_proposed(seed: int, charged: bool) -> None:
    """Fusions make ages depend on each other."""
    draw = Random(seed)
    query, nodes = fusion_worlds.case(seed)
    plan = written(_without_ages(query, draw), nodes, charges=RuntimeOverhead() if charged else NOTHING, **SOUND)
    analysis, ages = _analysed(plan), plan.analysis.ages
    now = {name for name, claim in plan.guarantee.items() if claim.guaranteed}
    names = [name for name, source in plan.graph.sources.items() if not source.max_age_ns]
    deadlines = max(claim.deadline_ns for claim in plan.guarantee.values())
    grid = [deadlines * step // 12 for step in range(1, 12)]
    if ages is None:
        for age_ns in [5 * MS, *grid]:
            common = dict.fromkeys(names, age_ns)
            assert not _readable(analysis, common) or _held(analysis, common) <= now, f"seed {seed}"
        return
    proposal = dict(ages.max_age_ns)
    goals = now | set(ages.outputs)
    assert goals > now and goals <= _held(analysis, proposal) and admission_ages.holds(analysis, ages), f"seed {seed}"
    assert not audit_guarantee.audit(plan)
    for name, age_ns in proposal.items():  # a step more of any one is too much
        more = {**proposal, name: (age_ns // step_of(age_ns) + 1) * step_of(age_ns)}
        assert not goals <= _held(analysis, more), f"seed {seed}: {name}"
    least_ns = min(proposal.values())
    for tried in product(grid, repeat=len(proposal)):
        if min(tried) > least_ns:
            assert not goals <= _held(analysis, dict(zip(proposal, tried, strict=True))), f"seed {seed}: {tried}"


def test_what_each_output_leaves_is_its_sources_age() -> None:
    plan = written(ONE, cluster("a"), **SOUND)
    ages = plan.analysis.ages
    assert ages is not None and ages.outputs == ("f", "g") and list(ages.max_age_ns) == ["s"]
    left_ns = min(
        claim.deadline_ns - (claim.from_admission_ns or 0) for claim in plan.guarantee.values() if not claim.guaranteed
    )
    age_ns = ages.max_age_ns["s"]
    assert age_ns <= left_ns < age_ns + step_of(age_ns)
    declared = written(ONE.replace("100 ms}}", f"100 ms}}, max_age: {age_ns} ns}}", 1), cluster("a"), **SOUND)
    assert all(claim.guaranteed for claim in declared.guarantee.values())
    assert declared.analysis.ages is None  # slack is no reason to say anything


def test_an_output_that_cannot_hold_keeps_no_other_from_its_proposal() -> None:
    """Nothing bounds the one; of its source nothing is proposed."""
    query = ONE.replace("outputs:", "  U: {run: my.none, in: other, cost: 1 ms}\noutputs:").replace("my.none", "pass")
    query = query.replace("operators:", "  other: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}\noperators:")
    query += "  u: {from: U, at: a, deadline: 1500 us}\n"
    plan = written(query, cluster("a"), **SOUND)
    ages = plan.analysis.ages
    assert ages is not None and ages.outputs == ("f", "g") and list(ages.max_age_ns) == ["s"]


def test_an_age_that_refuses_fresh_tuples_is_not_proposed() -> None:
    """An instance of 30 ms keeps sockets unread for as long: a deadline with less room than that has no age."""
    slow = "  S: {run: pass, in: known, cost: 30 ms}\noutputs:"
    query = ONE.replace("outputs:", slow) + "  x: {from: S, at: a, deadline: 99 ms}\n"
    plan = written(query, cluster("a"), **SOUND, charges=RuntimeOverhead())
    ages, analysis = plan.analysis.ages, _analysed(plan)
    drain_ns = analysis.delays.drains["a"]
    assert drain_ns > 30 * MS
    left_ns = plan.guarantee["g"].deadline_ns - (plan.guarantee["g"].from_admission_ns or 0)
    assert left_ns < drain_ns and (ages is None or "g" not in ages.outputs)


def test_a_proposal_that_does_not_hold_is_found_by_the_audit() -> None:
    plan = written(ONE, cluster("a"), **SOUND)
    ages = plan.analysis.ages
    assert ages is not None
    more = ProposedAges(max_age_ns={"s": ages.max_age_ns["s"] + MS}, outputs=ages.outputs)
    wrong = replace(plan, analysis=replace(plan.analysis, ages=more))
    assert audit_guarantee.audit(wrong) == ["with the ages that it proposes not all of f, g are guaranteed"]
