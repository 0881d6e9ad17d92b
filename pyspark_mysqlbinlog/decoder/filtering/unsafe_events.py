"""What a log may not hold: whatever would make rows wrong or incomplete stops the reading here.

DML and CREATE TABLE … SELECT of a wanted table that were logged as statements, rows whose
transaction was rolled back in part, two-phase XA, incidents, events that nobody knows; and events
that come where none of their kind can stand, for then the log is damaged, or the start was not
between two transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from pyspark_mysqlbinlog.decoder.events.statements import Statement
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    StatementFormatError,
    UnsupportedEventError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.events import Event, type_name
from pyspark_mysqlbinlog.protocol.messages import Incident

__all__ = [
    "check_begin",
    "check_flagged_truncate",
    "check_incident",
    "check_no_transaction",
    "check_outside",
    "check_prepared",
    "check_rolled_back",
    "check_statement",
    "check_unknown_event",
    "check_unknown_statement",
    "check_unknown_xid",
    "check_unmapped_rows",
    "check_whole_file",
]

Captures = Callable[[str, str], bool]


def check_outside(event: Event) -> NoReturn:
    """An event that stands behind BEGIN only."""
    raise InvalidPositionError(
        f"{type_name(event.type)} comes outside of any transaction: the position to start"
        " from lies inside one; give a position between two transactions"
    )


def check_no_transaction(state: TransactionState, event: Event) -> None:
    """An event that stands between two transactions only."""
    if state.in_progress:
        raise MalformedEventError(
            f"{type_name(event.type)} comes inside a transaction that has not ended"
        )


def check_whole_file(state: TransactionState, event: Event) -> None:
    """The same of an event that is part of a file, not of a transaction."""
    if state.in_progress:
        raise MalformedEventError(
            f"{type_name(event.type)} comes inside a transaction: the file ends before its"
            " transaction does; the server crashed here, or the file is cut short"
        )


def check_begin(state: TransactionState, statement: Statement) -> None:
    """BEGIN and XA START; MariaDB's GTID stands for BEGIN, but XA START may still follow it."""
    if state.in_group and not state.begun_by_gtid:
        raise MalformedEventError(f"{statement.kind.value} comes inside a transaction")


def check_unmapped_rows(event: Event, table_id: int) -> NoReturn:
    raise MalformedEventError(
        f"{type_name(event.type)} for table id {table_id}, which no table map in this"
        " transaction announced"
    )


def check_unknown_event(event: Event) -> NoReturn:
    raise UnsupportedEventError(
        f"{type_name(event.type)} is not known here and is not flagged as ignorable; the server"
        " writes events that this version does not read"
    )


def check_incident(event: Event) -> NoReturn:
    incident = Incident.parse(event.body)
    raise UnsupportedEventError(
        f"the server reports an incident ({incident.message or incident.code}): changes may"
        " be missing from its log here; compare the tables, then start again with a new"
        " checkpoint behind this position"
    )


def check_unknown_statement(logged: LoggedStatement) -> NoReturn:
    raise UnsupportedEventError(
        "a statement of unknown kind may have changed a wanted table:"
        f" {logged.query.sql[:80]!r}; exclude the tables that it touches, or start again"
        " with a new checkpoint behind this position"
    )


def check_statement(statement: Statement, wants: Captures) -> None:
    """DML, or CREATE TABLE … SELECT, as a statement: of a wanted table, or of who knows which."""
    tables = statement.tables
    wanted = None if tables is None else [name for name in tables if wants(*name)]
    if wanted == []:
        return
    name = ".".join(wanted[0]) if wanted else None
    what = name or "a table that its text does not tell"
    raise StatementFormatError(
        f"a change of {what} was logged as a statement, not as rows: {statement.head!r}; set"
        " binlog_format=ROW globally and in every session, then start again with a new"
        " checkpoint behind this position",
        table=name,
    )


def check_flagged_truncate(statement: Statement, wants: Captures) -> None:
    """One with the flag of temporary tables: of a wanted table, or of one that hides it.

    In a procedure the flag is set from the first temporary table on, whatever comes next;
    MariaDB sets it for DEFAULT (CONNECTION_ID()) as well. In row format a session logs nothing
    of its temporary tables but DROP, in statement format it does.
    """
    for name in statement.tables or ():
        if wants(*name) and not statement.server_made:
            raise UnsupportedEventError(
                f"{statement.head!r} emptied a wanted table or a temporary one of its name, and"
                " the log does not tell which; exclude the table, leave truncate out of the"
                " option operations, or compare it and start again with a new checkpoint behind"
                " this position",
                table=".".join(name),
            )


def check_rolled_back(rows_events: int, how: str) -> None:
    if rows_events:
        raise UnsupportedTransactionError(
            f"a transaction with {rows_events} rows events of wanted tables {how}, and the log"
            " does not tell which of its tables are transactional; exclude them, or start again"
            " with a new checkpoint behind this position"
        )


def check_prepared(rows_events: int, xid: str) -> None:
    """A transaction that XA PREPARE ends, whose outcome comes later."""
    if rows_events:
        raise UnsupportedTransactionError(
            f"XA PREPARE of {xid} with rows of wanted tables: two-phase XA is not"
            " followed yet; exclude the tables, or start again with a new checkpoint behind the"
            " XA COMMIT"
        )


def check_unknown_xid(xid: str) -> NoReturn:
    raise UnsupportedTransactionError(
        f"XA COMMIT of {xid}, which was prepared before the start of this stream and may"
        " hold rows of wanted tables; start again with a new checkpoint before its XA START"
    )
