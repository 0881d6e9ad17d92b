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
    until its changes are visible (see `PendingTransactions`).
``lock``
    Needs LOCK TABLES. A session that has changed a table holds a lock on it until the changes are
    visible: LOCK TABLES … READ is granted when no session holds one, and the position is read under
    it. The lock request is cancelled after a second, because writers of the table queue after it,
    and tried again. On 5.6 only InnoDB's own lock on the table does this, which autocommit=0
    requests. Tables of other engines have no other method.

A transaction that XA has prepared is not visible, and its rows are delivered at its XA COMMIT.
While that is in the binlog and not visible yet, its GTID is owned, and its row locks remain
(measured on 5.7.41, 9.7.4 and MariaDB 10.11).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import ClassVar, Literal, Self

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.server.pending_transactions import PendingTransactions
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import LostConnectionError, ServerError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import LOCK_WAIT_TIMEOUT_CODE

__all__ = ["CHECKS", "Proof", "SessionTableLock", "TableLock", "VisibilityCheck", "Watermark"]

Proof = Literal["gtid", "innodb_trx", "lock"]

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
        self._watermark: Watermark | None = None
        self._pending: PendingTransactions | None = None

    def wait(self, seconds: float) -> Watermark | None:
        if self._pending is None:
            self._watermark = Watermark.read(self._client, self.proof)
            self._own = self._connect()
            self._pending = PendingTransactions(self._own)
        has_ended = self._pending.wait_until_ended(seconds)
        self.waits_for = self._pending.waits_for
        return self._watermark if has_ended else None


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
                if isinstance(error, LostConnectionError) or error.code != LOCK_WAIT_TIMEOUT_CODE:
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
