"""The schema history that a query begins with, and checks of what the options name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.retry import call_with_retry
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter, TableFilter
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.inherited_charsets import history_without_server
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.schemas.pattern_check import check_patterns, hidden_tables
from pyspark_mysqlbinlog.connector.schemas.schema_ddl import seeded
from pyspark_mysqlbinlog.connector.schemas.transform_check import check_transforms
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.errors import OptionError, UnknownTableError
from pyspark_mysqlbinlog.names import Table, fold, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "check_columns",
    "check_columns_of_options",
    "check_named_tables",
    "history_for_other_tables",
    "history_of_files",
]


def history_of_files(
    log: FileLog, options: Options, *, for_stream: bool = False, has_checkpoint: bool = False
) -> SchemaHistory:
    """Return the history of the captured tables from the files' beginning on.

    for_stream : see `history_without_server`.
    has_checkpoint : `schemaDdl` is ignored, because the files at whose beginning it was valid may
        have been deleted.
    """
    begin = log.begins()[0]
    case_sensitive = options.files_are_case_sensitive
    captures = options.table_filter(case_sensitive).captures
    seed = seeded(log, begin, None if has_checkpoint else options.schema_ddl)
    return history_without_server(
        seed,
        log,
        begin,
        captures,
        case_sensitive=case_sensitive,
        letter_case=LetterCaseCheck.of(options),
        for_stream=for_stream,
    )


def history_for_other_tables(
    options: Options,
    history: SchemaHistory,
    position: Position,
    fingerprint: PositionFingerprint | None = None,
) -> SchemaHistory:
    """Return a checkpoint's history for a query that captures other tables than its writer.

    position, fingerprint : where the query resumes.

    Newly captured tables that the history does not contain are looked up as for a start in the
    past. If the binlog does not contain them, they stay unknown.
    """
    settings = options.server_settings()
    log = ServerLog.seen_from(settings, position, fingerprint)
    with call_with_retry(options.retry_timeout, ReplicaClient.connect, settings) as client:
        case_sensitive = ServerFacts.ask(client).case_sensitive
        tables = options.table_filter(case_sensitive)
        found, _ = history_of_server(
            client,
            log,
            position,
            lambda *name: tables.captures(*name) and history.state(position, *name) is None,
            case_sensitive=case_sensitive,
        )
        check_patterns(
            client,
            tables,
            history.merged(found),
            named_anyhow=options.on_unknown_schema == "positional",
        )
        found = found.select(tables.captures)
        for name in found.tables():
            if found.state(position, *name) is None:
                reason = "it was not captured when the query began"
                history = history.without(position, *name, reason)
        history = history.merged(found)
        hidden = partial(hidden_tables, client, tables)
        check_named_tables(tables, history, case_sensitive, hidden)
    check_columns_of_options(options, history, case_sensitive)
    return history


def check_named_tables(
    tables: TableFilter,
    history: SchemaHistory,
    case_sensitive: bool,
    described: Callable[[Collection[Table]], Collection[Table]] = lambda _: (),
) -> None:
    """Check that literally named tables exist, now or in the binlog to read.

    described : returns which of some tables the metadata in table maps describes, or may describe.
    """
    folded = table_folding(case_sensitive)
    known = set(map(folded, history.tables()))
    missing = [name for name in tables.literals if folded(name) not in known]
    found = described(missing) if missing else ()
    for database, table in missing:
        if (database, table) not in found:
            raise UnknownTableError(
                "option tables: neither the server nor the binlog has this table; check"
                " the spelling and the account's SELECT grant, or use a glob for a table that is"
                " created later",
                table=f"{database}.{table}",
            )


def check_columns_of_options(
    options: Options, history: SchemaHistory, case_sensitive: bool
) -> None:
    """Check the columns that `excludeColumns`, masks and row filters name.

    Raises OptionError, as `check_columns` and `check_transforms` do.
    """
    check_columns(options.column_filter(case_sensitive), history, case_sensitive)
    check_transforms(options, history, case_sensitive)


def check_columns(columns: ColumnFilter, history: SchemaHistory, case_sensitive: bool) -> None:
    """Check that a literally named column exists in its table, now or in the binlog.

    A misspelt one would be delivered, although the option is to keep it out of the sink.
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
