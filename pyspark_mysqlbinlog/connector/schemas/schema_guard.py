"""The tail's check before a table's rows are delivered: that their columns are known.

At the first table map under each version of a table the columns must be known, and a struct must
contain them. A table that the history does not contain (it was added to `tables` since the
checkpoint was written, or its DDL could not be followed) is then queried, from the boundary before
its transaction on, as for a start in the past: the server's answer counts only if the binlog has no
DDL of the table in between. A table that a statement leaves unknown and that is then snapshotted
again is queried at once, because its snapshot rows may come before any row of the binlog.

So the stream stops before a transaction that it can't handle, and everything before is delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.evolution import Evolution
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schema
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap, parse_table_name
from pyspark_mysqlbinlog.decoder.schemas.metadata_check import check_metadata
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import usable_schema
from pyspark_mysqlbinlog.decoder.schemas.unknown_schema import unknown_schema
from pyspark_mysqlbinlog.errors import SchemaChangedError, UnknownSchemaError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["SchemaGuard", "learned", "unknown_among"]

# Table maps that passed; servers repeat them byte for byte.
_MAX_PASSED_MAPS = 10_000


class SchemaGuard:
    """Checks the table maps of captured tables.

    Parameters
    ----------
    settings : of the server; None for files, whose DDL is all that is known.
    evolution : for payload=struct.
    positional : read rows of tables with unknown columns without names.
    snapshots : the stream delivers the existing rows of each table, which metadata in the binlog
        (binlog_row_metadata=FULL) cannot replace: the server must show every table.
    """

    def __init__(
        self,
        settings: ServerSettings | None,
        *,
        case_sensitive: bool,
        evolution: Evolution | None = None,
        positional: bool = False,
        snapshots: bool = False,
    ) -> None:
        self._settings = settings
        self._case_sensitive = case_sensitive
        self._evolution = evolution
        self._positional = positional
        self._snapshots = snapshots
        # Valid for this history object and this file only: a start of the server, which begins a
        # file, begins its table ids again.
        self._history: SchemaHistory | None = None
        self._file = ""
        self._passed: set[bytes] = set()
        # Why tables are unknown that the server was queried for without success.
        self._unanswered: dict[Table, UnknownSchema] = {}
        # Those of these tables that the server shows, with the schema after a later DDL.
        self._shown: set[Table] = set()

    def check_table_map(
        self, history: SchemaHistory, event: Event, since: Position, *, is_mariadb: bool
    ) -> SchemaHistory:
        """Return the history, including the columns of the table map's table.

        Parameters
        ----------
        event : a table map of a captured table.
        since : the boundary before its transaction.

        Raises
        ------
        SchemaChangedError : the query's struct does not contain its columns.
        SchemaMismatchError : its metadata contradicts them.
        UnknownSchemaError : they are not known.
        """
        if event.file != self._file:
            self._passed.clear()
            self._file = event.file
        if history is self._history and event.body in self._passed:
            return history
        _, database, table = parse_table_name(event.body)
        here = Position.of(event.file, event.start)
        schema = history.at(here, database, table)
        table_map = TableMap.parse(event.body)
        if schema is not None:
            check_metadata(table_map, schema, is_mariadb=is_mariadb)
        described = usable_schema(table_map, schema, is_mariadb=is_mariadb)
        if schema is None and (described is None or self._snapshots):
            state = history.state(here, database, table)
            if state is None or state is not self._unanswered.get((database, table)):
                history = self._learn(history, (database, table), since, here)
            schema = history.at(here, database, table)
            is_shown = schema is not None or (database, table) in self._shown
            if described is not None and not is_shown:
                raise UnknownSchemaError(
                    "the server does not show this table to the account, and its existing rows"
                    " must be snapshotted: expected SELECT on it, found only metadata in the"
                    " binlog; GRANT SELECT on it, or exclude it (excludeTables), and start again"
                    " with the same checkpoint",
                    table=table_map.full_name,
                )
            if schema is None and described is None and not self._positional:
                reason = history.unknown_reason(here, database, table)
                raise unknown_schema(table_map, reason, is_shown=is_shown)
        schema = described or schema
        if schema is not None and self._evolution is not None:
            self._evolution.check(schema)
        if history is not self._history or len(self._passed) >= _MAX_PASSED_MAPS:
            self._passed.clear()
            self._history = history
        self._passed.add(event.body)
        return history

    def _learn(
        self, history: SchemaHistory, table: Table, since: Position, here: Position
    ) -> SchemaHistory:
        """Query the server, whose answer is valid from the table's last DDL after `since` on."""
        reason = history.unknown_reason(here, *table)
        found = self._query_schemas(history, [table], since, all_sequences=True)
        history = found.until(END_OF_SEQUENCE)
        if history.at(here, *table) is None:
            if found.is_known_later(here, *table):
                self._shown.add(table)
            # The server is not queried again at each row of the table, even after DDL of other
            # tables.
            history = history.without(since, *table, reason)
            state = history.state(here, *table)
            assert isinstance(state, UnknownSchema)
            self._unanswered[table] = state
        return history

    def learn(
        self, history: SchemaHistory, tables: Collection[Table], since: Position
    ) -> SchemaHistory:
        """Return the history, including the columns that these tables have from a boundary on.

        They stay unknown if the server does not show them, or the binlog has further DDL of them.
        """
        try:
            return self._query_schemas(history, tables, since)
        except SchemaChangedError:
            return history  # retried at the next statement that alters them

    def learn_keys(
        self, history: SchemaHistory, tables: Collection[Table], since: Position
    ) -> SchemaHistory:
        """Return the history, including unique keys of tables without a known key.

        Not all keys are followed (see `TableSchema.unique_keys`), and a snapshot may read by any.
        The log, which shows whether they are valid there, is read only if the server has any now.
        """
        shown_now = [name for name in tables if self._has_unique_keys(name)]
        if not shown_now:
            return history
        found = self.learn(SchemaHistory(), shown_now, since)
        for name in shown_now:
            known, shown = history.at(since, *name), found.at(since, *name)
            if known is not None and shown is not None and known.columns == shown.columns:
                history = history.with_table(since, replace(known, unique_keys=shown.unique_keys))
        return history

    def _has_unique_keys(self, table: Table) -> bool:
        assert self._settings is not None
        with ReplicaClient.connect(self._settings) as client:
            schema = read_table_schema(client, table, case_sensitive=self._case_sensitive)
        return schema is not None and bool(schema.unique_keys)

    def _query_schemas(
        self,
        history: SchemaHistory,
        tables: Collection[Table],
        since: Position,
        *,
        all_sequences: bool = False,
    ) -> SchemaHistory:
        if self._settings is None:
            return history
        with ReplicaClient.connect(self._settings) as client:
            return learned(
                client,
                self._settings,
                history,
                tables,
                since,
                case_sensitive=self._case_sensitive,
                all_sequences=all_sequences,
            )


def learned(
    client: ReplicaClient,
    settings: ServerSettings,
    history: SchemaHistory,
    tables: Collection[Table],
    since: Position,
    *,
    case_sensitive: bool,
    all_sequences: bool = False,
) -> SchemaHistory:
    """Return the history, including what the server and its log have of some tables.

    client : for queries; `settings` are of the same server.
    """
    captures = _only(tables, case_sensitive=case_sensitive)
    found, _ = history_of_server(
        client,
        ServerLog.seen_from(settings, since),
        since,
        captures,
        case_sensitive=case_sensitive,
        all_sequences=all_sequences,
    )
    return history.merged(found)


def unknown_among(
    history: SchemaHistory, tables: Collection[Table], position: Position
) -> list[Table]:
    """Return the tables that exist at a position with columns unknown there and later.

    For a table that becomes known later, the server has already returned everything it can.
    """
    return [
        table
        for table in tables
        if isinstance(state := history.state(position, *table), UnknownSchema)
        and not state.is_dropped
        and not history.is_known_later(position, *table)
    ]


def _only(tables: Collection[Table], *, case_sensitive: bool) -> Callable[[str, str], bool]:
    """Captures these tables."""
    folded = table_folding(case_sensitive)
    wanted = set(map(folded, tables))
    return lambda database, name: folded((database, name)) in wanted
