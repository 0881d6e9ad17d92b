"""The size of a value in a row image in bytes, from its table map alone.

(calc_field_size in libbinlogevents/src/binary_log_funcs.cpp.)
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType, field_type_name, real_string
from pyspark_mysqlbinlog.decoder.values.decimals import decimal_size
from pyspark_mysqlbinlog.errors import UnsupportedEventError

__all__ = ["StoredSize", "stored_size"]

_FIXED: dict[int, int] = {
    FieldType.NULL: 0,
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.INT24: 3,
    FieldType.LONG: 4,
    FieldType.LONGLONG: 8,
    FieldType.FLOAT: 4,
    FieldType.DOUBLE: 8,
    FieldType.YEAR: 1,
    FieldType.DATE: 3,
    FieldType.NEWDATE: 3,
    FieldType.TIME: 3,
    FieldType.DATETIME: 8,
    FieldType.TIMESTAMP: 4,
}
# Without the fraction, whose number of digits is the metadata.
_FRACTIONAL: dict[int, int] = {
    FieldType.TIME2: 3,
    FieldType.DATETIME2: 5,
    FieldType.TIMESTAMP2: 4,
}
# Their metadata is the number of bytes of their length.
_BLOBS = frozenset(
    {
        FieldType.BLOB,
        FieldType.TINY_BLOB,
        FieldType.MEDIUM_BLOB,
        FieldType.LONG_BLOB,
        FieldType.JSON,
        FieldType.GEOMETRY,
        FieldType.VECTOR,
    }
)


class StoredSize(NamedTuple):
    """Bytes of a value; if `is_prefix`, bytes of the length before it."""

    size: int
    is_prefix: bool = False


def stored_size(code: int, metadata: int) -> StoredSize:
    """Return the size of a column's values.

    UnsupportedEventError for an unknown type, and for metadata that no server writes (a damaged
    table map).
    """
    if code in _FIXED:
        return StoredSize(_FIXED[code])
    if code in _FRACTIONAL:
        return StoredSize(_FRACTIONAL[code] + (metadata + 1) // 2)
    if code in (FieldType.VARCHAR, FieldType.VAR_STRING):
        return StoredSize(_length_bytes(metadata), is_prefix=True)
    if code in _BLOBS:
        if not 1 <= metadata <= 4:
            raise UnsupportedEventError(
                f"{field_type_name(code)} with lengths of {metadata} bytes (expected: 1 to 4)"
            )
        return StoredSize(metadata, is_prefix=True)
    if code == FieldType.NEWDECIMAL:
        precision, scale = metadata >> 8, metadata & 0xFF
        if scale > precision:
            raise UnsupportedEventError(
                f"DECIMAL({precision},{scale}), whose scale is more than its precision"
            )
        return StoredSize(decimal_size(precision, scale))
    if code == FieldType.BIT:
        return StoredSize((metadata >> 8) + (metadata & 0xFF != 0))
    if code == FieldType.STRING:
        real, length = real_string(metadata)
        if real == FieldType.STRING:
            return StoredSize(_length_bytes(length), is_prefix=True)
        return StoredSize(length)  # ENUM and SET
    raise UnsupportedEventError(f"{field_type_name(code)}, whose length is unknown")


def _length_bytes(longest: int) -> int:
    """CHAR and VARCHAR up to 255 bytes have one length byte, longer ones two."""
    return 1 if longest <= 255 else 2
