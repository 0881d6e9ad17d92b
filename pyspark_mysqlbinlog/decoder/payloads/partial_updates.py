"""PARTIAL_UPDATE_ROWS (39): updates whose after images may have JSON diffs, made whole.

The event is like an UPDATE_ROWS (v2), except for the after images (sql/log_event.h of 8.0)::

    value options lenenc | [if 1: partial bits] | null bitmap | values
    partial bits: one for each JSON column of the table, present or not

The value of a column whose partial bit is set is a diff, with the length of 4 bytes that a document
has, too. It is applied to the before image's document. If the before image does not have the
column (binlog_row_image minimal or noblob), or not reliably, the column is removed from the after
image, and is therefore listed in `source.missing`: the rest of the document is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.events.rows import RowsHead
from pyspark_mysqlbinlog.decoder.values.codec import Skip, cut_short
from pyspark_mysqlbinlog.decoder.values.json_diff import apply_diffs
from pyspark_mysqlbinlog.errors import UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["PARTIAL_UPDATE", "json_diffs", "skip_options", "whole_updates"]

PARTIAL_UPDATE = int(EventType.PARTIAL_UPDATE_ROWS_EVENT)
_UPDATE = int(EventType.UPDATE_ROWS_EVENT)
_PARTIAL_JSON = 1
_LENGTH_BYTES = 4


class _Column(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def skip(self) -> Skip: ...
    @property
    def before_image_unreliable(self) -> bool: ...


class _Image(NamedTuple):
    """The places of an image's values.

    Attributes
    ----------
    spans : column -> begin and end in the body; None for NULL.
    end : position after it.
    """

    spans: dict[int, tuple[int, int] | None]
    end: int


def whole_updates(
    event: Event, head: RowsHead, types: bytes, columns: Sequence[_Column]
) -> Iterator[tuple[int, Event]]:
    """Yield the rows of an event as UPDATE_ROWS events, each with the number of its first row.

    There are several if the rows do not have the same columns in their after images.

    Parameters
    ----------
    types, columns : of the table map.
    """
    assert head.before is not None
    assert head.after is not None
    data, pos, end = event.body, head.rows_start, len(event.body)
    before_columns, after_columns = _present(head.before), _present(head.after)
    shared = data[: pos - len(head.after)]
    present, first = head.after, 0
    rows: list[bytes] = []
    row = 0
    while not row or pos < end:
        before = _image(columns, before_columns, data, pos)
        options = _Options(types, data, before.end)
        after = _image(columns, after_columns, data, options.end)
        values: dict[int, bytes | None] = {}
        here = bytearray(head.after)
        for at, span in after.spans.items():
            if span is None:
                values[at] = None
            elif not options.is_partial(at):
                values[at] = data[slice(*span)]
            elif (document := before.spans.get(at)) and not columns[at].before_image_unreliable:
                values[at] = _whole(data, document, span, columns[at].name)
            elif at in before.spans and not columns[at].before_image_unreliable:
                raise UnsupportedEventError(
                    f"column `{columns[at].name}` has a JSON diff, and is NULL in the before image"
                )
            else:
                here[at >> 3] &= ~(1 << (at & 7))
        if here != present and rows:
            yield first, _update(event, shared, present, rows)
            rows = []
        if not rows:
            present, first = bytes(here), row
        rows += [data[pos : before.end], _packed(values)]
        pos = after.end
        row += 1
    yield first, _update(event, shared, present, rows)


def json_diffs(
    event: Event, head: RowsHead, types: bytes, columns: Sequence[_Column]
) -> Iterator[dict[int, bytes]]:
    """Yield the diffs of each row of an event: column -> its diffs, without their length."""
    assert head.before is not None
    assert head.after is not None
    data, pos = event.body, head.rows_start
    before_columns, after_columns = _present(head.before), _present(head.after)
    while pos < len(data):
        options = _Options(types, data, _image(columns, before_columns, data, pos).end)
        after = _image(columns, after_columns, data, options.end)
        yield {
            at: data[span[0] + _LENGTH_BYTES : span[1]]
            for at, span in after.spans.items()
            if span is not None and options.is_partial(at)
        }
        pos = after.end


def skip_options(types: bytes, data: bytes, pos: int) -> int:
    """Return the position of the null bitmap of the after image at `pos`."""
    return _Options(types, data, pos).end


class _Options:
    """The value options and partial bits before an after image."""

    def __init__(self, types: bytes, data: bytes, pos: int) -> None:
        reader = Reader(data, "PARTIAL_UPDATE_ROWS_EVENT", pos)
        options = reader.lenenc_int()
        if options not in (0, _PARTIAL_JSON):
            raise UnsupportedEventError(
                f"PARTIAL_UPDATE_ROWS_EVENT has row value options {options}, expected 0 or"
                f" {_PARTIAL_JSON}"
            )
        self._columns = [at for at, code in enumerate(types) if code == FieldType.JSON]
        self._bits = 0
        if options:
            self._bits = reader.uint((len(self._columns) + 7) // 8)
        self.end = reader.pos

    def is_partial(self, column: int) -> bool:
        """Whether the after image has a diff of a column instead of a document."""
        return column in self._columns and bool(self._bits >> self._columns.index(column) & 1)


def _present(bitmap: bytes) -> list[int]:
    return [at for at in range(8 * len(bitmap)) if bitmap[at >> 3] >> (at & 7) & 1]


def _image(columns: Sequence[_Column], present: list[int], data: bytes, pos: int) -> _Image:
    present = [at for at in present if at < len(columns)]
    length = (len(present) + 7) // 8
    if pos + length > len(data):
        raise cut_short("its null bitmap", length, data, pos)
    nulls = int.from_bytes(data[pos : pos + length], "little")
    pos += length
    spans: dict[int, tuple[int, int] | None] = {}
    for index, at in enumerate(present):
        if nulls >> index & 1:
            spans[at] = None
        else:
            begin, pos = pos, columns[at].skip(data, pos)
            spans[at] = begin, pos
    return _Image(spans, pos)


def _whole(data: bytes, document: tuple[int, int], diffs: tuple[int, int], name: str) -> bytes:
    """Return a column's value after its diffs."""
    begin, end = document
    value = apply_diffs(
        data[begin + _LENGTH_BYTES : end],
        data[diffs[0] + _LENGTH_BYTES : diffs[1]],
        f"column `{name}`",
    )
    return len(value).to_bytes(_LENGTH_BYTES, "little") + value


def _packed(values: dict[int, bytes | None]) -> bytes:
    """Return an image of these values."""
    nulls = sum(1 << index for index, value in enumerate(values.values()) if value is None)
    bitmap = nulls.to_bytes((len(values) + 7) // 8, "little")
    return b"".join((bitmap, *(value for value in values.values() if value is not None)))


def _update(event: Event, shared: bytes, present: bytes, rows: list[bytes]) -> Event:
    return event._replace(type=_UPDATE, body=b"".join((shared, present, *rows)))
