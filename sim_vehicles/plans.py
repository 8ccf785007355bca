"""plan.json, read by the one document model; what is wrong with it is told in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protos import plan_document
from protos.plan_document import Plan, PlanFileError
from sim_vehicles.errors import BadInputError
from sim_vehicles.feed import read_json

MEND = "make it with `coordinator plan`"


def read_plan(path: Path, what: str = "plan.json, made by `coordinator plan`") -> Plan:
    """The plan of a file, whatever its hash says: what would be under other costs may be tried. Raises
    BadInputError."""
    return typed(read_json(path, what), str(path))


def typed(values: Any, name: str) -> Plan:
    """The plan of parsed JSON. name: of what it was read from. Raises BadInputError."""
    try:
        return plan_document.shaped(values)
    except PlanFileError as error:
        raise BadInputError(f"{name}: {error.text}; {MEND}") from None
