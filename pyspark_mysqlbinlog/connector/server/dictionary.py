"""Waits until information_schema shows the DDL that is in the binlog.

On MySQL 8.0 and later DDL is atomic: it is written to the binlog and then committed in InnoDB,
which has the dictionary. In between, for microseconds or, with semi-synchronous replication, for
seconds, the binlog's end includes the statement, and information_schema shows the old definition,
without waiting (measured on 9.7.4).

5.7 and MariaDB have no such window: information_schema opens each table it describes, which waits
for the metadata lock of the DDL. Measured on MariaDB 10.11 and 11.8, where a semi-synchronous
commit with AFTER_SYNC waits for 2 s: the answer comes after the end of an ALTER, RENAME or CREATE …
SELECT, and a DROP is visible at once. binlog_commit_wait_usec does not delay DDL there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from pyspark_mysqlbinlog.connector.server.pending_transactions import PendingTransactions
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, ServerError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import LOCK_WAIT_TIMEOUT_CODE
from pyspark_mysqlbinlog.protocol.server.session_settings import LONGEST_TIMEOUT, UNCACHED_SELECT

__all__ = [
    "has_atomic_ddl",
    "is_missing_table_error",
    "pin_definition",
    "wait_until_ddl_is_visible",
]

_LOG = logging.getLogger("pyspark_mysqlbinlog")

_UNKNOWN_DATABASE, _NO_SUCH_TABLE = 1049, 1146
_MIN_MAJOR_VERSION_WITH_ATOMIC_DDL = 8
MAX_DDL_WAIT_SECONDS = 600.0
_LOG_INTERVAL_SECONDS = 10.0

# DDL ends the transaction of its session, so a statement of rows has none, nor has an event with
# rows that a replica applies. An ALTER in one of these states is not in the binlog yet; it may stay
# in them for hours.
_MAY_COMMIT_DDL = (
    "COMMAND <> 'Sleep' AND COALESCE(STATE, '') NOT IN ('altering table', 'copy to tmp table')"
    " AND COALESCE(STATE, '') NOT LIKE 'Waiting for % metadata lock'"
    " AND COALESCE(STATE, '') NOT LIKE 'Applying batch of row changes%' AND COALESCE(INFO, '') NOT"
    " REGEXP '^([[:space:]]|/[*][^!M]([^*]|[*]+[^*/])*[*]+/)*"
    "(INSERT|UPDATE|DELETE|REPLACE|LOAD|SELECT|WITH|COMMIT)([[:space:](/]|$)'"
)


def wait_until_ddl_is_visible(
    client: ReplicaClient,
    captures: Callable[[str, str], bool],
    *,
    others: bool = False,
    timeout_seconds: float = MAX_DDL_WAIT_SECONDS,
) -> None:
    """Wait until information_schema shows the DDL that is in the binlog now.

    With PROCESS this reads the list of transactions. Without it, one SELECT for each table waits
    for the table's metadata lock. Metadata locks do not show ALTER DATABASE, CREATE TABLE …
    SELECT, and the RENAME of a table that is not captured or that the account cannot see.

    Parameters
    ----------
    client : without an open transaction.
    captures : of (database, table).
    others : without PROCESS, wait also for tables that are not captured; a timeout there is no
        error.
    timeout_seconds : how long to wait; without PROCESS, for each table.

    Raises
    ------
    ServerError : the DDL has not ended by then; or what `ReplicaClient.query` raises.
    """
    if not has_atomic_ddl(client):
        return
    try:
        _wait_for_transactions(client, timeout_seconds)
    except AccessDeniedError:
        _wait_for_locks(client, captures, others, timeout_seconds)


def has_atomic_ddl(client: ReplicaClient) -> bool:
    """Whether the server has a dictionary in InnoDB, in which DDL is committed like rows."""
    return not client.is_mariadb and client.major_version >= _MIN_MAJOR_VERSION_WITH_ATOMIC_DDL


def _wait_for_transactions(client: ReplicaClient, timeout_seconds: float) -> None:
    deadline = monotonic() + timeout_seconds
    try:
        pending = PendingTransactions(client, _MAY_COMMIT_DDL)
        while not pending.wait_until_ended(
            min(_LOG_INTERVAL_SECONDS, max(deadline - monotonic(), 0.0))
        ):
            if monotonic() >= deadline:
                raise _not_ended(timeout_seconds, pending.waits_for)
            _LOG.warning("information_schema: waiting for %s", pending.waits_for)
    finally:
        client.query("COMMIT")


def _wait_for_locks(
    client: ReplicaClient,
    captures: Callable[[str, str], bool],
    others: bool,
    timeout_seconds: float,
) -> None:
    client.query(f"SET SESSION lock_wait_timeout = {int(timeout_seconds)}")
    visible: set[Table] = set()
    # A RENAME that was waited for may show a new name, and that table's own DDL.
    while listed := _tables(client) - visible:
        for table in sorted(listed):
            is_captured = captures(*table)
            if (is_captured or others) and not _wait_for_lock(client, table) and is_captured:
                raise _not_ended(timeout_seconds, f"the metadata lock of {quoted(*table)}")
        visible |= listed
    client.query(f"SET SESSION lock_wait_timeout = {LONGEST_TIMEOUT}")


def _wait_for_lock(client: ReplicaClient, table: Table) -> bool:
    """Wait for a table's metadata lock; return False on a timeout."""
    try:
        pin_definition(client, table)
    except AccessDeniedError:
        pass  # it may see the table, and not its rows
    except LostConnectionError:
        raise
    except ServerError as error:
        # After another error the lock had been obtained: the server could not open the table.
        return error.code != LOCK_WAIT_TIMEOUT_CODE
    return True


def _tables(client: ReplicaClient) -> set[Table]:
    rows = client.query(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE ="
        " 'BASE TABLE' AND BINARY TABLE_SCHEMA NOT IN %s",
        (tuple(sorted(SYSTEM_DATABASES)),),
    )
    return {(database, table) for database, table in rows}


def _not_ended(timeout_seconds: float, waits_for: str) -> ServerError:
    return ServerError(
        "information_schema may not show DDL that is in the binlog: waited"
        f" {timeout_seconds:g} s for {waits_for}; end these statements, and start again with the"
        " same checkpoint"
    )


def pin_definition(client: ReplicaClient, table: Table) -> None:
    """Wait for DDL of the table, and prevent ALTERs of it until the current transaction ends.

    Raises
    ------
    ServerError : what `ReplicaClient.query` raises; see `is_missing_table_error`.
    """
    name = quoted(*table)
    client.query(f"{UNCACHED_SELECT} 1 FROM {name} LIMIT 0")


def is_missing_table_error(error: ServerError) -> bool:
    """Whether the error reports that there is no such table, or no such database."""
    return error.code in (_NO_SUCH_TABLE, _UNKNOWN_DATABASE)
