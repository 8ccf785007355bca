"""Names for shell completion: what the files in the working directory have, as `coordinator` would take them.

A file that cannot be read has no names. Completion never fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUERY, CLUSTER, PLAN, ADDRESSES = Path("query.yaml"), Path("cluster.yaml"), Path("plan.json"), Path("addresses.json")


def nodes(incomplete: str) -> list[str]:
    """Of addresses.json, else of cluster.yaml."""
    found = _json(ADDRESSES).get("nodes") or _yaml(CLUSTER).get("nodes")
    hosts = dict.fromkeys(str(name).partition(".")[0] for name in _keys(found))
    return [name for name in hosts if name.startswith(incomplete)]


def sources_with_equals(incomplete: str) -> list[str]:
    """`SOURCE=`, of query.yaml."""
    return [f"{name}=" for name in _keys(_yaml(QUERY).get("sources")) if name.startswith(incomplete)]


def operators_with_equals(incomplete: str) -> list[str]:
    """`OPERATOR=`, and behind that the nodes it may be held to."""
    operator, equals, node = incomplete.partition("=")
    if equals:
        return [f"{operator}={name}" for name in nodes(node)]
    return [f"{name}=" for name in _keys(_yaml(QUERY).get("operators")) if name.startswith(incomplete)]


def outputs(incomplete: str) -> list[str]:
    """Of query.yaml."""
    return [name for name in _keys(_yaml(QUERY).get("outputs")) if name.startswith(incomplete)]


def queries(incomplete: str) -> list[str]:
    """Of plan.json."""
    return [name for name in _keys(_json(PLAN).get("queries")) if name.startswith(incomplete)]


def policies(incomplete: str) -> list[str]:
    """That a node may run."""
    from protos.policies import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def codes(incomplete: str) -> list[str]:
    """Of errors."""
    from coordinator import error_reference

    return [code for code in error_reference.codes() if code.startswith(incomplete)]


def _keys(found: object) -> list[str]:
    return [str(name) for name in found] if isinstance(found, Mapping) else []


def _yaml(path: Path) -> Mapping[str, Any]:
    from coordinator.errors import BadInputError
    from coordinator.spec.files import yaml_source

    try:
        found = yaml_source.load(path).data
    except BadInputError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
