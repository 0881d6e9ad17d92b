"""Schemas from a log alone, compared with those that the server showed at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder
from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import CAPTURED
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_log

SCENARIOS = [
    "charsets", "geometry", "json_docs", "numbers", "temporals", "strings", "rotations", "wide",
    "gtid_no_checksum", "row_images", "transactions", "statements", "ddl_history",
    "virtual_columns",
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_schemas_from_a_recorded_log_equal_those_of_the_server(scenario: str) -> None:
    log = FileLog.find(str(CAPTURED / f"{scenario}.*.binlog"))
    history = history_of_log(log, log.begins()[0], lambda database, table: True)
    expected = captured_schemas(describe(scenario))
    assert expected
    for schema in expected:
        found = history.at(log.end(), schema.database, schema.table)
        assert found is not None
        # SHOW COLUMNS does not show a table's charset, and FLOAT(m,d) only affects the display.
        columns = tuple(
            replace(column, length=None, scale=None) if column.type == "float" else column
            for column in schema.columns
        )
        assert (found.columns, found.primary_key) == (columns, schema.primary_key)
        assert history.at(log.begins()[0], schema.database, schema.table) is None


def test_schema_history_of_a_log_has_only_captured_tables(tmp_path: Path) -> None:
    log = LogBuilder().format_description()
    log.query("CREATE TABLE t (id INT)").query("CREATE TABLE x (id INT)")
    files = FileLog.find(str(log.write(tmp_path)))
    history = history_of_log(files, files.begins()[0], lambda database, table: table == "t")
    assert list(history.tables()) == [("d", "t")]
