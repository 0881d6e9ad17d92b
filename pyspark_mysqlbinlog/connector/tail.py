"""The tail: one thread that walks the server's log ahead of Spark.

It reads from the last offset on, over one connection, decides what is wanted, follows DDL, and fills
the buffer. A broken connection is made again from the last boundary. When it meets something that it
must not pass, it leaves the error in the buffer: everything before is delivered first.

It is a daemon: Spark ends its process without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.buffer import LogBuffer, Mark
from pyspark_mysqlbinlog.connector.log import dump_events
from pyspark_mysqlbinlog.connector.retry import first_connection, lost_connection
from pyspark_mysqlbinlog.connector.schema_tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.server import check_identity, database_charsets
from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import ConnectionFailedError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server_errors import LostConnectionError

__all__ = ["Tail"]

_ROTATE = int(EventType.ROTATE_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)


class Tail:
    """Walks the log of one server into a `LogBuffer`.

    Parameters
    ----------
    server_uuid : of the server that the start's file belongs to; empty when not known.
    start : the boundary to begin at.
    retry_timeout : seconds to try for when the connection breaks.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        server_uuid: str,
        start: Mark,
        wants: Callable[[str, str], bool],
        buffer: LogBuffer,
        retry_timeout: float,
    ) -> None:
        self.buffer = buffer
        # The end of the last event that was walked: at or behind the buffer's tip.
        self.scanned = start.position
        self._settings = settings
        self._server_uuid = server_uuid
        self._wants = wants
        self._mark = start
        self._retry_timeout = retry_timeout
        self._log_bytes = 0
        self._kept_any = False
        self._ever_connected = False
        self._client: ReplicaClient | None = None
        self._thread = Thread(target=self._run, name="mysqlbinlog-tail", daemon=True)

        self._progressed = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let go of the connection; the thread ends by itself."""
        self.buffer.close()
        client = self._client
        if client is not None:
            client.abort()

    def _run(self) -> None:
        try:
            while not self.buffer.closed:
                self._run_until_lost()
        except MySQLBinlogError as error:
            self.buffer.fail(error)
        except BaseException as error:
            # Whatever it is, the query must end with it and not wait for a thread that is gone.
            self.buffer.fail(MySQLBinlogError(f"the tail failed: {type(error).__name__}: {error}"))
            raise

    def _run_until_lost(self) -> None:
        """Connect, with as many tries as are due, and walk until the connection breaks."""
        retrying = (
            lost_connection(self._retry_timeout) if self._ever_connected else first_connection()
        )
        for attempt in retrying:
            with attempt:
                try:
                    self._walk()
                except LostConnectionError:
                    if self.buffer.closed:
                        return
                    if self._progressed:
                        # This try was good for something: the next one starts a new count.
                        return
                    raise

    def _walk(self) -> None:
        self._progressed = False
        self.buffer.forget_transaction()
        mark = self._mark
        start = mark.position
        self.scanned = start
        self._log_bytes, self._kept_any = 0, False
        with ReplicaClient.connect(self._settings) as client:
            filtering = EventFilter(self._wants, mark.pending_xa, client.server_version)
            self._client = client
            check_identity(client, self._server_uuid)
            tracker = SchemaTracker(mark.history, self._wants, database_charsets(client))
            self._ever_connected = True
            for event in dump_events(client, start, blocking=True):
                if self.buffer.closed:
                    return
                self._progressed = True
                self._take(event, filtering, tracker)
        raise ConnectionFailedError("the server ended a dump that should have gone on for ever")

    def _take(self, event: Event, filtering: EventFilter, tracker: SchemaTracker) -> None:
        kept = filtering.feed(event)
        end = Position.of(event.file, event.end)
        self._log_bytes += event.end - event.start
        if filtering.statement is not None:
            tracker.follow(event, filtering.statement, filtering.context, end)
        if kept:
            self._kept_any = True
            self.buffer.append(kept)
        if filtering.ended:
            self._boundary(end, filtering, tracker)
        elif event.type == _ROTATE:
            rotate = Rotate.parse(event.body)
            self._next_file(Position.of(rotate.file, FIRST_EVENT))
        elif event.type == _FORMAT_DESCRIPTION:
            # After a crash there is no ROTATE: the next file just begins.
            self._next_file(Position.of(event.file, FIRST_EVENT))
        self.scanned = end

    def _boundary(self, end: Position, filtering: EventFilter, tracker: SchemaTracker) -> None:
        mark = Mark(end, tracker.history, filtering.pending_xa)
        self.buffer.boundary(mark, self._log_bytes, wanted=self._kept_any)
        self._mark = mark
        if self._kept_any:
            self.buffer.wait_for_room()
        self._log_bytes, self._kept_any = 0, False

    def _next_file(self, begin: Position) -> None:
        """The boundary at the end of a file is spelled as the beginning of the next."""
        if begin != self._mark.position:
            self._mark = replace(self._mark, position=begin)
            self.buffer.moved(self._mark)
