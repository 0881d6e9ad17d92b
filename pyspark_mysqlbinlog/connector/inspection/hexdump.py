"""An event byte by byte, each field with its name and its meaning."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.entries import Entry
from pyspark_mysqlbinlog.connector.inspection.layout.fields import Field, FieldReader
from pyspark_mysqlbinlog.connector.inspection.layout.layouts import LAYOUTS, flags_text
from pyspark_mysqlbinlog.connector.inspection.layout.rows_layout import read_rows
from pyspark_mysqlbinlog.connector.inspection.literals import printable
from pyspark_mysqlbinlog.connector.inspection.text import event_name, time_text
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.protocol.checksum import CHECKSUM_LENGTH
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, type_name

__all__ = ["fields_of", "hexdump"]

_FLAGS = {
    0x01: "BINLOG_IN_USE",
    0x04: "THREAD_SPECIFIC",
    0x08: "SUPPRESS_USE",
    0x20: "ARTIFICIAL",
    0x40: "RELAY_LOG",
    0x80: "IGNORABLE",
    0x100: "NO_FILTER",
    0x200: "MTS_ISOLATE",
}
_BYTES_IN_LINE = 16
# A value may have many megabytes.
_MAX_SHOWN_BYTES = 1024


def fields_of(entry: Entry, columns: ColumnsOfTable | None) -> list[Field]:
    """Return the fields of an entry, which cover all of its bytes; offsets are in the event.

    Raises MalformedEventError where the bytes do not fit the event's layout.
    """
    raw, kind = entry.logged.raw, entry.logged.raw[4]
    end = len(raw) - (CHECKSUM_LENGTH if entry.logged.has_checksum else 0)
    reader = FieldReader(raw[:end], type_name(kind), HEADER_LENGTH)
    fields = _header(raw)
    reader.section = "post-header"
    if kind in OPERATIONS:
        read_rows(reader, kind, columns)
    elif kind in LAYOUTS:
        LAYOUTS[kind](reader)
    reader.section = reader.section if kind in LAYOUTS else "body"
    reader.rest("not named here")
    fields += reader.fields
    if end < len(raw):
        checksum = int.from_bytes(raw[end:], "little")
        fields.append(Field(end, len(raw), "checksum", "CRC32", f"0x{checksum:08x}"))
    return fields


def _header(raw: bytes) -> list[Field]:
    reader = FieldReader(raw[:HEADER_LENGTH], "an event header")
    reader.section = "header"
    timestamp = reader.uint("timestamp", 4)
    reader.explain(f"{timestamp} = {time_text(timestamp)} UTC")
    kind = reader.uint("type", 1)
    reader.explain(f"{kind} = {event_name(kind)}")
    reader.uint("server id", 4)
    reader.uint("event length", 4)
    reader.uint("end position", 4)
    reader.explain(flags_text(reader.uint("flags", 2), _FLAGS))
    return reader.fields


def hexdump(entry: Entry, columns: ColumnsOfTable | None) -> Iterator[str]:
    """Yield the lines of an entry: position, bytes, and the names of the fields."""
    event, raw = entry.event, entry.logged.raw
    start = event.start if event.offset is None else event.offset
    section = ""
    for field in fields_of(entry, columns):
        if field.section != section:
            section = field.section
            yield f"# {section}"
        meaning = f": {printable(field.meaning)}" if field.meaning else ""
        text = f"{printable(field.name)}{meaning}"
        shown = min(field.end, field.begin + _MAX_SHOWN_BYTES)
        for at in range(field.begin, shown, _BYTES_IN_LINE):
            part = raw[at : min(at + _BYTES_IN_LINE, shown)].hex(" ")
            place = f"{'+' if entry.is_inner else ''}{start + at}"
            yield f"# {place:>10}  {part:<{3 * _BYTES_IN_LINE - 1}}  {text}".rstrip()
            text = ""
        if shown < field.end:
            yield f"# {'':>10}  … {field.end - shown:,} more bytes"
