"""The check of table maps before their rows: every version of a table is checked once."""

from __future__ import annotations

from helpers.logs.events import LogBuilder
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


class CheckedColumns:
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
    guard = SchemaGuard(None, case_sensitive=True, evolution=checked)  # type: ignore[arg-type]
    for log in (first, second):
        for event in log.events():
            if event.type == EventType.TABLE_MAP_EVENT:
                since = Position.of(event.file, 4)
                assert guard.check_table_map(history, event, since, is_mariadb=False) is history
    assert checked.checked == [["a"], ["b"]]
