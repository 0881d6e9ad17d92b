"""A server's binlog that is read across lost connections: by an executor, and by `tail`.

It ends with its sequence of files (see `Dump`): no range extends beyond that. If it waits for new
events, that end is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.dump import Dump, Limit, ScannedDump
from pyspark_mysqlbinlog.connector.log.fingerprints import after_event
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken
from pyspark_mysqlbinlog.connector.log.retry import LOG, log_reconnected, reconnect_retry
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import LogSequenceError, LostConnectionError
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["ReconnectingLog"]

Found = TypeVar("Found")
# Returns the next item; None at the end.
Next = Callable[[], Found | None]

_ROTATE = int(EventType.ROTATE_EVENT)
# Spark retries a failed task (but not in local mode), so a fetch need not retry for long.
_FETCH_RETRY_SECONDS = 60.0
# A connection that was held for longer is no failed try: it may have waited for an event.
_MAX_TRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ReconnectingLog(ServerLog):
    """A server's binlog whose reader does not notice a broken connection.

    Attributes
    ----------
    server_uuid : the expected server; empty if unknown.
    interrupt : by which another thread cancels the reading.
    blocking : whether to wait for events at the end of the binlog, and to log lost connections.
        Then LogSequenceError is raised at the end of the sequence of files.
    retry_timeout : seconds to try to connect again for; then ConnectionFailedError.
    """

    server_uuid: str = ""
    interrupt: CancelToken | None = None
    blocking: bool = False
    retry_timeout: float = _FETCH_RETRY_SECONDS

    def events(self, start: Position) -> Iterator[Event]:
        return self.read_on(start, lambda dump: dump.next, lambda event: event)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        def following(dump: Dump) -> Next[Run | Event]:
            scanned = ScannedDump(dump, scanner)
            return lambda: scanned.next(limit)

        return self.read_on(start, following, lambda found: found)

    def read_on(
        self,
        start: Position,
        following: Callable[[Dump], Next[Found]],
        logged: Callable[[Found], Run | Event],
    ) -> Iterator[Found]:
        """Yield what `following` finds in a dump; after a lost connection, in another one.

        logged : what was found -> its run or event, after which the next dump begins.
        """
        here, known = start, self.fingerprint_of(start)
        lost_at: float | None = None
        while True:
            retrying = reconnect_retry(self.retry_timeout)
            try:
                opened = retrying(self._open, here, known, following, lost_at)
            except LogSequenceError:
                if self.blocking:
                    raise
                return
            if opened is None:
                lost_at = monotonic()
                continue
            client, dump, find, found = opened
            with client:
                try:
                    while found is not None:
                        event = logged(found)
                        here, known = _end_of(event), after_event(dump.head, event)
                        if here.pos == FIRST_EVENT:
                            # The position is in another file, whose head has not arrived yet.
                            known = None
                        del event
                        yield found
                        found = None  # may be large
                        found = find()
                    return
                except LogSequenceError:
                    if self.blocking:
                        raise
                    return
                except LostConnectionError as error:
                    if self.interrupt is not None and self.interrupt.stopped:
                        return
                    # Any event is a point to resume from: the caller keeps the table maps.
                    lost_at = self._log_lost(error.message)

    def _log_lost(self, message: str) -> float:
        if self.blocking:
            LOG.warning("lost the connection, connecting again: %s", message)
        return monotonic()

    def _open(
        self,
        start: Position,
        known: PositionFingerprint | None,
        following: Callable[[Dump], Next[Found]],
        lost_at: float | None,
    ) -> tuple[ReplicaClient, Dump, Next[Found], Found | None] | None:
        """Open a dump and read its first event, before which a server reports that it rejects it.

        Return None if the connection was lost after a long time without an event.
        """
        if self.interrupt is not None:
            # Otherwise a thread that is no longer needed would retry until its time is over.
            self.interrupt.check()
        client = ReplicaClient.connect(self.settings)
        try:
            if self.interrupt is not None:
                self.interrupt.watch(client)
            # A file of this name on another server has other rows.
            check_identity(client, self.server_uuid)
            dump = Dump(client, start, known, blocking=self.blocking)
            if self.blocking and lost_at is not None:
                log_reconnected(lost_at)
            find, opened_at = following(dump), monotonic()
            try:
                return client, dump, find, find()
            except LostConnectionError as error:
                if monotonic() - opened_at <= _MAX_TRY_SECONDS:
                    raise
                self._log_lost(error.message)
                client.close()
                return None
        except BaseException:
            client.close()
            raise


def _end_of(found: Run | Event) -> Position:
    if isinstance(found, Event) and found.type == _ROTATE:
        return Position.of(Rotate.parse(found.body).file, FIRST_EVENT)
    return Position.of(found.file, found.end)
