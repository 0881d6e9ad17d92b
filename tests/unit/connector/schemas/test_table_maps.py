"""What the table maps of files prove: equal in both implementations, whatever else is logged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from helpers.logs.events import LogBuilder, incident_body, query_body
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.schemas.inherited_charsets import history_without_server
from pyspark_mysqlbinlog.connector.schemas.table_maps import described_tables
from pyspark_mysqlbinlog.protocol.events import EventType

pytestmark = pytest.mark.usefixtures("implementation")

# Q_CHARSET_CODE with a session whose collation_server is latin1_swedish_ci or utf8mb4_general_ci.
LATIN1 = b"\x04" + pack("<HHH", 8, 8, 8)
UTF8MB4 = b"\x04" + pack("<HHH", 45, 45, 45)


def map_of(table_id: int, table: str, columns: bytes) -> bytes:
    """Return the TABLE_MAP body of a table of database d; columns: from their number on."""
    names = b"".join(bytes([len(name)]) + name.encode() + b"\x00" for name in ("d", table))
    return table_id.to_bytes(6, "little") + b"\x01\x00" + names + columns


def text_map(table_id: int, table: str = "t") -> bytes:
    return map_of(table_id, table, b"\x01\xfc\x01\x02\x01")


def varchar_map(table_id: int, table: str) -> bytes:
    """Return the map of VARCHAR(10) with four bytes for each character."""
    return map_of(table_id, table, b"\x01\x0f\x02" + pack("<H", 40) + b"\x01")


def int_map(table_id: int, *names: str) -> bytes:
    """Return the map of a table t of INT columns, with their names."""
    count = len(names)
    named = b"".join(bytes([len(name)]) + name.encode() for name in names)
    metadata = b"\x01\x01\x00" + b"\x04" + bytes([len(named)]) + named
    columns = bytes([count]) + b"\x03" * count + b"\x00" + bytes([(1 << count) - 1])
    return map_of(table_id, "t", columns + metadata)


def add_map(log: LogBuilder, body: bytes) -> None:
    """Add a transaction of a table map, whose rows do not matter here."""
    log.begin().add(EventType.TABLE_MAP_EVENT, body).xid()


def create(log: LogBuilder, sql: str, variables: bytes) -> None:
    log.add(EventType.QUERY_EVENT, query_body(sql, "d", variables))


def unknown_reason(folder: Path, log: LogBuilder) -> str | None:
    """Return why the columns of d.t are unknown at the end of a log; None if they are known."""
    files = FileLog.find(str(folder))
    history = history_without_server(files, files, files.begins()[0], lambda _, table: table == "t")
    end = files.position(log.file, log.pos)
    return None if history.at(end, "d", "t") else history.unknown_reason(end, "d", "t")


def statement_of_another_table(log: LogBuilder) -> None:
    log.begin().query("INSERT INTO d.journal VALUES (1)").query("COMMIT")


def xa_of_an_earlier_file(log: LogBuilder) -> None:
    log.query("XA COMMIT X'61',X'',1")


def incident(log: LogBuilder) -> None:
    log.add(EventType.INCIDENT_EVENT, incident_body())


def create_select(log: LogBuilder) -> None:
    log.query("CREATE TABLE d.q SELECT 1")


@pytest.mark.parametrize(
    "before",
    [statement_of_another_table, xa_of_an_earlier_file, incident, create_select],
)
def test_unproven_charset_stays_unknown_after_an_event_that_no_reader_follows(
    tmp_path: Path, before: Callable[[LogBuilder], None]
) -> None:
    log = LogBuilder().format_description()
    before(log)
    create(log, "CREATE TABLE t (c TEXT)", LATIN1)
    add_map(log, text_map(90))
    log.write(tmp_path)
    reason = unknown_reason(tmp_path, log)
    assert reason is not None
    assert "latin1" in reason


@pytest.mark.parametrize("second_id", [90, 95])
def test_unproven_charset_of_a_created_again_table_stays_unknown_after_a_restart(
    tmp_path: Path, second_id: int
) -> None:
    first = LogBuilder("b.000001").format_description()
    create(first, "CREATE TABLE x (v VARCHAR(10))", UTF8MB4)
    add_map(first, varchar_map(89, "x"))  # proves utf8mb4
    create(first, "CREATE TABLE t (c TEXT)", UTF8MB4)
    add_map(first, text_map(90))
    first.query("DROP TABLE t")
    create(first, "CREATE TABLE t (c TEXT)", LATIN1)
    first.add(EventType.STOP_EVENT, b"")
    first.write(tmp_path)
    # The started server begins its table ids again.
    second = LogBuilder("b.000002").format_description()
    add_map(second, text_map(second_id))
    second.write(tmp_path)
    reason = unknown_reason(tmp_path, second)
    assert reason is not None
    assert "latin1" in reason


def test_described_table_has_the_columns_of_its_last_map_after_a_restart(tmp_path: Path) -> None:
    first = LogBuilder("b.000001").format_description("8.0.30")
    add_map(first, int_map(90, "id", "a", "b"))
    first.query("ALTER TABLE t DROP b")
    add_map(first, int_map(95, "id", "a"))
    first.query("ALTER TABLE t ADD b INT").add(EventType.STOP_EVENT, b"")
    first.write(tmp_path)
    second = LogBuilder("b.000002").format_description("8.0.30")
    add_map(second, int_map(90, "id", "a", "b"))
    second.write(tmp_path)
    files = FileLog.find(str(tmp_path))
    found = described_tables(files, files.begins()[0], [("d", "t")])
    assert [column.name for column in found["d", "t"].columns] == ["id", "a", "b"]


def test_described_table_has_the_columns_after_a_statement_of_another_table(
    tmp_path: Path,
) -> None:
    log = LogBuilder().format_description("8.0.30")
    add_map(log, int_map(90, "id", "a"))
    statement_of_another_table(log)
    log.query("ALTER TABLE t ADD b INT")
    add_map(log, int_map(91, "id", "a", "b"))
    log.write(tmp_path)
    files = FileLog.find(str(tmp_path))
    found = described_tables(files, files.begins()[0], [("d", "t")])
    assert [column.name for column in found["d", "t"].columns] == ["id", "a", "b"]
