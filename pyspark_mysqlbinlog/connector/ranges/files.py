"""Split a batch read of files into ranges by scanning them without their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.connector.log.retry import LOG
from pyspark_mysqlbinlog.connector.ranges.range_end import RangeBounds, check_between
from pyspark_mysqlbinlog.connector.ranges.split import RangePlan, split_into_ranges
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.prepared_xa import PreparedXaSearch
from pyspark_mysqlbinlog.connector.tail.transaction_scanner import TransactionScanner
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.filtering.outcomes import PreparedXa
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner, Run
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["split_files"]

# Each range contains the schemas, and costs Spark some time.
_MAX_RANGES = 1024
# Ranges deviate from the target by this part at most.
_PARTS_OF_RANGE = 8


def split_files(
    log: FileLog,
    start: Position,
    end: Position,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
    server_version: str,
    target_bytes: int,
    is_open: bool = False,
) -> list[RangePlan]:
    """Split into ranges of about `target_bytes` of binlog, also inside of long transactions.

    is_open : the end is the end of the files, not one that was set. It may be inside a
        transaction if the files were copied while their server wrote them. Then the ranges end at
        the boundary before it, and a warning is logged.

    Every event is verified and filtered, so that a range has its context: prepared XA
    transactions, and the transaction in which it begins. Trailing binlog without any captured
    event is in no range.

    Raises
    ------
    MySQLBinlogError : for events that can't be skipped, and an end that is no boundary.
    """
    earlier: dict[str, str] = {}
    search = PreparedXaSearch.of_files(log, start, captures)

    def earlier_xa(xid: str, commit: Event) -> PreparedXa | None:
        found = search.find(xid, commit)
        earlier.setdefault(xid, xid if found is None else str(found))
        return found

    def walked() -> list[RangePlan]:
        filtering = EventFilter(
            captures,
            tuple(earlier.values()),
            server_version,
            operations=operations,
            earlier_xa=earlier_xa,
        )
        return _walked(log, start, end, filtering, target_bytes=target_bytes, is_open=is_open)

    cuts = walked()
    # Each range gets the transactions that were prepared before the start.
    return walked() if earlier else cuts


def _walked(
    log: FileLog,
    start: Position,
    end: Position,
    filtering: EventFilter,
    *,
    target_bytes: int,
    is_open: bool,
) -> list[RangePlan]:
    pending_xa = filtering.pending_xa
    begin = BoundaryState(start, SchemaHistory(), pending_xa)
    # Without capacity for events; and without other readers of spans there is no waiting.
    buffer = LogBuffer(begin, capacity=0, granularity=max(target_bytes // _PARTS_OF_RANGE, 1))
    buffer.take_all()
    walk = TransactionScanner(begin, filtering, buffer, position=log.position, last_start=NO_LIMIT)
    bounds = RangeBounds(log, start, end, is_boundary=not is_open)
    scanner: LogScanner | None = None
    found: Iterator[Run | Event] = log.events(start)
    if implementation() == "c":
        scanner = LogScanner(filtering, pause_at=walk.piece_due)
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
        _tell_rest(walk.boundary.position, walk.scanned, end, filtering)
    else:
        bounds.check_reached()
        check_between(filtering, end)
    return split_into_ranges(
        start,
        buffer.finished(),
        pending_xa=pending_xa,
        target_bytes=target_bytes,
        max_fetches=_MAX_RANGES,
    )


def _tell_rest(
    boundary: Position, scanned: Position, end: Position, filtering: EventFilter
) -> None:
    """Warn of the rest after the last boundary, which is not read."""
    if filtering.in_transaction:
        if scanned.number != end.number:
            check_between(filtering, end)  # no rest: the next file is still empty
        inside = "a transaction"
    elif scanned.order < end.order:
        inside = "an event"
    else:
        return
    LOG.warning(
        "%s ends inside %s, like a file that was copied while its server wrote it: the read ends"
        " at the last boundary before it, %s",
        end.file,
        inside,
        boundary,
    )
