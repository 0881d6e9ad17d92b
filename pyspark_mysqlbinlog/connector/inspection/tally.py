"""Counts events, rows and bytes by type and table, and the transactions of a log.

`Tally` counts event by event, and is the specification of the compiled tally
(kernel/cpp/loops/tally.hpp). `KernelTally` counts the events that the compiled scan passes with the
compiled tally, and all other events as `Tally` does.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.table_map import (
    DUMMY_TABLE_IDS,
    TableMap,
    TableMapRegistry,
    table_id_of,
)
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.payloads.row_counter import RowCounter
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.checksum import CHECKSUM_LENGTH
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._tally import Tally as NativeTally

__all__ = ["ENDED_FIELDS", "EventRowCounter", "KernelTally", "OperationCount", "Tally"]

_QUERY = int(EventType.QUERY_EVENT)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_OPERATIONS = ("c", "u", "d")
_PACKET_HEADER = 5
# The numbers that are kept of each transaction: see `Tally.ended`.
ENDED_FIELDS = ("begin", "bytes", "rows", "events", "time")


@dataclass(slots=True)
class OperationCount:
    """The counts of one operation on one table; `bytes` are those of its rows events."""

    rows: int = 0
    events: int = 0
    bytes: int = 0

    def add(self, rows: int, events: int, size: int) -> None:
        self.rows += rows
        self.events += events
        self.bytes += size


@dataclass(slots=True)
class _Open:
    """The transaction in progress."""

    begin: int = 0
    rows: int = 0
    events: int = 0


class Tally:
    """Counts events of a log; feed it all events, including payloads and the events in them.

    Parameters
    ----------
    captures : (database, table) -> whether its rows count.

    Attributes
    ----------
    ended : of each transaction that has ended since `take_ended`: `ENDED_FIELDS`, one after
        another. The time is that of its last event.
    """

    def __init__(self, captures: Callable[[str, str], bool] | None = None) -> None:
        self._captures = captures or (lambda *_: True)
        self._types: dict[int, tuple[int, int]] = {}
        self._tables: dict[Table, dict[str, OperationCount]] = {}
        self._maps = TableMapRegistry()
        self._counter = RowCounter()
        self._state = TransactionState()
        self._open = _Open()
        self.ended = array("q")

    def add(self, event: Event, size: int) -> None:
        """Count one event of `size` bytes.

        MySQLBinlogError, with the position, if the rows of a counted table can't be counted.
        """
        try:
            rows = self._rows(event, size)
            self._follow(event, rows)
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None
        count, total = self._types.get(event.type, (0, 0))
        self._types[event.type] = count + 1, total + size

    def types(self) -> dict[int, tuple[int, int]]:
        """Return the number of events and their bytes, by type."""
        return dict(self._types)

    def tables(self) -> dict[Table, dict[str, OperationCount]]:
        """Return the counts of each table by operation (c, u, d)."""
        return self._tables

    @property
    def ended_count(self) -> int:
        return len(self.ended) // len(ENDED_FIELDS)

    def take_ended(self) -> bytes:
        """Return and forget `ended`, as int64."""
        taken = self.ended.tobytes()
        self.ended = array("q")
        return taken

    def _rows(self, event: Event, size: int) -> int:
        kind = event.type
        if kind == _FORMAT_DESCRIPTION:
            # A new file, maybe of a restarted server: ids refer to other tables.
            self._maps.clear()
            # A transaction that a crash of the server cut off has no end.
            self._state = TransactionState()
        elif kind == _TABLE_MAP:
            self._maps.add(event.file, event.body)
            self._counter.rows(event)
        if kind not in OPERATIONS:
            return 0
        table_map = self._maps.get(event.file, table_id_of(event.body))
        if table_map is not None and not self._captures(table_map.database, table_map.table):
            return 0
        rows = self._counter.rows(event)
        if table_map is not None:
            name = (table_map.database, table_map.table)
            self._count_of(name, OPERATIONS[kind][0]).add(rows, 1, size)
        return rows

    def _count_of(self, name: Table, op: str) -> OperationCount:
        return self._tables.setdefault(name, {}).setdefault(op, OperationCount())

    def _follow(self, event: Event, rows: int) -> None:
        state, transaction = self._state, self._open
        was_open = state.in_progress
        statement = None
        if event.type == _QUERY:
            query = Query.parse(event.body)
            statement = classify(query.sql, query.database)
        state.follow(event, statement)
        if not was_open and (state.in_progress or state.ended):
            transaction.begin = event.start
            transaction.rows = transaction.events = 0
        transaction.events += 1
        transaction.rows += rows
        if state.ended:
            size = event.end - transaction.begin
            self.ended.extend(
                (transaction.begin, size, transaction.rows, transaction.events, event.timestamp)
            )
            state.ended = False


class EventRowCounter:
    """Counts the rows of events that are read one by one, with the compiled tally if there is one.

    Feed it the table maps, too.
    """

    def __init__(self) -> None:
        self._python = RowCounter()
        self._native: NativeTally | None = None
        self._learnt: dict[int, TableMap] = {}
        if implementation() == "c":
            self._native = _native_tally()

    def learn(self, event: Event, table_map: TableMap, raw: bytes, trailer: int) -> None:
        """Record the table map of an event; `raw` and `trailer` are as for `rows`."""
        self._python.rows(event)
        if self._native is None or self._learnt.get(table_map.table_id) is table_map:
            return
        self._learnt[table_map.table_id] = table_map
        if (columns := _stored_columns(table_map)) is not None:
            self._native.learn(event.body, 0, columns)
        # Of a map that it has not learned, it forgets what the id stood for.
        self._scan(self._native, raw, trailer)

    def forget(self) -> None:
        """Forget all table maps: a new file begins."""
        self._learnt.clear()
        if self._native is not None:
            self._native.forget_ids()

    def rows(self, event: Event, raw: bytes, trailer: int) -> int:
        """Return the number of rows of an event.

        raw : its bytes, of which `trailer` are its checksum.
        """
        native = self._native
        # The bytes of MariaDB's compressed events are not those of the decompressed event.
        if native is not None and raw[4] == event.type:
            native.open = (True, True, 0, 0, 0)
            if self._scan(native, raw, trailer):
                return native.open[3]
        return self._python.rows(event)

    @staticmethod
    def _scan(native: NativeTally, raw: bytes, trailer: int) -> bool:
        read, _ = native.scan(raw, 0, 0, packets=False, trailer=trailer, payload_end=-1)
        return read == len(raw)


def _stored_columns(table_map: TableMap) -> list[tuple[int, bool]] | None:
    """Return (size, is a prefix) of each column; None if one has an unknown type."""
    try:
        stored = map(stored_size, table_map.types, table_map.metadata)
        return [(each.size, each.is_prefix) for each in stored]
    except MySQLBinlogError:
        return None


def _native_tally() -> NativeTally:
    """Return a compiled tally; only where the kernel is used."""
    from pyspark_mysqlbinlog.decoder.kernel import _tally  # noqa: PLC0415 (the kernel is optional)

    return _tally.Tally()


class KernelTally(Tally):
    """A `Tally` that also counts what the compiled scan passes; a `ScanListener`."""

    def __init__(self, captures: Callable[[str, str], bool] | None = None) -> None:
        super().__init__(captures)
        self._native = _native_tally()
        self._indexes: dict[Table, int] = {}

    def payload(self, event: Event) -> None:
        self.add(event, event.end - event.start)

    def add(self, event: Event, size: int) -> None:
        if event.type == _FORMAT_DESCRIPTION:
            self._native.forget_ids()
        elif event.type == _TABLE_MAP:
            self._native.forget_id(table_id_of(event.body))
        elif event.type in OPERATIONS:
            self._learn_in_python(event)
        self._take_native()
        super().add(event, size)

    def passed(
        self, data: memoryview, packets: bool, walker: EventReader | TransactionPayloadReader
    ) -> None:
        native, pos, at = self._native, walker.pos, 0
        trailer = CHECKSUM_LENGTH if walker.has_checksums else 0
        payload = walker if isinstance(walker, TransactionPayloadReader) else None
        refused = -1
        while True:
            self._to_native()
            at, pos = native.scan(
                data,
                at,
                pos,
                packets=packets,
                trailer=trailer,
                payload_end=-1 if payload is None else payload.end,
            )
            self._from_native()
            if at >= len(data):
                return
            head = at + (_PACKET_HEADER if packets else 0)
            timestamp, kind, server_id, length, _, flags = HEADER.unpack_from(data, head)
            raw = bytes(data[head : head + length - trailer])
            if kind == _TABLE_MAP and at != refused and self._learn(raw[HEADER_LENGTH:]):
                refused = at
                continue
            if payload is not None:
                event = payload.event_at(pos + length, raw)
            else:
                body = raw[HEADER_LENGTH:]
                end = pos + length
                event = Event(walker.file, pos, end, timestamp, kind, server_id, flags, body)
            self.add(event, length)
            at, pos = head + length, pos + length

    def types(self) -> dict[int, tuple[int, int]]:
        found = super().types()
        for kind, (count, size) in self._native.types().items():
            other = found.get(kind, (0, 0))
            found[kind] = count + other[0], size + other[1]
        return found

    def tables(self) -> dict[Table, dict[str, OperationCount]]:
        counts = self._native.tables()
        found = {name: {**each} for name, each in self._tables.items()}
        for name, index in self._indexes.items():
            for op, (rows, events, size) in zip(_OPERATIONS, counts[index], strict=True):
                if events:
                    both = OperationCount(rows, events, size)
                    if (other := found.get(name, {}).get(op)) is not None:
                        both.add(other.rows, other.events, other.bytes)
                    found.setdefault(name, {})[op] = both
        return found

    @property
    def ended_count(self) -> int:
        return super().ended_count + self._native.ended_count

    def take_ended(self) -> bytes:
        self._take_native()
        return super().take_ended()

    def _take_native(self) -> None:
        """Append the ended transactions of the compiled tally, which precede the next one."""
        self.ended.frombytes(self._native.take_ended())

    def _learn(self, body: bytes) -> bool:
        """Pass a table map to the compiled tally; return False if it cannot count its rows."""
        try:
            table_map = TableMap.parse(body)
        except MySQLBinlogError:
            return False  # `add` raises it, with the position
        columns = _stored_columns(table_map)
        if columns is None:
            return False
        name = (table_map.database, table_map.table)
        index = None
        if self._captures(*name):
            index = self._indexes.setdefault(name, len(self._indexes))
        self._native.learn(body, index, columns)
        return True

    def _learn_in_python(self, event: Event) -> None:
        """Copy the table map of a rows event from the compiled tally."""
        table_id = table_id_of(event.body)
        body = self._native.body_of(table_id)
        if body and table_id not in DUMMY_TABLE_IDS:
            known = event._replace(type=_TABLE_MAP, body=body)
            self._maps.add(event.file, body)
            self._counter.rows(known)

    def _to_native(self) -> None:
        state, transaction = self._state, self._open
        self._native.open = (
            state.named,
            state.in_group,
            transaction.begin,
            transaction.rows,
            transaction.events,
        )

    def _from_native(self) -> None:
        state, transaction = self._state, self._open
        state.named, state.in_group, transaction.begin, transaction.rows, transaction.events = (
            self._native.open
        )
