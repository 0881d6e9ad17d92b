"""Continuing a stream on another server: what its offsets become there.

An empty batch leads from the lost server to the other one: from an offset to the position before
which the same transactions are logged, with a greater epoch. A batch that was planned on the lost
server, and has to be read again, consists of what is logged on the other one between the positions
of its two offsets: the same transactions, in that server's order.

Everything else in a checkpoint belongs to the tables, not to a server. What refers to positions of
the lost server can't be taken over: a snapshot that is not done, and DDL inside of a planned batch.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.gtids.successor import Successor, find_successor
from pyspark_mysqlbinlog.connector.log.retry import LOG, call_with_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.errors import ConnectionFailedError, FailoverError, LostConnectionError
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["StreamFailover"]


class StreamFailover:
    """The servers that `host` names, of which one is read."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.is_possible = len(options.host or ()) > 1

    def check_successor(self, server_uuid: str, boundary: BoundaryState) -> None:
        """Raise LostConnectionError unless another server can continue for one at a boundary."""
        settings = self._options.bound_to(server_uuid).server_settings()
        find_successor(settings, boundary.executed)

    def next_epoch(self, offset: Offset) -> Offset | None:
        """Return where another server continues after an offset; None if its own is back.

        Raises
        ------
        ConnectionFailedError : no server is proven to, within `retryTimeout`.
        FailoverError : a snapshot is not done, or an XA transaction is prepared.
        """
        state = offset.snapshot_state
        if state is not None and not state.is_done:
            raise FailoverError(
                f"the server {offset.server_uuid} is lost during a snapshot, whose chunks have"
                " positions of its binlog"
            )
        _check_no_prepared_rows(offset)
        found = call_with_retry(self._options.retry_timeout, self._successor_if_lost, offset)
        if found is None:
            return None
        LOG.warning(
            "the server %s is lost: after %s the stream continues on %s (%s) from %s, with epoch"
            " %d",
            offset.server_uuid,
            offset.position,
            found.settings.address,
            found.server_uuid,
            found.position,
            offset.epoch + 1,
        )
        return _moved(offset, found)

    def replayed(self, first: Offset, last: Offset, *, for_mirror: bool) -> tuple[Offset, Offset]:
        """Return the offsets of a planned batch: on another server if its own is lost.

        for_mirror : a mirror may have applied a part of the batch, up to a position.

        Raises
        ------
        FailoverError : tables change in the batch, or it is a mirror's.
        """
        if not self.is_lost(last):
            return first, last
        if for_mirror:
            raise FailoverError(
                f"the server {last.server_uuid} is lost, and the batch from {first.position} to"
                f" {last.position} was planned there; a mirror, which may have applied a part of"
                " it, can't read it from another server yet"
            )
        history = SchemaHistory.unpack(last.schemas)
        if history.from_position(last.position) != history:
            raise FailoverError(
                f"the server {last.server_uuid} is lost, and tables change in the batch from"
                f" {first.position} to {last.position}, which was planned there"
            )
        _check_no_prepared_rows(first)
        return _moved(first, self._successor_at(first)), _moved(last, self._successor_at(last))

    def is_lost(self, offset: Offset) -> bool:
        """Whether there are several servers, and that of an offset does not answer."""
        return self.is_possible and not self._is_there(offset)

    def _is_there(self, offset: Offset) -> bool:
        settings = self._options.bound_to(offset.server_uuid).server_settings()
        try:
            with ReplicaClient.connect(settings) as client:
                check_identity(client, offset.server_uuid)
        except ConnectionFailedError:
            return False
        return True

    def _successor_if_lost(self, offset: Offset) -> Successor | None:
        settings = self._options.bound_to(offset.server_uuid).server_settings()
        try:
            return find_successor(settings, offset.executed)
        except LostConnectionError:
            if self._is_there(offset):
                return None
            raise

    def _successor_at(self, offset: Offset) -> Successor:
        settings = self._options.bound_to(offset.server_uuid).server_settings()
        return call_with_retry(
            self._options.retry_timeout, find_successor, settings, offset.executed
        )


def _check_no_prepared_rows(offset: Offset) -> None:
    """Raise FailoverError if rows of a prepared XA transaction are known by a position."""
    pending = [each for each in offset.prepared_xa if " " in each]
    if pending:
        raise FailoverError(
            f"the server {offset.server_uuid} is lost, and rows of XA transactions that are"
            f" prepared at {offset.position} are in its binlog: {', '.join(pending)}"
        )


def _moved(offset: Offset, found: Successor) -> Offset:
    """Return an offset as the successor's binlog has it."""
    # What is valid there is valid from the beginning, in positions of either server.
    history = SchemaHistory.unpack(offset.schemas).from_position(offset.position).until(BEGINNING)
    return replace(
        offset,
        position=found.position,
        server_uuid=found.server_uuid,
        schemas=history.pack(),
        epoch=offset.epoch + 1,
        fingerprint=found.fingerprint,
    )
