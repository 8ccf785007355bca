"""The query and the cluster that a plan was made from, rebuilt from plan.json alone, for whoever plans again.

A plan holds everything that placement, local plans and bounds need, so planning with what is rebuilt here makes the
same plan. What it does not hold, because it no longer matters: the files' lines, nodes that a host's places were
written as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from coordinator import policies, yaml_file
from coordinator.arrivals import Arrival
from coordinator.cluster import Cluster, Link, Node
from coordinator.cost_origin import CostOrigin
from coordinator.guarantee.charges import Charges, NodeCharges
from coordinator.guarantee.qos import Qos
from coordinator.operators import BUILTIN, Catalog, Installed
from coordinator.overload import Limit, OnLate, Queue, Window
from coordinator.placement import kept
from coordinator.placement.milp import Limits
from coordinator.planner import Choices
from coordinator.query import KEEP, Member, Operator, Output, Query, Source
from coordinator.query_file import SelectivityFile
from coordinator.sharing.compose import SEPARATOR

Plan = Mapping[str, Any]


def inputs(plan: Plan, path: Path) -> tuple[Query, Cluster, dict[str, str], Choices]:
    """Query, cluster, the streams' types and the choices of a parsed plan.json; `path`: what it is called in
    messages."""
    file = yaml_file.Source(path, b"", {})
    types = {name: str(facts["type"]) for name, facts in plan["graph"]["streams"].items()}
    return query(plan, file), cluster(plan, file), types, choices(plan)


def query(plan: Plan, file: yaml_file.Source) -> Query:
    """The query; `keys` of its parts are those of a file in which chains are written as chains."""
    graph = plan["graph"]
    sources = tuple(
        Source(
            name,
            facts["at"],
            facts["type"],
            _arrival(facts["arrival"]),
            facts["max_age_ns"],
            _pairs(facts["forbid_streams"]),
            ("sources", name),
            Limit.read(facts.get("limit")),
            facts.get("on_full", "refuse"),
        )
        for name, facts in graph["sources"].items()
    )
    entries = _entries(plan)
    known = catalog(plan)
    costed = {name: CostOrigin.read(facts) for name, facts in plan.get("costs", {}).items()}
    operators = tuple(
        replace(_operator(name, facts, entries[name], known), cost_from=costed.get(name))
        for name, facts in graph["operators"].items()
    )
    outputs = tuple(
        Output(name, facts["from"], facts["at"], facts["deadline_ns"], ("outputs", name), Qos.read(facts.get("qos")))
        for name, facts in graph["outputs"].items()
    )
    members = {name: _member(facts) for name, facts in plan.get("queries", {}).items()}
    return Query(plan["query"], sources, operators, outputs, plan["inputs"]["query"], file, members)


def _member(facts: Mapping[str, Any]) -> Member:
    sources, operators, outputs = (tuple(facts[what]) for what in ("sources", "operators", "outputs"))
    return Member(sources, operators, outputs, facts["sha256"], dict(facts["called"]))


def _arrival(written: Mapping[str, Any]) -> Arrival:
    """Mean rates as `query` computes them."""
    kind, burst = written["kind"], int(written["burst"])
    if kind == "rate":
        rate = Fraction(str(written["rate_per_s"])) / 10**9
    elif kind == "trace":
        rate = Fraction(written["tuples"], written["span_ns"])
    else:
        rate = Fraction(burst if kind == "burst" else 1, written["period_ns"])
    return Arrival(burst, rate, dict(written))


def _operator(name: str, facts: Mapping[str, Any], entry: str, known: Catalog) -> Operator:
    said = facts["selectivity"]
    if facts["run"] == "filter" and said is not None:
        keep, of = facts["with"].get("keep", 1), facts["with"].get("of", 2)
        if said == {"mean": float(Fraction(keep, of)), "at_most": [[of, keep]]}:
            said = None  # it follows from the parameters, exactly
    declared = SelectivityFile.model_validate(said) if said is not None else None
    inputs, ports = tuple(facts["in"]), facts.get("ports")
    fixed = "window" not in facts and not known.operators[facts["run"]].variadic
    if ports is not None and fixed:  # as they were written
        by_port = dict(zip(known.operators[facts["run"]].inputs, inputs, strict=True))
        inputs = tuple(by_port[port] for port in ports)
    given = {
        "name": name,
        "run": facts["run"],
        "inputs": inputs,
        "ports": None if ports is None else tuple(ports),
        "side": dict(facts["side"]),
        "cost_ns": facts["cost_ns"],
        "selectivity": declared,
        "nodes": tuple(facts["nodes"]) if facts["nodes"] is not None else None,
        "parameters": dict(facts["with"]),
        "hang_ns": facts["hang_ns"],
        "forbidden": _pairs(facts["forbid_streams"]),
        "keys": ("operators", entry),
        "barred": tuple(facts.get("forbid_nodes", ())),
        "memory_bytes": facts.get("memory_bytes", 0),
        "state": facts.get("state", KEEP),
        "called": tuple(facts["called"]) if facts.get("called") is not None else None,
        "window": Window.read(facts.get("window")),
        "closes": facts.get("closes", ""),
        "on_late": OnLate.read(facts.get("on_late")),
        "queue": Queue.read(facts.get("queue")),
    }
    return Operator(**given)


def _pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one, other) for one, other in pairs)


NUMBERED = re.compile(r"(.*?)(\d+)")


def _entries(plan: Plan) -> dict[str, str]:
    """What each operator stands under: itself, or the chain `O7..O21` that a run of operators may be written as."""
    operators = plan["graph"]["operators"]
    runs: list[list[str]] = []
    for name, facts in operators.items():
        before = NUMBERED.fullmatch(runs[-1][-1]) if runs else None
        number = NUMBERED.fullmatch(name)
        follows = (
            before is not None
            and number is not None
            and (before[1], str(int(before[2]) + 1)) == (number[1], number[2])
            and facts["in"] == [runs[-1][-1]]
            and facts["nodes"] == operators[runs[-1][-1]]["nodes"]
            and not facts["side"]
            and not any("closes" in operators[one] for one in (name, runs[-1][-1]))
        )
        if follows:
            runs[-1].append(name)
        else:
            runs.append([name])
    found: dict[str, str] = {}
    for run in runs:
        first, last = (name.rpartition(SEPARATOR)[2] for name in (run[0], run[-1]))
        found |= dict.fromkeys(run, run[0] if len(run) == 1 else f"{first}..{last}")
    return found | {facts["closes"]: name for name, facts in operators.items() if "closes" in facts}


def cluster(plan: Plan, file: yaml_file.Source) -> Cluster:
    """The cluster, with its catalogue."""
    nodes = {name: _node(name, facts) for name, facts in plan["cluster"]["nodes"].items()}
    links = tuple(
        Link((link["between"][0], link["between"][1]), link["latency_ns"], link["bandwidth_bps"])
        for link in plan["cluster"]["links"]
    )
    return Cluster(nodes, links, catalog(plan), plan["cluster"]["security"], plan["inputs"]["cluster"], file)


def catalog(plan: Plan) -> Catalog:
    """What the nodes have installed; of plans made before these said so, what the plan runs."""
    sha256 = plan["inputs"]["operators"]
    if (given := plan["cluster"].get("installed")) is not None:
        listed = {name: Installed.model_validate(facts) for name, facts in given["operators"].items()}
        return Catalog(
            {**listed, **BUILTIN}, frozenset(given["codecs"]), given["complete"], sha256, given.get("fields", {})
        )
    installed = {facts["run"]: _installed(facts) for facts in plan["graph"]["operators"].values()}
    codecs = frozenset(facts["type"] for facts in plan["graph"]["streams"].values())
    return Catalog({**installed, **BUILTIN}, codecs, True, sha256)


def _node(name: str, facts: Mapping[str, Any]) -> Node:
    own = {key: value for key, value in facts.items() if key in {field.name for field in fields(Node)}}
    own |= {"name": name, "speed": Fraction(str(facts["speed"])), "cap": Fraction(str(facts["cap"]))}
    own.setdefault("host", name)  # plans of before there were cores
    own["policy"] = policies.given(facts)
    own["charges"] = NodeCharges.read(facts["charges"]) if facts.get("charges") else None
    return Node(**own)


def _installed(facts: Mapping[str, Any]) -> Installed:
    ports = {"*": "any"} if facts["kind"] == "union" else {f"in{i}": "any" for i in range(len(facts["in"]))}
    return Installed(kind=facts["kind"], inputs=ports, output="same", side=dict.fromkeys(facts["side"], "any"))


def choices(plan: Plan) -> Choices:
    """Those that a plan was made with. Its policy is that of the nodes by now, or the planner's to choose again."""
    charged = Charges(**plan["analysis"]["charges"]) if "analysis" in plan else Charges()
    solver = plan["solver"]
    return Choices(
        allocator=plan["allocator"],
        model="sound" if plan["model"] == "sound" else "paper",
        units=plan["units"],
        place=dict(plan.get("held", {})),
        sub_deadlines=solver["sub_deadlines"] if plan["allocator"] == "sqpr" else "model",
        tighten=solver.get("tighten"),
        limits=Limits(seed=solver["seed"], solver=solver["name"]),
        charges=charged,
        kept=kept.read(plan),
    )
