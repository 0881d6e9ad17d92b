"""Rows that foreign keys change without row events: DeltaMirror logs their tables in a warning."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server

_CHILD = "id INT PRIMARY KEY, parent INT"
_KEY = "FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE"


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings about foreign keys since the last call."""
    found = [each.getMessage() for each in caplog.records if "foreign keys" in each.getMessage()]
    caplog.clear()
    return found


def test_cascading_foreign_key_logs_a_warning_and_reload_equals_select(
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    # This server logs such changes, so there is no warning and no difference.
    is_logged = live_server.is_mysql9()
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path, startingOffset="snapshot")
    mirrored.execute(
        "CREATE TABLE parents (id INT PRIMARY KEY)",
        f"CREATE TABLE deleted ({_CHILD}, {_KEY} CASCADE)",
        f"CREATE TABLE emptied ({_CHILD})",
        "INSERT INTO parents VALUES (1), (2), (3)",
        "INSERT INTO deleted VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO emptied VALUES (1, 1), (2, 2), (3, 3)",
    )
    mirrored.run()
    warnings = _warnings(caplog)
    assert len(warnings) == (0 if is_logged else 1)
    for warning in warnings:
        assert f"of {database}.deleted (ON DELETE CASCADE of {database}.parents);" in warning
        assert "reload" in warning
    # A foreign key that is added later gets a warning of its own.
    mirror = mirrored.mirror()
    mirrored.execute("INSERT INTO parents VALUES (4)")
    mirror.start(spark, availableNow=True).awaitTermination()
    _warnings(caplog)
    mirrored.execute(
        f"ALTER TABLE emptied ADD n INT, ADD {_KEY} SET NULL", "DELETE FROM parents WHERE id = 1"
    )
    mirror.start(spark, availableNow=True).awaitTermination()
    warnings = _warnings(caplog)
    assert len(warnings) == (0 if is_logged else 1)
    for warning in warnings:
        assert f"of {database}.emptied (ON DELETE SET NULL of {database}.parents);" in warning
    mirrored.assert_equal("parents")
    for table in ("deleted", "emptied"):
        with nullcontext() if is_logged else pytest.raises(AssertionError):
            mirrored.assert_equal(table)
    for day in ("monday", "tuesday"):
        mirrored.options["reload"] = f"{day}: {database}.deleted, {database}.emptied"
        mirrored.run()
        mirrored.assert_equal("parents", "deleted", "emptied")
        mirrored.execute("DELETE FROM parents ORDER BY id LIMIT 1")
