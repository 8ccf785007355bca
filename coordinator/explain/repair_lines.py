"""Repairs in sentences: what to change, the lines of the files, and what was tried without success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coordinator.solve.repair.repair import Edit, Repair
from coordinator.solve.repair.repair_search import Findings
from coordinator.solve.repair.what_if_runs import Case
from coordinator.spec.files import yaml_source
from coordinator.spec.sharing import joined_files
from coordinator.spec.sharing.compose import SEPARATOR
from coordinator.units import counted

MOST = 12  # repairs that are written out
HELPS = "What would mend it, the smallest change first; each was planned and holds"
NOTHING = "What would mend it: nothing that was tried"


def sections(found: Findings, case: Case) -> dict[str, list[str]]:
    """Sections of sentences: what would make every output hold; nothing where all do."""
    if found.now.holds and not found.now.ageless and not found.repairs:
        return {}
    lines = [
        f"{name} admits tuples as old as a whole deadline: that age or the deadline has to change"
        for name in found.hopeless
    ]
    if not any(len(repair.changes) == 1 for repair in found.repairs):
        lines.append(_no_single(found))
    for repair in found.repairs[:MOST]:
        lines += of_repair(repair, case)
    if left := len(found.repairs) - MOST:
        lines += [f"and {counted(left, 'change')} more: --json has all"] if left > 0 else []
    lines += _failed(found)
    return {HELPS if found.repairs else NOTHING: lines}


def _no_single(found: Findings) -> str:
    """Whether none of the candidates helps, or not all were tried."""
    if found.doubtful and not found.untried:
        return "no single change was found that mends it, and it is not proven that none does"
    if not found.exhausted:
        return "no single change was found in time that mends it"
    if found.repairs:
        return "no single change mends it: every key that may be the cause was tried; two together do"
    pairs = "" if found.untried_pairs else ", nor do any two together"
    return f"no single change mends it: every key that may be the cause was tried{pairs}"


def of_repair(repair: Repair, case: Case) -> list[str]:
    """What to do, the lines of the files, and options of `coordinator plan` where there are any."""
    less = "" if repair.settled else " (less may do: not narrowed down in time)"
    lines = [f"{repair.text}{less}", *(f"    {told}" for edit in repair.edits for told in _places(edit, case))]
    if options := repair.options():
        lines.append(f"    coordinator plan ... {options}")
    return lines


def _places(edit: Edit, case: Case) -> list[str]:
    """`cluster.yaml:4: nodes.a.memory: 96 MiB`; of a plan without a place; of several queries, in the file of each that
    has what is changed."""
    if edit.file == "query" and case.query.members:
        return _of_members(edit, case)
    file = case.cluster.file if edit.file == "cluster" else case.query.file
    if not file.data:
        return [f"in the {edit.file}: {edit.line}"]
    name: Sequence[object] = [edit.name] if edit.name else []
    if edit.section == "links" and edit.name:
        name = [_position(file, edit.name)]
    return [f"{file.place(edit.section, *name, *edit.field.split('.'))}: {edit.line}"]


def _of_members(edit: Edit, case: Case) -> list[str]:
    """An edit of several queries in each file that has the part, by what the file calls it."""
    parts = case.query.file.parts.values() if isinstance(case.query.file, joined_files.Files) else ()
    files = {str(each.data.get("query")): each for each in parts}
    found = []
    for query, part in case.query.members.items():
        of_section = {"sources": part.sources, "operators": part.operators, "outputs": part.outputs}[edit.section]
        name = edit.name.removeprefix(f"{query}{SEPARATOR}")
        if name == edit.name and name not in of_section:
            continue
        own = replace(edit, name=part.called.get(name, name))
        at = files[query].place(own.section, own.name, *own.field.split(".")) if query in files else f"in {query}"
        found.append(f"{at}: {own.line}")
    return found or [f"in the {edit.file}: {edit.line}"]


def _position(file: yaml_source.Source, name: str) -> int:
    """Of a link in the list of them."""
    ends = ["-".join(link["between"]) for link in file.data["links"]]
    return ends.index(name)


def _failed(found: Findings) -> list[str]:
    lines = [f"tried alone, without success: {'; '.join(found.useless)}"] if found.useless else []
    if found.untried:
        lines.append(f"not tried in time, more with --time-limit: {'; '.join(found.untried)}")
    if found.untried_pairs:
        lines.append(
            f"of two together {counted(found.untried_pairs, 'pair')} not tried in time, more with --time-limit"
        )
    if found.undecided:
        lines.append("some attempts found no plan that holds and no proof that there is none: less may do")
    return lines
