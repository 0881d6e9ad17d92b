"""Logs of MySQL 5.1, where statements on non-transactional tables have no BEGIN and COMMIT."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.logs.events import LogBuilder, rows_body, table_map
from helpers.logs.later_logs import read
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.events import EventType

pytestmark = pytest.mark.usefixtures("implementation")


def v1(*values: int, table_id: int = 1, last: bool = True) -> bytes:
    body = rows_body(table_id, *values, last=last)
    return body[:8] + body[10:]


def log_of(version: str = "5.1.73-log") -> LogBuilder:
    log = LogBuilder(checksum=False).format_description(version)
    return log.query("CREATE TABLE t (a INT) ENGINE=MyISAM")


def statement(log: LogBuilder, *values: int, table: str = "t", last: bool = True) -> LogBuilder:
    log.add(EventType.TABLE_MAP_EVENT, table_map(1, table))
    return log.add(EventType.WRITE_ROWS_EVENT_V1, v1(*values, last=last))


def values(path: Path, **options: str) -> list[int]:
    rows = read(str(path), "json", **({"tables": "d.t"} | options))
    return [json.loads(row["after"])["a"] for row in rows]


def test_mysql_5_1_statements_without_begin_are_transactions(tmp_path: Path) -> None:
    log = log_of()
    boundaries = [log.pos]
    for n in (1, 2):
        statement(log, n)
        boundaries.append(log.pos)
    statement(log, 9, table="other")
    log.add(EventType.TABLE_MAP_EVENT, table_map(1, "t"))
    for n in (3, 4, 5):
        log.add(EventType.WRITE_ROWS_EVENT_V1, v1(n, last=n == 5))
    boundaries.append(log.pos)
    statement(log.query("BEGIN"), 6).query("COMMIT")
    statement(log, 7)
    path = log.write(tmp_path)
    assert values(path) == [1, 2, 3, 4, 5, 6, 7]
    assert values(path, targetPartitionBytes="1") == [1, 2, 3, 4, 5, 6, 7]
    rows = read(str(path), "json", tables="d.t")
    assert [row["source"]["tx_pos"] is None for row in rows] == [True] * 5 + [False, True]
    for pos, first in zip(boundaries, (1, 2, 3, 6), strict=True):
        start = f"mysql-bin.000001:{pos}"
        assert values(path, startingOffset=start) == list(range(first, 8))
        assert values(path, endingOffset=start) == list(range(1, first))


def test_mysql_5_1_start_inside_a_transaction_is_rejected(tmp_path: Path) -> None:
    log = log_of().query("BEGIN")
    start = log.pos
    path = statement(log, 1).xid().write(tmp_path)
    assert values(path) == [1]
    with pytest.raises(InvalidPositionError, match="XID_EVENT comes outside of any transaction"):
        values(path, startingOffset=f"mysql-bin.000001:{start}")


def test_mysql_5_1_end_inside_a_statement_is_rejected(tmp_path: Path) -> None:
    log = statement(log_of(), 1, last=False)
    end = log.pos
    path = log.add(EventType.WRITE_ROWS_EVENT_V1, v1(2)).write(tmp_path)
    with pytest.raises(InvalidPositionError, match="the end is inside a transaction"):
        values(path, endingOffset=f"mysql-bin.000001:{end}")


def test_mysql_5_1_statement_interrupted_by_begin_is_rejected(tmp_path: Path) -> None:
    path = statement(log_of(), 1, last=False).query("BEGIN").write(tmp_path)
    with pytest.raises(MalformedEventError, match="BEGIN comes inside a transaction"):
        values(path)


@pytest.mark.parametrize("version", ["5.5.62-log", "5.7.41-log"])
def test_rows_outside_a_transaction_are_rejected_from_mysql_5_5_on(
    version: str, tmp_path: Path
) -> None:
    log = LogBuilder(checksum=version > "5.6").format_description(version)
    path = statement(log.query("CREATE TABLE t (a INT)"), 1).write(tmp_path)
    with pytest.raises(InvalidPositionError, match="TABLE_MAP_EVENT comes outside of any"):
        values(path)


@pytest.mark.parametrize("begin", [True, False])
def test_pre_ga_rows_events_are_rejected_naming_alpha_and_beta_versions(
    begin: bool, tmp_path: Path
) -> None:
    log = log_of("5.1.11-beta-log")
    if begin:
        log.query("BEGIN")
    log.add(EventType.TABLE_MAP_EVENT, table_map(1, "t"))
    path = log.add(EventType.PRE_GA_WRITE_ROWS_EVENT, v1(1)).write(tmp_path)
    with pytest.raises(UnsupportedEventError, match=r"alpha and beta versions before 5\.1\.16"):
        values(path)
