"""Errors caused by a binlog's contents: statements, damage, and columns that do not match."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from e2e.conftest import AVAILABLE_NOW, REPLICATION, Account, Fails
from helpers.parity.decoding import CAPTURED
from helpers.servers import Server, serve_binlogs
from helpers.streams.spark_session import Reads
from helpers.waiting import wait_until


def path_reader(spark: SparkSession, path: Path, tables: str) -> Callable[[], Any]:
    return lambda: spark.read.format("mysqlbinlog").options(path=str(path), tables=tables).load()


def test_statement_format_in_a_file_raises_statement_format_error(
    spark: SparkSession, fails: Fails
) -> None:
    log = CAPTURED / "statements.001.binlog"
    error = fails(path_reader(spark, log, "fx_statements.t"))
    assert error.name == "StatementFormatError"
    assert "'insert into t (v) values (0), (0)'" in error.message
    assert error.message.endswith(f"(at {log.name}:1047, table fx_statements.t)")


@pytest.mark.parametrize("trigger", [None, AVAILABLE_NOW], ids=["default", "available now"])
def test_statement_format_stops_the_stream_after_earlier_rows(
    trigger: dict[str, Any] | None,
    serve_captured: Callable[[str], Server],
    spark: SparkSession,
    fails: Fails,
) -> None:
    reads = Reads(spark, serve_captured("statements"))
    rows: list[Row] = []
    error = fails(
        lambda: reads.stream(tables="fx_statements.t", startingOffset="earliest"),
        trigger=trigger,
        rows=rows,
    )
    assert error.name == "StatementFormatError"
    assert error.message.endswith("(at mysql-bin.000002:1047, table fx_statements.t)")
    # The row that was logged before the statement is delivered first.
    assert [json.loads(row.after) for row in rows] == [{"id": 1, "v": 1}]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return a copy of a recorded binlog with one bit flipped in its first rows event."""
    (tmp_path / "damaged").mkdir()
    copy = tmp_path / "damaged" / "numbers.001.binlog"
    data = bytearray((CAPTURED / copy.name).read_bytes())
    assert data[1017 + 4] == 30  # WRITE_ROWS, 102 bytes
    data[1017 + 60] ^= 1
    copy.write_bytes(data)
    return copy


def test_bad_checksum_in_a_file_raises_checksum_error(
    damaged: Path, spark: SparkSession, fails: Fails
) -> None:
    error = fails(path_reader(spark, damaged, "fx_numbers.*"))
    assert error.name == "ChecksumError"
    assert "the binlog was damaged" in error.message
    assert error.message.endswith(f"(at {damaged.name}:1017)")


# A damage, its function on the file's bytes, the error's name, and a part of its message. The first
# rows event is at 1017.
DAMAGES: list[tuple[str, Callable[[bytes], bytes], str, str]] = [
    ("a byte lost", lambda data: data[:1030] + data[1031:], "ChecksumError", "damaged"),
    ("zeroes", lambda data: data[:1017] + bytes(len(data) - 1017), "MalformedEventError", "length"),
    ("encrypted", lambda data: b"\xfdbin" + data[4:], "UnsupportedEventError", "encrypted"),
    ("no binlog", lambda _: b"id,name\n1,alpha\n" * 99, "FormatError", "not a binlog"),
    ("empty", lambda _: b"", "FormatError", "not a binlog"),
    (
        "an event that claims more than there is",
        lambda data: data[: 1017 + 9] + (1 << 30).to_bytes(4, "little") + data[1017 + 13 :],
        "MalformedEventError",
        "has a length of 1073741824 bytes",
    ),
]


@pytest.mark.parametrize(
    ("damage", "name", "words"),
    [case[1:] for case in DAMAGES],
    ids=[case[0] for case in DAMAGES],
)
def test_damaged_file_is_rejected_with_its_name(
    damage: Callable[[bytes], bytes],
    name: str,
    words: str,
    *,
    tmp_path: Path,
    spark: SparkSession,
    fails: Fails,
) -> None:
    copy = tmp_path / "numbers.001.binlog"
    copy.write_bytes(damage((CAPTURED / copy.name).read_bytes()))
    error = fails(path_reader(spark, copy, "fx_numbers.*"))
    assert error.name == name
    assert words in error.message
    assert copy.name in error.message


# Names given to copies of rotations.001 to .005, which were mysql-bin.000002 to .000006.
ACCIDENTS: list[dict[int, str]] = [
    {1: "mysql-bin.000002", 4: "mysql-bin.000005"},
    {2: "mysql-bin.000001", 4: "mysql-bin.000002"},
]


@pytest.mark.parametrize("names", ACCIDENTS, ids=["missing", "renamed"])
def test_files_with_a_gap_raise_binlog_gap_error(
    names: dict[int, str], tmp_path: Path, spark: SparkSession, fails: Fails
) -> None:
    for n, name in names.items():
        (tmp_path / name).write_bytes((CAPTURED / f"rotations.{n:03}.binlog").read_bytes())
    first, second = names.values()
    for tables in ("fx_rotations.*", "fx_rotations.t"):  # json and struct
        error = fails(path_reader(spark, tmp_path, tables))
        assert error.name == "BinlogGapError"
        assert error.message.startswith(
            f"{first} ends with a ROTATE to mysql-bin.00000{3 if 1 in names else 4}, which is"
            f" missing at the path; found {second} as the next file;"
        )


@pytest.mark.sample(1)
@pytest.mark.parametrize("payload", ["json", "variant", "struct"])
def test_truncated_file_ends_at_last_boundary_unless_another_file_follows(
    payload: str, tmp_path: Path, spark: SparkSession, fails: Fails
) -> None:
    copy = tmp_path / "gtid_no_checksum.001.binlog"
    read = spark.read.format("mysqlbinlog").options(
        path=str(tmp_path), tables="fx_gtid_no_checksum.t", payload=payload
    )
    copy.write_bytes((CAPTURED / copy.name).read_bytes())
    whole = read.load().orderBy("seq").collect()
    last = whole[-1].source
    for length in (last.pos + 5, last.pos + 25, last.pos):
        copy.write_bytes((CAPTURED / copy.name).read_bytes()[:length])
        expected = [row for row in whole if row.source.tx_pos != last.tx_pos]
        found = read.load().orderBy("seq").collect()
        assert [*map(str, found)] == [*map(str, expected)] != []
    second = "gtid_no_checksum.002.binlog"
    (tmp_path / second).write_bytes((CAPTURED / second).read_bytes())
    error = fails(path_reader(spark, tmp_path, "fx_gtid_no_checksum.*"))
    assert error.name == "MalformedEventError"
    assert "the file ends before its transaction does" in error.message


def test_table_map_that_differs_from_create_table_raises_schema_mismatch_error(
    tmp_path: Path, spark: SparkSession, fails: Fails
) -> None:
    copy = tmp_path / "gtid_no_checksum.001.binlog"  # without checksums, bytes can be changed
    data = (CAPTURED / copy.name).read_bytes()
    assert data.count(b"v varchar(30)") == 1
    copy.write_bytes(data.replace(b"v varchar(30)", b"v varchar(99)"))
    error = fails(path_reader(spark, copy, "fx_gtid_no_checksum.*"))
    assert error.name == "SchemaMismatchError"
    assert "column 2 `v`: expected" in error.message
    assert "table fx_gtid_no_checksum.t" in error.message


def test_bad_checksum_from_a_server_raises_checksum_error(
    damaged: Path, mysql56: Server, spark: SparkSession, fails: Fails
) -> None:
    with serve_binlogs([damaged]) as server:
        reads = Reads(spark, server)
        options = {"tables": "fx_numbers.*", "startingOffset": "earliest"}
        for error in (
            fails(lambda: reads.stream(**options)),
            fails(lambda: reads.stream(**options), trigger=AVAILABLE_NOW),
            fails(lambda: reads.batch(**options)),
        ):
            assert error.name == "ChecksumError"
            assert error.message.endswith("(at mysql-bin.000002:1017)")


def test_added_column_stops_a_stream_with_struct_payload(
    shop: Server, account: Account, fails: Fails
) -> None:
    shop.execute(
        "DROP TABLE IF EXISTS shop.altered", "CREATE TABLE shop.altered (id INT PRIMARY KEY)"
    )
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    rows: list[Row] = []

    def change() -> None:
        wait_until(lambda: len(shop.dump_threads()) > 0, "the stream is connected")
        shop.execute("INSERT INTO shop.altered VALUES (1)")
        # The stream has then read the table's definition; earlier, an ALTER makes it unknown.
        wait_until(lambda: len(rows) > 0, "a row is delivered")
        shop.execute(
            "ALTER TABLE shop.altered ADD COLUMN more INT",
            "INSERT INTO shop.altered VALUES (2, 2)",
        )

    stream = reads.stream(tables="shop.altered", payload="struct")
    error = fails(lambda: stream, rows=rows, started=change)
    assert error.name == "SchemaChangedError"
    assert error.message.startswith("column `more` (int) is in the table from here on")
    assert "restart the query" in error.message
    assert "table shop.altered" in error.message
    assert [row.after.asDict() for row in rows] == [{"id": 1}]
