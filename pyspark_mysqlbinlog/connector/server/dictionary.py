"""When information_schema shows the DDL that the binlog has.

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
_LOG_SECONDS = 10.0

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
    patience: float = 600.0,
) -> None:
    """Wait until information_schema shows the DDL that is in the binlog now.

    One query with PROCESS. Otherwise one for each table, which waits for its metadata
    lock. That does not find ALTER DATABASE, CREATE TABLE … SELECT, and the RENAME of a table that
    is not captured or that the account cannot see.

    Parameters
    ----------
    client : without an open transaction.
    captures : of (database, table).
    others : without PROCESS, wait also for tables that are not captured, and not longer than
        `patience` for each.
    patience : seconds to wait; without PROCESS, for each table.

    Raises
    ------
    ServerError : the DDL has not ended by then; or what `ReplicaClient.query` raises.
    """
    if not has_atomic_ddl(client):
        return
    try:
        _wait_for_transactions(client, patience)
    except AccessDeniedError:
        _wait_for_locks(client, captures, others, patience)


def has_atomic_ddl(client: ReplicaClient) -> bool:
    """Whether the server has a dictionary in InnoDB, in which DDL is committed like rows."""
    return not client.is_mariadb and client.major_version >= _MIN_MAJOR_VERSION_WITH_ATOMIC_DDL


def _wait_for_transactions(client: ReplicaClient, patience: float) -> None:
    deadline = monotonic() + patience
    try:
        pending = PendingTransactions(client, _MAY_COMMIT_DDL)
        while not pending.wait_until_ended(min(_LOG_SECONDS, max(deadline - monotonic(), 0.0))):
            if monotonic() >= deadline:
                raise _not_ended(patience, pending.waits_for)
            _LOG.warning("information_schema: waiting for %s", pending.waits_for)
    finally:
        client.query("COMMIT")


def _wait_for_locks(
    client: ReplicaClient, captures: Callable[[str, str], bool], others: bool, patience: float
) -> None:
    client.query(f"SET SESSION lock_wait_timeout = {int(patience)}")
    visible: set[Table] = set()
    # A RENAME that was waited for may show a new name, and that table's own DDL.
    while listed := _tables(client) - visible:
        for table in sorted(listed):
            is_captured = captures(*table)
            if (is_captured or others) and not _is_unlocked(client, table) and is_captured:
                raise _not_ended(patience, f"the metadata lock of {quoted(*table)}")
        visible |= listed
    client.query(f"SET SESSION lock_wait_timeout = {LONGEST_TIMEOUT}")


def _is_unlocked(client: ReplicaClient, table: Table) -> bool:
    """Wait for a table's metadata lock; False if that took too long."""
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


def _not_ended(patience: float, waits_for: str) -> ServerError:
    return ServerError(
        f"waited {patience:g} s for DDL that is in the binlog and may not be visible in"
        f" information_schema yet ({waits_for}); end these statements, and start again with the"
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
