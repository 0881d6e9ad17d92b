"""What every tail has: a thread that reads a binlog ahead of Spark into a buffer.

The thread is a daemon, because Spark ends its process without notice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Thread

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog, Lag
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.decoder.payloads.row_counter import RowCounter
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.events import Event, EventType

__all__ = ["LogTail", "SupersededError"]

_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_Named = dict[tuple[Position, Table], None]


class SupersededError(MySQLBinlogError):
    """Another server continues."""


class LogTail(ABC):
    """Reads a binlog into a `LogBuffer`.

    Parameters
    ----------
    start : the boundary to begin at.
    heartbeat_interval : seconds between two reports of the binlog's end while nothing is logged.
    watch : verifies the columns of captured tables.
    operations : which of ``truncate`` and ``ddl`` return rows.
    count_rows : report a transaction's captured rows to the buffer.
    end : the end of the binlog, if known.

    Attributes
    ----------
    reconnects : how often a lost connection was restored.
    """

    def __init__(
        self,
        *,
        start: BoundaryState,
        captures: Callable[[str, str], bool],
        buffer: LogBuffer,
        heartbeat_interval: float,
        watch: SchemaGuard | None = None,
        operations: frozenset[str] = frozenset({"truncate"}),
        count_rows: bool = False,
        end: EndOfLog | None = None,
    ) -> None:
        self.buffer = buffer
        self.reconnects = 0
        self.lag = Lag(start.position, heartbeat_interval=heartbeat_interval, end=end)
        self._captures = captures
        self._start = start
        self._walk: TransactionScanner | None = None
        self._watch = watch
        self._operations = operations
        self._thread = Thread(target=self._run, name="mysqlbinlog-tail", daemon=True)
        self._counter = RowCounter() if count_rows else None
        # Captured tables with the position after the statement that gave them their names.
        self._created: _Named = {}
        self._renamed: _Named = {}

    @property
    @abstractmethod
    def compared(self) -> bool:
        """Whether the binlog was verified to be the one that contains the start."""

    def is_superseded(self) -> bool:
        """Whether the server is lost, and another one can continue where the tail ended."""
        return False

    @property
    def next_sequence(self) -> tuple[Position, PositionFingerprint] | None:
        """The start of the next sequence, once the tail has read its own to the end."""
        return None

    @property
    def scanned(self) -> Position:
        """The end of the last event read: at or after the buffer's tip."""
        # Read once: the tail's thread may replace it concurrently.
        walk = self._walk
        return self._start.position if walk is None else walk.scanned

    def created(self, start: Position, end: Position) -> frozenset[Table]:
        """Return captured tables that were created after `start`, up to `end`.

        Call it in binlog order: it drops everything before `start`.
        """
        return _named_between(self._created, start, end)

    def renamed(self, start: Position, end: Position) -> frozenset[Table]:
        """Return captured tables that got their names by a rename; see `created`."""
        return _named_between(self._renamed, start, end)

    def _note_creation(self, position: Position, table: Table) -> None:
        if self._captures(*table):
            self._created[position, table] = None

    def _note_rename(self, position: Position, table: Table) -> None:
        if self._captures(*table):
            self._renamed[position, table] = None

    def _first_needed(self, start: Position) -> Position:
        """Return the first position whose rows a reading from `start` on may return."""
        return start if self._walk is None else self._walk.first_needed(start)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self.buffer.close()

    def _run(self) -> None:
        try:
            self._follow()
        except MySQLBinlogError as error:
            self.buffer.set_error(error)
        except BaseException as error:
            # The query must fail with any error, instead of waiting for a thread that has ended.
            self.buffer.set_error(
                MySQLBinlogError(f"the tail failed: {type(error).__name__}: {error}")
            )
            raise

    @abstractmethod
    def _follow(self) -> None:
        """Read the binlog until the buffer is closed, or an error."""

    @property
    def _scans(self) -> bool:
        """Whether the compiled scan reads; rows are counted event by event."""
        return implementation() == "c" and self._counter is None

    @staticmethod
    def _take(found: Run | Event, walk: TransactionScanner, scanner: LogScanner | None) -> None:
        """Pass a run or an event on to the transaction scanner."""
        if isinstance(found, Run):
            walk.take_run(found)
            return
        history = walk.history
        walk.take(found)
        if scanner is None:
            return
        if walk.history is not history or found.type == _FORMAT_DESCRIPTION:
            # The guard checks each table map under a new history, and in each file.
            scanner.forget_maps()
        # From now on the scan may pass similar events.
        scanner.learn(found)


def _named_between(named: _Named, start: Position, end: Position) -> frozenset[Table]:
    # The tail's thread may add entries concurrently.
    for place in [place for place in tuple(named) if place[0] <= start]:
        del named[place]
    return frozenset(table for position, table in tuple(named) if position <= end)
