"""XA COMMIT of a transaction that was prepared before the start, in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.events import (
    LogBuilder,
    gtid_body,
    query_body,
    rows_body,
    table_map,
    xa_prepare_body,
)
from helpers.parity.decoding import make_event
from helpers.parity.payloads import inner, payload_body
from helpers.snapshots.filter_harness import xa, xid
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.errors import LostConnectionError, UnsupportedTransactionError
from pyspark_mysqlbinlog.protocol.events import Event, EventType

# Run each test with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

A = xid(b"a")


def log_of(folder: Path, *files: LogBuilder) -> FileLog:
    for number, file in enumerate(files, 1):
        if number < len(files):
            file.rotate(f"mysql-bin.{number + 1:06}")
        file.write(folder)
    return FileLog.find(str(folder))


def file(number: int = 1) -> LogBuilder:
    return LogBuilder(f"mysql-bin.{number:06}").format_description()


def search(log: FileLog, before: Position | None = None) -> PreparedXa | None:
    """Return the position of the transaction that is committed at the end."""
    search = PreparedXaSearch.of_files(log, before or log.end(), lambda _, table: table == "t")
    return search.find(A, commit_at_end(log))


def commit_at_end(log: FileLog) -> Event:
    return make_event(EventType.QUERY_EVENT, b"", log.end().pos, log.end().file)


def test_prepared_xa_without_captured_rows_is_skipped(tmp_path: Path) -> None:
    noise = file(2).begin().rows(1, "t", 1).xid().query("INSERT INTO t VALUES (1)")
    log = log_of(tmp_path, xa(file(), b"a", "x"), noise, xa(file(3), b"b", "t"))
    assert search(log) is None


def test_prepared_xa_with_captured_rows_is_found_with_its_position(tmp_path: Path) -> None:
    log = xa(file(), b"b", "x").begin().rows(1, "x", 1).xid()
    begin = log.pos
    log.query(f"XA START {A}").rows(1, "x", 1).rows(2, "t", 1).query(f"XA END {A}")
    end = log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a")).pos
    log.begin().rows(1, "x", 1).xid().query("ALTER TABLE x ADD b INT")
    found = search(log_of(tmp_path, log, file(2).query("CREATE DATABASE e")))
    assert found == PreparedXa(A, "mysql-bin.000001", begin, end)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE T CHANGE a b INT",
        "RENAME TABLE x TO y, t TO u",
        "DROP DATABASE d",
        "FROBNICATE t",
        "/*!99999 ALTER */ DROP TABLE t",
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_ddl_between_prepare_and_commit_of_captured_rows_is_rejected(
    tmp_path: Path, statement: str, before: bool
) -> None:
    """The DDL is before the start, or between the start and the XA COMMIT."""
    log = xa(file(), b"a", "t")
    start = log.position()
    found = log_of(tmp_path, log, file(2).query(statement))
    with pytest.raises(UnsupportedTransactionError, match=r"at mysql-bin.000002:\d+ may") as caught:
        search(found, None if before else start)
    assert caught.value.table == "d.t"


def test_prepared_xa_with_only_a_table_map_of_a_captured_table_is_skipped(tmp_path: Path) -> None:
    """A table that only a trigger uses can have a table map without rows."""
    log = file().query(f"XA START {A}")
    log.add(EventType.TABLE_MAP_EVENT, bytes(6) + b"\1\0\1d\0\1t\0\1\3\0\0")
    log.rows(2, "x", 1).query(f"XA END {A}")
    log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a"))
    assert search(log_of(tmp_path, log)) is None


def test_latest_prepare_of_a_reused_xid_is_used(tmp_path: Path) -> None:
    decided = xa(file(), b"a", "t").query(f"XA ROLLBACK {A}")
    assert search(log_of(tmp_path, decided, xa(file(2), b"a", "x"), file(3))) is None
    decided = xa(file(), b"a", "x").query(f"XA COMMIT {A}")
    found = search(log_of(tmp_path, decided, xa(file(2), b"a", "t")))
    assert found is not None
    assert found.file == "mysql-bin.000002"


@pytest.mark.parametrize("end", [f"XA COMMIT {A}", f"XA ROLLBACK {A}", "one phase"])
def test_xa_prepare_already_decided_raises_unsupported_transaction_error(
    tmp_path: Path, end: str
) -> None:
    if end == "one phase":
        log = xa(xa(file(), b"a", "x"), b"a", "x", one_phase=True)
    else:
        log = xa(file(), b"a", "x").query(end)
    with pytest.raises(UnsupportedTransactionError, match="is not in the binlog before"):
        search(log_of(tmp_path, log, file(2)))


def test_xa_prepare_after_the_start_raises_unsupported_transaction_error(tmp_path: Path) -> None:
    log = file().begin().rows(1, "t", 1).xid()
    start = log.position()
    found = log_of(tmp_path, xa(log, b"a", "x"), file(2))
    with pytest.raises(
        UnsupportedTransactionError,
        match=r"files begin with mysql-bin\.000001; it may have changed",
    ):
        search(found, start)


def test_stopped_xa_search_raises_lost_connection_error(tmp_path: Path) -> None:
    log = log_of(tmp_path, xa(file(), b"a", "x"))
    search_ = PreparedXaSearch(log, log.begins, log.end(), lambda *_: True, lambda: True)
    with pytest.raises(LostConnectionError, match="stopped"):
        search_.find(A, commit_at_end(log))


def test_compressed_prepared_xa_with_captured_rows_is_found(tmp_path: Path) -> None:
    log = file().add(EventType.GTID_LOG_EVENT, gtid_body(1))
    begin = log.pos - len(log.raws[-1])
    events = [
        RawEvent(EventType.QUERY_EVENT, query_body(f"XA START {A}")),
        RawEvent(EventType.TABLE_MAP_EVENT, table_map(2, "t")),
        RawEvent(EventType.WRITE_ROWS_EVENT, rows_body(2, 1)),
        RawEvent(EventType.QUERY_EVENT, query_body(f"XA END {A}")),
        RawEvent(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"a")),
    ]
    end = log.add(EventType.TRANSACTION_PAYLOAD_EVENT, payload_body(inner(events))).pos
    found = search(log_of(tmp_path, log, file(2).query("CREATE DATABASE e")))
    assert found == PreparedXa(A, "mysql-bin.000001", begin, end)
