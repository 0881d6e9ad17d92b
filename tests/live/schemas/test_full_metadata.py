"""binlog_row_metadata=FULL: an account with only replication grants reads rows like SELECT's."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.servers import Server
from helpers.streams.source_runner import Spark, new_reader
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import AccessDeniedError, UnknownSchemaError, UnknownTableError

DATABASE = "t_full_metadata"
TABLE = f"{DATABASE}.t"


@pytest.fixture
def server(mysql9: Server) -> Iterator[Server]:
    yield from prepared(mysql9)


@pytest.fixture
def mariadb(mariadb11: Server) -> Iterator[Server]:
    yield from prepared(mariadb11)


def prepared(server: Server) -> Iterator[Server]:
    """Yield the server with full metadata and an account that has only replication grants."""
    server.execute(
        "SET GLOBAL binlog_row_metadata = 'FULL'",
        f"DROP DATABASE IF EXISTS {DATABASE}",
        "DROP USER IF EXISTS 'only_replicates'@'%'",
        "CREATE USER 'only_replicates'@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'only_replicates'@'%'",
    )
    if server.is_mariadb:
        server.execute("GRANT BINLOG MONITOR ON *.* TO 'only_replicates'@'%'")
    yield server
    server.execute(
        "SET GLOBAL binlog_row_metadata = DEFAULT",
        "DROP USER 'only_replicates'@'%'",
        f"DROP DATABASE IF EXISTS {DATABASE}",
    )


def change(server: Server) -> None:
    """Change rows and columns; no CREATE TABLE is in the part of the binlog that is read."""
    server.execute(
        f"INSERT INTO {TABLE} VALUES (18446744073709551615, 255, 2024, 7, 'é', 'x,z', 'café', '漢',"
        " x'00ff', 1.5, '2024-02-29 12:00:00'), (2, NULL, NULL, 0, NULL, '', '', NULL, NULL, NULL,"
        " NULL)",
        f"UPDATE {TABLE} SET t = 200, e = 'b' WHERE id = 2",
        f"ALTER TABLE {TABLE} CHANGE t tiny SMALLINT UNSIGNED, ADD added VARCHAR(9)"
        " CHARACTER SET utf8mb4",
        f"UPDATE {TABLE} SET added = 'new', tiny = 40000 WHERE id = 2",
        f"DELETE FROM {TABLE} WHERE id = 2",
    )


EXPECTED: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]] = [
    (
        "c",
        None,
        {
            "id": 18446744073709551615,
            "t": 255,
            "y": 2024,
            "n": 7,
            "e": "é",
            "s": "x,z",
            "l": "café",
            "u": "漢",
            "b": "AP8=",
            "d": 1.5,
            "at": "2024-02-29T12:00:00",
        },
    ),
    (
        "c",
        None,
        {
            "id": 2,
            "t": None,
            "y": None,
            "n": 0,
            "e": None,
            "s": "",
            "l": "",
            "u": None,
            "b": None,
            "d": None,
            "at": None,
        },
    ),
    ("u", {"id": 2, "t": None, "e": None}, {"id": 2, "t": 200, "e": "b"}),
    ("u", {"id": 2, "tiny": 200, "added": None}, {"id": 2, "tiny": 40000, "added": "new"}),
    ("d", {"id": 2, "tiny": 40000, "added": "new", "e": "b"}, None),
]


def create(server: Server) -> None:
    server.execute(
        f"CREATE DATABASE {DATABASE}",
        f"CREATE TABLE {TABLE} (id BIGINT UNSIGNED PRIMARY KEY, t TINYINT UNSIGNED, y YEAR, n INT,"
        " e ENUM('é', 'b') CHARACTER SET latin1, s SET('x', 'y', 'z') CHARACTER SET utf8mb4,"
        " l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4,"
        " b VARBINARY(9), d DOUBLE, at DATETIME)",
    )


def check(rows: list[dict[str, Any]]) -> None:
    assert [row["op"] for row in rows] == [op for op, _, _ in EXPECTED]
    for row, (_, *images) in zip(rows, EXPECTED, strict=True):
        assert row["source"]["key"] == ["id"]
        for side, expected in zip(("before", "after"), images, strict=True):
            found = None if row[side] is None else json.loads(row[side])
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert {**found, **expected} == found


def account(server: Server) -> dict[str, str]:
    return server.options(user="only_replicates", password="secret")


def batch(server: Server, start: tuple[str, int], **more: str) -> list[dict[str, Any]]:
    given = {"payload": "json", "startingOffset": f"{start[0]}:{start[1]}", "tables": TABLE} | more
    options = parse_options(account(server) | given)
    reader = MySQLBinlogReader(options, output_schema(StringType()))
    batches = [found for part in reader.partitions() for found in reader.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


@pytest.mark.parametrize("tables", [TABLE, f"{DATABASE}.*"])
def test_batch_read_with_full_metadata_needs_no_select_grant(
    server: Server, tables: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(server)
    start = server.position()
    change(server)
    with caplog.at_level(logging.WARNING):
        check(batch(server, start, tables=tables))
    # A pattern may match tables that this account cannot see.
    warnings = [text for text in caplog.messages if "GRANT SELECT" in text]
    assert caplog.messages == warnings
    assert len(warnings) == (tables != TABLE)


def test_stream_with_full_metadata_needs_no_select_grant(server: Server) -> None:
    create(server)
    spark = Spark(new_reader(server, TABLE, **account(server)))
    offset = spark.initial()
    offset = spark.latest(offset)
    change(server)
    rows: list[dict[str, Any]] = []
    while len(rows) < len(EXPECTED):
        end = spark.next_batch(offset)
        rows += sorted(spark.rows(offset, end), key=lambda row: tuple(row["seq"].values()))
        offset = end
    spark.reader.stop()
    check(rows)


def test_missing_table_with_select_grant_raises_unknown_table_error(server: Server) -> None:
    create(server)
    server.execute(f"GRANT SELECT ON {DATABASE}.* TO 'only_replicates'@'%'")
    with pytest.raises(UnknownTableError, match="neither the server nor the binlog"):
        batch(server, server.position(), tables=f"{DATABASE}.typo")


def test_mariadb_with_full_metadata_needs_select_grant(mariadb: Server) -> None:
    """The metadata does not show that rows are the history of a system-versioned table."""
    create(mariadb)
    mariadb.execute(
        f"CREATE TABLE {DATABASE}.versioned (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING"
    )
    start = mariadb.position()
    mariadb.execute(
        f"INSERT INTO {DATABASE}.versioned VALUES (1, 1)", f"UPDATE {DATABASE}.versioned SET v = 2"
    )
    for table in ("t", "versioned"):
        with pytest.raises(UnknownTableError, match="SELECT grant"):
            batch(mariadb, start, tables=f"{DATABASE}.{table}")
    with pytest.raises(AccessDeniedError, match="GRANT SELECT ON"):
        batch(mariadb, start, tables=f"{DATABASE}.*")
    mariadb.execute(f"GRANT SELECT ON {DATABASE}.* TO 'only_replicates'@'%'")
    with pytest.raises(UnknownTableError, match=f"table {DATABASE}.versioned"):
        batch(mariadb, start, tables=f"{DATABASE}.versioned")
    with pytest.raises(UnknownSchemaError, match=f"table {DATABASE}.versioned"):
        batch(mariadb, start, tables=f"{DATABASE}.*")


def test_select_grant_is_required_without_full_metadata(server: Server) -> None:
    create(server)
    server.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    with pytest.raises(UnknownTableError, match="SELECT grant"):
        batch(server, server.position())
    with pytest.raises(AccessDeniedError, match="GRANT SELECT ON"):
        batch(server, server.position(), tables=f"{DATABASE}.*")
