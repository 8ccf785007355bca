"""plan.json has one definition: nobody but `protos.plan_document` takes a plan as a mapping, or asks one by key."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("coordinator", "node_agent", "sim_vehicles", "infra")
NAMES = frozenset({"plan", "made", "larger", "smaller"})  # what plans are called
KEYS = frozenset({"graph", "guarantee", "sub_deadlines_ns", "alternatives"})  # that no other document has
MAPPINGS = frozenset({"dict", "Mapping", "MutableMapping"})


def untyped(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line, and what stands there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and (_key(node) in KEYS or (_named(node.value) in NAMES and _key(node))):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Assign) and _is_mapping(node.value):
            yield from ((node.lineno, ast.unparse(node)) for each in node.targets if _named(each) == "Plan")
        elif isinstance(node, ast.arg) and node.arg in NAMES and _is_mapping(node.annotation):
            yield node.lineno, ast.unparse(node)


def _named(node: ast.AST) -> str:
    """The last part of a name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _key(node: ast.Subscript) -> str:
    """The text that it asks for."""
    return node.slice.value if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) else ""


def _is_mapping(node: ast.AST | None) -> bool:
    """Of values that may be anything."""
    return isinstance(node, ast.Subscript) and _named(node.value) in MAPPINGS and "Any" in ast.unparse(node.slice)


@pytest.mark.parametrize("package", PACKAGES)
def test_plans_are_objects(package: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix(): told
        for path in sorted((ROOT / package).rglob("*.py"))
        if (told := [f"{line}: {text}" for line, text in untyped(ast.parse(path.read_text(encoding="utf-8")))])
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        'plan["hash"]',
        'self.plan["tasks"]',
        'document["graph"]',
        "Plan = dict[str, Any]",
        "def f(plan: Mapping[str, Any]): ...",
    ],
)
def test_each_way_is_found(text: str) -> None:
    assert list(untyped(ast.parse(text)))
