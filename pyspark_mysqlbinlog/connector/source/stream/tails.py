"""Tails for the options of a stream: of a server, or of files."""

from __future__ import annotations

from collections.abc import Callable

from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.server.binlog_filters import check_log_contents
from pyspark_mysqlbinlog.connector.server.unlogged_changes import warn_of_unlogged_changes
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.file_tail import FileTail
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog
from pyspark_mysqlbinlog.connector.tail.retention import RetentionWatch
from pyspark_mysqlbinlog.connector.tail.tail import CheckSuccessor, OnStatement, Tail
from pyspark_mysqlbinlog.errors import LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["file_tail", "server_tail"]

_MAX_SPAN_BYTES = 65_536


def file_tail(
    options: Options, start: BoundaryState, watch: SchemaGuard, *, end: EndOfLog | None
) -> FileTail:
    """Return the tail of the files at `path`, from a boundary on.

    end : the end of the binlog, if it is known.
    """
    case_sensitive = options.files_are_case_sensitive
    return FileTail(
        str(options.path),
        start=start,
        captures=options.table_filter(case_sensitive).captures,
        case_sensitive=case_sensitive,
        letter_case=LetterCaseCheck.of(options),
        buffer=_buffer(options, start),
        patience=options.retry_timeout,
        watch=watch,
        operations=options.operations,
        count_rows=options.max_rows_per_trigger is not None,
        end=end,
    )


def server_tail(
    options: Options,
    start: BoundaryState,
    watch: SchemaGuard,
    *,
    end: EndOfLog | None,
    server_uuid: str,
    case_sensitive: bool,
    retention: RetentionWatch,
    with_cascades: bool,
    check_successor: CheckSuccessor | None,
    on_statement: OnStatement | None,
) -> Tail:
    """Return the tail of a server, from a boundary on.

    Parameters
    ----------
    end : the end of the binlog, if it is known.
    retention : queries the server at each connection.
    with_cascades : warn of captured tables that foreign keys change.
    check_successor, on_statement : see `Tail`.
    """
    tables = options.table_filter(case_sensitive)
    return Tail(
        options.server_settings(),
        server_uuid=server_uuid,
        start=start,
        captures=tables.captures,
        buffer=_buffer(options, start),
        retry_timeout=options.retry_timeout,
        watch=watch,
        operations=options.operations,
        count_rows=options.max_rows_per_trigger is not None,
        check=_check_of_server(tables, start.history, retention, with_cascades=with_cascades),
        end=end,
        check_successor=check_successor,
        on_statement=on_statement,
    )


def _buffer(options: Options, start: BoundaryState) -> LogBuffer:
    limit = 0 if options.max_rows_per_trigger is not None else options.max_bytes_per_trigger
    return LogBuffer(
        start, capacity=options.buffer_bytes, granularity=min(_MAX_SPAN_BYTES, limit // 8)
    )


def _check_of_server(
    tables: TableFilter, history: SchemaHistory, retention: RetentionWatch, *, with_cascades: bool
) -> Callable[[ReplicaClient], None]:
    """Return the check of each connection; the first one also warns."""
    captured = [table for table in history.tables() if tables.captures(*table)]
    warned: list[bool] = []

    def check(client: ReplicaClient) -> None:
        check_log_contents(client, tables)
        if not warned:
            warn_of_unlogged_changes(client, captured, with_cascades=with_cascades)
            warned.append(True)
        try:
            retention.ask(client)
        except LostConnectionError:
            raise
        except MySQLBinlogError:
            # It only warns: the tail itself reports what concerns it.
            pass

    return check
