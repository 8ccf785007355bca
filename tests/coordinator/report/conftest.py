"""One Spark session for all tests of the report: it takes seconds to start. `make soak` has one as for large runs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from coordinator.report.spark.spark_session import SMALL, SparkUnavailableError, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    soaks = not str(request.config.option.markexpr).startswith("not soak")
    try:
        with session(records=SMALL if soaks else 0) as started:
            yield started
    except SparkUnavailableError as why:
        pytest.skip(str(why))
