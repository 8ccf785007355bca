"""plan.json and other files of JSON that a user names; what is wrong with one is said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from node_agent.virtual.errors import bad_input
from protos import plan_document
from protos.plan_document import Plan, PlanFileError

MEND = "make it with `coordinator plan`"
MOST_DIGITS = 300  # of a whole number: what is longer is no float


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file; BadInputError with file:line. Every whole number in it has a float near it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_int=_whole_number)
    except FileNotFoundError:
        raise bad_input("no_file", "there is no such file", f"it should be {what}", file=path) from None
    except json.JSONDecodeError as bad:
        mend = f"it should be {what}"
        raise bad_input("not_json", f"is not JSON: {bad.msg}", mend, file=path, line=bad.lineno) from None
    except RecursionError:
        raise bad_input("not_json", "is nested too deeply", file=path) from None
    except (OSError, UnicodeDecodeError) as bad:
        raise bad_input("unreadable", f"cannot be read: {bad}", file=path) from None
    except ValueError as bad:  # of `_whole_number`
        raise bad_input("not_json", str(bad), file=path) from None
    if not isinstance(value, dict):
        raise bad_input("not_an_object", "is not a JSON object", f"it should be {what}", file=path, line=1)
    return value


def _whole_number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"has a number of {len(text)} digits, {text[:12]}...")
    return int(text)


def read_plan(path: Path, what: str = "plan.json, made by `coordinator plan`") -> Plan:
    """The plan of a file. Its hash is not compared, so that a plan with other costs may be tried. Raises
    BadInputError."""
    return typed(read_json(path, what), str(path))


def typed(values: Any, name: str) -> Plan:
    """The plan of parsed JSON. name: of what it was read from. Raises BadInputError."""
    try:
        return plan_document.shaped(values)
    except PlanFileError as error:
        raise bad_input(error.code, error.text, MEND, subject=error.path, file=name) from None
