"""Which entries of a log are shown: those of some tables, times, positions or transactions.

A transaction is selected by its GTID and by the time of its first event, as a whole. Of a selected
transaction, `tables` selects the rows, and then the events around them. So the first events of a
transaction wait until one of its tables is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet, source_and_number
from pyspark_mysqlbinlog.connector.inspection.entries import Entry
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.protocol.events import EventType

__all__ = ["Selection"]

# GTID, BEGIN, a payload and the text of a statement may wait; more can only be savepoints.
_MOST_WAITING = 8
_OF_ROWS = frozenset({*OPERATIONS, int(EventType.TABLE_MAP_EVENT)})


@dataclass(frozen=True, slots=True)
class Selection:
    """The entries of a log that are shown.

    Attributes
    ----------
    tables : those that are selected; None for all.
    since, until : seconds since 1970 UTC; `until` is not included.
    included, excluded : GTIDs; None for all and none.
    end : (file, position) at which reading ends.
    """

    tables: TableFilter | None = None
    since: float | None = None
    until: float | None = None
    included: GtidSet | None = None
    excluded: GtidSet | None = None
    end: tuple[str, int] | None = None

    @property
    def is_by_transaction(self) -> bool:
        """Whether it depends on the time or the GTID of each transaction."""
        chosen = (self.since, self.until, self.included, self.excluded)
        return any(each is not None for each in chosen)

    def of(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the selected entries."""
        waiting: list[Entry] = []
        is_shown = False
        for entry in entries:
            event = entry.event
            if self.end is not None and event.file == self.end[0] and event.start >= self.end[1]:
                return
            if entry.is_first or entry.transaction is None:
                waiting, is_shown = [], self.tables is None
            if not self._is_selected(entry):
                continue
            if not is_shown and self._names_table(entry):
                yield from waiting
                waiting, is_shown = [], True
            if event.type in _OF_ROWS and not self._names_table(entry):
                continue
            if is_shown:
                yield entry
            elif len(waiting) < _MOST_WAITING:
                waiting.append(entry)

    def _is_selected(self, entry: Entry) -> bool:
        transaction = entry.transaction
        time = entry.event.timestamp if transaction is None else transaction.time
        if self.since is not None and time < self.since:
            return False
        if self.until is not None and time >= self.until:
            return False
        if self.included is None and self.excluded is None:
            return True
        if transaction is None:
            return False
        if transaction.gtid is None:
            return self.included is None
        gtid = source_and_number(transaction.gtid)
        if self.included is not None and not self.included.has(*gtid):
            return False
        return self.excluded is None or not self.excluded.has(*gtid)

    def _names_table(self, entry: Entry) -> bool:
        """Whether the entry is about a selected table."""
        if self.tables is None:
            return True
        if entry.table is not None:
            return self.tables.captures(*entry.table)
        if entry.statement is None:
            return False
        statement = entry.statement.statement
        if statement.database is not None:
            return self.tables.may_capture_in(statement.database)
        if statement.tables is None:
            # The statement may be about any table.
            return True
        return any(self.tables.captures(*table) for table in statement.tables)
