"""What belongs to the code of an operator, and what does not."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from node_agent.core.plan import Identity
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from tests.sentences import refused

ROOT = Path(__file__).parents[3]
MAIN = """
from node_agent.sdk import operator
import %s

@operator("my.weigh", version="1")
def weigh(value):
    from parts.deep import grams
    return {"g": grams(value)}
"""
FILES = {
    "operators.py": MAIN,
    "scale.py": "FACTOR = 1000",
    "parts/__init__.py": "",
    "parts/deep.py": "from . import (shallow,  # and what it needs\n)\nfrom .other import x\ndef grams(v): return v",
    "parts/shallow.py": "",
    "parts/other.py": "x = 1",
    "unused.py": "",
    "parts/unused.py": "",
}


def folder(root: Path, files: Mapping[str, str] = FILES, helper: str = "scale") -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("%s", helper))
    return root / "operators.py"


def identity(file: Path) -> Identity:
    """As a process of its own loads it: modules beside a file are loaded once in each."""
    program = (
        "import sys; from node_agent.operators.registry import Registry\n"
        "print(Registry([sys.argv[1]]).identity('my.weigh').code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Identity("my.weigh", "1", done.stdout.strip())


def test_the_same_sources_have_one_hash_wherever_they_are(tmp_path: Path) -> None:
    one = folder(tmp_path / "one")
    other = folder(tmp_path / "two").rename(tmp_path / "two" / "weighing.py")
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("edited", "changes"),
    [
        ("operators.py", True), ("scale.py", True), ("parts/__init__.py", True), ("parts/deep.py", True),
        ("parts/shallow.py", True), ("parts/other.py", True), ("unused.py", False), ("parts/unused.py", False),
    ],
)  # fmt: skip
def test_what_it_imports_of_its_folder_belongs_to_it(tmp_path: Path, edited: str, changes: bool) -> None:
    one, other = folder(tmp_path / "one"), folder(tmp_path / "two")
    path = tmp_path / "two" / edited
    path.write_text(path.read_text() + "\n")
    assert (_code(one) != _code(other)) == changes


def _code(file: Path) -> str:
    """Without running it: what is imported is looked for beside the file that is asked."""
    from node_agent.operators import source_code

    sources = source_code.Sources()
    module = type(sys)("somewhere")
    module.__file__ = str(file)
    sys.modules["somewhere"] = module
    try:
        made = type("Made", (), {"__module__": "somewhere"})
        return sources.code(made)
    finally:
        del sys.modules["somewhere"]


def test_what_is_loaded_keeps_its_hash_when_its_file_is_edited(tmp_path: Path) -> None:
    file = folder(tmp_path, {"operators.py": MAIN}, helper="json")
    registry = Registry([file])
    before = registry.identity("my.weigh")
    (loaded,) = [files for found, files in registry.loaded() if found == before]
    file.write_text(file.read_text().replace('"g"', '"h"'))
    assert registry.identity("my.weigh") == before == registry.loaded()[-1][0]
    assert list(loaded) == [file]
    now = Registry([file]).identity("my.weigh")
    assert now.code != before.code
    with refused("other_code my.weigh", OperatorError):
        registry.check(now)


def test_a_file_that_is_edited_twice_in_a_moment_runs_as_it_is(tmp_path: Path) -> None:
    """Bytecode is taken for current where a file's second and size are the same."""
    for factor in (2, 3):
        (tmp_path / "operators.py").write_text(
            f"from node_agent.sdk import operator\n@operator('my.by')\ndef by(v):\n    return v * {factor}\n"
        )
        assert Registry([tmp_path / "operators.py"]).make("my.by").call(2) == 2 * factor


def test_every_operator_has_one_the_built_in_ones_as_well() -> None:
    registry = Registry()
    described = registry.describe()["operators"]
    assert {"pass", "aggregate", "vehicle.warn"} <= described.keys()
    for name, one in described.items():
        assert len(one["code"]) == 64, name
        registry.check(Identity(name, one["version"], one["code"]))
    assert described["pass"]["code"] != described["vehicle.warn"]["code"]


def test_another_interpreter_says_the_same(tmp_path: Path) -> None:
    """Of what needs nothing but Python: the module is standard library."""
    file = folder(tmp_path)
    program = (
        "import sys, types, importlib.util as u\n"
        "spec = u.spec_from_file_location('s', sys.argv[1]); s = u.module_from_spec(spec); sys.modules['s'] = s\n"
        "spec.loader.exec_module(s)\n"
        "m = types.ModuleType('m'); m.__file__ = sys.argv[2]; sys.modules['m'] = m\n"
        "print(s.Sources().code(type('T', (), {'__module__': 'm'})))"
    )
    from shutil import which

    others = [each for each in ("/usr/bin/python3", *(which(f"python3.{n}") for n in range(11, 15))) if each]
    source = ROOT / "node_agent" / "operators" / "source_code.py"
    told = set()
    for other in {*others, sys.executable}:
        done = subprocess.run(
            [other, "-c", program, str(source), str(file)], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            told.add(done.stdout.strip())
    assert told == {_code(file)}
