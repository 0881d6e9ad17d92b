"""The tables' schemas at a start: from the server, bound to an interval of the binlog.

information_schema shows the current schemas, but not the position at which they are valid. So the
code reads a position P1, information_schema, and a position P2. In between it waits until
information_schema shows the DDL before P1 (see `dictionary`). The answer is valid at P2 if the
binlog has no DDL of a captured table in (P1, P2]; otherwise all is repeated. For a start in the
past the binlog is read from there: a table without DDL in between had its current schema then, one
that was created in between is known from its creation, and one that was changed otherwise is known
from its last change on.

Uncaptured tables are included, up to a limit, because one may be renamed to a captured name. Those
with DDL in (P1, P2] are left out; so are the default charsets of databases with DDL there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from time import sleep

from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog, statement_events
from pyspark_mysqlbinlog.connector.schemas.tracker import (
    MAX_UNCAPTURED_COLUMNS,
    SchemaTracker,
    last_change,
)
from pyspark_mysqlbinlog.connector.server.dictionary import wait_until_ddl_is_visible
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import (
    current_position,
    database_charsets,
    explicit_timestamps,
)
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.label_charsets import with_letters
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.names import Table, fold, folding, table_folding
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import parse_server_version
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["advance", "history_of_log", "history_of_server"]

Captures = Callable[[str, str], bool]

_QUERY = int(EventType.QUERY_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_MAX_TRIES = 30
_KINDS_THAT_CHANGE_TABLES = DDL_KINDS | {StatementKind.TRUNCATE, StatementKind.DML}


@dataclass(frozen=True, slots=True)
class _StatementAt:
    event: Event
    logged: LoggedStatement
    end: Position

    @property
    def statement(self) -> Statement:
        """The parsed statement."""
        return self.logged.statement


def history_of_server(
    client: ReplicaClient,
    log: ScannedLog,
    start: Position | None,
    captures: Captures,
    *,
    case_sensitive: bool,
    uncaptured: bool = False,
    all_sequences: bool = False,
) -> tuple[SchemaHistory, Position]:
    """Return the schema history from `start` on, and P2, up to which the binlog was read.

    Parameters
    ----------
    client : for queries.
    log : the same server's, with positions in the order relative to `start`.
    start : a boundary; None is P1, the end of the binlog.
    uncaptured : include uncaptured tables, and the databases' charsets.
    all_sequences : include the versions that begin in later sequences of files.

    Raises
    ------
    SchemaChangedError : the tables were altered continuously.
    ServerError : as `wait_until_ddl_is_visible`.
    """
    for attempt in range(_MAX_TRIES):
        before = _end_of(log, client)
        wait_until_ddl_is_visible(client, captures, others=uncaptured)
        tables = read_table_schemas(client, captures, others=uncaptured)
        charsets = database_charsets(client)
        after = _end_of(log, client)
        late = list(_statements(log, before, after))
        there = {schema.database for schema in tables if captures(schema.database, schema.table)}
        if not any(_touches(ddl, captures, there) for ddl in late):
            break
        sleep(0.02 * attempt)
    else:
        raise SchemaChangedError(
            f"{_MAX_TRIES} reads of information_schema each overlapped with DDL of a captured"
            " table; start when the tables are not being altered",
            file=after.file,
            position=after.pos,
        )
    start = before if start is None else start
    fold_database = folding(case_sensitive)
    altered = {
        fold_database(ddl.statement.database)
        for ddl in late
        if ddl.statement.database is not None and not ddl.statement.if_not_exists
    }
    named = {name for ddl in late for name in ddl.statement.tables or ()}
    folded = table_folding(case_sensitive=False)
    named_anyhow = set(map(folded, named))
    charsets = {name: each for name, each in charsets.items() if name not in altered}
    tables = [
        schema
        for schema in tables
        if captures(schema.database, schema.table)
        or (
            schema.database not in altered
            and folded((schema.database, schema.table)) not in named_anyhow
        )
    ]
    history, index_changes = _since(
        list(_statements(log, start, before)),
        start,
        charsets,
        captures,
        case_sensitive=case_sensitive,
        explicit=explicit_timestamps(client),
    )
    captured, others = _split(tables, captures)
    for schema in captured + _bounded(others, {each.database for each in captured}):
        # This schema is valid since its last DDL, or throughout.
        name = schema.database, schema.table
        last = last_change(history, name)
        known = history.versions(*name)[-1][1] if last is not None else None
        looks = with_letters(schema, known) if isinstance(known, TableSchema) else schema
        first = start if last is None else last
        indexed = index_changes.get(name)
        if indexed is not None and indexed > first:
            # The columns are older than the unique keys. A key that did not exist would merge rows.
            history = history.with_table(first, replace(looks, unique_keys=()))
            first = indexed
        history = history.with_table(first, looks)
    if not uncaptured:
        history = SchemaHistory(
            {name: history.versions(*name) for name in history.tables() if captures(*name)}
        )
    return history if all_sequences else history.until(END_OF_SEQUENCE), max(start, after)


def _end_of(log: ScannedLog, client: ReplicaClient) -> Position:
    """Return the current end of a server's binlog, in its order."""
    end = current_position(client)
    return log.position(end.file, end.pos)


def _since(
    ddls: list[_StatementAt],
    start: Position,
    charsets: dict[str, str],
    captures: Captures,
    *,
    case_sensitive: bool,
    explicit: bool,
) -> tuple[SchemaHistory, dict[Table, Position]]:
    """Return the history in the binlog from `start` on, with the databases' charsets.

    The second value is the tracker's `index_changes`.
    """
    history = SchemaHistory()
    fold_database = folding(case_sensitive)
    altered = {fold_database(ddl.statement.database or "") for ddl in ddls}
    for database, charset in charsets.items():
        if database not in altered:
            history = history.with_charset(start, database, charset)
    tracker = SchemaTracker(
        history,
        captures,
        case_sensitive=case_sensitive,
        explicit_timestamps=explicit,
    )
    for ddl in ddls:
        tracker.follow(ddl.event, ddl.logged, ddl.end)
    history = tracker.history
    for database, charset in charsets.items():
        last = history.charset_change(database)
        history = history.with_charset(start if last is None else last, database, charset)
    return history, tracker.index_changes


def _split(
    tables: list[TableSchema], captures: Captures
) -> tuple[list[TableSchema], list[TableSchema]]:
    captured: list[TableSchema] = []
    others: list[TableSchema] = []
    for schema in tables:
        (captured if captures(schema.database, schema.table) else others).append(schema)
    return captured, others


def _bounded(others: list[TableSchema], near: set[str]) -> list[TableSchema]:
    """Limit the tables to remember; those in databases of captured tables come first."""
    kept, columns = [], 0
    for schema in sorted(others, key=lambda each: each.database not in near):
        columns += len(schema.columns)
        if columns > MAX_UNCAPTURED_COLUMNS:
            break
        kept.append(schema)
    return kept


def history_of_log(log: ScannedLog, start: Position, captures: Captures) -> SchemaHistory:
    """Return the schema history from a log's DDL alone, from `start` to its end."""
    tracker = SchemaTracker(SchemaHistory(), captures, case_sensitive=True, server_default=True)
    advance(log, start, tracker)
    return tracker.history.select(captures)


def advance(log: ScannedLog, start: Position, *trackers: SchemaTracker) -> None:
    """Pass the log's DDL from `start` to its end to trackers.

    TRUNCATE and DML are passed, too: a tracker may check the names in them.
    """
    for found in _statements(log, start, None, _KINDS_THAT_CHANGE_TABLES):
        for tracker in trackers:
            tracker.follow(found.event, found.logged, found.end)


def _statements(
    log: ScannedLog,
    start: Position,
    end: Position | None,
    kinds: Collection[StatementKind] = DDL_KINDS,
) -> Iterator[_StatementAt]:
    """Yield the statements of some kinds that begin in [start, end)."""
    if end is not None and start >= end:
        return
    # The version of the server that wrote a file, not of the current one. In the middle of a file
    # it is unknown.
    versions: dict[str, str] = {}
    for event in statement_events(log, start, end):
        here = log.position(event.file, event.start)
        if end is not None and here >= end:
            return
        if event.type == _QUERY:
            version = versions.get(event.file)
            if version is None:
                version = versions[event.file] = log.server_version(event.file)
            logged = LoggedStatement.read(event.body, version)
            if logged.statement.kind in kinds:
                yield _StatementAt(event, logged, here._replace(pos=event.end))
        elif event.type == _FORMAT_DESCRIPTION:
            versions[event.file] = parse_server_version(event.body)


def _touches(ddl: _StatementAt, captures: Captures, databases: set[str]) -> bool:
    """Whether it may have changed the captured tables' schemas, in `databases`."""
    statement = ddl.statement
    if statement.database is not None:
        return statement.drops_database and fold(statement.database) in map(fold, databases)
    return statement.tables is None or any(captures(*table) for table in statement.tables)
