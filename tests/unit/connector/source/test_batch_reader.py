"""Planning of batch reads; their rows are tested in ranges/test_files.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql.types import StringType

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.connector.source import batch_reader
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.start_offset import ResolvedStart
from pyspark_mysqlbinlog.errors import ConnectionFailedError, LostConnectionError
from pyspark_mysqlbinlog.protocol.events import Event

START, END = Position.of("b.000001", 4), Position.of("b.000001", 900)


class LostLog:
    """An empty server log whose connection is lost a few times."""

    def __init__(self, losses: int) -> None:
        self.losses = losses

    def events(self, start: Position) -> Iterator[Event]:
        if self.losses:
            self.losses -= 1
            raise LostConnectionError("the connection to db:3306 broke")
        return iter(())

    def position(self, file: str, pos: int) -> Position:
        return Position.of(file, pos)


def reader_of(monkeypatch: pytest.MonkeyPatch, log: LostLog) -> MySQLBinlogReader:
    """Return a reader with a resolved start, whose end is a time to be searched in the log."""
    given = {"host": "db", "user": "repl", "endingOffset": "2100-01-01"}
    files = {END.file: END.pos}
    start = ResolvedStart(log, START, END, SchemaHistory(), "", ServerFacts(True, "5.7.41"), files)
    monkeypatch.setattr(batch_reader, "start_of_server", lambda options, streaming: start)
    return MySQLBinlogReader(parse_options(given), output_schema(StringType()))


def test_connection_lost_during_the_end_time_lookup_is_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = LostLog(losses=2)
    (part,) = reader_of(monkeypatch, log).partitions()
    assert isinstance(part, RangePartition)
    assert (part.start, part.end) == (START, END)
    assert log.losses == 0


def test_end_time_lookup_gives_up_after_three_lost_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConnectionFailedError, match="broke; gave up after 3 tries"):
        reader_of(monkeypatch, LostLog(losses=9)).partitions()
