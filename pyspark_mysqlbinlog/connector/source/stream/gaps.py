"""Continuing a stream after a part of the binlog that it has not read and that is lost.

With ``failOnDataLoss=false`` an empty batch leads from the last offset to the first position that
the server still has, with a greater epoch. Its offset records where the lost part begins, so that
the gap is marked whenever the batch is planned or replayed.

Nothing that is known from before the gap applies after it: the lost part may have altered, renamed
or dropped any table. So the columns are read from the server, as for a new query. XA transactions
that were prepared before the gap are unknown; if one is committed after it, that is a loss as well,
because its rows are in the lost part. The GTIDs at the new position are those that its file lists
and those that the server has purged: they include the lost part.

If the tables are reloaded, no change before the current end of the binlog is needed. So where a
table was altered after the new position, and its columns there are unknown, the stream continues at
that end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.gtids.executed import executed_before, has_gtids
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.purged import is_purged
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.start_point import canonical
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.tracker import last_change
from pyspark_mysqlbinlog.connector.server.settings import (
    binlog_files,
    check_identity,
    current_position,
)
from pyspark_mysqlbinlog.connector.source.stream.server import StreamServer
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    MySQLBinlogError,
    SchemaChangedError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced

__all__ = ["StreamGaps", "is_lost"]

_MAX_TRIES = 30
# The snapshot's state at an offset before the gap, the history and the position after it -> the
# state there.
SnapshotAfter = Callable[[SnapshotState | None, SchemaHistory, Position], SnapshotState | None]


@dataclass(frozen=True, slots=True)
class _Resumption:
    """Where the stream continues, and what is valid there."""

    position: Position
    history: SchemaHistory
    fingerprint: PositionFingerprint | None
    executed: GtidSet | None


class StreamGaps:
    """Gaps of one stream.

    reloads : whether all captured tables are snapshotted after a gap.
    """

    def __init__(self, options: Options, server: StreamServer, *, reloads: bool) -> None:
        self._options = options
        self._server = server
        self._reloads = reloads

    def after(self, offset: Offset, error: MySQLBinlogError, snapshot: SnapshotAfter) -> Offset:
        """Return the offset after the gap that begins at an offset.

        Raises `error` if it does not mean that a part of the binlog is lost, and
        BinlogReplacedError if the server's binlog is not the one of the offset.
        """

        def ask(client: ReplicaClient) -> _Resumption:
            check_identity(client, offset.server_uuid)
            return self._find(client, offset, error)

        found = self._server.ask(ask)
        LOG.warning(
            "changes are lost: the stream continues at %s, with epoch %d, without everything after"
            " %s that is not delivered yet%s: %s",
            found.position,
            offset.epoch + 1,
            offset.position,
            "; all captured tables are reloaded" if self._reloads else "",
            error,
        )
        captures = self._options.table_filter(self._server.is_case_sensitive()).captures
        state = snapshot(offset.snapshot_state, found.history, found.position)
        return replace(
            offset,
            position=found.position,
            schemas=self._with_dropped(offset, found, captures).pack(),
            prepared_xa=(),
            gtid=None if found.executed is None else str(found.executed),
            epoch=offset.epoch + 1,
            snapshot="" if state is None else state.pack(),
            payload=self._options.payload_kind,
            tables=self._options.table_filter_hash,
            transforms=self._options.transforms_hash,
            fingerprint=found.fingerprint,
            gap=str(offset.position),
            case_insensitive=not self._server.is_case_sensitive(),
        )

    def is_lost(self, first: Offset, last: Offset) -> bool:
        """Return whether a planned batch can't be read, because a file that it needs was purged."""
        return self._server.ask(lambda client: is_lost(client, first, last))

    def without_purged(self, offset: Offset) -> Offset:
        """Return an offset without the prepared XA transactions whose rows were purged.

        They are unknown from there on, like those that were prepared in a lost part. An empty batch
        records that, because a replay must not search for the rows either.
        """
        begins = {text: PreparedXa.parse(text) for text in offset.prepared_xa}
        if not any(begins.values()):
            return offset

        def ask(client: ReplicaClient) -> Mapping[str, int]:
            check_identity(client, offset.server_uuid)
            return binlog_files(client)

        files = self._server.ask(ask)
        known = tuple(text for text, xa in begins.items() if xa is None or xa.file in files)
        if known == offset.prepared_xa:
            return offset
        LOG.warning(
            "the server has purged the rows of XA transactions that are prepared at %s: %s",
            offset.position,
            ", ".join(text for text in begins if text not in known),
        )
        return replace(offset, prepared_xa=known, gap="")

    def _find(self, client: ReplicaClient, offset: Offset, error: MySQLBinlogError) -> _Resumption:
        if isinstance(error, UnsupportedTransactionError) and error.lost_before is not None:
            return self._resumption(client, *error.lost_before)
        for _ in range(_MAX_TRIES):
            if not isinstance(error, BinlogPurgedError) or not is_purged(client, offset.position):
                raise error
            oldest = next(iter(binlog_files(client)))
            try:
                found = self._resumption(client, oldest, FIRST_EVENT)
            except BinlogPurgedError:
                continue  # it was purged meanwhile
            _check_has_delivered(found, offset)
            # Otherwise the set may include transactions of later files.
            if oldest in binlog_files(client):
                return found
        raise error

    def _resumption(self, client: ReplicaClient, file: str, pos: int) -> _Resumption:
        """Return how the stream continues at a boundary, or at the end of the binlog."""
        settings = self._options.server_settings()
        case_sensitive = self._server.is_case_sensitive()
        captures = self._options.table_filter(case_sensitive).captures
        for _ in range(_MAX_TRIES):
            order = FileOrder.of_server(settings, file, binlog_files(client))
            log = ServerLog(settings, order=order)
            position = canonical(log, Position.of(file, pos))
            history, _ = history_of_server(
                client,
                log,
                position,
                captures,
                case_sensitive=case_sensitive,
                uncaptured=True,
                all_sequences=True,
            )
            if self._reloads and _changes_after(history, position, captures):
                end = current_position(client)
                file, pos = end.file, end.pos
                continue
            return _Resumption(
                position,
                history.from_position(position).until(END_OF_SEQUENCE),
                log.fingerprint_at(position),
                executed_before(client, log, position) if has_gtids(client) else None,
            )
        raise SchemaChangedError(
            "tables are altered continuously, and the columns after the lost part of the binlog are"
            " unknown; start again when they are not",
            file=file,
            position=pos,
        )

    def _with_dropped(
        self, offset: Offset, found: _Resumption, captures: Callable[[str, str], bool]
    ) -> SchemaHistory:
        """Return the history after a gap, in which tables that no longer exist are dropped."""
        history = found.history
        if not self._reloads:
            return history
        for table in SchemaHistory.unpack(offset.schemas).tables():
            if captures(*table) and not history.versions(*table):
                reason = "it was dropped in a part of the binlog that is lost"
                history = history.without(found.position, *table, reason, is_dropped=True)
        return history


def is_lost(client: ReplicaClient, first: Offset, last: Offset) -> bool:
    """Return whether a file that the batch between two offsets needs was purged.

    ServerError if it is another server than that of the batch.
    """
    check_identity(client, first.server_uuid)
    decided = {*first.prepared_xa} - {*last.prepared_xa}
    files = [each.file for each in map(PreparedXa.parse, decided) if each is not None]
    needed = [first.position, *(Position.of(file, FIRST_EVENT) for file in files)]
    return any(is_purged(client, position) for position in needed)


def _check_has_delivered(found: _Resumption, offset: Offset) -> None:
    """Raise BinlogReplacedError if the server never had transactions that were delivered."""
    if found.executed is None or offset.executed is None:
        return
    if lacks := offset.executed.difference(found.executed):
        raise log_replaced(
            f"its oldest file begins without the transactions {lacks}, which were delivered",
            offset.position.file,
            offset.position.pos,
        )


def _changes_after(
    history: SchemaHistory, position: Position, captures: Callable[[str, str], bool]
) -> bool:
    """Return whether a captured table changes after a position: before that it may be unknown."""

    def last(table: Table) -> Position:
        return last_change(history, table) or position

    return any(last(table) > position for table in history.tables() if captures(*table))
