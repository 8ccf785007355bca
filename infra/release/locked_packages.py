"""The part of the lock that a release installs: what the product and its extras demand, directly or by way of others.

The lock has the packages of development as well. Which one demands which is read from the installed packages.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PRODUCT = "shimekiri"
NOT_LOCKED = frozenset({"dev", "record"})  # extras: of development, and SUMO, which the lock leaves out
ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)  # the first line of a package


def released_lock(root: Path) -> str:
    """The entries of requirements.lock, with their hashes, that a release with all extras installs on this system.

    Raises KeyError where one of them is not locked.
    """
    entries = _entries((root / "requirements.lock").read_text(encoding="utf-8"))
    return "".join(entries[name] for name in sorted(demanded(root)))


def demanded(root: Path) -> set[str]:
    """Normalised names of the packages, the product's own not among them."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for extra, lines in project["optional-dependencies"].items() if extra not in NOT_LOCKED]
    waiting = [Requirement(line) for lines in (project["dependencies"], *extras) for line in lines]
    found: dict[str, set[str]] = {PRODUCT: set()}  # with the extras that were followed
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        new = {"", *requirement.extras} - found.get(name, set())
        if name == PRODUCT or not new:
            continue
        found.setdefault(name, set()).update(new)
        waiting += [each for each in _requires(name) if _applies(each, new)]
    return found.keys() - {PRODUCT}


def _requires(name: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in distribution(name).requires or ()]
    except PackageNotFoundError:  # for another system, which the lock has as well
        return []


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    """Whether it is demanded here; extras: of the package that demands it, the empty one for none."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)


def _entries(lock: str) -> dict[str, str]:
    """Each package's lines, by its name."""
    return {canonicalize_name(re.split(r"[=\s]", entry, maxsplit=1)[0]): entry for entry in ENTRY.split(lock) if entry}
