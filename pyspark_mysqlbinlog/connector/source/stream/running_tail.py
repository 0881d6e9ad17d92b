"""The tail of a stream's process: one at a time, of the sequence of files that is read now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import time
from typing import Any

from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.schemas.evolution import Evolution
from pyspark_mysqlbinlog.connector.schemas.schema_guard import SchemaGuard
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.connector.source.stream.binding import StreamBinding
from pyspark_mysqlbinlog.connector.source.stream.failover import StreamFailover
from pyspark_mysqlbinlog.connector.source.stream.files import StreamFiles
from pyspark_mysqlbinlog.connector.source.stream.tails import file_tail, server_tail
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState, Span
from pyspark_mysqlbinlog.connector.tail.lag import EndOfLog
from pyspark_mysqlbinlog.connector.tail.log_tail import LogTail
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.connector.tail.retention import RetentionWatch
from pyspark_mysqlbinlog.decoder.kernel.implementation import described

__all__ = ["RunningTail"]


class RunningTail:
    """Starts the tail where a batch begins, and ends it when another sequence of files follows.

    schema : of the changes.

    Attributes
    ----------
    current : the tail; None until the first batch, and after a failover.
    retention : watches what the query still needs; None with `path`, and before the first batch.
    """

    def __init__(self, bound: StreamBinding, schema: StructType, failover: StreamFailover) -> None:
        self._bound = bound
        self._schema = schema
        self._failover = failover
        self.current: LogTail | None = None
        self.retention: RetentionWatch | None = None
        # The reconnects of the tails before the current one.
        self._reconnects = 0
        self._epoch = 0
        # The last known end of the binlog, as the current sequence of files orders it.
        self._end: EndOfLog | None = None
        # The sink has committed everything up to here.
        self._committed: Position | None = None
        # Everything from here on is needed, also by a later start of the query.
        self._needed: Position | None = None

    def note_end(self, position: Position) -> None:
        """Record the end of the binlog, as observed now."""
        self._end = EndOfLog(position, time())

    def reads(self, offset: Offset) -> bool:
        """Whether a tail has started in an offset's epoch."""
        return self.current is not None and self._epoch == offset.epoch

    def start_at(self, offset: Offset, *, is_resolved_here: bool) -> LogTail:
        """Return the tail; starts it at the offset if its epoch has none yet.

        is_resolved_here : see `RunEnd.seen_from`.
        """
        if self.current is not None:
            if self._epoch == offset.epoch:
                return self.current
            self.end()
            # The known end was ordered as the previous sequence of files sees it.
            self._end = None
        self._epoch = offset.epoch
        # Set the run's end before the tail starts: the tail must not pass a boundary there.
        run_end = self._bound.run_end
        target = run_end.seen_from(offset.position, is_resolved_here=is_resolved_here)
        if target is not None:
            self._end = run_end.observed(target)
        boundary = self._bound.offsets.boundary(offset, self._bound.snapshot.at)
        self.current = self._new(offset, boundary)
        if target is not None:
            self.current.buffer.force_boundary_at(target)
        self.current.start()
        if self.retention is not None:
            self.retention.start()
        self._log_start(offset)
        return self.current

    def end(self) -> None:
        """Stop the tail, if there is one; the next batch starts another."""
        if self.current is not None:
            self.current.stop()
            self._reconnects += self.current.reconnects
            self.current = None

    def stop(self) -> None:
        """Stop the tail and the retention watch at the end of the stream."""
        if self.current is not None:
            self.current.stop()
        if self.retention is not None:
            self.retention.stop()

    def commit(self, offset: Offset) -> None:
        """Record that everything up to an offset of the tail's epoch is committed."""
        assert self.current is not None
        self._committed = offset.position
        self._needed = first_needed(offset.position, offset.prepared_xa)
        self.current.buffer.release(offset.position)

    def spans(self, first: Offset, last: Offset) -> Sequence[Span] | None:
        """Return the buffer's spans between two offsets; None if the buffer does not have them."""
        if self.current is None or first.epoch != self._epoch:
            return None
        return self.current.buffer.spans(first.position, last.position)

    def report(self) -> dict[str, Any] | None:
        """Return the tail's position and the sink's lag, for the query's progress.

        None before the first batch.
        """
        if self.current is None or self._committed is None:
            return None
        tip = self.current.buffer.tip
        offset = Offset(tip.position, fingerprint=tip.fingerprint, epoch=self._epoch)
        load = self._bound.snapshot.report()
        fields: dict[str, Any] = {} if load is None else {"snapshot": load}
        watch = self.retention
        left = None if watch is None else watch.left
        seconds = None if watch is None else watch.seconds_left
        fields["retention_left"] = None if left is None else round(left, 4)
        fields["seconds_until_purge"] = None if seconds is None else round(seconds)
        fields["reconnects"] = self._reconnects + self.current.reconnects
        fields["failovers"] = self._failover.count
        return offset.to_dict() | self.current.lag.report(self._committed) | fields

    def _new(self, offset: Offset, boundary: BoundaryState) -> LogTail:
        options, server = self._bound.options, self._bound.server
        is_mirror = self._bound.packing is not None
        watch = SchemaGuard(
            None if options.path is not None else options.server_settings(),
            case_sensitive=server.is_case_sensitive(),
            evolution=self._evolution(),
            positional=options.on_unknown_schema == "positional",
            snapshots=bool(offset.snapshot),
        )
        if isinstance(server, StreamFiles):
            return file_tail(options, boundary, watch, end=self._end)
        return server_tail(
            options,
            boundary,
            watch,
            end=self._end,
            server_uuid=offset.server_uuid,
            case_sensitive=server.is_case_sensitive(),
            retention=self._watch_retention(offset),
            # A mirror warns of foreign keys in its own process, also of new ones.
            with_cascades=not is_mirror,
            check_successor=(
                partial(self._failover.check_successor, offset.server_uuid)
                if self._failover.is_possible
                else None
            ),
            on_statement=self._bound.snapshot.on_statement(),
        )

    def _watch_retention(self, offset: Offset) -> RetentionWatch:
        if self.retention is not None:
            self.retention.stop()
        start = first_needed(offset.position, offset.prepared_xa)
        self._needed = start
        self.retention = RetentionWatch(
            self._bound.options.server_settings(),
            warn_below=self._bound.options.retention_warning,
            needed=lambda: self._needed or start,
        )
        return self.retention

    def _evolution(self) -> Evolution | None:
        options, server = self._bound.options, self._bound.server
        if options.payload_kind != "struct":
            return None
        struct = arrow_schema(self._schema).field("after").type
        if isinstance(server, StreamFiles):
            return Evolution(
                options,
                struct,
                case_sensitive=server.is_case_sensitive(),
                server_table=server.last_table,
            )
        return Evolution.of(options, struct, case_sensitive=server.is_case_sensitive())

    def _log_start(self, offset: Offset) -> None:
        options = self._bound.options
        tables = "all tables" if options.tables is None else f"tables {options.tables}"
        if options.exclude_tables is not None:
            tables += f" without {options.exclude_tables}"
        LOGGER.info(
            "reading %s from %s: %s, payload %s, decoder %s",
            self._bound.server,
            offset.position,
            tables,
            options.payload_kind,
            described(),
        )
