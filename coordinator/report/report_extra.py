"""The packages of the extra `report`: Spark, and pyarrow for Parquet. A report without them is made in plain Python and
has no tables."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Literal

from coordinator.errors import CoordinatorError, Mistake

Package = Literal["pyspark", "pyarrow"]
INSTALL = "pip install 'shimekiri[report]' (from a file: 'shimekiri-VERSION-py3-none-any.whl[report]')"


class ReportExtraError(CoordinatorError):
    """A package of the extra `report` is asked for and is not installed."""


@cache
def has(package: Package) -> bool:
    """Whether it is installed."""
    return find_spec(package) is not None


def missing(package: Package, what: str, otherwise: str = "") -> Mistake:
    """That `what` needs the package; otherwise: what works without it, appended to the command that installs it."""
    return Mistake("no_report_extra", f"{what} needs {package}, which is not installed", INSTALL + otherwise, package)


def require(package: Package, what: str) -> None:
    """Raises ReportExtraError where the package, which `what` needs, is not installed."""
    if not has(package):
        raise ReportExtraError(missing(package, what))
