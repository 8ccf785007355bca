"""The reference of error codes: pages for readers, and the entries that `coordinator help CODE` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from coordinator import error_codes as coordinator_codes
from infra import error_remedies, error_sources
from infra.error_sources import Place
from node_agent import error_codes as agent_codes
from sim_vehicles import error_codes as vehicle_codes

ENTRIES = Path("coordinator/error_entries.json")
FOLDER = Path("docs/reference/errors")
PROGRAMS: dict[str, Any] = {
    "coordinator": coordinator_codes.Code, "node_agent": agent_codes.Code, "sim_vehicles": vehicle_codes.Code,
}  # fmt: skip
WHERE = {  # what a reader knows a room by; the longest beginning of a module's name counts
    "coordinator.calculus": "bounds",
    "coordinator.change": "add and remove",
    "coordinator.cli": "the command line",
    "coordinator": "any command",
    "node_agent": "node-agent",
    "coordinator.fleet": "agents and their traces",
    "coordinator.fleet.addresses": "addresses.json",
    "coordinator.fleet.identity": "certificates",
    "coordinator.guarantee": "bounds",
    "coordinator.lab": "the virtual network",
    "coordinator.local_run": "run --local",
    "coordinator.model": "the model",
    "coordinator.plan": "plan.json",
    "coordinator.report": "report",
    "coordinator.solve": "planning",
    "coordinator.spec": "query.yaml, cluster.yaml, costs.yaml",
    "coordinator.spec.catalog": "operators.json",
    "coordinator.units": "quantities",
    "node_agent.client": "Source and Sink",
    "node_agent.connectors": "connectors",
    "node_agent.control": "deployment",
    "node_agent.core": "plans on an agent",
    "node_agent.host": "the agent's machine",
    "node_agent.link": "links",
    "node_agent.operators": "operators",
    "node_agent.runtime": "running plans",
    "node_agent.supervisor": "the agent's processes",
    "node_agent.testing": "tests of operators",
    "node_agent.tls": "certificates",
    "node_agent.tools": "node-agent",
    "node_agent.virtual": "simulate",
    "node_agent.wire": "plans on an agent",
    "protos.plan_document": "plan.json",
    "protos.policies": "policies",
    "protos.record_layout": "traces",
    "protos.records": "traces",
    "protos": "plans",
    "sim_vehicles.readers": "recordings",
    "sim_vehicles.replay": "replay",
    "sim_vehicles.record": "record",
    "sim_vehicles.story": "page",
    "sim_vehicles": "sim-vehicles",
}
HEAD = """\
# Error codes of {program}

Programs and tests compare codes; a log in JSON has them, and `coordinator help CODE` prints an entry of this page. What
a sentence is filled with stands in capitals. KEY is the key that has the value, with the file and the line before it.

This page is made from the places in `{package}` that report mistakes, by `python -m infra.generate`.

| code | where | sentence | what to do |
|---|---|---|---|
"""


def files() -> dict[Path, str]:
    """The pages in Markdown and the entries in JSON, by path."""
    found = {package: _entries(package) for package in PROGRAMS}
    pages = {FOLDER / f"{package}.md": _page(package, entries) for package, entries in found.items()}
    return pages | {ENTRIES: _json(found)}


def _json(found: dict[str, Any]) -> str:
    """A line per code."""
    programs = (
        f'"{package}": {{\n'
        + ",\n".join(f"{json.dumps(code)}: {json.dumps(each, ensure_ascii=False)}" for code, each in entries.items())
        + "\n}"
        for package, entries in found.items()
    )
    return "{\n" + ",\n".join(programs) + "\n}\n"


def _entries(package: str) -> dict[str, Any]:
    """By code: where, sentence and mend of each place, and what to do where no place has a mend."""
    codes = sorted(get_args(PROGRAMS[package]))
    at: dict[str, list[Place]] = {code: [] for code in codes}
    for place in error_sources.places(package, frozenset(codes)):
        at[place.code].append(place)
    return {code: _entry(package, code, at[code]) for code in codes}


def _entry(package: str, code: str, places: list[Place]) -> dict[str, Any]:
    seen = {(_where(each.module), each.sentence.text.strip(), each.sentence.mend.strip()) for each in places}
    if sentence := error_remedies.SENTENCES[package].get(code):
        seen.add((_where(error_sources.module_of(package, code)), sentence, ""))
    found = [{"where": where, "sentence": sentence, "mend": mend} for where, sentence, mend in sorted(seen)]
    return {"places": found, "remedy": error_remedies.REMEDIES[package].get(code, "")}


def _where(module: str) -> str:
    return WHERE[max((name for name in WHERE if f"{module}.".startswith(f"{name}.")), key=len)]


def _page(package: str, entries: dict[str, Any]) -> str:
    return HEAD.format(program=package.replace("_", "-"), package=package) + "".join(
        line for code, entry in entries.items() for line in _rows(code, entry)
    )


def _rows(code: str, entry: dict[str, Any]) -> Iterator[str]:
    for number, place in enumerate(entry["places"]):
        shown = "" if number else f"`{code}`"
        mend = place["mend"] or entry["remedy"]
        yield f"| {shown} | {place['where']} | {_cell(place['sentence'])} | {_cell(mend)} |\n"


def _cell(text: str) -> str:
    """Text that Markdown takes as it is."""
    for sign in "\\`*_|<{[":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


__all__ = ["files"]
