"""Prepared XA transactions as the tail follows them: their captured events and their positions.

Events are kept until the transaction is committed, so that one that is committed soon travels in a
task like any other. What does not fit is read again by the executor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.decoder.filtering.outcomes import Part, PreparedXa, size_of

__all__ = ["PreparedTransactions", "first_needed"]

_MAX_BYTES = 8 << 20


class PreparedTransactions:
    """Transactions with captured rows, by xid.

    Parameters
    ----------
    pending_xa : those that are prepared where the reading begins.
    position : returns the position of a byte in one of the binlog files.
    """

    def __init__(self, pending_xa: Iterable[str], position: Callable[[str, int], Position]) -> None:
        self._position = position
        # The oldest first: captured events (None: not kept), the number of their rows, and bytes.
        self._kept: dict[str, tuple[list[Part] | None, int, int]] = {}
        self._size = 0
        self._begins = {
            xa.xid: position(xa.file, xa.begin)
            for xa in map(PreparedXa.parse, pending_xa)
            if xa is not None
        }
        # The positions after XA COMMIT and XA ROLLBACK, and those where their rows begin.
        self._decided: deque[tuple[Position, Position]] = deque()

    def add(self, xa: PreparedXa, parts: list[Part] | None, rows: int) -> None:
        """Add a transaction that is prepared; without its events if they were not kept before."""
        self._forget(xa.xid)
        self._begins[xa.xid] = self._position(xa.file, xa.begin)
        size = sum(map(size_of, parts or ()))
        self._kept[xa.xid] = parts, rows, size
        self._size += size
        if self._size <= _MAX_BYTES:
            return
        for oldest, (_, count, size) in [*self._kept.items()]:
            # The number of its rows still counts.
            self._kept[oldest] = None, count, 0
            self._size -= size
            if self._size <= _MAX_BYTES:
                return

    def decide(self, xid: str, end: Position) -> tuple[list[Part] | None, int]:
        """Remove a transaction; return its events (None: not kept) and the number of their rows.

        end : of its XA COMMIT or XA ROLLBACK.
        """
        if (begin := self._begins.pop(xid, None)) is not None:
            self._decided.append((end, begin))
        return self._forget(xid)

    def first_needed(self, start: Position) -> Position:
        """Return the first position whose rows a reading from `start` on may return.

        The result of a later start is not earlier.
        """
        while self._decided and self._decided[0][0] <= start:
            self._decided.popleft()
        return min([start, *self._begins.values(), *(begin for _, begin in self._decided)])

    def _forget(self, xid: str) -> tuple[list[Part] | None, int]:
        parts, rows, size = self._kept.pop(xid, (None, 0, 0))
        self._size -= size
        return parts, rows


def first_needed(
    start: Position,
    pending_xa: Iterable[str],
    position: Callable[[str, int], Position] = Position.of,
) -> Position:
    """Return the first position whose rows a reading from `start` on may return.

    pending_xa : the transactions that are prepared at `start`.
    """
    return PreparedTransactions(pending_xa, position).first_needed(start)
