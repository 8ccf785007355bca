"""Samples of the cases of one kind: `make test` runs some of them, `make soak` the others, or all that are drawn."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def sample(cases: Iterable[Any], of: int) -> list[Any]:
    """Parameters of a test: each `of`-th case as it is, the others marked as soak's. A case is a value, or a tuple of
    the values of several names."""
    return [case if index % of == 0 else _of_soak(case) for index, case in enumerate(cases)]


def examples(whole: int, of: int) -> int:
    """How many examples of a property are drawn: one `of`-th in `make test`, the whole in `make soak`, whose seeds are
    random. A property inside a plain test needs the mark `hypothesis`, else soak does not run it."""
    return whole if settings.get_current_profile_name() == "open" else max(1, whole // of)


def _of_soak(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
