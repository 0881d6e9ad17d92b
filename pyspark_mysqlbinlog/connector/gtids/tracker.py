"""The GTIDs that are executed at a boundary, followed while a binlog is read.

A file begins with those of all files before it (PREVIOUS_GTIDS), and each transaction has a GTID
event. Only what has a GTID can be found again on another server: after a transaction without one,
the set is unknown until the next file.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidInterval, GtidSet
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.gtid_sets import parse_gtid_set
from pyspark_mysqlbinlog.protocol.messages import Gtid

__all__ = ["GtidTracker"]

_GTID = int(EventType.GTID_LOG_EVENT)
_GTID_TAGGED = int(EventType.GTID_TAGGED_LOG_EVENT)
_GTID_EVENTS = (_GTID, _GTID_TAGGED, int(EventType.ANONYMOUS_GTID_LOG_EVENT))
_PREVIOUS_GTIDS = int(EventType.PREVIOUS_GTIDS_LOG_EVENT)


class GtidTracker:
    """Adds the GTIDs of transactions to those before them.

    Parameters
    ----------
    executed : the set at the beginning; None if unknown.

    Attributes
    ----------
    executed : the set at the last boundary; None if unknown.
    """

    def __init__(self, executed: GtidSet | None) -> None:
        self.executed = executed
        # Of the transaction in progress: (source, number).
        self._gtid: tuple[str, int] | None = None

    def follow(self, event: Event) -> None:
        """Take an event that is in no run."""
        if event.type in (_GTID, _GTID_TAGGED):
            self._gtid = _parsed(event.type, event.body)
        elif event.type == _PREVIOUS_GTIDS:
            before = GtidSet.of(GtidInterval(*each) for each in parse_gtid_set(event.body))
            # After a failover, a file of the new server may begin with fewer.
            self.executed = before if self.executed is None else self.executed.union(before)

    def end_transaction(self) -> None:
        """Count the transaction, or statement, whose last event was the last one taken."""
        gtid, self._gtid = self._gtid, None
        if self.executed is not None:
            self.executed = None if gtid is None else self.executed.add(*gtid)

    def at(self, run: Run, transaction: int) -> GtidSet | None:
        """Return the set after one of a run's transactions, before the run is taken."""
        executed = self.executed
        if executed is None:
            return None
        counted = 0
        for first, count, source, number in _runs(run):
            if executed is None or first > transaction:
                break
            last = number + min(count, transaction - first + 1) - 1
            counted += last - number + 1
            executed = executed.add(source, number, last) if source else None
        return executed if counted == transaction + 1 else None

    def take_run(self, run: Run) -> None:
        """Count all transactions of a run."""
        if self.executed is not None and run.ends:
            self.executed = self.at(run, len(run.ends) - 1)

    def take_skipped(self, found: Run | Event) -> None:
        """Count the GTIDs of whole transactions that are not distinguished."""
        if isinstance(found, Event):
            self.follow(found)
            if found.type in _GTID_EVENTS:
                self.end_transaction()
            return
        for _, count, source, number in _runs(found):
            executed = self.executed
            if executed is not None:
                self.executed = executed.add(source, number, number + count - 1) if source else None


def _runs(run: Run) -> Iterator[tuple[int, int, str, int]]:
    """Yield (first transaction, count, source, first number); no source: without a GTID."""
    for first, count, data in run.gtids:
        kind = data[4]
        if kind in (_GTID, _GTID_TAGGED):
            yield first, count, *_parsed(kind, data[19:])
        else:
            yield first, count, "", 0


def _parsed(kind: int, body: bytes) -> tuple[str, int]:
    gtid = Gtid.parse(body) if kind == _GTID else Gtid.parse_tagged(body)
    return f"{gtid.uuid}:{gtid.tag}" if gtid.tag else gtid.uuid, gtid.number
