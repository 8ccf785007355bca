"""A scenario as a file of JSON: the keys that run.json has under `scenario`, each optional.

    {"trials": 50, "jitter": "exp", "ages_ns": {"v2v": 100000000}, "then": [{"plan": "next.json", "at_ns": 5000000000}]}

Plans of `then` are paths from the scenario's directory on, files of tuples from the working directory on.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from node_agent.virtual.change_schedule import Change
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.errors import bad_input
from node_agent.virtual.plan_file import read_json, read_plan
from node_agent.virtual.scenario import Scenario

WHAT = 'a scenario, an object such as {"trials": 50, "jitter": "exp"}'
Fits = Callable[[object], bool]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _or_null(fits: Fits) -> Fits:
    return lambda value: value is None or fits(value)


def _per_source(fits: Fits) -> Fits:
    return lambda value: isinstance(value, Mapping) and all(map(fits, value.values()))


FIELDS: Mapping[str, tuple[Fits, str]] = {
    "trials": (_is_count, "a count"),
    "seed": (_is_count, "a count"),
    "policy": (_or_null(_is_text), "a policy's name or null"),
    "batch": (_or_null(_is_text), "tuple, burst, barrier or null"),
    "jitter": (_is_text, "a text such as lognormal:cv=1"),
    "cost_scale": (_is_number, "a number"),
    "bursts": (_is_count, "a count"),
    "ages_ns": (_per_source(_is_count), "ns per source"),
    "burst": (_per_source(_is_count), "tuples per source"),
    "phase_ns": (_per_source(_is_count), "ns per source"),
    "latency_ns": (_or_null(_is_count), "ns or null"),
    "loss": (_is_number, "a number"),
    "tuples": (_per_source(_is_text), "a file per source"),
    "decision_ns": (_is_count, "ns"),
    "phi_ns": (_or_null(_is_count), "ns or null"),
    "first_k": (_or_null(_is_count), "a count or null"),
    "share_ppm": (_or_null(_is_count), "a count or null"),
    "spread_ns": (_is_count, "ns"),
}


def read_scenario(path: Path) -> tuple[Scenario, list[Change]]:
    """The scenario of a file and the plans that it commits later. Raises BadInputError."""
    given = read_json(path, WHAT)
    then = given.pop("then", [])
    for name, value in given.items():
        if name not in FIELDS:
            raise bad_input(
                "unknown_key", f"{name!r} is unknown", f"use {', '.join(FIELDS)}, then", subject=name, file=path
            )
        fits, what = FIELDS[name]
        if not fits(value):
            raise bad_input("wrong_shape", f"{name}: {value!r} is not {what}", subject=name, file=path)
    return Scenario(**given | _jitter(given)), _changes(path, then)


def _jitter(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"jitter": parse_jitter(given["jitter"])} if "jitter" in given else {}


def _changes(path: Path, then: object) -> list[Change]:
    found = []
    for each in then if isinstance(then, list) else [then]:
        match each:
            case {"plan": str(plan), "at_ns": int(at_ns), **more} if not more:
                found.append(Change(read_plan(path.parent / plan), at_ns))
            case _:
                raise bad_input(
                    "wrong_shape", f'then: {each!r} is not {{"plan": FILE, "at_ns": N}}', subject="then", file=path
                )
    return found
