"""Continuing a stream on another server: what its offsets become there.

An empty batch leads from the lost server to the other one: from an offset to the position before
which the same transactions are logged, with a greater epoch. A batch that was planned on the lost
server, and has to be read again, consists of what is logged on the other one between the positions
of its two offsets: the same transactions, in that server's order. Its rows have an epoch between
those of the offsets before and after it. No checkpoint records that, so the epoch also increases
after each restart: rows that an earlier process read again are ordered before later rows.

Everything else in a checkpoint belongs to the tables, not to a server. Two exceptions refer to
positions of the lost server: rows of prepared XA transactions, and DDL inside a planned batch. With
either, the stream waits for the lost server.

Rows of a snapshot are read at the end of the binlog, ahead of the stream. Until the stream reaches
that position, they may include transactions that another server never gets. A mirror reads such
tables
again from their beginnings, which removes what the other server does not have. A batch that was
planned with their rows is repeated without them (see connector/delta/query/lost_batch.py). The
rows of other streams can't be removed: they wait for the lost server. Tables of which nothing was
read yet, and those that the stream has passed, are no obstacle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import UNKNOWN_END, Place, SnapshotState
from pyspark_mysqlbinlog.connector.gtids.successor import Successor, find_successor, successor_on
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.retry import LOG, call_with_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.connector.snapshot.planning.table_set import after_failover
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.errors import ConnectionFailedError, FailoverError, LostConnectionError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["RESTART", "StreamFailover"]

# A planned batch that is read from another server has the epoch in between.
_EPOCHS = 2
_RELOAD = "start again with a new checkpoint and reload the tables"
RESTART = "start the query again: then another one continues, if its GTIDs prove that it can"


class StreamFailover:
    """The servers that `host` names, of which one is read.

    for_mirror : the stream is a mirror's.

    Attributes
    ----------
    count : how often the stream continued on another server.
    """

    def __init__(self, options: Options, *, for_mirror: bool = False) -> None:
        self._options = options
        self._for_mirror = for_mirror
        self.is_possible = options.can_fail_over
        self.count = 0
        # A planned batch may have been read from another server.
        self._may_be_replayed = self.is_possible and not for_mirror

    def note_start(self) -> None:
        """Record that the query has just begun: no batch was planned before."""
        self._may_be_replayed = False

    def check_successor(self, server_uuid: str, boundary: BoundaryState) -> None:
        """Raise LostConnectionError unless another server can continue after a boundary."""
        find_successor(self._options, server_uuid, boundary.executed, boundary.history)

    def is_lost(self, offset: Offset) -> bool:
        """Whether there are several servers, and the one of an offset does not answer."""
        return self.is_possible and not self._is_there(offset)

    def next_epoch(self, offset: Offset) -> Offset | None:
        """Return where another server continues after an offset; None if its own server is back.

        Raises
        ------
        ConnectionFailedError : no server is proven to continue, within `retryTimeout`.
        FailoverError : the offset refers to positions of its own server, which is not back within
            `retryTimeout`.
        """
        if (reason := self._bound_to_server(offset)) is not None:
            self._wait_for(offset, reason)
            return None
        found = call_with_retry(self._options.retry_timeout, self._successor_if_lost, offset)
        if found is None:
            return None
        self._may_be_replayed = False
        self._note_move(offset, found, "is lost")
        return _moved(offset, found, _EPOCHS)

    def after_purge(self, offset: Offset) -> Offset | None:
        """Return where another server continues if an offset's own server has purged what follows.

        None if no other server is proven to have that part, within `retryTimeout`.
        """
        if not self.is_possible or self._bound_to_server(offset) is not None:
            return None
        try:
            found = self._successor(offset)
        except ConnectionFailedError as error:
            LOG.warning("no other server has what %s has purged: %s", offset.server_uuid, error)
            return None
        self._may_be_replayed = False
        self._note_move(offset, found, "has purged what follows")
        return _moved(offset, found, _EPOCHS)

    def _note_move(self, offset: Offset, found: Successor, reason: str) -> None:
        self.count += 1
        LOG.warning(
            "the server %s %s: after %s the stream continues on %s (%s) from %s, with epoch %d",
            offset.server_uuid,
            reason,
            offset.position,
            found.settings.address,
            found.server_uuid,
            found.position,
            offset.epoch + _EPOCHS,
        )
        if again := offset.read_ahead:
            LOG.warning("tables that were being read there are read again: %s", _names(again))

    def after_replay(self, offset: Offset) -> Offset | None:
        """Return the offset in the next epoch if the batch before it may have been read elsewhere.

        Call it while the server of the offset answers.
        """
        if not self._may_be_replayed:
            return None
        self._may_be_replayed = False
        state = _without_batch(offset)
        snapshot = "" if state is None else state.pack()
        return replace(offset, epoch=offset.epoch + _EPOCHS, snapshot=snapshot, gap="")

    def is_left_to_mirror(self, offset: Offset) -> bool:
        """Whether the server of a planned batch is lost, and its mirror reads it from another one.

        See connector/delta/read/replay.py. Spark plans tasks nevertheless, which would fail.

        offset : the end of the batch.
        """
        return self._for_mirror and self.is_lost(offset)

    def replayed(self, first: Offset, last: Offset) -> tuple[Offset, Offset]:
        """Return the offsets of a planned batch: on another server if its own is lost.

        Raises
        ------
        ConnectionFailedError, FailoverError : as for `next_epoch`; also if tables change in the
            batch.
        """
        if not self.is_lost(last):
            return first, last
        reason = self._reason_not_to_replay(first, last)
        if reason is not None:
            remedy = RESTART if self.is_changed_at_start(first, last) else _RELOAD
            cause = f"{reason}; the batch was planned from {first.position} there"
            self._wait_for(last, cause, remedy)
            return first, last
        return self._on_another(first, last)

    def replayed_after_purge(self, first: Offset, last: Offset) -> tuple[Offset, Offset] | None:
        """Return a planned batch's offsets on another server, if its own has purged the binlog.

        None if no other one is proven to have it, within `retryTimeout`.
        """
        if not self.is_possible or self._reason_not_to_replay(first, last) is not None:
            return None
        try:
            return self._on_another(first, last)
        except (ConnectionFailedError, FailoverError) as error:
            LOG.warning("no other server has what %s has purged: %s", last.server_uuid, error)
            return None

    def _reason_not_to_replay(self, first: Offset, last: Offset) -> str | None:
        """Return why a planned batch can only be read from its own server; None if others can."""
        if last.reads_chunks_since(first):
            return f"the batch has snapshot rows of {_names(last.read_ahead)}"
        history = SchemaHistory.unpack(last.schemas)
        if history.from_position(last.position) != history:
            return "tables change in the batch"
        if _invalidated(last) - _invalidated(first):
            return "a statement in the batch makes rows of a snapshot unknown"
        if self._for_mirror and (ahead := first.read_ahead & _partly_read(last)):
            return f"the batch follows snapshot rows of {_names(ahead)}"
        return self._bound_to_server(first) or self._bound_to_server(last)

    def is_changed_at_start(self, first: Offset, last: Offset) -> bool:
        """Whether another server repeats a planned batch after the next start of a mirror.

        That is because of snapshot rows: see `without_chunks`.
        """
        is_ahead = last.reads_chunks_since(first) or bool(first.read_ahead & _partly_read(last))
        return self._for_mirror and self.is_possible and is_ahead

    def without_chunks(
        self, first: Offset, last: Offset, *, has_purged: bool = False
    ) -> Offset | None:
        """Return the end of a mirror's planned batch as another server can repeat it.

        The tables that were read ahead, in this batch or before it, are pending from their
        beginnings, and the batch has no rows of them. None if the server of the batch answers, or
        if no other one is proven to repeat it, within `retryTimeout`.

        has_purged : the server of the batch has purged a part of it.
        """
        state = last.snapshot_state
        if not self.is_possible or state is None or first.epoch != last.epoch:
            return None
        ahead = first.read_ahead | last.read_ahead
        if not ahead or not (has_purged or self.is_lost(last)):
            return None
        state = replace(
            state.reading_again(sorted(ahead & state.tables)).without_batch(),
            # Rows of these tables may have been applied.
            high_watermarks=dict.fromkeys(ahead, UNKNOWN_END),
        )
        end = replace(last, snapshot=state.pack())
        if end == last or self._reason_not_to_replay(first, end) is not None:
            return None
        if call_with_retry(self._options.retry_timeout, self._successor_if_lost, end) is None:
            return None
        return end

    def _on_another(self, first: Offset, last: Offset) -> tuple[Offset, Offset]:
        """Return the offsets of a planned batch as another server's binlog has them."""
        end = self._successor(last)
        # Find the batch's beginning on the same server, even if other servers have it as well.
        begin = successor_on(end.settings, end.server_uuid, first.executed)
        order = FileOrder.of_server(end.settings, begin.position.file)
        until = order.position(end.position.file, end.position.pos)
        if not until.is_in_sequence_of(begin.position) or until < begin.position:
            raise FailoverError(
                f"on {end.settings.address} the batch is between {begin.position} and"
                f" {end.position}, where the binlog got another base name or its numbers restarted"
            )
        self._may_be_replayed = True
        return _moved(first, begin, _EPOCHS - 1), _moved(last, end, _EPOCHS - 1)

    def _bound_to_server(self, offset: Offset) -> str | None:
        """Return what an offset records by positions of its server alone; None if nothing."""
        if not self._for_mirror and (ahead := offset.read_ahead):
            return f"a snapshot is not done; rows of {_names(ahead)} were read there"
        pending = [each for each in offset.prepared_xa if " " in each]
        if pending:
            return f"rows of XA transactions are prepared: {', '.join(pending)}"
        return None

    def _is_there(self, offset: Offset) -> bool:
        settings = self._options.bound_to(offset.server_uuid).server_settings()
        try:
            with ReplicaClient.connect(settings) as client:
                check_identity(client, offset.server_uuid)
        except ConnectionFailedError:
            return False
        return True

    def _wait_for(self, offset: Offset, reason: str, remedy: str = _RELOAD) -> None:
        """Wait for the server of an offset; FailoverError after `retryTimeout`."""

        def ask() -> None:
            if not self._is_there(offset):
                raise LostConnectionError(f"the server {offset.server_uuid} does not answer")

        LOG.warning(
            "the server %s is lost, and only it can continue after %s: %s; waiting for it",
            offset.server_uuid,
            offset.position,
            reason,
        )
        try:
            call_with_retry(self._options.retry_timeout, ask)
        except ConnectionFailedError:
            raise FailoverError(
                f"the server {offset.server_uuid} is lost, and no other one can continue after"
                f" {offset.position}: {reason}; bring it back, or {remedy}"
            ) from None

    def _successor(self, offset: Offset) -> Successor:
        """Return another server that continues after an offset, within `retryTimeout`."""
        history = SchemaHistory.unpack(offset.schemas)
        return call_with_retry(
            self._options.retry_timeout,
            find_successor,
            self._options,
            offset.server_uuid,
            offset.executed,
            history,
        )

    def _successor_if_lost(self, offset: Offset) -> Successor | None:
        history = SchemaHistory.unpack(offset.schemas)
        try:
            return find_successor(self._options, offset.server_uuid, offset.executed, history)
        except LostConnectionError:
            if self._is_there(offset):
                return None
            raise


def _partly_read(offset: Offset) -> frozenset[Table]:
    """Return the tables that are not pending from their beginnings."""
    state = offset.snapshot_state
    if state is None:
        return frozenset()
    return frozenset(table for table in state.tables if not state.is_to_begin(table))


def _invalidated(offset: Offset) -> frozenset[tuple[Table, Place]]:
    state = offset.snapshot_state
    return frozenset() if state is None else frozenset(state.invalidated_at.items())


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(".".join(table) for table in sorted(tables))


def _without_batch(offset: Offset) -> SnapshotState | None:
    """Return the snapshot's state without the chunks of the batch that ended there."""
    state = offset.snapshot_state
    return None if state is None else state.without_batch()


def _moved(offset: Offset, found: Successor, epochs: int) -> Offset:
    """Return an offset as the successor's binlog has it."""
    # The schemas at the offset are valid from the beginning, in positions of either server.
    history = SchemaHistory.unpack(offset.schemas).from_position(offset.position).until(BEGINNING)
    state = offset.snapshot_state
    if state is not None:
        state = after_failover(state, offset.position, found.position)
    return replace(
        offset,
        position=found.position,
        server_uuid=found.server_uuid,
        schemas=history.pack(),
        epoch=offset.epoch + epochs,
        snapshot="" if state is None else state.pack(),
        fingerprint=found.fingerprint,
        gap="",
    )
