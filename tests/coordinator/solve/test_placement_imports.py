"""OR-Tools appears in the solver modules only."""

from __future__ import annotations

import ast
from pathlib import Path

ROOM = Path(__file__).parents[3] / "coordinator"


def test_ortools_is_imported_by_the_model_only() -> None:
    found = set()
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "ortools" for name in names):
                found.add(str(path.relative_to(ROOM)))
    assert found == {"solve/milp/programme.py"}
