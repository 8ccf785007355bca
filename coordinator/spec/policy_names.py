"""A policy as a user writes it, in a file or on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.units import duration_ns
from protos.policies import Chosen, PolicyError, chosen, with_parameters


def read(text: str) -> Chosen:
    """`bts:phi=100ms,k=5`. Raises PolicyError."""
    return chosen(text, duration_ns)


def written(value: object) -> Chosen:
    """As it stands in a file: that, or a mapping with a `name`. Raises PolicyError."""
    if isinstance(value, Mapping):
        rest = {str(key): each for key, each in value.items() if key != "name"}
        name = value.get("name")
        if not isinstance(name, str):
            raise PolicyError("no_policy_name", "there is no 'name'; write it like {name: bts, phi: 100 ms, k: 5}")
        return with_parameters(name, rest, duration_ns)
    if not isinstance(value, str):
        text = f"'{value}' is no name; write 'policy: edf', or {{name: bts, phi: 100 ms, k: 5}}"
        raise PolicyError("no_policy_name", text)
    return read(value)
