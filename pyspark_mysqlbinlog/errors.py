"""Every error that this package raises on purpose, as one tree.

::

    MySQLBinlogError
     ├── OptionError                 an option is unknown, wrong or not built yet
     ├── ServerError                 the server can't be used, or refused
     │    ├── ConnectionFailedError  no answer, wrong port, lost for longer than retryTimeout
     │    │    └── LostConnectionError  broken, or no answer for now: the one that is tried again
     │    ├── AccessDeniedError      wrong user or password, missing grant
     │    ├── SnapshotVisibilityTimeoutError  a first load waited too long for transactions to end
     │    └── BinlogSettingsError    log_bin off, binlog_format not ROW
     ├── PositionError               the log can't be read from where it was asked to
     │    ├── BinlogPurgedError      the file is gone
     │    ├── InvalidPositionError   inside an event, past the end, no such file
     │    ├── BinlogReplacedError       the log is another one by now: RESET MASTER, a restored copy
     │    ├── LogSequenceError       it continues under another base name, or with lower numbers
     │    └── BinlogGapError            files that do not follow one another
     ├── FormatError                 bytes that are not what the format says
     │    ├── ChecksumError
     │    ├── MalformedEventError    truncated, too long, inconsistent, left-over bytes
     │    ├── MalformedResultError   a row of a SELECT that can't be what the server meant
     │    └── UnsupportedEventError  an event whose meaning is not known and can't be skipped
     ├── NotRowBasedError              a change that was not logged as rows
     │    ├── StatementFormatError   DML in statement format
     │    └── UnsupportedTransactionError  rows whose outcome the log does not tell
     ├── SchemaError                 names for the values are not known
     │    ├── UnknownTableError      a table that was named does not exist
     │    ├── UnknownSchemaError     a row of a table whose columns are not known there
     │    ├── SchemaMismatchError    the table map does not fit the schema
     │    └── SchemaChangedError     columns that the query's struct has no place for
     ├── UnrepresentableValueError   a value that the payload's types can't hold
     ├── OffsetError                 an offset that can't be read
     ├── MirrorError                 a Delta table can't be kept equal to the server's
     └── KernelNotFoundError          the compiled kernel was asked for, and is not there

A message is one line: expected, found, where, what to do. It never holds a secret.

Spark hands over only text, so the text is regular:
``pyspark_mysqlbinlog.errors.NAME: MESSAGE (PLACE)`` on a line of its own. `cause_of` makes the
error again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import ClassVar

__all__ = [
    "AccessDeniedError",
    "BinlogGapError",
    "BinlogPurgedError",
    "BinlogReplacedError",
    "BinlogSettingsError",
    "ChecksumError",
    "ConnectionFailedError",
    "FormatError",
    "InvalidPositionError",
    "KernelNotFoundError",
    "LogSequenceError",
    "LostConnectionError",
    "MalformedEventError",
    "MalformedResultError",
    "MirrorError",
    "MySQLBinlogError",
    "NotRowBasedError",
    "OffsetError",
    "OptionError",
    "PositionError",
    "SchemaChangedError",
    "SchemaError",
    "SchemaMismatchError",
    "ServerError",
    "SnapshotVisibilityTimeoutError",
    "StatementFormatError",
    "UnknownSchemaError",
    "UnknownTableError",
    "UnrepresentableValueError",
    "UnsupportedEventError",
    "UnsupportedTransactionError",
    "cause_of",
]

# A name in a place: as it is, or quoted as in JSON where it could be taken for more than a name.
_PLAIN = r"[^\s\"(),:\\]+"
_NAME = rf'(?:{_PLAIN}|"(?:[^"\\]|\\.)*")'
_PLACED = re.compile(
    r"(?P<message>.*) \((?=at |table )"
    rf"(?:at (?:position (?P<position>\d+)|(?P<file>{_NAME})(?::(?P<pos>\d+))?))?"
    rf"(?:(?:, )?table (?P<table>{_NAME}))?\)"
)
# Our line in what Spark prints; some versions append the SQLSTATE to it.
_RAISED = rf"{re.escape(__name__)}\.(\w+): (.*?)(?: SQLSTATE: \w{{5}})*$"
_OWN_LINE = re.compile(rf"^{_RAISED}", re.MULTILINE)
_WITHIN_LINE = re.compile(rf"(?<![\w.]){_RAISED}", re.MULTILINE)


class MySQLBinlogError(Exception):
    """Base of the tree.

    Parameters
    ----------
    message : what was expected and found, and what to do; newlines are folded into spaces.
    file, position : where in the log, where known: file name and byte offset.
    table : ``database.table``, where known.

    The place is added once: an error that already has one keeps it (see `at`).

    Attributes
    ----------
    hint : the usual way on from an error of this class; the message may know a better one.
    """

    hint: ClassVar[str] = "start again with the same checkpoint, and report the line"

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        position: int | None = None,
        table: str | None = None,
    ) -> None:
        self.message = " ".join(message.split())
        self.file = file
        self.position = position
        self.table = table
        super().__init__(self.message)

    def with_location(
        self, file: str | None = None, position: int | None = None, table: str | None = None
    ) -> MySQLBinlogError:
        """Fill in what the raiser could not know; returns self, to be raised again."""
        self.file = self.file if self.file is not None else file
        self.position = self.position if self.position is not None else position
        self.table = self.table if self.table is not None else table
        return self

    def __str__(self) -> str:
        place = []
        if self.file is not None:
            position = "" if self.position is None else f":{self.position}"
            place.append(f"at {_shown(self.file)}{position}")
        elif self.position is not None:
            place.append(f"at position {self.position}")
        if self.table is not None:
            place.append(f"table {_shown(self.table)}")
        return f"{self.message} ({', '.join(place)})" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from executors to the driver; the default pickle would lose the keywords.
        return (_rebuild, (type(self), self.message, self.file, self.position, self.table))


def _shown(name: str) -> str:
    """A name as it stands in a place."""
    if name.isprintable() and re.fullmatch(_PLAIN, name):
        return name
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _named(shown: str | None) -> str | None:
    """The name of which `_shown` made this."""
    if shown is None or not shown.startswith('"'):
        return shown
    return str(json.loads(shown))


def _rebuild(
    cls: type[MySQLBinlogError],
    message: str,
    file: str | None,
    position: int | None,
    table: str | None,
) -> MySQLBinlogError:
    return cls(message, file=file, position=position, table=table)


class OptionError(MySQLBinlogError, ValueError):
    """An option is unknown, invalid, missing, or not supported yet."""

    hint = "correct the option that the message names"


class ServerError(MySQLBinlogError):
    """The server cannot be used, or rejected a command.

    code : MySQL's number of the error, where there is one.
    """

    hint = (
        "connect to the server that the checkpoint belongs to, or do what the server's "
        "own words ask for"
    )

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        position: int | None = None,
        table: str | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message, file=file, position=position, table=table)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"code": self.code})


class ConnectionFailedError(ServerError):
    """No answer, an answer that is not MySQL's, or no connection for longer than retryTimeout."""

    hint = "check host and port, and start again with the same checkpoint when the server is back"


class LostConnectionError(ConnectionFailedError):
    """The connection broke or could not be made; a retry can succeed."""

    hint = "start again with the same checkpoint; if it stays, do what the message says"


class AccessDeniedError(ServerError):
    """Wrong user or password, or a grant is missing."""

    hint = (
        "correct the password or give the grant that the message names, and start again "
        "with the same checkpoint"
    )


class SnapshotVisibilityTimeoutError(ServerError):
    """A snapshot waited too long for transactions of the binlog to be visible to SELECT."""

    hint = "end the transactions that the message names, and start again with the same checkpoint"


class BinlogSettingsError(ServerError):
    """The binlog is off, or not in ROW format."""

    hint = "set log_bin and binlog_format=ROW on the server"


class PositionError(MySQLBinlogError):
    """The binlog cannot be read from the given position."""

    hint = "give a position that the server has"


class BinlogPurgedError(PositionError):
    """The binlog file that is needed was purged."""

    hint = "restore the file; or take a new checkpoint and load the tables anew"


class BinlogReplacedError(PositionError):
    """The server's binlog is not the one of the position."""

    hint = "take a new checkpoint and load the tables anew"


class LogSequenceError(PositionError):
    """The binlog continues under another base name (log_bin), or with numbers that do not grow.

    next_file : the first file there; empty where that is not known, and in a copy of the error.
    next_head : that file's `FileHead`.
    """

    hint = "read each part by itself: up to the last file of the old name, and from the new"
    next_file: str = ""
    next_head: tuple[int, int] = (0, 0)


class InvalidPositionError(PositionError):
    """The position is inside an event, after the end, or in no file of this server."""

    hint = (
        "give a position that SHOW BINLOG EVENTS lists; after a crash of the server, take "
        "a new checkpoint"
    )


class BinlogGapError(PositionError):
    """Files do not follow one another: missing, renamed, duplicate, or of two servers."""

    hint = "put the missing files back under the names that the server gave them"


class FormatError(MySQLBinlogError):
    """The bytes do not have the expected format."""

    hint = "let path name binlogs only"


class ChecksumError(FormatError):
    """An event's CRC32 does not match its bytes."""

    hint = "try again; if it stays, compare with mysqlbinlog --verify-binlog-checksum"


class MalformedEventError(FormatError):
    """An event is truncated, claims more than there is, or has bytes left over."""

    hint = "try again; if it stays, compare with mysqlbinlog --verify-binlog-checksum"


class MalformedResultError(FormatError):
    """A snapshot row is truncated, or has a value that its column cannot hold."""

    hint = (
        "start again with the same checkpoint; if it stays, look at the value with SELECT, and "
        "correct it or exclude the column"
    )


class UnsupportedEventError(FormatError):
    """An unknown event that is not flagged as ignorable."""

    hint = "compare the tables, and take a new checkpoint behind the position"


class NotRowBasedError(MySQLBinlogError):
    """A change of a captured table was not logged as rows with a known outcome."""

    hint = "take a new checkpoint behind the position, and load the table anew"


class StatementFormatError(NotRowBasedError):
    """DML of a captured table was logged as a statement."""

    hint = (
        "set binlog_format=ROW everywhere, take a new checkpoint behind the position, and "
        "load the table anew"
    )


class UnsupportedTransactionError(NotRowBasedError):
    """Rows of a captured table whose outcome (kept or rolled back) is not in the binlog."""

    hint = "exclude the table, or take a new checkpoint behind the position"


class SchemaError(MySQLBinlogError):
    """The columns of a table are unknown or unsupported."""

    hint = "exclude the column or the table"


class UnknownTableError(SchemaError):
    """A table that was named literally does not exist."""

    hint = "check the spelling and the SELECT grant; use a glob for a table that comes later"


class UnknownSchemaError(SchemaError):
    """A row of a table whose columns are unknown at that position."""

    hint = "start elsewhere, or set schemaDdl or onUnknownSchema=positional"


class SchemaMismatchError(SchemaError):
    """The table map does not match the schema at that position."""

    hint = "start behind the table's last ALTER"


class SchemaChangedError(SchemaError):
    """A table has columns that the query's struct has no field for, or DDL cannot be followed."""

    hint = "start again with the same checkpoint, which adds the column; or set schemaEvolutionMode"


class UnrepresentableValueError(MySQLBinlogError):
    """A value that the payload's types cannot hold."""

    hint = "correct the value, exclude the column, or set payload=json"


class OffsetError(MySQLBinlogError, ValueError):
    """An offset cannot be read: newer version, missing names, or of another source."""

    hint = "upgrade the package, or take a new checkpoint"


class MirrorError(MySQLBinlogError):
    """A mirrored table cannot be kept equal to the server's from the binlog."""

    hint = "load the table anew"


class KernelNotFoundError(MySQLBinlogError, ImportError):
    """The compiled kernel is required (MYSQLBINLOG_IMPL=c) and cannot be imported."""

    hint = "install again with a C++ compiler, or unset MYSQLBINLOG_IMPL"


def cause_of(exception: BaseException | None) -> MySQLBinlogError | None:
    """Return the error of this module that caused an exception of Spark, or None.

    Spark keeps of an error that a data source raises only the text, within a page of its own. This
    makes the error again, with its class, message, file, position and table; `ServerError.code` is
    not in the text. Takes what a batch read raises, what ``awaitTermination`` raises and what
    ``query.exception()`` returns, in classic sessions and in Spark Connect.

    Examples
    --------
    >>> try:
    ...     query.awaitTermination()
    ... except PySparkException as exception:
    ...     error = cause_of(exception)
    ...     if error is None:
    ...         raise
    ...     print(type(error).__name__, error.table, error)  # doctest: +SKIP
    """
    for error in _chain(exception):
        if isinstance(error, MySQLBinlogError):
            return error
        text = _text(error)
        found = _OWN_LINE.search(text) or _WITHIN_LINE.search(text)
        if found is not None:
            return _parsed(*found.groups())
    return None


def _chain(exception: BaseException | None) -> Iterator[BaseException]:
    """An exception and those behind it, each once."""
    seen: set[int] = set()
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        yield exception
        exception = exception.__cause__ or exception.__context__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (Py4J's errors ask the JVM, which may be gone)
        return " ".join(map(repr, error.args))


def _parsed(name: str, text: str) -> MySQLBinlogError:
    """The error that was printed as ``name: text``."""
    kind = globals().get(name)
    if not (isinstance(kind, type) and issubclass(kind, MySQLBinlogError)):
        # Another version of this package, on another machine, has classes of its own.
        kind, text = MySQLBinlogError, f"{name}: {text}"
    placed = _PLACED.fullmatch(text)
    if placed is None:
        return kind(text)
    position = placed["position"] or placed["pos"]
    return kind(
        placed["message"],
        file=_named(placed["file"]),
        position=None if position is None else int(position),
        table=_named(placed["table"]),
    )
