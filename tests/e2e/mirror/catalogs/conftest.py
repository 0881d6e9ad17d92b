"""Fixtures: a session with Delta's jars, and a database that is mirrored into its catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.named_tables import NamedTables
from helpers.servers import Server
from helpers.streams.spark_session import DELTA_JARS, with_delta


@pytest.fixture(scope="module")
def delta(spark: SparkSession) -> SparkSession:
    """Return a session with Delta's jars."""
    if not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    return with_delta(spark)


@pytest.fixture
def named(
    delta: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> Iterator[NamedTables]:
    delta.sql(f"CREATE SCHEMA spark_catalog.`{database}` LOCATION '{tmp_path}/warehouse'")
    yield NamedTables(delta, live_server, database, tmp_path)
    delta.sql(f"DROP SCHEMA IF EXISTS spark_catalog.`{database}` CASCADE")
