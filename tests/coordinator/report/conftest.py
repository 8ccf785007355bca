"""One Spark session for all tests of the report: it takes seconds to start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from coordinator.report.spark.spark_session import SparkUnavailableError, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    try:
        with session() as started:
            yield started
    except SparkUnavailableError as why:
        pytest.skip(str(why))
