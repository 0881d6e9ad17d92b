"""What the tables looked like at a start: from the server, bound to an interval of the log.

information_schema tells how tables look now, but not at which position that is. So: a position P1,
information_schema, a position P2. The answer holds at P2 if the log shows no DDL of a wanted table
in (P1, P2]; otherwise the same again. For a start in the past the log is read from there: a table
without DDL in between looked then as it does now, one that was created in between is known from
there, and one that was changed otherwise is known from its last change on.

Unwanted tables come along, up to a bound: one may be renamed to a wanted name. Those with DDL in
(P1, P2] are left out; so are the default charsets of databases with DDL there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import sleep

from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.logs import ScannedLog, statement_events
from pyspark_mysqlbinlog.connector.schemas.tracker import (
    MOST_UNWANTED_COLUMNS,
    SchemaTracker,
    last_change,
)
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
from pyspark_mysqlbinlog.names import fold, folding, table_folding
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import parse_server_version
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["advance", "history_of_log", "history_of_server"]

Captures = Callable[[str, str], bool]

_QUERY = int(EventType.QUERY_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_TRIES = 30


@dataclass(frozen=True, slots=True)
class _Ddl:
    event: Event
    logged: LoggedStatement
    end: Position

    @property
    def statement(self) -> Statement:
        """What it does."""
        return self.logged.statement


def history_of_server(
    client: ReplicaClient,
    log: ScannedLog,
    start: Position | None,
    wants: Captures,
    *,
    case_sensitive: bool,
    unwanted: bool = False,
    all_sequences: bool = False,
) -> tuple[SchemaHistory, Position]:
    """The schema history from `start` on, and the position P2 up to which the log was read.

    Parameters
    ----------
    client : for queries.
    log : the same server's, with its places ordered as `start` sees them.
    start : a boundary; None is P1, the end of the log.
    unwanted : with unwanted tables, and the databases' charsets.
    all_sequences : with the versions that begin in later sequences of files, too.

    Raises
    ------
    SchemaChangedError : the tables were altered all the time.
    """
    for attempt in range(_TRIES):
        before = _end_of(log, client)
        tables = read_table_schemas(client, wants, others=unwanted)
        charsets = database_charsets(client)
        after = _end_of(log, client)
        late = list(_ddl(log, before, after))
        there = {schema.database for schema in tables if wants(schema.database, schema.table)}
        if not any(_touches(ddl, wants, there) for ddl in late):
            break
        sleep(0.02 * attempt)
    else:
        raise SchemaChangedError(
            f"no moment in {_TRIES} looks at information_schema was without DDL of a wanted table;"
            " start when the tables are not being altered",
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
        if wants(schema.database, schema.table)
        or (
            schema.database not in altered
            and folded((schema.database, schema.table)) not in named_anyhow
        )
    ]
    history = _since(
        list(_ddl(log, start, before)),
        start,
        charsets,
        wants,
        case_sensitive=case_sensitive,
        explicit=explicit_timestamps(client),
    )
    wanted, others = _split(tables, wants)
    for schema in wanted + _bounded(others, {each.database for each in wanted}):
        # It looks so since its last DDL, or all the time.
        name = schema.database, schema.table
        last = last_change(history, name)
        told = history.versions(*name)[-1][1] if last is not None else None
        looks = with_letters(schema, told) if isinstance(told, TableSchema) else schema
        history = history.with_table(start if last is None else last, looks)
    if not unwanted:
        history = SchemaHistory(
            {name: history.versions(*name) for name in history.tables() if wants(*name)}
        )
    return history if all_sequences else history.until(END_OF_SEQUENCE), max(start, after)


def _end_of(log: ScannedLog, client: ReplicaClient) -> Position:
    """Where a server's log ends now, in its order."""
    end = current_position(client)
    return log.position(end.file, end.pos)


def _since(
    ddls: list[_Ddl],
    start: Position,
    charsets: dict[str, str],
    wants: Captures,
    *,
    case_sensitive: bool,
    explicit: bool,
) -> SchemaHistory:
    """What the log tells from `start` on, and the databases' charsets."""
    history = SchemaHistory()
    fold_database = folding(case_sensitive)
    altered = {fold_database(ddl.statement.database or "") for ddl in ddls}
    for database, charset in charsets.items():
        if database not in altered:
            history = history.with_charset(start, database, charset)
    tracker = SchemaTracker(
        history,
        wants,
        case_sensitive=case_sensitive,
        explicit_timestamps=explicit,
    )
    for ddl in ddls:
        tracker.follow(ddl.event, ddl.logged, ddl.end)
    history = tracker.history
    for database, charset in charsets.items():
        last = history.charset_change(database)
        history = history.with_charset(start if last is None else last, database, charset)
    return history


def _split(
    tables: list[TableSchema], wants: Captures
) -> tuple[list[TableSchema], list[TableSchema]]:
    wanted: list[TableSchema] = []
    others: list[TableSchema] = []
    for schema in tables:
        (wanted if wants(schema.database, schema.table) else others).append(schema)
    return wanted, others


def _bounded(others: list[TableSchema], near: set[str]) -> list[TableSchema]:
    """As many as are cheap to remember; those beside wanted tables first."""
    kept, columns = [], 0
    for schema in sorted(others, key=lambda each: each.database not in near):
        columns += len(schema.columns)
        if columns > MOST_UNWANTED_COLUMNS:
            break
        kept.append(schema)
    return kept


def history_of_log(log: ScannedLog, start: Position, wants: Captures) -> SchemaHistory:
    """The schema history that a log tells by itself, from `start` to its end."""
    tracker = SchemaTracker(SchemaHistory(), wants, case_sensitive=True, server_default=True)
    advance(log, start, tracker)
    return tracker.history.select(wants)


def advance(log: ScannedLog, start: Position, *trackers: SchemaTracker) -> None:
    """Have trackers follow the log's DDL from `start` to its end."""
    for ddl in _ddl(log, start, None):
        for tracker in trackers:
            tracker.follow(ddl.event, ddl.logged, ddl.end)


def _ddl(log: ScannedLog, start: Position, end: Position | None) -> Iterator[_Ddl]:
    """The DDL statements that begin in [start, end)."""
    if end is not None and start >= end:
        return
    # Of the server that wrote a file, not of the one that has it now. From its middle on it does
    # not tell.
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
            if logged.statement.kind in DDL_KINDS:
                yield _Ddl(event, logged, here._replace(pos=event.end))
        elif event.type == _FORMAT_DESCRIPTION:
            versions[event.file] = parse_server_version(event.body)


def _touches(ddl: _Ddl, wants: Captures, databases: set[str]) -> bool:
    """Whether it may have changed what was read of wanted tables, which lie in `databases`."""
    statement = ddl.statement
    if statement.database is not None:
        dropped = statement.kind is StatementKind.DROP_DATABASE or statement.or_replace
        return dropped and fold(statement.database) in map(fold, databases)
    return statement.tables is None or any(wants(*table) for table in statement.tables)
