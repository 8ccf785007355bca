"""docs/rules.md: what keeps each rule, and the test that shows it, are there under the names that it gives."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RULE = re.compile(r"^\| (\d+) \| (.+) \| `([\w.]+)` \| `([\w/.]+)::(test_\w+)` \|$", re.MULTILINE)
RULES = RULE.findall((ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))


def test_there_are_forty() -> None:
    assert [int(number) for number, *_ in RULES] == list(range(1, 41))


@pytest.mark.parametrize(("keeper", "file", "test"), [rule[2:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_a_rule_is_kept_and_shown(keeper: str, file: str, test: str) -> None:
    module = keeper
    while not (ROOT / f"{module.replace('.', '/')}.py").exists() and not (ROOT / module.replace(".", "/")).is_dir():
        module = module.rpartition(".")[0]
    names = keeper.removeprefix(module).strip(".").split(".")
    assert callable(reduce(getattr, names, importlib.import_module(module)))
    assert re.search(rf"^(?:async )?def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
