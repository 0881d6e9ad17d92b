"""How a batch read of files is cut into ranges: a walk over them, without their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.logs import NO_LIMIT, FileLog
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.ranges.range_end import RangeBounds, check_between
from pyspark_mysqlbinlog.connector.ranges.split import Cut, cut
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer, Mark
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["cut_files"]

# Each takes the schemas with it, and Spark some time.
_MOST_RANGES = 1024
# Ranges come out this much too short or too long.
_PARTS_OF_RANGE = 8


def cut_files(
    log: FileLog,
    start: Position,
    end: Position,
    wants: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
    server_version: str,
    target_bytes: int,
    is_open: bool = False,
) -> list[Cut]:
    """Ranges of about `target_bytes` of log, between transactions and inside of long ones.

    is_open : nobody chose the end, it is where the files end: inside of a transaction, if they were
        copied while their server wrote it. Then the ranges end at the boundary before that, and the
        log (Python's) says so.

    Every event is verified and filtered, so that a range knows what it goes on with: prepared XA
    transactions, and the transaction that it begins in. Log at the end without anything wanted is
    in no range.

    Raises
    ------
    MySQLBinlogError : for what can't be passed in the log, and an end that is no boundary.
    """
    earlier: list[str] = []
    search = PreparedXaSearch.of_files(log, start, wants)

    def earlier_xa(xid: str) -> None:
        search.check_not_captured(xid)
        earlier.append(xid)

    def walked() -> list[Cut]:
        filtering = EventFilter(
            wants,
            tuple(sorted(set(earlier))),
            server_version,
            operations=operations,
            earlier_xa=earlier_xa,
        )
        return _walked(log, start, end, filtering, target_bytes=target_bytes, is_open=is_open)

    cuts = walked()
    # What was prepared before the start, each range is told that it goes on in.
    return walked() if earlier else cuts


def _walked(
    log: FileLog,
    start: Position,
    end: Position,
    filtering: EventFilter,
    *,
    target_bytes: int,
    is_open: bool,
) -> list[Cut]:
    pending_xa = filtering.pending_xa
    begin = Mark(start, SchemaHistory(), pending_xa)
    # Without room for events; and nobody else will ask for spans, so there is no waiting.
    buffer = LogBuffer(begin, capacity=0, granularity=max(target_bytes // _PARTS_OF_RANGE, 1))
    buffer.take_all()
    walk = TransactionScanner(begin, filtering, buffer, position=log.position, last_start=NO_LIMIT)
    bounds = RangeBounds(log, start, end, is_boundary=not is_open)
    scanner: LogScanner | None = None
    found: Iterator[Run | Event] = log.events(start)
    if implementation() == "c":
        scanner = LogScanner(filtering, ask_at=walk.piece_due)
        found = log.scan(start, scanner, bounds.limit)
    for each in found:
        if not isinstance(each, Event):
            bounds.passed(each)
            walk.take_run(each)
        elif bounds.admits(each):
            walk.take(each)
            if scanner is not None:
                scanner.learn(each)
        if bounds.reached:
            break
    if is_open:
        _tell_rest(walk.mark.position, walk.scanned, end, filtering)
    else:
        bounds.check_reached()
        check_between(filtering, end)
    return cut(
        start,
        buffer.finished(),
        pending_xa=pending_xa,
        target_bytes=target_bytes,
        max_fetches=_MOST_RANGES,
    )


def _tell_rest(
    boundary: Position, scanned: Position, end: Position, filtering: EventFilter
) -> None:
    """Warn of what lies behind the last boundary and is not read."""
    if filtering.in_transaction:
        if scanned.number != end.number:
            check_between(filtering, end)  # no rest: a file follows in which nothing stands yet
        inside = "a transaction"
    elif scanned.order < end.order:
        inside = "an event"
    else:
        return
    LOG.warning(
        "%s ends inside %s, as does a file that was copied while its server wrote it: the read ends"
        " at the last boundary before that, %s",
        end.file,
        inside,
        boundary,
    )
