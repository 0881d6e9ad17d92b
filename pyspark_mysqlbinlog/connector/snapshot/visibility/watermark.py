"""The watermark of a chunk: a place in the log, with proof that a SELECT sees all before it.

MySQL writes a transaction into the log before its engine shows it to others. Between the two,
SHOW MASTER STATUS counts it and a SELECT does not see it: for microseconds, for as long as the
disk takes to sync, or, with semi-synchronous replication, for seconds. A chunk that took its place
in the log and then its rows would be without that transaction, and so would the stream behind
that place: the change would be lost, for ever and without a word. A place that is too old does no
harm: what the log has behind it comes again, and wins.

So the place is read first, and then everything is waited for that may be in front of it and not
visible yet. Three ways, each enough by itself:

``gtid``
    MySQL 5.7 with gtid_mode=ON. A transaction owns its GTID from before it is written to the log
    until behind the engine's commit (`MYSQL_BIN_LOG::process_commit_stage_queue`, then
    `Gtid_state::update_commit_group`). So those matter that are owned right behind the place's
    reading, until none of them is owned any more. The mode is read behind the place as well: to
    switch it ON, the server waits for transactions without a GTID. Not on 5.6, which gives GTIDs
    back before the engine's commit.
``innodb_trx``
    Captures PROCESS. A transaction is listed in information_schema.INNODB_TRX from its first change
    until others see its changes. The list is a copy that the server renews when nobody has read it
    for 100 ms, so a reading counts only if it lists a transaction of our own that was begun behind
    the place's reading. That also shows that the list was not cut off by its limit of 16 MB, for
    transactions that only read come last (5.6, 5.7). Then those matter that have changed rows,
    until they are gone, or until their session is seen idle: what it had committed before that is
    visible. So a session that forgot to end its transaction stands in nobody's way.
``lock``
    Captures LOCK TABLES. A session that has changed a table holds a lock on it until others see the
    changes: LOCK TABLES … READ is given when nobody holds one, and the place is read under it. It
    is given up after a second, since whoever wants to write the table queues behind it, and tried
    again. On 5.6 only InnoDB's own lock on the table does it, which autocommit=0 asks for. Tables
    of other engines have no other proof.

XA transactions that are prepared need no proof: the log has their rows when they are prepared, and
a stream stops at those of wanted tables.
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
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["CHECKS", "Proof", "SessionTableLock", "TableLock", "VisibilityCheck", "Watermark"]

Proof = Literal["gtid", "innodb_trx", "lock"]

# Seconds between two readings of the list, by whomever, behind which the server renews it.
_RENEWED_AFTER = 0.11
_LOCK_WAIT_TIMEOUT = 1205
_NO_WAIT_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Watermark:
    """A place in the log; whatever is before it is visible to a SELECT that begins now.

    Attributes
    ----------
    time : what the server's clock showed there, in seconds since 1970.
    """

    position: Position
    time: int
    server_id: int
    proof: Proof

    @classmethod
    def read(cls, client: ReplicaClient, proof: Proof) -> Watermark:
        """Where the log ends now; nothing is proven yet."""
        position = current_position(client)
        ((time, server_id),) = client.query("SELECT UNIX_TIMESTAMP(), @@global.server_id")
        return cls(position, int(time), int(server_id), proof)

    @property
    def of_all_tables(self) -> bool:
        """Whether what is before it is visible in every InnoDB table, not just in the one."""
        return self.proof != "lock"


class VisibilityCheck(ABC):
    """One proof, waited for in turns; a context manager, which closes its connection.

    Parameters
    ----------
    client : of no open transaction.
    connect : gives another connection, which is closed at the end.

    Attributes
    ----------
    waits_for : what it waited for in vain in the last turn.
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
        """The watermark; None when it was not proven within so many seconds."""


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
                f"gtid_mode was switched from ON to {mode} while a table was loaded, so GTIDs no"
                " longer tell what SELECT shows; start again with the same checkpoint"
            )
        return owned_gtids(str(owned))


def owned_gtids(text: str) -> dict[str, str]:
    """GTID -> thread, of ``UUID:number#thread:number#thread,UUID:…``, as @@global.gtid_owned is."""
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
        self._watermark: Watermark | None = None
        # Transaction -> thread; None before the first fresh reading.
        self._writers: dict[str, int] | None = None

    def wait(self, seconds: float) -> Watermark | None:
        deadline = monotonic() + seconds
        own = self._own if self._own is not None else self._begin()
        while True:
            listed = self._read(own)
            if listed is None:
                self.waits_for = "a fresh list of transactions, which others read all the time"
            else:
                before = self._writers
                writers = {
                    trx: thread for trx, thread in listed.items() if before is None or trx in before
                }
                if writers:
                    busy = self._busy(own)
                    writers = {trx: thread for trx, thread in writers.items() if thread in busy}
                self._writers = writers
                if not writers:
                    return self._watermark
                threads = ", ".join(map(str, sorted({*writers.values()})))
                self.waits_for = f"the transactions of threads {threads}"
            if monotonic() >= deadline:
                return None
            # Two who read in step would keep each other from a fresh list.
            sleep(random.uniform(1, 2) * _RENEWED_AFTER)

    def _begin(self) -> ReplicaClient:
        watermark = Watermark.read(self._client, self.proof)
        # Of one transaction, begun behind the watermark: what lists it is fresh.
        own = self._own = self._connect()
        # Without a view of the data, which would keep InnoDB from purging what is deleted.
        own.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        own.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        ((thread,),) = own.query("SELECT CONNECTION_ID()")
        self._own_thread, self._watermark = int(thread), watermark
        return own

    def _read(self, own: ReplicaClient) -> dict[str, int] | None:
        """The transactions that have changed rows, and their threads; None of a stale list."""
        rows = own.query(
            "SELECT trx_id, trx_mysql_thread_id, trx_rows_modified FROM"
            " information_schema.INNODB_TRX"
        )
        if self._own_thread not in {int(thread) for _, thread, _ in rows}:
            return None
        return {
            str(trx): int(thread)
            for trx, thread, modified in rows
            # Without a thread are the server's own ones, and prepared XA transactions whose
            # session has ended.
            if int(modified) and int(thread) not in (0, self._own_thread)
        }

    def _busy(self, own: ReplicaClient) -> set[int]:
        """The threads that are at work on something, and perhaps on a commit."""
        rows = own.query("SELECT ID, COMMAND FROM information_schema.PROCESSLIST")
        return {int(thread) for thread, command in rows if command != "Sleep"}


class TableLock(VisibilityCheck):
    """LOCK TABLES … READ, of a connection of its own.

    while_locked : is called while nobody can change the table, behind the place's reading. What is
        seen then is exactly what lies before the place.
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
            # Whoever queued behind the lock has its turn.
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
    """LOCK TABLES … READ of the client itself, which is its session's to the end."""

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
