"""Offsets of a stream, and the boundary states of the binlog that they record.

An offset in a checkpoint may have been written by a query with other options. What it records about
the tables captured then is valid only for those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.initial_history import check_columns_of_options
from pyspark_mysqlbinlog.connector.schemas.schema_guard import unknown_among
from pyspark_mysqlbinlog.connector.source.stream.files import StreamFiles
from pyspark_mysqlbinlog.connector.source.stream.server import StreamServer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["StreamOffsets"]

_MAX_PREPARED_XA = 256
# Returns the snapshot's state at an offset, for the current options.
LoadAt = Callable[[Offset], SnapshotState | None]


class StreamOffsets:
    """Converts between offsets and boundary states, for the current options."""

    def __init__(self, options: Options, server: StreamServer | StreamFiles) -> None:
        self._options = options
        self._server = server
        # The last history, and its text.
        self._packed: tuple[SchemaHistory, str] | None = None

    def parse(self, value: dict[str, Any]) -> Offset:
        """Parse an offset of the checkpoint, of a query with the same or an explicit payload.

        OptionError if the payload would change by default: the table's columns would silently
        change from text to a struct, or the reverse. Also for other masks, or another row filter:
        two parts of the same table would have different values. And if `lowerCaseTableNames`
        contradicts the checkpoint.
        """
        offset = Offset.from_dict(value)
        given = self._options.lower_case_table_names
        if given is not None and (given == "1") != offset.case_insensitive:
            raise OptionError(
                f"option lowerCaseTableNames: expected {int(offset.case_insensitive)}, as the"
                f" checkpoint records, found {given}; remove the option, or start with a new"
                " checkpoint"
            )
        if (
            offset.transforms != self._options.transforms_hash
            and not self._options.accept_changed_transforms
        ):
            raise OptionError(
                "options maskColumns, maskSecret and rowFilter: the checkpoint was written with"
                f" {'others' if offset.transforms else 'none of them'}; restore what it was"
                " written with, or start with a new checkpoint and new targets, or set"
                " acceptChangedTransforms=true to continue: what was delivered stays as it is, and"
                " a mirror needs a reload"
            )
        kind = self._options.payload_kind
        if self._options.payload is None and offset.payload not in ("", kind):
            raise OptionError(
                f"option payload: the checkpoint has payload={offset.payload}, and this query"
                f" would change it to {kind} by default; set payload={offset.payload} to keep"
                f" it, or payload={kind} to change it"
            )
        return offset

    def at_end(self, start: Offset, boundary: BoundaryState, load: SnapshotState | None) -> Offset:
        """Return the offset of a batch's end, with every schema that is valid within the batch."""
        # The rows of prepared transactions have the schemas that were valid at them.
        begin = first_needed(start.position, start.prepared_xa)
        history = boundary.history.from_position(begin)
        if self._packed is None or self._packed[0] != history:
            self._packed = history, history.pack()
        return Offset(
            position=boundary.position,
            server_uuid=start.server_uuid,
            schemas=self._packed[1],
            # The search finds older ones, whose position is before every later start.
            prepared_xa=boundary.pending_xa[-_MAX_PREPARED_XA:],
            gtid=None if boundary.executed is None else str(boundary.executed),
            fingerprint=boundary.fingerprint,
            epoch=start.epoch,
            snapshot="" if load is None else load.pack(),
            payload=self._options.payload_kind,
            tables=self._options.table_filter_hash,
            transforms=self._options.transforms_hash,
            case_insensitive=not self._server.is_case_sensitive(),
        )

    def boundary(self, offset: Offset, load_at: LoadAt) -> BoundaryState:
        """Return the boundary state of an offset."""
        history = self._with_loaded(self.history(offset), offset, load_at)
        return BoundaryState(
            offset.position,
            history,
            self.prepared_xa(offset),
            offset.fingerprint,
            offset.executed,
        )

    def _with_loaded(
        self, history: SchemaHistory, offset: Offset, load_at: LoadAt
    ) -> SchemaHistory:
        """Add the columns of tables to snapshot, so that they are known before binlog rows."""
        load = load_at(offset)
        pending = [] if load is None else [each.table for each in load.pending]
        unknown = unknown_among(history, pending, offset.position)
        return self._server.learned(history, unknown, offset.position) if unknown else history

    def history(self, offset: Offset, start: Offset | None = None) -> SchemaHistory:
        """Return the history of an offset, from a start (or itself), with all captured tables."""
        start = start or offset
        history = SchemaHistory.unpack(offset.schemas)
        if offset.tables == self._options.table_filter_hash:
            return history
        if self._options.path is not None and offset.tables in self._options.table_filter_hashes:
            # What a server knew of these tables is complete.
            check_columns_of_options(self._options, history, self._server.is_case_sensitive())
            return history
        return self._server.history_for_other_tables(history, start.position, start.fingerprint)

    def prepared_xa(self, offset: Offset) -> tuple[str, ...]:
        """Return prepared XA transactions; only valid for the tables captured at that time."""
        return offset.prepared_xa if offset.tables in self._options.table_filter_hashes else ()
