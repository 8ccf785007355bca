"""run.json: written with a check of its content, and read with a look at it, here alone.

`check` is the SHA-256 of the canonical JSON of everything else. A run.json without it is one of before, or made by
hand: it is taken for whole where it has no key but those that are written.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protos import digests

CHECK = "check"
KEYS = frozenset(
    ["run", "plan_hash", "virtual", "traces", "scenario", "earlier", "going_on", "collecting", "laps", CHECK]
)


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What a run.json holds, without its check. damage: how one sees that it is not as it was written; empty: it is."""

    values: dict[str, Any]
    damage: str = ""


def packed(values: Mapping[str, Any]) -> bytes:
    """The file's content."""
    plain = json.loads(json.dumps({key: value for key, value in values.items() if key != CHECK}))
    return (json.dumps(plain | {CHECK: _check(plain)}, indent=1) + "\n").encode()


def unpacked(data: bytes) -> RunDocument:
    """What the file holds. Raises ValueError where it is no JSON object."""
    doubled: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        doubled.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
        return dict(pairs)

    try:
        values = json.loads(data.decode(), object_pairs_hook=once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")
    check = values.pop(CHECK, None)
    if doubled:
        return RunDocument(values, f"it has {doubled[0]!r} twice")
    if check is None:
        unknown = sorted(values.keys() - KEYS)
        return RunDocument(values, f"it has no check, and {unknown[0]!r}, which no run has" if unknown else "")
    return RunDocument(values, "" if check == _check(values) else "its content and its check differ")


def _check(values: Mapping[str, Any]) -> str:
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return digests.sha256(canonical.encode()).hexdigest()
