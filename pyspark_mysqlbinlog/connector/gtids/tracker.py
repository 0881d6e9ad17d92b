"""The GTIDs that are executed at a boundary, followed while a binlog is read.

A file begins with those of all files before it (PREVIOUS_GTIDS; MariaDB: GTID_LIST), and each
transaction has a GTID event. Only what has a GTID can be found again on another server: after a
transaction without one, the set is unknown until the next file. The same applies after a MariaDB
transaction whose number is not greater than that of the one before it in its domain; servers
without gtid_strict_mode log such transactions.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidInterval, GtidSet, is_mariadb_source
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import Run
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    HEADER_LENGTH,
    IDENTIFYING_GTID_TYPES,
    TRANSACTION_GTID_TYPES,
    Event,
    EventHeader,
    EventType,
)
from pyspark_mysqlbinlog.protocol.gtid_sets import parse_gtid_set, parse_mariadb_gtid_list
from pyspark_mysqlbinlog.protocol.messages import Gtid, MariadbGtid

__all__ = ["GtidTracker"]

_GTID = int(EventType.GTID_LOG_EVENT)
_MARIADB_GTID = int(EventType.MARIADB_GTID_EVENT)
_PREVIOUS_GTIDS = int(EventType.PREVIOUS_GTIDS_LOG_EVENT)
_MARIADB_GTID_LIST = int(EventType.MARIADB_GTID_LIST_EVENT)


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
        # The last run and its GTIDs: several of its boundaries may be requested.
        self._run: Run | None = None
        self._gtids_of_run: list[tuple[int, int, str, int]] = []

    def follow(self, event: Event) -> None:
        """Take an event that is in no run."""
        if event.type in IDENTIFYING_GTID_TYPES:
            self._gtid = _parsed(event.type, event.server_id, event.body)
        elif event.type == _PREVIOUS_GTIDS:
            self._begin_file(GtidSet.of(GtidInterval(*each) for each in parse_gtid_set(event.body)))
        elif event.type == _MARIADB_GTID_LIST and not event.flags & ARTIFICIAL_FLAG:
            self._begin_file(
                GtidSet.of_mariadb((*each,) for each in parse_mariadb_gtid_list(event.body))
            )

    def _begin_file(self, before: GtidSet) -> None:
        # After a failover, a file of the new server may begin with fewer GTIDs.
        self.executed = before if self.executed is None else self.executed.union(before)

    def end_transaction(self) -> None:
        """Count the transaction, or statement, whose last event was the last one taken."""
        gtid, self._gtid = self._gtid, None
        if self.executed is not None:
            self.executed = None if gtid is None else _with(self.executed, *gtid)

    def at(self, run: Run, transaction: int) -> GtidSet | None:
        """Return the set after one of a run's transactions, before the run is taken."""
        executed = self.executed
        if executed is None:
            return None
        if self._run is not run:
            self._run, self._gtids_of_run = run, [*_runs(run)]
        counted = 0
        for first, count, source, number in self._gtids_of_run:
            if executed is None or first > transaction:
                break
            last = number + min(count, transaction - first + 1) - 1
            counted += last - number + 1
            executed = _with(executed, source, number, last) if source else None
        return executed if counted == transaction + 1 else None

    def take_skipped(self, found: Run | Event) -> None:
        """Count the GTIDs of whole transactions that are not distinguished."""
        if isinstance(found, Event):
            self.follow(found)
            if found.type in TRANSACTION_GTID_TYPES:
                self.end_transaction()
            return
        for _, count, source, number in _runs(found):
            executed = self.executed
            if executed is not None:
                last = number + count - 1
                self.executed = _with(executed, source, number, last) if source else None


def _runs(run: Run) -> Iterator[tuple[int, int, str, int]]:
    """Yield (first transaction, count, source, first number); no source: without a GTID."""
    for first, count, data in run.gtids:
        header = EventHeader.parse(data)
        if header.type in IDENTIFYING_GTID_TYPES:
            yield first, count, *_parsed(header.type, header.server_id, data[HEADER_LENGTH:])
        else:
            yield first, count, "", 0


def _with(executed: GtidSet, source: str, first: int, last: int | None = None) -> GtidSet | None:
    """Return a set with consecutive GTIDs of a source; None if MariaDB logs them out of order."""
    last = first if last is None else last
    if is_mariadb_source(source):
        return executed.follow_mariadb(source, first, last)
    return executed.add(source, first, last)


def _parsed(kind: int, server_id: int, body: bytes) -> tuple[str, int]:
    if kind == _MARIADB_GTID:
        found = MariadbGtid.parse(body)
        return f"{found.domain}-{server_id}", found.number
    gtid = Gtid.parse(body) if kind == _GTID else Gtid.parse_tagged(body)
    return f"{gtid.uuid}:{gtid.tag}" if gtid.tag else gtid.uuid, gtid.number
