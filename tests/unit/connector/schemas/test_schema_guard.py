"""The check of table maps before their rows: every version of a table is checked, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.connector.schemas.evolution import Evolution
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


class CheckedColumns(Evolution):
    """An evolution that records the columns it is asked about."""

    def __init__(self) -> None:
        self.checked: list[list[str]] = []

    def check(self, schema: TableSchema) -> None:
        self.checked.append([column.name for column in schema.columns])


def test_equal_table_map_after_a_restart_is_checked_against_the_later_version() -> None:
    first = LogBuilder("mysql-bin.000001").format_description().begin().rows(90, "t", 1).xid()
    altered = first.query("ALTER TABLE t CHANGE a b INT").pos
    # The started server begins its table ids again, and nothing else distinguishes the maps.
    second = LogBuilder("mysql-bin.000002").format_description().begin().rows(90, "t", 2).xid()
    a, b = (TableSchema("d", "t", (ColumnSchema(name, "int"),)) for name in "ab")
    # As a start in the past knows it.
    history = SchemaHistory().with_table(BEGINNING, a)
    history = history.with_table(Position.of(first.file, altered), b)
    checked = CheckedColumns()
    guard = SchemaGuard(None, case_sensitive=True, evolution=checked)
    for log in (first, second):
        for event in log.events():
            if event.type == EventType.TABLE_MAP_EVENT:
                since = Position.of(event.file, 4)
                assert guard.check_table_map(history, event, since, is_mariadb=False) is history
    assert checked.checked == [["a"], ["b"]]


class RecordingSchemas:
    """Schemas that record the file of each table map that they check."""

    history = SchemaHistory()

    def __init__(self) -> None:
        self.files: list[str] = []

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        """No DDL is in this log."""

    def look_at(self, event: Event, boundary: Position) -> None:
        self.files.append(event.file)


@pytest.mark.usefixtures("implementation")
def test_equal_table_map_in_the_next_file_is_checked_again_by_the_tail(tmp_path: Path) -> None:
    names = ["mysql-bin.000001", "mysql-bin.000002"]
    for name in names:
        log = LogBuilder(name).format_description()
        for _ in range(3):
            log.begin().rows(90, "t", 1).xid()
        log.write(tmp_path)
    files = FileLog.find(str(tmp_path))
    start = BoundaryState(files.begins()[0], SchemaHistory())
    filtering, schemas = EventFilter(lambda *_: True), RecordingSchemas()
    buffer = LogBuffer(start, capacity=1 << 20, granularity=10)
    walk = TransactionScanner(start, filtering, buffer, schemas=schemas, last_start=1 << 32)
    if implementation() == "python":
        for event in files.events(start.position):
            LogTail._take(event, walk, None)
        assert schemas.files == [name for name in names for _ in range(3)]
        return
    scanner = LogScanner(filtering, whole_maps=True)
    for found in files.scan(start.position, scanner, lambda _: NO_LIMIT):
        LogTail._take(found, walk, scanner)
    assert schemas.files == names
