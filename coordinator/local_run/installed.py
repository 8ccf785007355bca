"""operators.json, as a local run needs it: what the cluster file names where that still holds, brought up to date where
it does not, and a temporary one where there is none, so that nothing is left in a directory that had none."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from coordinator.errors import BadInputError, CoordinatorError, Mistake, bad_file, unwritable
from coordinator.spec.catalog import BUILTIN
from coordinator.spec.cluster import with_installed
from coordinator.spec.files import yaml_source

LISTING_S = 60.0


class Listed(NamedTuple):
    """edit: of the cluster file, to name another list; written: the list that was brought up to date."""

    edit: yaml_source.Edit | None = None
    written: Path | None = None


@contextmanager
def listed(queries: Sequence[Path], cluster: Path, files: Sequence[Path]) -> Iterator[Listed]:
    """While planning: the list for agents with `files`. Raises BadInputError, also where those cannot be loaded."""
    data = yaml_source.load(cluster).data
    named = data.get("operators") if isinstance(data, Mapping) else None
    if not files or not isinstance(named, str):
        yield Listed()
        return
    path, now = cluster.parent / named, _asked(files)
    if path.exists():
        yield Listed(written=_refreshed(path, now, queries))
        return
    with tempfile.TemporaryDirectory(prefix="shimekiri-") as folder:
        temporary = (Path(folder) / "operators.json").resolve()
        _write(temporary, now)
        yield Listed(with_installed(temporary))


def _refreshed(path: Path, now: Mapping[str, Any], queries: Sequence[Path]) -> Path | None:
    """Written anew where it says something else of what it lists, or of what the queries name. What is installed
    beside that, as by another package, is no matter."""
    try:
        before = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        before = None
    if isinstance(before, dict) and not _differs(before, now, _named(queries)):
        return None
    _write(path, now)
    return path


def _differs(before: Mapping[str, Any], now: Mapping[str, Any], named: set[str]) -> bool:
    def of(values: Mapping[str, Any], kind: str) -> dict[str, Any]:
        found = values.get(kind)
        if isinstance(found, list):  # codecs
            return {name: True for name in found if isinstance(name, str)}
        return found if isinstance(found, dict) else {}

    if before.get("shimekiri") != now.get("shimekiri"):
        return True
    for kind in ("operators", "codecs", "fields"):
        old, new = of(before, kind), of(now, kind)
        if any(old.get(name) != new.get(name) for name in {*old, *named}):
            return True
    return False


def _named(queries: Sequence[Path]) -> set[str]:
    """Operators, but for those that are built in, and codecs that the queries name; what is wrong with those files is
    told when they are planned."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            found.update(str(value[key]) for key in ("run", "type") if isinstance(value.get(key), str))
        if isinstance(value, str):
            found.add(value)  # an entry of a chain may be a name alone
        for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
            look(each)

    for path in queries:
        try:
            look(yaml_source.load(path).data)
        except BadInputError:
            continue
    return found - BUILTIN.keys()


def _write(path: Path, now: Mapping[str, Any]) -> None:
    try:
        path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from error


class _ListingError(CoordinatorError):
    exit_code = 2


def _asked(files: Sequence[Path]) -> dict[str, Any]:
    """What an agent with these files says that it has. Another process: their code runs there, not here."""
    options = [word for file in files for word in ("--operators", str(file))]
    command = [sys.executable, "-m", "node_agent", "operators", "--json", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LISTING_S, check=False)
    except subprocess.TimeoutExpired:
        text, mend = f"took more than {LISTING_S:g} s to import", "move slow work out of its top level"
        raise bad_file(files[0], "slow_import", text, mend) from None
    if done.returncode:
        text = done.stderr.strip() or f"{files[0]}: its operators cannot be listed"
        raise _ListingError(Mistake("no_listing", text, subject=str(files[0])))
    found: dict[str, Any] = json.loads(done.stdout)
    return found
