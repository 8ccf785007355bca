"""Metadata of installed packages. Read as lines, since `importlib.metadata` loads the library for mail: 2 MB and 30 ms
in each process of an agent. Where a package is not found so, it is asked."""

import os
import re
import sys
from collections.abc import Iterator

KINDS = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}

Fields = list[tuple[str, str]]


def fields(package: str) -> Fields:
    """Names and values, in the order of the file. Empty: no package of that name is installed."""
    for path in _paths(_normal(package)):
        try:
            with open(path, encoding="utf-8") as file:
                return list(_head(file))
        except OSError:  # of an old kind, or half removed
            continue
    return _asked(package)


def version(package: str) -> str | None:
    """None: it is not installed."""
    return next((value for name, value in fields(package) if name == "Version"), None)


def _paths(package: str) -> Iterator[str]:
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # an archive, say
            continue
        for name in names:
            stem, kind = os.path.splitext(name)
            if kind in KINDS and _normal(stem.partition("-")[0]) == package:
                yield os.path.join(folder, name, KINDS[kind])


def _head(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if not line.strip():
            return
        name, colon, value = line.partition(":")
        if colon and not line[0].isspace():  # else the line before goes on
            yield name, value.strip()


def _asked(package: str) -> Fields:
    from importlib import metadata as asked

    try:
        found = asked.metadata(package)
        return [(name, value) for name in found for value in found.get_all(name, [])]
    except asked.PackageNotFoundError:
        return []


def _normal(name: str) -> str:
    """As packages are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
