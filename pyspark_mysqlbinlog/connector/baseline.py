"""What the wanted tables looked like at a start: from the server, bound to an interval of the log.

information_schema tells how tables look now, but not at which position that is. So: a position P1,
information_schema, a position P2. The answer holds at P2 if the log shows no DDL of a wanted table
in (P1, P2]; otherwise the same again. For a start in the past the log is read from there: a table
without DDL in between looked then as it does now, one that was created in between is known from
there, and one that was changed otherwise is known from its last change on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import sleep

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.log import Log
from pyspark_mysqlbinlog.connector.schema_tracker import SchemaTracker, last_change
from pyspark_mysqlbinlog.connector.server import current_position, database_charsets
from pyspark_mysqlbinlog.decoder.event_filter import DDL_KINDS
from pyspark_mysqlbinlog.decoder.sql_tokens import SqlContext
from pyspark_mysqlbinlog.decoder.statements import Statement, classify
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query, parse_server_version
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["history_of_log", "history_of_server"]

Wants = Callable[[str, str], bool]

_QUERY = int(EventType.QUERY_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_TRIES = 30


@dataclass(frozen=True, slots=True)
class _Ddl:
    event: Event
    statement: Statement
    context: SqlContext
    end: Position


def history_of_server(
    client: ReplicaClient,
    log: Log,
    start: Position | None,
    wants: Wants,
    *,
    case_sensitive: bool,
) -> tuple[SchemaHistory, Position]:
    """The schema history from `start` on, and the position P2 up to which the log was read.

    Parameters
    ----------
    client : for queries.
    log : the same server's.
    start : a boundary; None is P1, the end of the log.

    Raises
    ------
    SchemaChangedError : the tables were altered all the time.
    """
    for attempt in range(_TRIES):
        before = current_position(client)
        tables = read_table_schemas(client.connection, wants)
        charsets = database_charsets(client)
        after = current_position(client)
        version = client.server_version
        late = [ddl for ddl in _ddl(log, before, after, version) if _touches(ddl, wants)]
        if not late:
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
    history = SchemaHistory()
    if start < before:
        tracker = SchemaTracker(
            history, wants, charsets, case_sensitive=case_sensitive, strict=False
        )
        for ddl in _ddl(log, start, before, version):
            tracker.follow(ddl.event, ddl.statement, ddl.context, ddl.end)
        history = tracker.history
    return _with_baseline(history, start, tables), max(start, after)


def _with_baseline(
    history: SchemaHistory, start: Position, tables: list[TableSchema]
) -> SchemaHistory:
    """A table that is there now looks as it does since its last DDL, or all the time."""
    for schema in tables:
        last = last_change(history, (schema.database, schema.table))
        history = history.with_table(start if last is None else last, schema)
    return history


def history_of_log(log: Log, start: Position, wants: Wants) -> SchemaHistory:
    """The schema history that a log tells by itself, from `start` to its end."""
    tracker = SchemaTracker(SchemaHistory(), wants, {}, case_sensitive=True, strict=False)
    for ddl in _ddl(log, start, None):
        tracker.follow(ddl.event, ddl.statement, ddl.context, ddl.end)
    return tracker.history


def _ddl(log: Log, start: Position, end: Position | None, version: str = "") -> Iterator[_Ddl]:
    """The DDL statements that begin in [start, end).

    version : of the server, until a file of the log tells its own.
    """
    if end is not None and start >= end:
        return
    for event in log.events(start):
        here = log.position(event.file, event.start)
        if end is not None and here >= end:
            return
        if event.type == _QUERY:
            query = Query.parse(event.body)
            context = SqlContext.of(query.sql_mode, version)
            statement = classify(query.sql, query.database, context)
            if statement.kind in DDL_KINDS:
                yield _Ddl(event, statement, context, here._replace(pos=event.end))
        elif event.type == _FORMAT_DESCRIPTION:
            version = parse_server_version(event.body)


def _touches(ddl: _Ddl, wants: Wants) -> bool:
    tables = ddl.statement.tables
    if ddl.statement.database is not None:
        return True  # its default charset, or all of its tables
    return tables is None or any(wants(*table) for table in tables)
