"""Committed rows and their order, with XA, savepoints and rollbacks, in any way of reading."""

from __future__ import annotations

import json
import os
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.events import UUID, LogBuilder, xa_prepare_body
from helpers.logs.transaction_history import TransactionHistory
from helpers.snapshots.filter_harness import xa, xid
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges import transactions
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.tail import transaction_scanner
from pyspark_mysqlbinlog.errors import BinlogReplacedError, UnsupportedTransactionError
from pyspark_mysqlbinlog.protocol.events import EventType

# Run each test with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

SEED = int(os.environ["MYSQLBINLOG_FUZZ_SEED"])
CREATE = "CREATE TABLE t (a INT)"
A = xid(b"a")
GTID_SOURCE = uuid.UUID(bytes=UUID)


def read(path: Path, target: int | str = "1g", **options: str) -> list[dict[str, Any]]:
    given = {"path": str(path), "targetPartitionBytes": str(target), "payload": "json"}
    reader = MySQLBinlogReader(
        parse_options(given | {"tables": "d.t"} | options), output_schema(StringType())
    )
    ranges = [part for part in reader.partitions() if isinstance(part, RangePartition)]
    batches = [batch for part in ranges for batch in reader.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def values(rows: list[dict[str, Any]]) -> list[int]:
    return [json.loads(row["after"])["a"] for row in rows]


def seqs(rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    return [tuple(row["seq"].values()) for row in rows]


@pytest.mark.sample(8)
@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("held", [1 << 20, 150, 1])
def test_random_transaction_histories_give_each_committed_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, number: int
) -> None:
    """Also with many ranges, with little memory, and from or up to a boundary."""
    monkeypatch.setattr(transactions, "_MAX_HELD_BYTES", held)
    monkeypatch.setattr(transactions, "_MAX_PREPARED_BYTES", 4 * held)
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", 300)
    seed = SEED + number
    history = TransactionHistory(seed, rolls_back=held == 1 << 20)
    history.write(tmp_path)
    expected = history.rows
    whole = read(tmp_path)
    assert values(whole) == [row.value for row in expected], seed
    for row, each in zip(whole, expected, strict=True):
        assert row["seq"]["file"] == each.number, seed
        assert each.pos in (0, row["seq"]["pos"]), seed
        gtid = None if each.gtid is None else f"{GTID_SOURCE}:{each.gtid}"
        assert row["source"]["gtid"] == gtid, seed
    assert all(one < other for one, other in pairwise(seqs(whole))), seed
    assert read(tmp_path, 1) == whole, seed
    for file, pos, before in history.boundaries[:: max(len(history.boundaries) // 3, 1)]:
        place = f"{file}:{pos}"
        assert read(tmp_path, 1, startingOffset=place) == whole[before:], (seed, place)
        assert read(tmp_path, 1, endingOffset=place) == whole[:before], (seed, place)


def test_xa_row_has_source_position_of_prepare_and_seq_of_commit(tmp_path: Path) -> None:
    log = LogBuilder().format_description().query(CREATE)
    begin = log.begin(7).rows(1, "t", 1).xid().pos
    log.query(f"XA START {A}").rows(1, "t", 2, 3)
    log.query(f"XA END {A}").add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a"))
    log.rotate("mysql-bin.000002").write(tmp_path)
    log = LogBuilder("mysql-bin.000002").format_description()
    commit = log.pos
    log.query(f"XA COMMIT {A}").write(tmp_path)
    _, first, second = read(tmp_path)
    assert (first["seq"]["file"], first["seq"]["pos"]) == (2, commit)
    assert second["seq"]["row"] == first["seq"]["row"] + 1
    source = first["source"]
    assert (source["file"], source["tx_pos"]) == ("mysql-bin.000001", begin)
    assert source["pos"] == begin + first["seq"]["row"]


def test_xa_rows_are_read_with_the_schema_at_their_prepare(tmp_path: Path) -> None:
    """After a restart, a server can alter a table of a prepared transaction."""
    log = xa(LogBuilder().format_description().query(CREATE), b"a", "t")
    log.query("ALTER TABLE t CHANGE a b INT").begin().rows(1, "t", 2).xid()
    log.query(f"XA COMMIT {A}").begin().rows(1, "t", 3).xid().write(tmp_path)
    for target in (1, "1g"):
        rows = read(tmp_path, target)
        assert [row["after"] for row in rows] == ['{"b":2}', '{"a":1}', '{"b":3}']


def test_log_replaced_after_planning_raises_binlog_replaced_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replaced log has another transaction at the position of the planned one."""
    monkeypatch.setattr(transactions, "_MAX_HELD_BYTES", 1)
    given = {"path": str(tmp_path), "targetPartitionBytes": "1", "payload": "json", "tables": "d.t"}
    log = LogBuilder().format_description().query(CREATE)
    log = xa(log, b"a", "t").begin().rows(1, "t", 1).xid().query(f"XA COMMIT {A}")
    log.write(tmp_path)
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    *_, last = reader.partitions()
    other = LogBuilder().format_description().query(CREATE)
    other = xa(other, b"b", "t").begin().rows(1, "t", 1).xid().query(f"XA COMMIT {A}")
    other.write(tmp_path)
    with pytest.raises(BinlogReplacedError, match="X'61',X'',1 is not prepared there"):
        list(reader.read(last))


def test_rollback_beyond_the_held_bytes_raises_unsupported_transaction_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_MAX_HELD_BYTES", 100)
    log = LogBuilder().format_description().query(CREATE).begin()
    for n in range(9):
        log.rows(1, "t", n)
    log.query("ROLLBACK").begin().rows(1, "t", 10).xid().write(tmp_path)
    with pytest.raises(UnsupportedTransactionError, match=r"ends in ROLLBACK, and more than 100"):
        read(tmp_path)
