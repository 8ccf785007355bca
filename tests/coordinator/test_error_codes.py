"""Codes of mistakes: named once, in snake case, and given by some room."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import coordinator
from coordinator.error_codes import Code
from protos import plan_document, policies

ROOM = Path(coordinator.__file__).parent


def test_every_code_is_named_once_and_given_somewhere() -> None:
    codes = get_args(Code)
    assert len(set(codes)) == len(codes)
    sources = [path for path in ROOM.rglob("*.py") if path.name != "error_codes.py"]
    written = "".join(path.read_text() for path in (*sources, Path(plan_document.__file__), Path(policies.__file__)))
    given = set(re.findall(r'"([a-z0-9_]+)"', written))
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code) for code in codes)
    assert [code for code in codes if code not in given] == []
