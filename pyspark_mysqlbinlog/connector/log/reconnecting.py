"""A server's binlog as an executor reads it: reconnects after a lost connection.

It ends with its sequence of files (see `Dump`): no range extends beyond that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.dump import Dump, Limit, ScannedDump
from pyspark_mysqlbinlog.connector.log.fingerprints import behind
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken
from pyspark_mysqlbinlog.connector.log.retry import reconnect_retry
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import LogSequenceError, LostConnectionError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate

__all__ = ["ReconnectingLog"]

Found = TypeVar("Found", bound="Run | Event")
# Returns the next item; None at the end.
Next = Callable[[], Found | None]

_ROTATE = int(EventType.ROTATE_EVENT)
# Spark retries a failed task (but not in local mode), so a fetch need not retry for long.
_FETCH_RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ReconnectingLog(ServerLog):
    """A server's binlog whose reader does not notice a broken connection.

    Attributes
    ----------
    server_uuid : the expected server; empty if unknown.
    interrupt : by which another thread cancels the reading.
    """

    server_uuid: str = ""
    interrupt: CancelToken | None = None

    def events(self, start: Position) -> Iterator[Event]:
        return self._resume(start, lambda dump: dump.next)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        def following(dump: Dump) -> Next[Run | Event]:
            scanned = ScannedDump(dump, scanner)
            return lambda: scanned.next(limit)

        return self._resume(start, following)

    def _resume(self, start: Position, following: Callable[[Dump], Next[Found]]) -> Iterator[Found]:
        here, known = start, self.fingerprint_of(start)
        while True:
            retrying = reconnect_retry(_FETCH_RETRY_SECONDS)
            try:
                client, dump, find, found = retrying(self._open, here, known, following)
            except LogSequenceError:
                return
            with client:
                try:
                    while found is not None:
                        here, known = _behind(found), behind(dump.head, found)
                        if here.pos == FIRST_EVENT:
                            # In another file, whose head has not arrived yet.
                            known = None
                        yield found
                        found = None  # may be large
                        found = find()
                    return
                except LogSequenceError:
                    return
                except LostConnectionError:
                    if self.interrupt is not None and self.interrupt.stopped:
                        return
                    # Any event is a point to resume from: the caller keeps the table maps.
                    continue

    def _open(
        self,
        start: Position,
        known: PositionFingerprint | None,
        following: Callable[[Dump], Next[Found]],
    ) -> tuple[ReplicaClient, Dump, Next[Found], Found | None]:
        """Open a dump and read its first event; a server that refuses does so before it."""
        if self.interrupt is not None:
            # Otherwise a thread that is no longer needed would retry until its time is over.
            self.interrupt.check()
        client = ReplicaClient.connect(self.settings)
        try:
            if self.interrupt is not None:
                self.interrupt.watch(client)
            # A file of this name on another server has other rows.
            check_identity(client, self.server_uuid)
            dump = Dump(client, start, known, blocking=False)
            find = following(dump)
            return client, dump, find, find()
        except BaseException:
            client.close()
            raise


def _behind(found: Run | Event) -> Position:
    if isinstance(found, Event) and found.type == _ROTATE:
        return Position.of(Rotate.parse(found.body).file, FIRST_EVENT)
    return Position.of(found.file, found.end)
