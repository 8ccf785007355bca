"""Bugs that are planted on purpose: the table is that of the product as it is, and the quick ones are found."""

from pathlib import Path

import pytest

from tests.simulation.planted.hunt import hunt
from tests.simulation.planted.planting import CAMPAIGNS, LIMIT, PROJECT, copy
from tests.simulation.planted.table import BUGS

QUICK = ("offset_ignored", "acknowledged_early")
ENOUGH = 300


@pytest.mark.parametrize("bug", [*BUGS.values(), LIMIT], ids=lambda bug: bug.name)
def test_each_old_text_stands_in_the_product_once(bug) -> None:  # type: ignore[no-untyped-def]
    assert (PROJECT / bug.file).read_text().count(bug.old) == 1
    assert bug.old != bug.new


@pytest.mark.parametrize("name", QUICK)
def test_quick_ones_are_found(tmp_path: Path, name: str) -> None:
    clean, folder = tmp_path / "clean", tmp_path / "planted"
    copy(clean)
    copy(folder)
    assert hunt(clean, folder, BUGS[name], ["faults"], range(1, 20)).by is not None


@pytest.mark.soak
@pytest.mark.parametrize("name", BUGS)
def test_all_are_found(tmp_path: Path, name: str) -> None:
    clean, folder = tmp_path / "clean", tmp_path / "planted"
    copy(clean)
    copy(folder)
    found = hunt(clean, folder, BUGS[name], CAMPAIGNS, range(1, ENOUGH + 1))
    assert found.by is not None, found.told
