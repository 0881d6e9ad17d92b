"""What the tail and the offset calls exchange: boundaries, and the spans between them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.protocol.blocks import EventBlock

__all__ = ["BoundaryState", "Piece", "Span"]


@dataclass(frozen=True, slots=True)
class BoundaryState:
    """A boundary and the state that is valid there.

    executed : the GTIDs of all transactions before it; None if unknown.
    """

    position: Position
    history: SchemaHistory
    pending_xa: tuple[str, ...] = ()
    fingerprint: PositionFingerprint | None = None
    executed: GtidSet | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A position inside a transaction where a task may begin to read.

    Attributes
    ----------
    log_bytes : from the boundary before its transaction to this position.
    prelude : the context of the events after it: the transaction's first events and the table
        maps of the current statement.
    pending_xa : prepared XA transactions at this position; see `EventFilter`.
    fingerprint : of this position.
    offset : if it is inside a payload, which then begins at `start`: the offset in its stream.
    """

    start: Position
    log_bytes: int
    prelude: tuple[EventBlock, ...]
    pending_xa: tuple[str, ...] = ()
    fingerprint: PositionFingerprint | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the binlog with captured changes.

    Attributes
    ----------
    start : the boundary at which the previous span ended, or a later one without captured changes
        in between.
    end : the boundary after its last transaction.
    log_bytes : length in the binlog, including events that are not captured.
    blocks : the captured events; None if they did not fit.
    kept_bytes : length of `blocks`.
    rows : captured rows, if they are counted.
    pieces : where it may be split inside a long transaction.
    """

    start: BoundaryState
    end: BoundaryState
    log_bytes: int
    blocks: tuple[EventBlock, ...] | None
    kept_bytes: int
    rows: int = 0
    pieces: tuple[Piece, ...] = ()
