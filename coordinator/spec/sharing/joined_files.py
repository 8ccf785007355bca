"""The files of several queries as one: a problem is told with the file and the line that it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from coordinator.errors import Mistake
from coordinator.spec.files.yaml_source import Source
from coordinator.spec.query import Query

Keys = tuple[object, ...]


@dataclass
class Files(Source):
    """Keys of what stands in one of `parts` begin with its path; others are the first one's."""

    parts: Mapping[Path, Source] = field(default_factory=dict)

    def line(self, *keys: object) -> int:
        """The line in the file that the first key names."""
        part, rest = self._part(keys)
        return part.line(*rest)

    def place(self, *keys: object) -> str:
        """FILE:LINE."""
        part, rest = self._part(keys)
        return part.place(*rest)

    def add(self, keys: Iterable[object], mistake: Mistake) -> None:
        """Note a mistake in the file that the first key names."""
        part, rest = self._part(tuple(keys))
        self.problems.append(part.problem(rest, mistake))

    def _part(self, keys: Keys) -> tuple[Source, Keys]:
        if keys and isinstance(keys[0], Path):
            return self.parts[keys[0]], keys[1:]
        return next(iter(self.parts.values())), keys


def rooted(query: Query) -> Query:
    """The query with keys that say in which file they are."""
    file = query.file
    if isinstance(file, Files):
        return query
    return replace(
        query,
        sources=tuple(replace(one, keys=(file.path, *one.keys)) for one in query.sources),
        operators=tuple(replace(one, keys=(file.path, *one.keys)) for one in query.operators),
        outputs=tuple(replace(one, keys=(file.path, *one.keys)) for one in query.outputs),
        file=Files(file.path, b"", {}, parts={file.path: file}),
    )


def joined(one: Query, other: Query) -> Files:
    """The files of two rooted queries."""
    assert isinstance(one.file, Files) and isinstance(other.file, Files)
    return Files(one.file.path, b"", {}, parts={**one.file.parts, **other.file.parts})
