"""The wheel of the product, and what is installed from it, once for all test processes of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.infra import empty_environment


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of all test processes of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"
    folder.mkdir(exist_ok=True)
    return folder


def _or_skip(make: Callable[[Path], Path], shared: Path) -> Path:
    try:
        return make(shared)
    except empty_environment.UnreachableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def wheel(shared: Path) -> Path:
    """The product's wheel, built from this tree."""
    return empty_environment.wheel(shared)


@pytest.fixture(scope="session")
def environment(shared: Path) -> Path:
    """A virtual environment with that wheel and what it demands, nothing else."""
    return _or_skip(empty_environment.environment, shared)


@pytest.fixture(scope="session")
def wheelhouse(shared: Path) -> Path:
    """A folder with the wheels that an agent demands."""
    return _or_skip(empty_environment.wheelhouse, shared)
