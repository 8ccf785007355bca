"""How packages are laid out: no circle of files, no two files of one name, no drawer too full, nobody's privates."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from infra.house import house

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
MOST_FILES = 14
ONE_FILE_PER_COMMAND = ("coordinator/cli/commands", "infra/bench")  # called as the command
EXAMPLES = ROOT / "coordinator" / "examples"  # directories of users: files are called as the tutorial says
NAMED_TUPLE = {"_replace", "_fields", "_asdict", "_make"}
LIBRARIES = {  # os, argparse, asyncio and PySpark have no other way
    "_set_running_loop", "_exit", "_actions", "_choices_actions", "_SubParsersAction",
    "_active_spark_context", "_gateway", "_jvm",
}  # fmt: skip


def files(package: str) -> list[Path]:
    """Its modules, without those that Python names."""
    found = (path for path in (ROOT / package).rglob("*.py") if EXAMPLES not in path.parents)
    return sorted(path for path in found if path.stem not in ("__init__", "__main__") and "_pb2" not in path.stem)


def drawer(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_files_import_one_another_in_a_circle(graph: grimp.ImportGraph, package: str) -> None:
    """Imports for type checking included."""
    assert house(graph, package).circles == 0, "`make house` counts them, `lint-imports` says which rooms"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_files_of_a_package_are_called_alike(package: str) -> None:
    names = Counter(path.name for path in files(package) if drawer(path) not in ONE_FILE_PER_COMMAND)
    assert {name for name, count in names.items() if count > 1} == set()


def test_no_two_files_of_the_tests_are_called_alike() -> None:
    names = Counter(path.name for path in Path(__file__).parents[2].rglob("*.py"))
    called_so = {"__init__.py", "__main__.py", "conftest.py"}  # by Python and pytest
    assert {name for name, count in names.items() if count > 1} <= called_so


@pytest.mark.parametrize("package", PACKAGES)
def test_no_drawer_is_too_full(package: str) -> None:
    drawers = Counter(map(drawer, files(package)))
    full = {name for name, count in drawers.items() if count > MOST_FILES}
    assert full <= set(ONE_FILE_PER_COMMAND)


@pytest.mark.parametrize("package", PACKAGES)
def test_nobody_reads_what_is_private_to_an_object_of_another_file(package: str) -> None:
    """What a class inherits is its own."""
    assert [f"{path.relative_to(ROOT)}: {name}" for path in files(package) for name in foreign(path)] == []


def foreign(path: Path) -> Iterator[str]:
    """Private attributes that a file reads and does not define, and private names that it imports."""
    tree = ast.parse(path.read_text())
    own = set(defined(tree)) | NAMED_TUPLE | LIBRARIES
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))


def defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Constant(value=str(name)):  # slots
                yield name


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
