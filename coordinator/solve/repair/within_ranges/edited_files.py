"""The files of a case with a repair's edits made in their texts, where everything else stays as it is."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.errors import bad_file
from coordinator.solve.repair.repair import Edit
from coordinator.solve.repair.what_if_runs import Case
from coordinator.solve.repair.within_ranges import yaml_text
from coordinator.solve.repair.within_ranges.yaml_text import NewValue, NotInPlaceError
from coordinator.spec.files.yaml_source import Source
from coordinator.spec.sharing.compose import SEPARATOR
from coordinator.spec.sharing.joined_files import Files


@dataclass(frozen=True)
class EditedFile:
    """A file of the user's before and after. `kind`: query or cluster."""

    path: Path
    kind: str
    before: str
    after: str

    @property
    def data(self) -> bytes:
        """As it is written."""
        return self.after.encode()

    def diff(self) -> str:
        """As of `diff -u`, with one line around each change."""
        name = str(self.path)
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), name, name, n=1, lineterm="")
        return "\n".join(lines)


def edited(case: Case, edits: Sequence[Edit]) -> list[EditedFile]:
    """The files that the edits change, queries before the cluster. Raises BadInputError where a value cannot be
    changed in place."""
    by_file: dict[Path, list[NewValue]] = {}
    files: dict[Path, Source] = {}
    for edit in edits:
        for file, value in _places(case, edit):
            files[file.path] = file
            by_file.setdefault(file.path, []).append(value)
    found = []
    for path, values in by_file.items():
        before = files[path].raw.decode()
        kind = "cluster" if files[path] is case.cluster.file else "query"
        try:
            after = yaml_text.changed(before, values)
        except NotInPlaceError as error:
            key = str(error)
            mend = f"write it out there, as {key}: {values[-1].text}"
            raise bad_file(path, "not_in_place", f"{key} cannot be changed alone", mend, key) from error
        found.append(EditedFile(path, kind, before, after))
    return sorted(found, key=lambda one: one.kind == "cluster")


def _places(case: Case, edit: Edit) -> list[tuple[Source, NewValue]]:
    """Where an edit is made; of a part that several queries share, in the file of each."""
    if edit.file == "cluster":
        name: str | int = edit.name
        if edit.section == "links":
            name = ["-".join(link["between"]) for link in case.cluster.file.data["links"]].index(edit.name)
        return [(case.cluster.file, _value(edit, name))]
    if not case.query.members:
        return [(case.query.file, _value(edit, edit.name))]
    assert isinstance(case.query.file, Files)  # of several
    parts = {str(each.data["query"]): each for each in case.query.file.parts.values()}
    found = []
    for query, part in case.query.members.items():
        own = edit.name.removeprefix(f"{query}{SEPARATOR}")
        has = {"sources": part.sources, "operators": part.operators, "outputs": part.outputs}[edit.section]
        if own != edit.name or edit.name in has:
            found.append((parts[query], _value(edit, part.called.get(edit.name, own))))
    return found


def _value(edit: Edit, name: str | int) -> NewValue:
    return NewValue((edit.section, name, *edit.field.split(".")), edit.after)


__all__ = ["EditedFile", "edited"]
