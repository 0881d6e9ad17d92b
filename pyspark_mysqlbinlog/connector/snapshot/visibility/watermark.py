"""The watermark of a chunk: a binlog position before which a SELECT verifiably sees everything.

MySQL writes a transaction to the binlog before its engine makes it visible. In between, SHOW MASTER
STATUS includes it but a SELECT does not return it: for microseconds, for the duration of a disk
sync, or, with semi-synchronous replication, for seconds. A chunk that read its position and then
its rows would miss that transaction, and so would the stream after that position: the change would
be lost permanently and without an error. A position that is too old is harmless: the changes after
it are delivered by the binlog, and win.

So the position is read first. Then the check waits for everything that may be before it and not
visible yet. There are three methods, each sufficient on its own:

``gtid``
    MySQL 5.7 with gtid_mode=ON. A transaction owns its GTID from before it is written to the binlog
    until after the engine's commit (`MYSQL_BIN_LOG::process_commit_stage_queue`, then
    `Gtid_state::update_commit_group`). So the check waits until none of the GTIDs is owned any more
    that were owned right after the position was read. The mode is read after the position as well:
    to switch it ON, the server waits for transactions without a GTID. Not on 5.6, which releases
    GTIDs before the engine's commit.
``innodb_trx``
    Needs PROCESS. A transaction is listed in information_schema.INNODB_TRX from its first change
    until its changes are visible. The list is a copy that the server renews only if it was not read
    for 100 ms. So a reading counts only if it lists the check's own transaction, begun after the
    position was read. This also shows that the list was not truncated at its limit of 16 MB,
    because read-only transactions come last (5.6, 5.7). The check waits for the transactions that
    have changed rows, until they have ended, or until their session is seen idle: what it had
    committed before that is visible. So a session that forgot to end its transaction does not
    block.
``lock``
    Needs LOCK TABLES. A session that has changed a table holds a lock on it until the changes are
    visible: LOCK TABLES … READ is granted when no session holds one, and the position is read under
    it. The lock request is cancelled after a second, because writers of the table queue after it,
    and tried again. On 5.6 only InnoDB's own lock on the table does this, which autocommit=0
    requests. Tables of other engines have no other method.

A transaction that XA has prepared is not visible, and its rows are delivered at its XA COMMIT.
While that is in the binlog and not visible yet, its GTID is owned, and its row locks remain
(measured on 5.7.41, 9.7.4 and MariaDB 10.11). But INNODB_TRX lists it without a thread if its
session has ended, and on 9.7.4 always, like those that remain prepared for days. So that check also
waits for the XA COMMITs that PROCESSLIST shows then.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import ClassVar, Literal, Self

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import LostConnectionError, ServerError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["CHECKS", "Proof", "SessionTableLock", "TableLock", "VisibilityCheck", "Watermark"]

Proof = Literal["gtid", "innodb_trx", "lock"]

# Minimum seconds between two readings of the list, by any session, for the server to renew it.
_RENEWAL_SECONDS = 0.11
_LOCK_WAIT_TIMEOUT = 1205
_NO_WAIT_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Watermark:
    """A binlog position; everything before it is visible to a SELECT that begins now.

    Attributes
    ----------
    time : of the server's clock at the position, in seconds since 1970.
    """

    position: Position
    time: int
    server_id: int
    proof: Proof

    @classmethod
    def read(cls, client: ReplicaClient, proof: Proof) -> Watermark:
        """Read the binlog's current end; nothing is proven yet."""
        position = current_position(client)
        ((time, server_id),) = client.query("SELECT UNIX_TIMESTAMP(), @@global.server_id")
        return cls(position, int(time), int(server_id), proof)

    @property
    def of_all_tables(self) -> bool:
        """Whether everything before it is visible in every InnoDB table, not only in one."""
        return self.proof != "lock"


class VisibilityCheck(ABC):
    """A visibility check that waits in turns; a context manager that closes its connection.

    Parameters
    ----------
    client : without an open transaction.
    connect : returns another connection, which is closed at the end.

    Attributes
    ----------
    waits_for : what it was waiting for when the last turn timed out.
    """

    proof: ClassVar[Proof]

    def __init__(
        self, client: ReplicaClient, connect: Callable[[], ReplicaClient], table: Table
    ) -> None:
        self.waits_for = ""
        self._client = client
        self._table = table
        self._connect = connect
        self._own: ReplicaClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    @abstractmethod
    def wait(self, seconds: float) -> Watermark | None:
        """Return the watermark; None if it was not proven within so many seconds."""


class _Gtids(VisibilityCheck):
    proof: ClassVar[Proof] = "gtid"

    def __init__(
        self, client: ReplicaClient, connect: Callable[[], ReplicaClient], table: Table
    ) -> None:
        super().__init__(client, connect, table)
        self._watermark: Watermark | None = None
        # GTID -> the thread that owns it.
        self._owned: dict[str, str] = {}

    def wait(self, seconds: float) -> Watermark | None:
        deadline = monotonic() + seconds
        if self._watermark is None:
            watermark = Watermark.read(self._client, self.proof)
            self._owned = self._read_owned()
            self._watermark = watermark
        pause = 0.001
        while self._owned:
            if monotonic() >= deadline:
                threads = ", ".join(sorted({*self._owned.values()}, key=int))
                self.waits_for = f"the GTIDs that threads {threads} own"
                return None
            sleep(pause)
            pause = min(2 * pause, 0.1)
            owned = self._read_owned()
            self._owned = {gtid: owned[gtid] for gtid in self._owned if gtid in owned}
        return self._watermark

    def _read_owned(self) -> dict[str, str]:
        ((mode, owned),) = self._client.query("SELECT @@global.gtid_mode, @@global.gtid_owned")
        if mode != "ON":
            raise ServerError(
                f"gtid_mode was switched from ON to {mode} during a snapshot, so GTIDs no"
                " longer show what SELECT sees; start again with the same checkpoint"
            )
        return owned_gtids(str(owned))


def owned_gtids(text: str) -> dict[str, str]:
    """Parse @@global.gtid_owned, ``UUID:number#thread:number#thread,UUID:…``: GTID -> thread."""
    owned = {}
    for group in filter(None, (part.strip() for part in text.split(","))):
        uuid, *members = group.split(":")
        for member in members:
            number, thread = member.split("#")
            owned[f"{uuid}:{number}"] = thread
    return owned


class _InnoDBTransactions(VisibilityCheck):
    proof: ClassVar[Proof] = "innodb_trx"

    def __init__(
        self, client: ReplicaClient, connect: Callable[[], ReplicaClient], table: Table
    ) -> None:
        super().__init__(client, connect, table)
        self._own_thread = 0
        self._has_detached = False
        self._watermark: Watermark | None = None
        # Transaction -> thread; None before the first fresh reading.
        self._writers: dict[str, int] | None = None
        # (thread, XA COMMIT), at that reading.
        self._xa_commits: set[tuple[int, str]] = set()

    def wait(self, seconds: float) -> Watermark | None:
        deadline = monotonic() + seconds
        own = self._own if self._own is not None else self._begin()
        while True:
            listed = self._read(own)
            if listed is None:
                self.waits_for = "a fresh list of transactions, which other sessions keep reading"
            else:
                before = self._writers
                writers = {
                    trx: thread for trx, thread in listed.items() if before is None or trx in before
                }
                if writers:
                    busy = self._busy(own)
                    writers = {trx: thread for trx, thread in writers.items() if thread in busy}
                if self._has_detached or self._xa_commits:
                    commits = self._read_xa_commits(own)
                    self._xa_commits = commits if before is None else self._xa_commits & commits
                self._writers = writers
                if not writers and not self._xa_commits:
                    return self._watermark
                committing = {thread for thread, _ in self._xa_commits}
                threads = ", ".join(map(str, sorted(committing.union(writers.values()))))
                self.waits_for = f"the transactions of threads {threads}"
            if monotonic() >= deadline:
                return None
            # Two checks at the same interval would prevent a fresh list for each other.
            sleep(random.uniform(1, 2) * _RENEWAL_SECONDS)

    def _begin(self) -> ReplicaClient:
        watermark = Watermark.read(self._client, self.proof)
        # One transaction, begun after the watermark was read: a list that contains it is fresh.
        own = self._own = self._connect()
        # Without a read view, which would keep InnoDB from purging deleted rows.
        own.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        own.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        ((thread,),) = own.query("SELECT CONNECTION_ID()")
        self._own_thread, self._watermark = int(thread), watermark
        return own

    def _read(self, own: ReplicaClient) -> dict[str, int] | None:
        """Read the transactions that have changed rows, with their threads; None if stale."""
        rows = own.query(
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

    def _read_xa_commits(self, own: ReplicaClient) -> set[tuple[int, str]]:
        """Return the threads that are executing an XA COMMIT, with its text."""
        rows = own.query(
            "SELECT ID, INFO FROM information_schema.PROCESSLIST"
            " WHERE INFO LIKE '%XA%COMMIT%' AND ID <> CONNECTION_ID()"
        )
        return {(int(thread), str(text)) for thread, text in rows}

    def _busy(self, own: ReplicaClient) -> set[int]:
        """Return the threads that are executing a statement, possibly a commit."""
        rows = own.query("SELECT ID, COMMAND FROM information_schema.PROCESSLIST")
        return {int(thread) for thread, command in rows if command != "Sleep"}


class TableLock(VisibilityCheck):
    """LOCK TABLES … READ, over a connection of its own.

    while_locked : called while the table can't be changed, after the position is read. It sees
        exactly what is before the position.
    """

    proof: ClassVar[Proof] = "lock"

    def __init__(
        self,
        client: ReplicaClient,
        connect: Callable[[], ReplicaClient],
        table: Table,
        while_locked: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(client, connect, table)
        self._while_locked = while_locked
        self.waits_for = f"LOCK TABLES {quoted(*table)} READ, which transactions on it delay"

    def wait(self, seconds: float) -> Watermark | None:
        deadline = monotonic() + seconds
        own = self._own if self._own is not None else self._begin()
        while True:
            try:
                own.query(f"LOCK TABLES {quoted(*self._table)} READ")
                watermark = Watermark.read(own, self.proof)
                self._while_locked()
                self._release(own)
                return watermark
            except ServerError as error:
                if isinstance(error, LostConnectionError) or error.code != _LOCK_WAIT_TIMEOUT:
                    raise
            pause = random.uniform(0.5, 2.0)
            if monotonic() + pause >= deadline:
                return None
            # Let the sessions that queued after the lock proceed.
            sleep(pause)

    def _begin(self) -> ReplicaClient:
        own = self._own = self._connect()
        own.query(
            "SET SESSION autocommit = 0, SESSION innodb_table_locks = 1,"
            f" SESSION lock_wait_timeout = {_NO_WAIT_SECONDS},"
            f" SESSION innodb_lock_wait_timeout = {_NO_WAIT_SECONDS}"
        )
        return own

    def _release(self, own: ReplicaClient) -> None:
        own.query("UNLOCK TABLES")


class SessionTableLock(TableLock):
    """LOCK TABLES … READ in the client's own session, held until the end."""

    def __init__(self, client: ReplicaClient, table: Table) -> None:
        super().__init__(client, lambda: client, table)

    def __exit__(self, *_: object) -> None:
        pass

    def _release(self, own: ReplicaClient) -> None:
        pass


CHECKS: dict[Proof, type[VisibilityCheck]] = {
    "gtid": _Gtids,
    "innodb_trx": _InnoDBTransactions,
    "lock": TableLock,
}
