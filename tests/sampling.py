"""Samples of the cases of one kind: `make test` runs some of them, `make soak` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def sample(cases: Iterable[Any], of: int) -> list[Any]:
    """Parameters of a test: each `of`-th case as it is, the others marked as soak's. A case is a value, or a tuple of
    the values of several names."""
    return [case if index % of == 0 else _of_soak(case) for index, case in enumerate(cases)]


def _of_soak(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
