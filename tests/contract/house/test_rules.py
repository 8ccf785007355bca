"""docs/rules.md and docs/promises.md: what keeps each rule, and the tests that show it, are there under their names."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RULE = re.compile(r"^\| (\d+) \| (.+) \| `([\w.]+)` \| `(\w+)::(\w+)` \|$", re.MULTILINE)
RULES = RULE.findall((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
PROMISE = re.compile(r"^\| ([A-Z].*?) \| .+ \| (.+?) \|$", re.MULTILINE)
PROMISES = PROMISE.findall((ROOT / "docs" / "promises.md").read_text(encoding="utf-8"))
PROOF = re.compile(r"`(\w+)::(\w+)`")  # `refusals::x`: test_x in test_refusals.py
MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for package in ("protos", "node_agent", "coordinator")
    for file in (ROOT / package).rglob("*.py")
]
TESTS = list((ROOT / "tests").rglob("test_*.py"))


def test_there_are_forty() -> None:
    assert [int(number) for number, *_ in RULES] == list(range(1, 41))


@pytest.mark.parametrize(("keeper", "file", "test"), [rule[2:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_a_rule_is_kept_and_shown(keeper: str, file: str, test: str) -> None:
    module = _module(keeper)
    names = keeper.removeprefix(module).strip(".").split(".")
    assert callable(reduce(getattr, names, importlib.import_module(_full(module))))
    assert _is_there(file, test)


@pytest.mark.parametrize(("promise", "proofs"), PROMISES, ids=[promise for promise, _ in PROMISES])
def test_a_promise_is_proven(promise: str, proofs: str) -> None:
    found = PROOF.findall(proofs)
    assert found and all(_is_there(file, test) for file, test in found)


def test_there_are_twelve_promises() -> None:
    assert len(PROMISES) == 12


def _module(keeper: str) -> str:
    """The part of the name that is a module's; the longest, since a module may have the name of its folder."""
    parts = keeper.split(".")
    return next(name for end in range(len(parts) - 1, 0, -1) if _ending(name := ".".join(parts[:end])))


def _ending(name: str) -> list[str]:
    return [module for module in MODULES if f".{module}".endswith(f".{name}")]


def _full(name: str) -> str:
    """The one module whose path ends so."""
    (module,) = _ending(name)
    return module


def _is_there(name: str, test: str) -> bool:
    (file,) = (file for file in TESTS if file.name == f"test_{name}.py")
    text = file.read_text(encoding="utf-8")
    return re.search(rf"^(?:async )?def test_{test}\(", text, re.MULTILINE) is not None
