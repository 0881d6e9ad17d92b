"""MariaDB's compressed events, which are larger than their part of the binlog."""

from __future__ import annotations

import json

import pytest

from helpers.parity.decoding import ARROW_SCHEMA, rows_of
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.reader import events_between, read_range
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

pytestmark = pytest.mark.usefixtures("implementation")

DATABASE = "t_compressed_events"
COLUMNS = (
    ColumnSchema("id", "int", nullable=False),
    ColumnSchema("v", "varchar", 500, charset="utf8mb4"),
)


def test_compressed_events_in_fetched_and_inline_ranges_equal_select(mariadb: Server) -> None:
    mariadb.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, v VARCHAR(500)) CHARSET utf8mb4",
    )
    start = Position.of(*mariadb.position())
    values = ",".join(f"({n}, REPEAT('é', {n}))" for n in range(1, 400))
    mariadb.execute("SET GLOBAL log_bin_compress = 1")
    try:
        mariadb.execute(
            f"INSERT INTO {DATABASE}.t VALUES {values}",
            f"UPDATE {DATABASE}.t SET v = CONCAT(v, 'x') WHERE id > 100",
            f"DELETE FROM {DATABASE}.t WHERE id > 200",
        )
    finally:
        mariadb.execute("SET GLOBAL log_bin_compress = 0")
    end = Position.of(*mariadb.position())

    options = parse_options(mariadb.options(tables=f"{DATABASE}.t", payload="json"))
    schema = TableSchema(DATABASE, "t", COLUMNS, ("id",))
    schemas = SchemaHistory().with_table(start, schema).pack()
    filtering = EventFilter(lambda database, _: database == DATABASE)
    events = events_between(ServerLog(options.server_settings()), start, end)
    blocks = tuple(pack_events(kept for event in events for kept in filtering.feed(event)))
    assert min(block.trailer for block in blocks) < 0, "the server compressed something"

    held: list[dict[int, str]] = []
    for carried in (None, blocks):
        partition = RangePartition(start, end, schemas, (), True, None)
        partition.blocks = carried
        table: dict[int, str] = {}
        for row in rows_of(read_range(options, partition, ARROW_SCHEMA)):
            before, after = (json.loads(row[side] or "null") for side in ("before", "after"))
            if before is not None:
                assert table.pop(before["id"]) == before["v"]
            if after is not None:
                table[after["id"]] = after["v"]
        held.append(table)
    with mariadb.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT id, v FROM t")
        expected = dict(cursor.fetchall())
    assert held == [expected, expected]
