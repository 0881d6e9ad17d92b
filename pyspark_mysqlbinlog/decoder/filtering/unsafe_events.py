"""Checks that stop the stream at events that would make rows wrong or incomplete.

These are DML and CREATE TABLE … SELECT of a captured table logged as statements, rows whose
transaction has no certain outcome, incidents, and events of unknown types. An event
where none of its type can occur is also an error: the binlog is damaged, or the start position is
not between two transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
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
    "check_ended",
    "check_flagged_truncate",
    "check_in_payload",
    "check_incident",
    "check_known_savepoint",
    "check_no_transaction",
    "check_not_alpha",
    "check_outside",
    "check_payload_begins",
    "check_prepared",
    "check_renamed",
    "check_rolled_back_late",
    "check_statement",
    "check_unknown_event",
    "check_unknown_statement",
    "check_unknown_xid",
    "check_unmapped_rows",
    "check_whole_file",
    "check_whole_payload",
]

Captures = Callable[[str, str], bool]

_VERSION_5_1 = re.compile(r"5\.1\.(\d+)")
_FIRST_WITH_ROWS_V1 = 16


def check_outside(event: Event) -> NoReturn:
    """Raise for an event that occurs only inside a transaction."""
    raise InvalidPositionError(
        f"{type_name(event.type)} comes outside of any transaction: the start position is inside"
        " a transaction; use a position between two transactions"
    )


def check_not_alpha(event: Event, version: str) -> None:
    """Raise for rows that an alpha or beta version of MySQL 5.1 wrote, of type 20 to 22.

    From 5.1.16 on there are the types 23 to 25 (libbinlogevents, enum Log_event_type).
    """
    found = _VERSION_5_1.match(version)
    if found is not None and int(found[1]) < _FIRST_WITH_ROWS_V1:
        raise UnsupportedEventError(
            f"{type_name(event.type)} of MySQL {version}: the alpha and beta versions before 5.1.16"
            " have another format of rows, which is not supported; read files of 5.1.16 or later"
        )


def check_no_transaction(state: TransactionState, event: Event) -> None:
    """Raise for an event that occurs only between two transactions."""
    if state.in_progress:
        raise MalformedEventError(
            f"{type_name(event.type)} comes inside a transaction that has not ended"
        )


def check_whole_file(state: TransactionState, event: Event) -> None:
    """Raise for an event of the file, not of a transaction, inside a transaction."""
    if state.in_progress:
        raise MalformedEventError(
            f"{type_name(event.type)} comes inside a transaction: the file ends before its"
            " transaction does; the server crashed here, or the file is cut short"
        )


def check_payload_begins(state: TransactionState, event: Event) -> None:
    """Raise for a payload whose transaction has begun outside of it."""
    if state.in_group:
        raise MalformedEventError(
            f"TRANSACTION_PAYLOAD begins with {type_name(event.type)} inside a transaction"
        )


def check_in_payload(event: Event, statement: LoggedStatement | None, *, ended: bool) -> None:
    """Raise for an event of a payload that can't be in one, after the filter has followed it.

    Rows before and after DDL would have the same position, and so the same schema. A transaction
    that ends inside would be a boundary without a position.
    """
    if statement is not None:
        raise UnsupportedEventError(
            f"a TRANSACTION_PAYLOAD contains a statement that changes tables:"
            f" {statement.statement.head!r}, expected row changes only"
        )
    if ended and event.checksum is None:
        raise MalformedEventError(
            f"{type_name(event.type)} at offset {event.offset} ends a transaction inside its"
            " TRANSACTION_PAYLOAD"
        )


def check_whole_payload(event: Event) -> NoReturn:
    """Raise for an event after a payload whose transaction did not end in it."""
    raise MalformedEventError(
        f"{type_name(event.type)} follows a TRANSACTION_PAYLOAD, expected the end of its"
        " transaction in the payload"
    )


def check_begin(state: TransactionState, statement: Statement) -> None:
    """Check BEGIN and XA START: MariaDB's GTID replaces BEGIN, but XA START may follow it."""
    if state.in_group and not state.begun_by_gtid:
        raise MalformedEventError(f"{statement.kind.value} comes inside a transaction")


def check_unmapped_rows(event: Event, table_id: int) -> NoReturn:
    raise MalformedEventError(
        f"{type_name(event.type)} has table id {table_id}, expected one of a table map in the same"
        " transaction"
    )


def check_unknown_event(event: Event) -> NoReturn:
    raise UnsupportedEventError(
        f"{type_name(event.type)} is not supported and is not flagged as ignorable; the server is"
        " too new for this version"
    )


def check_incident(event: Event) -> NoReturn:
    incident = Incident.parse(event.body)
    raise UnsupportedEventError(
        f"the server reports an incident ({incident.message or incident.code}): changes may"
        " be missing from the binlog here; compare the tables, then start again with a new"
        " checkpoint after this position"
    )


def check_unknown_statement(logged: LoggedStatement) -> NoReturn:
    raise UnsupportedEventError(
        "a statement of unknown kind may have changed a captured table:"
        f" {logged.statement.head!r}; exclude the tables that it uses, or start again"
        " with a new checkpoint after this position"
    )


def check_statement(
    logged: LoggedStatement,
    captures: Captures,
    check_others: Callable[[LoggedStatement], None] | None = None,
) -> None:
    """Raise for DML or CREATE TABLE … SELECT as a statement, of a captured or an unknown table.

    check_others : called if it names only other tables.
    """
    statement = logged.statement
    tables = statement.tables
    captured = None if tables is None else [name for name in tables if captures(*name)]
    if captured == []:
        if check_others is not None:
            check_others(logged)
        return
    name = ".".join(captured[0]) if captured else None
    what = name or "an unknown table"
    raise StatementFormatError(
        f"a change of {what} was logged as a statement, not as rows: {statement.head!r}; set"
        " binlog_format=ROW globally and in every session, then start again with a new"
        " checkpoint after this position",
        table=name,
    )


def check_flagged_truncate(statement: Statement, captures: Captures) -> None:
    """Raise for a TRUNCATE with the flag of temporary tables, if its table is captured.

    A temporary table may hide the captured one. In a procedure the flag is set from the first
    temporary table on, for all following statements; MariaDB also sets it for DEFAULT
    (CONNECTION_ID()). For temporary tables, a session in row format logs only DROP; in statement
    format it logs all statements.
    """
    for name in statement.tables or ():
        if captures(*name) and not statement.server_made:
            raise UnsupportedEventError(
                f"{statement.head!r} emptied a captured table or a temporary table of its name, and"
                " the binlog does not show which; exclude the table, remove truncate from the"
                " option operations, or compare the table and start again with a new checkpoint"
                " after this position",
                table=".".join(name),
            )


def check_ended(rows_events: int, statement: str) -> None:
    """Raise for captured rows in a transaction that ends with a statement not known to end one."""
    if rows_events:
        raise UnsupportedTransactionError(
            f"a transaction with {rows_events} rows events of captured tables ends in {statement},"
            " and whether they count is not known; exclude the tables, or start again with a new"
            " checkpoint after this position"
        )


def check_known_savepoint(rows_events: int, name: str, savepoints: Collection[str]) -> None:
    """Raise for captured rows unless it is certain to which savepoint they are rolled back.

    Servers compare names without accents: two names of which one is not ASCII may be the same.
    """
    is_certain = name in savepoints and (len(savepoints) == 1 or all(map(str.isascii, savepoints)))
    if rows_events and not is_certain:
        raise UnsupportedTransactionError(
            f"a transaction with {rows_events} rows events of captured tables is rolled back to the"
            f" savepoint {name!r}, and which one of its own that is, is not certain; exclude the"
            " tables, or start again with a new checkpoint after this position"
        )


def check_rolled_back_late(size: int, how: str) -> NoReturn:
    """Raise for a rollback of captured rows that were already delivered."""
    raise UnsupportedTransactionError(
        f"a transaction {how}, and more than {size} bytes of its rows had been read as if they"
        " counted; exclude the tables, or start again with a new checkpoint after this position"
    )


def check_prepared(rows_events: int, xid: str, *, is_xa: bool) -> None:
    """Raise for captured rows whose transaction did not begin as one that is prepared."""
    if rows_events and not is_xa:
        raise MalformedEventError(
            f"XA_PREPARE of {xid} ends a transaction with rows of captured tables that does not"
            " begin with XA START"
        )


def check_renamed(
    statement: Statement, captures: Callable[[str, str], bool], pending_xa: Collection[str]
) -> None:
    """Raise if captured tables get other names while rows of them may be prepared.

    A server locks the tables of prepared transactions; but 5.7.41 does not after a restart
    (measured): then XA COMMIT puts the rows into the table of the new name.
    """
    for old, new in statement.renames:
        if captures(*old) or captures(*new):
            raise UnsupportedTransactionError(
                f"it is renamed to {'.'.join(new)} while XA transactions with captured rows are"
                f" prepared ({', '.join(sorted(pending_xa))}); whether its rows are among them is"
                " not known: commit them before the RENAME, and start again with a new checkpoint"
                " after this position; a mirror needs a reload of the table",
                table=".".join(old),
            )


def check_unknown_xid(xid: str, _event: Event) -> NoReturn:
    raise UnsupportedTransactionError(
        f"XA COMMIT of {xid}, which was prepared before the start of this stream and may"
        " contain rows of captured tables; start again with a new checkpoint before its XA START"
    )
