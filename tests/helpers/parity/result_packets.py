"""Packets of binary result rows, of stored values or drawn by hypothesis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from struct import pack
from typing import Any

from hypothesis import strategies as st

from helpers.values.value_bytes import L300, S64, column, text
from pyspark_mysqlbinlog.decoder.result_rows.columns import Kind, ResultPlan, SelectedColumn
from pyspark_mysqlbinlog.decoder.values.days import MICROS_PER_DAY
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.protocol.wire import lenenc_int
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = [
    "COLUMNS",
    "END",
    "cells",
    "counted",
    "damages",
    "packet",
    "plan_of",
    "result_value",
    "row",
]

END = b"\xfe\x00\x00\x02\x00"
EPOCH = date(1970, 1, 1)


def plan_of(
    columns: Sequence[ColumnSchema],
    *,
    excluded: frozenset[int] = frozenset(),
    typed_json: bool = False,
    doubles_have_points: bool = False,
) -> ResultPlan:
    """Return the plan of a table `d.t` whose columns are named by their numbers."""
    named = tuple(replace(each, name=str(at)) for at, each in enumerate(columns))
    return ResultPlan.make(
        TableSchema("d", "t", named),
        lambda _, __, name: int(name) in excluded,
        typed_json=typed_json,
        doubles_have_points=doubles_have_points,
    )


def row(values: Sequence[bytes | None]) -> bytes:
    """Return the payload of a row; None is NULL."""
    nulls = sum(4 << at for at, value in enumerate(values) if value is None)
    bitmap = nulls.to_bytes((len(values) + 9) // 8, "little")
    return b"".join((b"\x00", bitmap, *(value for value in values if value is not None)))


def packet(payload: bytes, sequence: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + payload


def counted(raw: bytes) -> bytes:
    return lenenc_int(len(raw)) + raw


def _moment(ymd: int, micros: int) -> bytes:
    """Return a date and time in the shortest form, as a server sends it."""
    day = pack("<HBB", ymd // 10_000, ymd // 100 % 100, ymd % 100)
    seconds, micros = divmod(micros, 1_000_000)
    clock = bytes((seconds // 3600, seconds // 60 % 60, seconds % 60))
    raw = day + clock + pack("<I", micros)
    if not micros:
        raw = raw[:7]
        if not seconds:
            raw = raw[:4] if ymd else b""
    return bytes((len(raw),)) + raw


def _time(micros: int) -> bytes:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    hours = seconds // 3600
    raw = pack("<BIBBB", micros < 0, hours // 24, hours % 24, seconds // 60 % 60, seconds % 60)
    if not micros:
        raw = b""
    elif fraction:
        raw += pack("<I", fraction)
    return bytes((len(raw),)) + raw


def result_value(selected: SelectedColumn, stored: bytes) -> bytes:
    """Return a result's value for a value as stored in the binlog, by the decoder's codec."""
    described, size = selected.schema, selected.size
    codec = codec_for(selected.code, selected.metadata, described)
    match selected.kind:
        case Kind.FIXED:
            return stored
        case Kind.INT24:
            is_negative = stored[2] & 0x80 and not described.unsigned
            return stored + (b"\xff" if is_negative else b"\x00")
        case Kind.LABELS:
            return stored.ljust(8, b"\x00")
        case Kind.BIT:
            return counted(stored)
        case Kind.BYTES:
            return counted(stored[size:])
        case Kind.BINARY:
            return counted(stored[size:].ljust(described.length or 0, b"\x00"))
        case Kind.JSON:
            return counted(codec.read_json(stored, 0)[0].encode())
    value: Any = codec.read(stored, 0)[0]
    match selected.kind:
        case Kind.YEAR:
            return pack("<H", value)
        case Kind.DECIMAL:
            return counted(value.encode())
        case Kind.DATE:
            return _moment(value, 0)
        case Kind.TIME:
            return _time(value)
        case Kind.DATETIME:
            return _moment(*value)
        case Kind.TIMESTAMP:
            days, micros = divmod(value or 0, MICROS_PER_DAY)
            day = EPOCH + timedelta(days=days)
            ymd = 0 if value is None else day.year * 10_000 + day.month * 100 + day.day
            return _moment(ymd, micros)
    raise AssertionError(selected)


_FRACTIONS = range(7)
# All kinds, with every number of digits or bytes that changes how values are stored.
COLUMNS: list[ColumnSchema] = [
    *(
        column(kind, unsigned=unsigned)
        for kind in ("tinyint", "smallint", "mediumint", "int", "bigint")
        for unsigned in (False, True)
    ),
    *(column(kind) for kind in ("float", "double", "year", "date", "blob", "point", "longblob")),
    *(column(kind, fsp) for kind in ("time", "datetime", "timestamp") for fsp in _FRACTIONS),
    *(column("bit", bits) for bits in (1, 8, 9, 63, 64)),
    *(
        column("decimal", *sizes)
        for sizes in ((1, 0), (9, 9), (10, 0), (12, 2), (18, 9), (19, 1), (38, 20), (65, 30))
    ),
    *(text(kind, 10) for kind in ("char", "varchar")),
    text("varchar", 255, "latin1"),
    text("varchar", 256, "latin1"),
    *(text(kind) for kind in ("tinytext", "text", "mediumtext", "longtext")),
    column("binary", 4),
    column("binary", 0),
    column("varbinary", 300),
    *(
        column(kind, labels=labels, charset="utf8mb4")
        for kind, labels in (("enum", S64), ("enum", L300), ("set", S64[:9]), ("set", S64))
    ),
]


# Without numbers below 0.0001, whose text does not show whether they are DOUBLE or DECIMAL.
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 65), 1 << 65)
    | st.floats(0.001, 1e300)
    | st.text(max_size=20)
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=20,
)


def _integers(draw: st.DrawFn, size: int) -> bytes:
    return draw(st.binary(min_size=size, max_size=size))


@st.composite
def cells(draw: st.DrawFn, selected: SelectedColumn) -> bytes:
    """Draw a result's value that a server can send."""
    described, size = selected.schema, selected.size
    fsp = described.length or 0
    match selected.kind:
        case Kind.FIXED:
            return _integers(draw, size)
        case Kind.INT24:
            low = 0 if described.unsigned else -1 << 23
            number = draw(st.integers(low, low + (1 << 24) - 1))
            return number.to_bytes(4, "little", signed=not described.unsigned)
        case Kind.LABELS:
            return _integers(draw, size).ljust(8, b"\x00")
        case Kind.YEAR:
            return pack("<H", draw(st.sampled_from((0, 1901, 2000, 2155))))
        case Kind.BIT:
            return counted(_integers(draw, size))
        case Kind.BINARY:
            length = described.length or 0
            return counted(draw(st.binary(max_size=length)).ljust(length, b"\x00"))
        case Kind.BYTES:
            longest = min(300, (1 << 8 * size) - 1)
            return counted(draw(st.binary(max_size=longest)))
        case Kind.DECIMAL:
            precision, scale = selected.metadata >> 8, selected.metadata & 0xFF
            digits = draw(st.integers(0, 10 ** draw(st.integers(0, precision)) - 1))
            sign = "-" if digits and draw(st.booleans()) else ""
            shown = f"{digits:0{scale + (scale < precision)}d}"
            zeros = "0" * draw(st.sampled_from((0, 0, 0, 1, 70)))  # ZEROFILL
            point = len(shown) - scale
            parts = (shown[:point] or "0", shown[point:])
            return counted((sign + zeros + ".".join(parts[: 1 + (scale > 0)])).encode())
        case Kind.JSON:
            return counted(json.dumps(draw(_TREES), ensure_ascii=False).encode())
        case Kind.DATE:
            return _moment(_date(draw), 0)
        case Kind.TIME:
            micros = draw(st.integers(0, 838 * 3600 + 3599)) * 1_000_000 + _fraction(draw, fsp)
            return _time(-micros if draw(st.booleans()) else micros)
        case Kind.DATETIME:
            return _moment(_date(draw), _clock(draw, fsp))
        case Kind.TIMESTAMP:
            if draw(st.integers(0, 9)) == 0:
                return _moment(0, 0)
            day = EPOCH + timedelta(days=draw(st.integers(1, 49_709)))
            return _moment(day.year * 10_000 + day.month * 100 + day.day, _clock(draw, fsp))
    raise AssertionError(selected)


def _date(draw: st.DrawFn) -> int:
    """Draw a date; its parts may be 0, and each month has 31 days."""
    year = draw(st.sampled_from((0, 1, 1970, 2024, 9999)))
    return year * 10_000 + draw(st.integers(0, 12)) * 100 + draw(st.integers(0, 31))


def _fraction(draw: st.DrawFn, fsp: int) -> int:
    units: int = 10 ** (6 - fsp)
    return draw(st.integers(0, 10**fsp - 1)) * units


def _clock(draw: st.DrawFn, fsp: int) -> int:
    seconds = draw(st.sampled_from((0, 0, 1, 60, 86_399)) | st.integers(0, 86_399))
    return seconds * 1_000_000 + _fraction(draw, fsp)


_ODD_BYTES = st.sampled_from((0, 1, 0x30, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF))


@st.composite
def damages(draw: st.DrawFn, payload: bytes) -> bytes:
    """Draw the payload with one byte inserted, removed or replaced, or truncated."""
    at = draw(st.integers(0, len(payload)))
    byte = bytes((draw(_ODD_BYTES | st.integers(0, 255)),))
    match draw(st.integers(0, 3)):
        case 0:
            return payload[:at] + byte + payload[at:]
        case 1:
            return payload[:at] + payload[at + 1 :]
        case 2:
            return payload[:at]
        case _:
            return payload[:at] + byte + payload[at + 1 :]
