"""Counts the rows of events by the lengths of their row images, without decoding.

It needs no schema: a table map determines the length of every value.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS, RowsHead
from pyspark_mysqlbinlog.decoder.events.table_map import DUMMY_TABLE_IDS, TableMap, TableMapRegistry
from pyspark_mysqlbinlog.decoder.payloads.partial_updates import PARTIAL_UPDATE, skip_options
from pyspark_mysqlbinlog.decoder.payloads.payload import skip_image
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, ImagePlan
from pyspark_mysqlbinlog.decoder.values.select_codec import skip_for
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.events import Event, EventType, type_name

__all__ = ["RowCounter"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)


class RowCounter:
    """Counts rows of events; feed it whole transactions, table maps included."""

    def __init__(self) -> None:
        self._table_maps = TableMapRegistry()
        self._columns: dict[int, tuple[TableMap, tuple[ColumnPlan, ...]]] = {}

    def rows(self, event: Event) -> int:
        """Return the number of rows in this event; 0 if it is not a rows event."""
        return sum(1 for _ in self.starts(event))

    def starts(self, event: Event) -> Iterator[int]:
        """Yield the offset of each row in the event's body."""
        if event.type == _TABLE_MAP:
            self._table_maps.add(event.file, event.body)
        if event.type not in OPERATIONS:
            return
        head = RowsHead.parse(event.type, event.body)
        table_map = self._table_maps.get(event.file, head.table_id)
        if table_map is None:
            if head.table_id in DUMMY_TABLE_IDS:
                return
            raise MalformedEventError(
                f"{type_name(event.type)} has table id {head.table_id}, expected one of a table map"
                " before it"
            )
        if head.column_count != table_map.column_count:
            raise MalformedEventError(
                f"{type_name(event.type)} has {head.column_count} columns, expected the"
                f" {table_map.column_count} of its table map"
            )
        images = [self._image(table_map, bits) for bits in (head.before, head.after) if bits]
        data, pos = event.body, head.rows_start
        while pos < len(data):
            start = pos
            yield start
            for image in images:
                if event.type == PARTIAL_UPDATE and image is not images[0]:
                    pos = skip_options(table_map.types, data, pos)
                pos = skip_image(image, data, pos)
            if pos == start:
                raise MalformedEventError(f"{type_name(event.type)} has row images of no bytes")

    def _image(self, table_map: TableMap, present: bytes) -> ImagePlan:
        known = self._columns.get(table_map.table_id)
        if known is None or known[0] is not table_map:
            columns = tuple(
                ColumnPlan(f"@{at + 1}", "", skip_for(code, metadata, f"column {at + 1}"), None)
                for at, (code, metadata) in enumerate(
                    zip(table_map.types, table_map.metadata, strict=True)
                )
            )
            known = self._columns[table_map.table_id] = (table_map, columns)
            if len(self._columns) > 1024:
                self._columns = {table_map.table_id: known}
        held = tuple(
            column for at, column in enumerate(known[1]) if present[at >> 3] >> (at & 7) & 1
        )
        return ImagePlan(held, (len(held) + 7) // 8, ())
