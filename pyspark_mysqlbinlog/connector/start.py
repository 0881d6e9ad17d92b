"""Where a query begins, and what it must know there: the offset for `startingOffset`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.baseline import history_of_log, history_of_server
from pyspark_mysqlbinlog.connector.log import FileLog, Log, ServerLog
from pyspark_mysqlbinlog.connector.option_values import (
    Earliest,
    FilePosition,
    Latest,
    Place,
    Timestamp,
)
from pyspark_mysqlbinlog.connector.options import Options
from pyspark_mysqlbinlog.connector.retry import first_connection
from pyspark_mysqlbinlog.connector.schema_ddl import seeded
from pyspark_mysqlbinlog.connector.server import (
    ServerFacts,
    binlog_files,
    check_settings,
    current_position,
    server_uuid,
)
from pyspark_mysqlbinlog.connector.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.connector.times import first_since
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    InvalidPositionError,
    OptionError,
    UnknownTableError,
)
from pyspark_mysqlbinlog.names import fold, table_folding
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "LogStart",
    "history_for_other_tables",
    "history_of_files",
    "resolve_end",
    "start_of_files",
    "start_of_server",
]

# What stands at the beginning of a file, before its first transaction.
_FILE_HEAD = frozenset(
    {
        int(EventType.FORMAT_DESCRIPTION_EVENT),
        int(EventType.PREVIOUS_GTIDS_LOG_EVENT),
        int(EventType.MARIADB_GTID_LIST_EVENT),
        int(EventType.MARIADB_BINLOG_CHECKPOINT_EVENT),
    }
)


@dataclass(frozen=True, slots=True)
class LogStart:
    """A start, resolved.

    Attributes
    ----------
    end : the end of the log when this was made.
    facts : of the server; of files, what the one tells in which the position is.
    files : the log's files, oldest first, and how many bytes each had.
    """

    log: Log
    position: Position
    end: Position
    history: SchemaHistory
    server_uuid: str
    facts: ServerFacts
    files: Mapping[str, int]

    @property
    def offset(self) -> Offset:
        return Offset(
            self.position, self.server_uuid, self.history.needed_from(self.position).pack()
        )


def start_of_server(options: Options, *, streaming: bool) -> LogStart:
    """Ask the server. Every error that its settings, grants or tables give comes from here."""
    return first_connection()(_ask_server, options, options.place_to_start(streaming=streaming))


def _ask_server(options: Options, place: Place) -> LogStart:
    settings = options.server_settings()
    log = ServerLog(settings)
    with ReplicaClient.connect(settings) as client:
        check_settings(client)
        facts = ServerFacts.ask(client)
        case_sensitive = facts.case_sensitive
        tables = options.table_filter(case_sensitive)
        files = binlog_files(client)
        position = _place(client, log, files, place)
        # At the log's end the server tells all there is to know.
        known = options.schema_ddl if position < current_position(client) else None
        history, end = history_of_server(
            client,
            seeded(log, position, known),
            position,
            tables.wants,
            case_sensitive=case_sensitive,
            unwanted=True,
        )
        _expect_literals(tables, history, case_sensitive)
        _expect_columns(options.column_filter(case_sensitive), history, case_sensitive)
        return LogStart(log, position, end, history, server_uuid(client), facts, files)


def history_for_other_tables(
    options: Options, history: SchemaHistory, position: Position
) -> SchemaHistory:
    """A checkpoint's history, for a query that wants other tables than the one that wrote it.

    position : where the query goes on.

    What the history does not know of the tables that are wanted now is learnt as at a start in the
    past. It stays known that it was not known where the log does not tell.
    """
    settings = options.server_settings()
    log = ServerLog(settings)
    with first_connection()(ReplicaClient.connect, settings) as client:
        case_sensitive = ServerFacts.ask(client).case_sensitive
        tables = options.table_filter(case_sensitive)
        found, _ = history_of_server(
            client,
            log,
            position,
            lambda *name: tables.wants(*name) and history.state(position, *name) is None,
            case_sensitive=case_sensitive,
        )
    found = found.select(tables.wants)
    for name in found.tables():
        if found.state(position, *name) is None:
            history = history.without(position, *name, "it was not wanted when the query began")
    history = history.merged(found)
    _expect_literals(tables, history, case_sensitive)
    _expect_columns(options.column_filter(case_sensitive), history, case_sensitive)
    return history


def start_of_files(options: Options) -> LogStart:
    """Read the files once for their DDL."""
    log = FileLog.find(str(options.path))
    place = options.place_to_start(streaming=False)
    tables = options.table_filter()
    match place:
        case FilePosition(file, pos):
            position = log.position(file, pos)
        case Timestamp(seconds):
            position = first_since(log, log.begins(), seconds) or log.end()
        case Latest():
            position = log.end()
        case Earliest():
            position = log.begins()[0]
    history = history_of_files(log, options)
    if options.on_unknown_schema == "fail":
        # Otherwise the log's rows need no definition, so none tells that a table is there.
        _expect_literals(tables, history, True)
    _expect_columns(options.column_filter(), history, True)
    return LogStart(
        log,
        position,
        log.end(),
        history,
        "",
        ServerFacts(True, log.server_version(position.file)),
        {Path(path).name: Path(path).stat().st_size for path in log.paths},
    )


def history_of_files(log: FileLog, options: Options) -> SchemaHistory:
    """What the files tell of the wanted tables, from their beginning on."""
    begin = log.begins()[0]
    wants = options.table_filter().wants
    return history_of_log(seeded(log, begin, options.schema_ddl), begin, wants)


def resolve_end(start: LogStart, place: Place) -> Position:
    """Where a batch read ends.

    Raises
    ------
    BinlogPurgedError : the server has no such file.
    InvalidPositionError : no such file at the path, or behind its end.
    MySQLBinlogError : what reading the log raises, in which a time is looked for.
    """
    match place:
        case FilePosition(file, pos):
            position = start.log.position(file, pos)
            _expect_there(start.files, file, pos)
            return position
        case Timestamp(seconds):
            begins = [start.log.position(file, FIRST_EVENT) for file in start.files]
            later = [begin for begin in begins if begin > start.position]
            return first_since(start.log, [start.position, *later], seconds) or start.end
        case _:
            return start.end


def _place(
    client: ReplicaClient, log: ServerLog, files: Mapping[str, int], place: Place
) -> Position:
    match place:
        case Latest():
            return _spelled(log, current_position(client))
        case Earliest():
            return Position.of(next(iter(files)), FIRST_EVENT)
        case FilePosition(file, pos):
            _expect_there(files, file, pos)
            return _spelled(log, Position.of(file, pos))
        case Timestamp(seconds):
            begins = [Position.of(file, FIRST_EVENT) for file in files]
            found = first_since(log, begins, seconds)
            return found or _spelled(log, current_position(client))


def _expect_there(files: Mapping[str, int], file: str, pos: int) -> None:
    """BinlogPurgedError or InvalidPositionError for what lies in none of the log's files."""
    size = files.get(file)
    if size is None:
        names = [*files]
        raise BinlogPurgedError(
            f"the server has no binlog {file!r}: expected one from {names[0]} to"
            f" {names[-1]}; it was purged, or it belongs to another server",
            file=file,
            position=pos,
        )
    if pos > max(size, FIRST_EVENT):
        raise InvalidPositionError(
            f"the position is past the end of its file, which has {size} bytes; give one that SHOW"
            f" BINLOG EVENTS IN '{file}' lists",
            file=file,
            position=pos,
        )


def _spelled(log: Log, position: Position) -> Position:
    """A boundary's one spelling: behind a file's head it is the file's beginning."""
    if position.pos == FIRST_EVENT:
        return position
    begin = position._replace(pos=FIRST_EVENT)
    for event in log.events(begin):
        if event.file != position.file or event.start >= position.pos:
            return begin
        if event.type not in _FILE_HEAD:
            return position
    return begin


def _expect_literals(tables: TableFilter, history: SchemaHistory, case_sensitive: bool) -> None:
    """Tables that are named literally must exist, now or in the log that is to be read."""
    folded = table_folding(case_sensitive)
    known = set(map(folded, history.tables()))
    for database, table in tables.literals:
        if folded((database, table)) not in known:
            raise UnknownTableError(
                "option tables: neither the server nor the log has this table; check the"
                " spelling and the user's SELECT grant, or use a glob for a table that comes later",
                table=f"{database}.{table}",
            )


def _expect_columns(columns: ColumnFilter, history: SchemaHistory, case_sensitive: bool) -> None:
    """A column that is named literally must exist in its table, now or in the log.

    A misspelt one would be delivered: excluding is how columns are kept out of a lake.
    """
    folded = table_folding(case_sensitive)
    for database, table, column in columns.literals:
        wanted = folded((database, table))
        names = {
            fold(each.name)
            for name in history.tables()
            if folded(name) == wanted
            for _, schema in history.versions(*name)
            if isinstance(schema, TableSchema)
            for each in schema.columns
        }
        if names and fold(column) not in names:
            raise OptionError(
                f"option excludeColumns: the table has no column `{column}`; check the spelling",
                table=f"{database}.{table}",
            )
