"""Every error that this package raises on purpose, as one tree.

::

    MySQLBinlogError
     ├── OptionError                 an option is unknown, wrong or not built yet
     ├── ServerError                 the server can't be used, or refused
     │    ├── ConnectionFailedError  no answer, wrong port, lost for longer than retryTimeout
     │    │    └── LostConnectionError  broken, or no answer for now: the one that is tried again
     │    ├── AccessDeniedError      wrong user or password, missing grant
     │    └── BinlogSettingsError    log_bin off, binlog_format not ROW
     ├── PositionError               the log can't be read from where it was asked to
     │    ├── BinlogPurgedError      the file is gone
     │    ├── InvalidPositionError   inside an event, past the end, no such file
     │    └── LogGapError            files that do not follow one another
     ├── FormatError                 bytes that are not what the format says
     │    ├── ChecksumError
     │    ├── MalformedEventError    truncated, too long, inconsistent, left-over bytes
     │    └── UnsupportedEventError  an event whose meaning is not known and can't be skipped
     ├── StatementError              a change that was not logged as rows
     │    ├── StatementFormatError   DML in statement format
     │    └── UnsupportedTransactionError  rows whose outcome the log does not tell
     ├── SchemaError                 names for the values are not known
     │    ├── UnknownTableError      a table that was named does not exist
     │    ├── UnknownSchemaError     a row of a table whose columns are not known there
     │    ├── SchemaMismatchError    the table map does not fit the schema
     │    └── SchemaChangedError     columns that the query's struct has no place for
     ├── UnrepresentableValueError   a value that the payload's types can't hold
     ├── OffsetError                 an offset that can't be read
     └── KernelMissingError          the compiled kernel was asked for, and is not there

A message is one line: expected, found, where, what to do. It never holds a secret.
"""

from __future__ import annotations

__all__ = [
    "AccessDeniedError",
    "BinlogPurgedError",
    "BinlogSettingsError",
    "ChecksumError",
    "ConnectionFailedError",
    "FormatError",
    "InvalidPositionError",
    "KernelMissingError",
    "LogGapError",
    "LostConnectionError",
    "MalformedEventError",
    "MySQLBinlogError",
    "OffsetError",
    "OptionError",
    "PositionError",
    "SchemaChangedError",
    "SchemaError",
    "SchemaMismatchError",
    "ServerError",
    "StatementError",
    "StatementFormatError",
    "UnknownSchemaError",
    "UnknownTableError",
    "UnrepresentableValueError",
    "UnsupportedEventError",
    "UnsupportedTransactionError",
]


class MySQLBinlogError(Exception):
    """Base of the tree.

    Parameters
    ----------
    message : what was expected and found, and what to do; newlines are folded into spaces.
    file, position : where in the log, where known: file name and byte offset.
    table : ``database.table``, where known.

    The place is added once: an error that already has one keeps it (see `at`).
    """

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

    def at(
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
            place.append(f"at {self.file}{position}")
        elif self.position is not None:
            place.append(f"at position {self.position}")
        if self.table is not None:
            place.append(f"table {self.table}")
        return f"{self.message} ({', '.join(place)})" if place else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from executors to the driver; the default pickle would lose the keywords.
        return (_rebuild, (type(self), self.message, self.file, self.position, self.table))


def _rebuild(
    cls: type[MySQLBinlogError],
    message: str,
    file: str | None,
    position: int | None,
    table: str | None,
) -> MySQLBinlogError:
    return cls(message, file=file, position=position, table=table)


class OptionError(MySQLBinlogError, ValueError):
    """An option is unknown, wrong, missing or not built yet."""


class ServerError(MySQLBinlogError):
    """The server can't be used, or refused what was asked.

    code : MySQL's number of the error, where there is one.
    """

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
    """No answer, or an answer that is not MySQL's; or lost for longer than retryTimeout."""


class LostConnectionError(ConnectionFailedError):
    """The connection broke or could not be made; the same again may work."""


class AccessDeniedError(ServerError):
    """Wrong user or password, or a grant is missing."""


class BinlogSettingsError(ServerError):
    """The server does not log, or does not log rows."""


class PositionError(MySQLBinlogError):
    """The log can't be read from where it was asked to."""


class BinlogPurgedError(PositionError):
    """The file that is needed is no longer on the server."""


class InvalidPositionError(PositionError):
    """The position lies inside an event, past the end, or in no file of this server."""


class LogGapError(PositionError):
    """Files on disk do not follow one another: some are missing, renamed, twice, of two servers."""


class FormatError(MySQLBinlogError):
    """The bytes are not what the format says."""


class ChecksumError(FormatError):
    """An event's CRC32 does not match its bytes."""


class MalformedEventError(FormatError):
    """An event is truncated, claims more than there is, or has bytes left over."""


class UnsupportedEventError(FormatError):
    """An event whose meaning is not known and that is not flagged as ignorable."""


class StatementError(MySQLBinlogError):
    """A change of a wanted table was not logged as rows with a known outcome."""


class StatementFormatError(StatementError):
    """DML of a wanted table was logged as a statement."""


class UnsupportedTransactionError(StatementError):
    """Rows of a wanted table whose outcome (kept or rolled back) the log does not tell yet."""


class SchemaError(MySQLBinlogError):
    """The names for the values are not known."""


class UnknownTableError(SchemaError):
    """A table that was named literally does not exist."""


class UnknownSchemaError(SchemaError):
    """A row of a table whose columns are not known at that position."""


class SchemaMismatchError(SchemaError):
    """The table map does not fit the schema that should hold there."""


class SchemaChangedError(SchemaError):
    """A table got columns that the query's struct has no place for; or DDL can't be followed."""


class UnrepresentableValueError(MySQLBinlogError):
    """A value that the payload's types can't hold, where nothing may be put in its place."""


class OffsetError(MySQLBinlogError, ValueError):
    """An offset can't be read: newer version, missing names, or not ours."""


class KernelMissingError(MySQLBinlogError, ImportError):
    """The compiled kernel was asked for by name, and can't be imported."""
