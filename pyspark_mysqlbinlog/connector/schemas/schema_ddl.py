"""`schemaDdl`: a file of CREATE TABLE statements, applied as if the log began with them.

A log that begins after a table's CREATE does not contain its columns, and the server may no longer
exist or have changed the table since. So the user may provide the definitions at the log's
beginning. The file's statements are handled like the log's own DDL: they become events before the
log's first, and the tables are known from the beginning on.

The file may be a dump (`mysqldump --no-data`). Read are CREATE TABLE and all other DDL, USE for
names without a database, and CREATE DATABASE for the charset that its tables inherit. Skipped are
INSERTs, SETs, LOCKs, and everything between DELIMITER lines: triggers and routines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import pack

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.dump import Limit
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_database_charset
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.decoder.sql.tokens import TokenStream
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["SeededLog", "declared_tables", "seeded"]

_FILE = "schemaDdl"
_PIECE = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*'
    | "(?:[^"\\]|\\.|"")*"
    | `(?:[^`]|``)*`
    | /\*.*?\*/
    | (?:\#|--(?=\s|\Z))[^\n]*
    | (?P<end>;)
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_DELIMITER_BLOCK = re.compile(
    r"^[ \t]*DELIMITER[ \t]+(?!;[ \t]*$)\S+[ \t]*\n.*?^[ \t]*DELIMITER[ \t]+;[ \t]*$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CREATES = (StatementKind.CREATE_TABLE, StatementKind.CREATE_TABLE_LIKE)


@dataclass(frozen=True, slots=True)
class SeededLog:
    """A log with statements before the event at `start`."""

    log: ScannedLog
    start: Position
    seeds: tuple[Event, ...]

    def events(self, start: Position) -> Iterator[Event]:
        if start == self.start:
            yield from self.seeds
        yield from self.log.events(start)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        if start == self.start:
            yield from self.seeds
        yield from self.log.scan(start, scanner, limit)

    def server_version(self, file: str) -> str:
        return "" if file == _FILE else self.log.server_version(file)

    def position(self, file: str, pos: int) -> Position:
        if file == _FILE:
            # After all earlier files and before the log's own.
            return Position(max(self.start.number - 1, 0), pos, _FILE)
        return self.log.position(file, pos)


def seeded(log: ScannedLog, start: Position, name: str | None) -> ScannedLog:
    """Return the log from `start` on, preceded by a file's statements; unchanged without one.

    Raises OptionError, with the statement, for a file that can't be read or followed.
    """
    if name is None:
        return log
    made = _read(name, log, start)
    _history(name, made)
    return made


def declared_tables(name: str) -> SchemaHistory:
    """Return the tables of the file alone; raises the same errors."""
    return _history(name, _read(name, FileLog((), ()), Position(1, FIRST_EVENT, _FILE)))


def _read(name: str, log: ScannedLog, start: Position) -> SeededLog:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise _wrong(name, f"can't be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise _wrong(name, "is not UTF-8") from None
    return SeededLog(log, start, tuple(_events(name, text)))


def _statements(text: str) -> Iterator[str]:
    text = _DELIMITER_BLOCK.sub("", text)
    begin = 0
    for piece in _PIECE.finditer(text):
        if piece["end"]:
            yield text[begin : piece.start()]
            begin = piece.end()
    yield text[begin:]


def _events(name: str, text: str) -> Iterator[Event]:
    """Yield the file's DDL as QUERY events."""
    database = ""
    pos = 4
    for sql in _statements(text):
        used = _used_database(sql)
        if used is not None:
            database = used
            continue
        statement = classify(sql, database)
        if statement.kind is StatementKind.UNKNOWN:
            raise _wrong(name, f"has a statement that is not known: {statement.head!r}")
        if statement.kind not in DDL_KINDS:
            continue
        if any(not each for each, _ in statement.tables or ()):
            raise _wrong(name, f"has no database for {statement.head!r}: begin with USE")
        texts = [sql.strip()]
        if statement.kind is StatementKind.CREATE_DATABASE:
            altered = _as_alter(name, sql, statement.database or "")
            if altered is None:
                continue
            texts = [altered]
        if statement.kind in _CREATES and statement.if_not_exists and statement.tables:
            # The file contains the first definition: the table did not exist before.
            texts.insert(0, f"DROP TABLE IF EXISTS {quoted(*statement.tables[0])}")
        for each in texts:
            body = _query_body(each, database)
            yield Event(_FILE, pos, pos + len(body), 0, int(EventType.QUERY_EVENT), 0, 0, body)
            pos += len(body)


def _as_alter(name: str, sql: str, database: str) -> str | None:
    """Return an ALTER with a CREATE DATABASE's charset; None for the server's default.

    The file does not imply that the database was empty: tables that it does not contain may
    have existed.
    """
    try:
        charset = parse_database_charset(sql)
    except MySQLBinlogError as error:
        raise _wrong(name, f"has a CREATE DATABASE that can't be followed: {error}") from None
    if charset is None:
        return None
    return f"ALTER DATABASE {quoted(database)} CHARACTER SET {charset}"


def _used_database(sql: str) -> str | None:
    """Return the database of a USE statement."""
    stream = TokenStream(sql)
    try:
        return stream.name("a database") if stream.accept("USE") else None
    except MySQLBinlogError:
        return None


def _query_body(sql: str, database: str) -> bytes:
    name = database.encode()
    return pack("<IIBHH", 0, 0, len(name), 0, 0) + name + b"\x00" + sql.encode()


def _history(name: str, log: SeededLog) -> SchemaHistory:
    """Check definitions now, so that one that can't be followed fails before its first row."""
    tracker = SchemaTracker(SchemaHistory(), lambda *_: True, case_sensitive=True)
    for event in log.seeds:
        logged = LoggedStatement.read(event.body, "")
        statement = logged.statement
        end = log.position(_FILE, event.end)
        tracker.follow(event, logged, end)
        if statement.kind in _CREATES and statement.tables:
            table = statement.tables[0]
            if tracker.history.at(end, *table) is None:
                raise _wrong(name, tracker.history.unknown_reason(end, *table))
    names = [*tracker.history.tables(), *tracker.history.databases()]
    if not names:
        raise _wrong(name, "has no CREATE TABLE")
    return tracker.history


def _wrong(name: str, problem: str) -> OptionError:
    return OptionError(
        f"option schemaDdl: {name!r} {problem}; set a file of CREATE TABLE statements, readable on"
        " the driver"
    )
