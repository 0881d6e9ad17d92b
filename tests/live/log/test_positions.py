"""Positions inside an event, on real servers: the error is always the same and clear.

If nothing is known of a position and its file is long, the bytes before it are not read. What the
server finds at the position depends on the bytes, and so does its message. From a checkpoint's
position, the binlog is read with the event before it: only in another binlog can that event begin
inside an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner
from pyspark_mysqlbinlog.errors import BinlogReplacedError, InvalidPositionError

pytestmark = pytest.mark.one_server

# The payload decides what the server takes for an event's length: short, long or text. The last
# value contains the header of a GTID, which MySQL does not send if gtid_mode is OFF.
VALUES = (
    "REPEAT(CHAR(0), 60)",
    "REPEAT('a', 60)",
    "CONCAT(REPEAT(CHAR(1), 30), 'tail')",
    "CONCAT(X'00000000210100000030000000000000000000', REPEAT('a', 50))",
)


def rows_event(server: Server, database: str, value: str) -> tuple[str, int, int]:
    """Insert a row and a few events after it; return (file, start, end) of the row's event."""
    file, begin = server.position()
    server.execute(f"INSERT INTO `{database}`.t VALUES ({value})")
    server.execute(f"INSERT INTO `{database}`.t VALUES ('after')")
    events = server.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
    start, end = next(
        (int(row[1]), int(row[4])) for row in events if str(row[2]).startswith("Write_rows")
    )
    return file, start, end


def logged(server: Server, database: str, value: str) -> tuple[ServerLog, str, int, int]:
    """Return a server's binlog, and (file, start, end) of an event that contains a value."""
    server.execute(f"CREATE TABLE `{database}`.t (v VARCHAR(80))")
    options = parse_options(server.options(tables=f"{database}.t"))
    return ServerLog(options.server_settings()), *rows_event(server, database, value)


def refused(found: Iterable[object], position: Position) -> str:
    with pytest.raises(InvalidPositionError) as caught:
        list(found)
    assert (caught.value.file, caught.value.position) == (position.file, position.pos)
    return caught.value.message


@pytest.mark.parametrize("value", VALUES, ids=["zeros", "letters", "mixed", "header"])
def test_position_inside_an_event_raises_invalid_position_error(
    any_server: Server, any_database: str, value: str
) -> None:
    log, file, start, end = logged(any_server, any_database, value)
    for pos in range(start + 1, end):
        position = Position.of(file, pos)
        for found in (
            log.events(position),
            log.scan(position, LogScanner(), lambda _: NO_LIMIT),
        ):
            message = refused(found, position)
            assert "begins" in message
            assert "SHOW BINLOG EVENTS" in message or "no event begins here" in message


@pytest.mark.parametrize("value", VALUES, ids=["zeros", "letters", "mixed", "header"])
def test_checkpoint_of_another_binlog_raises_binlog_replaced_error(
    any_server: Server, any_database: str, value: str
) -> None:
    """The binlog is the same up to a position, as in a restored copy, and then differs."""
    log, file, start, end = logged(any_server, any_database, value)
    head = log.fingerprint_at(Position.of(file, FIRST_EVENT))
    assert head is not None
    length = end - start
    known = PositionFingerprint(head.created, head.server_id, length, checksum=1)
    for pos in range(start + 1, end):
        position = Position.of(file, pos + length)
        with pytest.raises(BinlogReplacedError, match="RESET MASTER"):
            list(replace(log, known=(position, known)).events(position))
