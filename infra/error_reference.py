"""The reference of error codes: pages for readers, and the entries that `coordinator help CODE` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from coordinator import error_codes as coordinator_codes
from coordinator.error_reference import Entry, Sentence
from infra import error_remedies, error_sources
from node_agent import error_codes as agent_codes
from sim_vehicles import error_codes as vehicle_codes

ENTRIES = Path("coordinator/error_entries.json")
FOLDER = Path("docs/reference/errors")
PROGRAMS: dict[str, object] = {
    "coordinator": coordinator_codes.Code, "node_agent": agent_codes.Code, "sim_vehicles": vehicle_codes.Code,
}  # fmt: skip
EXPLAINED = ("coordinator", "node_agent")  # by `coordinator help`, which knows nothing of applications
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
    "sim_vehicles.maps": "maps",
    "sim_vehicles.readers": "recordings",
    "sim_vehicles.replay": "replay",
    "sim_vehicles.record": "record",
    "sim_vehicles.story": "page",
    "sim_vehicles": "sim-vehicles",
}
HEAD = """\
# Error codes of {program}

Programs and tests compare codes, and a log in JSON has them.{printed}
What a sentence is filled with stands in capitals. KEY is the key that has the value, with the file and the line
before it.

This page is made from the places in `{package}` that report mistakes, by `python -m infra.generate`.

| code | where | sentence | what to do |
|---|---|---|---|
"""
PRINTED = " `coordinator help CODE` prints an entry of this page."


def files() -> dict[Path, str]:
    """The pages in Markdown and the entries in JSON, by path."""
    found = {package: _entries(package) for package in PROGRAMS}
    pages = {FOLDER / f"{package}.md": _page(package, entries) for package, entries in found.items()}
    return pages | {ENTRIES: _json({package: found[package] for package in EXPLAINED})}


def _json(found: dict[str, list[Entry]]) -> str:
    """A line per code."""
    programs = (
        f"{json.dumps(package)}: {{\n"
        + ",\n".join(f"{json.dumps(each.code)}: {_document(each)}" for each in entries)
        + "\n}"
        for package, entries in found.items()
    )
    return "{\n" + ",\n".join(programs) + "\n}\n"


def _document(entry: Entry) -> str:
    sentences = [{"where": each.where, "sentence": each.text, "mend": each.mend} for each in entry.sentences]
    return json.dumps({"places": sentences, "remedy": entry.remedy}, ensure_ascii=False)


def _entries(package: str) -> list[Entry]:
    """By code in order, each with its sentences, and what to do where a sentence has no mend."""
    codes = sorted(get_args(PROGRAMS[package]))
    at: dict[str, set[Sentence]] = {code: set() for code in codes}
    for place in error_sources.sentences_of(package, frozenset(codes)):
        text, mend = place.sentence.text.strip(), place.sentence.remedy.strip()
        at[place.code].add(Sentence(_where(place.module), text, mend))
    for code, text in error_remedies.SENTENCES[package].items():
        at[code].add(Sentence(_where(error_sources.module_of(package, code)), text, ""))
    remedies = error_remedies.REMEDIES[package]
    return [Entry(_program(package), code, tuple(sorted(at[code])), remedies.get(code, "")) for code in codes]


def _program(package: str) -> str:
    return package.replace("_", "-")


def _where(module: str) -> str:
    return WHERE[max((name for name in WHERE if f"{module}.".startswith(f"{name}.")), key=len)]


def _page(package: str, entries: list[Entry]) -> str:
    printed = PRINTED if package in EXPLAINED else ""
    head = HEAD.format(program=_program(package), package=package, printed=printed)
    return head + "".join(line for entry in entries for line in _rows(entry))


def _rows(entry: Entry) -> Iterator[str]:
    for number, each in enumerate(entry.sentences):
        shown = "" if number else f"`{entry.code}`"
        yield f"| {shown} | {each.where} | {_cell(each.text)} | {_cell(each.mend or entry.remedy)} |\n"


def _cell(text: str) -> str:
    """Text that Markdown takes as it is."""
    for sign in "\\`*_|<{[":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


__all__ = ["files"]
