"""A server's log as an executor reads it: a connection that breaks is made again on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.logs import Limit, ScannedDump, ServerLog, dump_events
from pyspark_mysqlbinlog.connector.log.prefetch import Interrupt
from pyspark_mysqlbinlog.connector.log.retry import lost_connection
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.errors import LostConnectionError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate

__all__ = ["ResumingLog"]

Found = TypeVar("Found", bound="Run | Event")
# Gives what comes next; None at the end.
Next = Callable[[], Found | None]

_ROTATE = int(EventType.ROTATE_EVENT)
# Spark runs a failed task again by itself (but not in local mode), so a pull need not be patient.
_PULL_RETRY_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class ResumingLog(ServerLog):
    """A server's log whose reader does not notice a broken connection.

    Attributes
    ----------
    server_uuid : the server that it must be; empty when that is not known.
    interrupt : by which another thread ends the reading.
    """

    server_uuid: str = ""
    interrupt: Interrupt | None = None

    def events(self, start: Position) -> Iterator[Event]:
        def dump(client: ReplicaClient, here: Position) -> Next[Event]:
            events = dump_events(client, here, blocking=False)
            return lambda: next(events, None)

        return self._resume(start, dump)

    def scan(self, start: Position, scanner: LogScanner, limit: Limit) -> Iterator[Run | Event]:
        def dump(client: ReplicaClient, here: Position) -> Next[Run | Event]:
            scanned = ScannedDump(client, here, scanner, blocking=False)
            return lambda: scanned.next(limit)

        return self._resume(start, dump)

    def _resume(
        self, start: Position, dump: Callable[[ReplicaClient, Position], Next[Found]]
    ) -> Iterator[Found]:
        here = start
        while True:
            client, following, found = lost_connection(_PULL_RETRY_TIMEOUT)(self._open, here, dump)
            with client:
                try:
                    while found is not None:
                        here = _behind(found)
                        yield found
                        found = None  # may be large
                        found = following()
                    return
                except LostConnectionError:
                    if self.interrupt is not None and self.interrupt.stopped:
                        return
                    # Any event is a place to go on from: whoever reads keeps the table maps.
                    continue

    def _open(
        self, start: Position, dump: Callable[[ReplicaClient, Position], Next[Found]]
    ) -> tuple[ReplicaClient, Next[Found], Found | None]:
        """A dump that has given its first event; a server that refuses does so before that."""
        if self.interrupt is not None:
            # Else a thread that nobody waits for tries again until its time is over.
            self.interrupt.check()
        client = ReplicaClient.connect(self.settings)
        try:
            if self.interrupt is not None:
                self.interrupt.watch(client)
            # A file of this name on another server has other rows in it.
            check_identity(client, self.server_uuid)
            following = dump(client, start)
            return client, following, following()
        except BaseException:
            client.close()
            raise


def _behind(found: Run | Event) -> Position:
    if isinstance(found, Event) and found.type == _ROTATE:
        return Position.of(Rotate.parse(found.body).file, FIRST_EVENT)
    return Position.of(found.file, found.end)
