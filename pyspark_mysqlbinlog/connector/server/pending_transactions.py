"""The transactions that may be in the binlog and not visible yet, according to INNODB_TRX.

A transaction is listed in information_schema.INNODB_TRX from its first change until its changes are
visible; on MySQL 8.0 and later so is a DDL statement, whose changes of the dictionary are one. The
list needs PROCESS. It is a copy that the server renews only if it was not read for 100 ms. So a
reading counts only if it lists the reader's own transaction. This also shows that the list was not
truncated at its limit of 16 MB, because read-only transactions come last (5.6, 5.7).

INNODB_TRX lists a transaction that XA has prepared without a thread if its session has ended, and
on 9.7.4 always, like those that remain prepared for days. So the XA COMMITs that PROCESSLIST shows
are awaited too.
"""

from __future__ import annotations

import random
from time import monotonic, sleep

from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["PendingTransactions"]

# Minimum seconds between two readings of the list, by any session, for the server to renew it.
_RENEWAL_SECONDS = 0.11


class PendingTransactions:
    """The transactions that had changed rows when this object was created, until they are visible.

    Later transactions that change rows before the first fresh list are included. A transaction also
    counts as ended if its session is seen idle: what the session had committed before is visible.
    So a session that forgot to end its transaction does not block.

    Parameters
    ----------
    client : without an open transaction; gets one, which is newer than everything read before.
    busy : an SQL condition on PROCESSLIST; a session that does not meet it counts as idle.

    Attributes
    ----------
    waits_for : what `wait_until_ended` was waiting for when it timed out.
    """

    def __init__(self, client: ReplicaClient, busy: str = "COMMAND <> 'Sleep'") -> None:
        self.waits_for = ""
        self._client = client
        self._is_busy = busy
        # Without a read view, which would keep InnoDB from purging deleted rows.
        client.query("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        ((thread,),) = client.query("SELECT CONNECTION_ID()")
        self._own_thread = int(thread)
        self._has_detached = False
        # Transaction -> thread; None before the first fresh reading.
        self._pending: dict[str, int] | None = None
        # (thread, XA COMMIT), at that reading.
        self._xa_commits: set[tuple[int, str]] = set()

    def wait_until_ended(self, seconds: float) -> bool:
        """Wait until all of them have ended; return False after so many seconds.

        Raises
        ------
        AccessDeniedError : the account lacks PROCESS.
        """
        deadline = monotonic() + seconds
        while True:
            listed = self._read()
            if listed is None:
                self.waits_for = "a fresh list of transactions, which other sessions keep reading"
            else:
                before = self._pending
                pending = {
                    trx: thread for trx, thread in listed.items() if before is None or trx in before
                }
                if pending:
                    busy = self._busy()
                    pending = {trx: thread for trx, thread in pending.items() if thread in busy}
                if self._has_detached or self._xa_commits:
                    commits = self._read_xa_commits()
                    self._xa_commits = commits if before is None else self._xa_commits & commits
                self._pending = pending
                if not pending and not self._xa_commits:
                    return True
                committing = {thread for thread, _ in self._xa_commits}
                threads = ", ".join(map(str, sorted(committing.union(pending.values()))))
                self.waits_for = f"the transactions of threads {threads}"
            if monotonic() >= deadline:
                return False
            # Two checks at the same interval would prevent a fresh list for each other.
            sleep(random.uniform(1, 2) * _RENEWAL_SECONDS)

    def _read(self) -> dict[str, int] | None:
        """Read the transactions that have changed rows, with their threads; None if stale."""
        rows = self._client.query(
            "SELECT trx_id, trx_mysql_thread_id, trx_rows_modified FROM"
            " information_schema.INNODB_TRX"
        )
        if self._own_thread not in {int(thread) for _, thread, _ in rows}:
            return None
        self._has_detached = any(int(modified) and not int(thread) for _, thread, modified in rows)
        return {
            str(trx): int(thread)
            for trx, thread, modified in rows
            # The server's own transactions, and prepared XA transactions, may have no thread.
            if int(modified) and int(thread) not in (0, self._own_thread)
        }

    def _read_xa_commits(self) -> set[tuple[int, str]]:
        """Return the threads that are executing an XA COMMIT, with its text."""
        rows = self._client.query(
            "SELECT ID, INFO FROM information_schema.PROCESSLIST"
            " WHERE INFO LIKE '%XA%COMMIT%' AND ID <> CONNECTION_ID()"
        )
        return {(int(thread), str(text)) for thread, text in rows}

    def _busy(self) -> set[int]:
        """Return the threads that are executing a statement, possibly a commit."""
        threads = "SELECT ID FROM information_schema.PROCESSLIST WHERE "
        rows = self._client.query(threads + self._is_busy)
        return {int(thread) for (thread,) in rows}
