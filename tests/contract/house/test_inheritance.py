"""Classes have their parts instead of inheriting them: no base of a base, and no private that another file defines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
SETTINGS_ALONE = {("coordinator.spec.files.quantities", "Strict")}  # pydantic's configuration, which has no method

Name = tuple[str, str]  # module and class


class Classes:
    """All classes of some modules, by their names, with their bases among them."""

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self._imports = {name: dict(_imported(tree)) for name, tree in modules.items()}
        self.nodes: dict[Name, ast.ClassDef] = {
            (module, node.name): node
            for module, tree in modules.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }

    def bases(self, name: Name) -> list[Name]:
        """Of this project."""
        found = (self._resolved(name[0], base) for base in self.nodes[name].bases)
        return [base for base in found if base is not None]

    def _resolved(self, module: str, base: ast.expr) -> Name | None:
        text = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        above, _, last = text.rpartition(".")
        if not above:
            found = (module, last) if (module, last) in self.nodes else self._imports[module].get(last)
        else:
            found = (".".join(filter(None, self._imports[module].get(above, (above, "")))), last)
        while found is not None and found not in self.nodes:
            found = self._imports.get(found[0], {}).get(found[1])
        return found

    def ancestors(self, name: Name) -> Iterator[Name]:
        for base in self.bases(name):
            yield base
            yield from self.ancestors(base)

    def is_exception(self, name: Name) -> bool:
        """By the names of its bases, as ruff asks for them."""
        plain = [ast.unparse(base) for base in self.nodes[name].bases]
        return any(each.endswith(("Error", "Exception")) for each in plain) or any(
            map(self.is_exception, self.bases(name))
        )

    def is_protocol(self, name: Name) -> bool:
        return any(ast.unparse(base).startswith("Protocol") for base in self.nodes[name].bases)

    def depth(self, name: Name) -> int:
        """How many classes with code of their own stand over it."""
        counted = (base for base in self.bases(name) if not self.is_protocol(base) and base not in SETTINGS_ALONE)
        return max((1 + self.depth(base) for base in counted), default=0)

    def towers(self) -> list[str]:
        return sorted(
            f"{module}.{name}"
            for module, name in self.nodes
            if not self.is_exception((module, name)) and self.depth((module, name)) > 1
        )

    def inherited_privates(self) -> list[str]:
        """Privates of a base in another module that a class reads or defines anew."""
        return sorted(
            f"{name[0]}.{name[1]}: {private} of {base[0]}.{base[1]}"
            for name in self.nodes
            for base in set(self.ancestors(name))
            if base[0] != name[0]
            for private in _defined(self.nodes[base]) & (_read(self.nodes[name]) | _defined(self.nodes[name]))
        )


def _imported(tree: ast.Module) -> Iterator[tuple[str, Name]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((each.asname or each.name, (node.module, each.name)) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.asname or each.name, (each.name, "")) for each in node.names)


def _defined(node: ast.ClassDef) -> set[str]:
    """Privates that it defines: methods, fields, and attributes of `self`."""
    names = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and _is_private(each.attr)
        if ast.unparse(each.value) == "self"
    }
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(each.name)
        elif isinstance(each, ast.AnnAssign):
            names.add(ast.unparse(each.target))
        elif isinstance(each, ast.Assign):
            names.update(map(ast.unparse, each.targets))
    return set(filter(_is_private, names))


def _read(node: ast.ClassDef) -> set[str]:
    owners = ("self", "cls", "super()")
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_private(each.attr))
    return {each.attr for each in found if ast.unparse(each.value) in owners}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.fixture(scope="module")
def classes() -> Classes:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "_pb2" not in path.stem)
    return Classes({
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text())
        for path in files
    })  # fmt: skip


def test_no_class_has_a_base_that_has_a_base(classes: Classes) -> None:
    """Exceptions, protocols and pydantic's configuration aside."""
    assert len(classes.nodes) > 1000, "they are found"
    assert classes.towers() == []


def test_no_class_uses_privates_of_a_base_in_another_file(classes: Classes) -> None:
    assert classes.inherited_privates() == []


def test_each_way_to_build_a_tower_is_found() -> None:
    found = Classes({
        "low": ast.parse("class A:\n    def _step(self): ...\nclass P(Protocol): ...\nclass E(Exception): ..."),
        "middle": ast.parse("from low import A, E, P\nclass B(A): ...\nclass F(E): ...\nclass Q(P): ..."),
        "high": ast.parse(
            "import middle\nfrom middle import F, Q\n"
            "class C(middle.B):\n    def run(self): self._step()\n"
            "class G(F): ...\nclass R(Q): ...\nclass S(middle.A):\n    def _step(self): ..."
        ),
    })  # fmt: skip
    assert found.towers() == ["high.C"]
    assert found.inherited_privates() == ["high.C: _step of low.A", "high.S: _step of low.A"]
