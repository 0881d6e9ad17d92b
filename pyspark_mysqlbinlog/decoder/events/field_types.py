"""MySQL's column type codes and their metadata, as a table map contains them.

A table map has one type byte per column, and a block of metadata whose width depends on the type
(libbinlogevents' Table_map_event; Field_*::do_save_field_metadata in sql/field.cc). There are two
exceptions: ENUM and SET are sent as STRING with the real type in the metadata, and a CHAR over 255
bytes has the high bits of its length in that real type's byte.
"""

from __future__ import annotations

from enum import IntEnum

from pyspark_mysqlbinlog.errors import UnsupportedEventError

__all__ = [
    "METADATA_LENGTHS",
    "OLD_TEMPORALS",
    "FieldType",
    "describe_field",
    "field_type_name",
    "real_string",
]


class FieldType(IntEnum):
    """enum_field_types (include/field_types.h of 9.0)."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


# The layout before 5.6, which MariaDB also makes with mysql56_temporal_format=OFF.
OLD_TEMPORALS = frozenset({FieldType.TIME, FieldType.DATETIME, FieldType.TIMESTAMP})

# Bytes in the metadata block. Two-byte values are little-endian for VARCHAR and BIT, but two single
# bytes in this order for NEWDECIMAL (precision, scale) and STRING (real type, length).
METADATA_LENGTHS: dict[int, int] = {
    FieldType.TINY: 0,
    FieldType.SHORT: 0,
    FieldType.LONG: 0,
    FieldType.FLOAT: 1,
    FieldType.DOUBLE: 1,
    FieldType.NULL: 0,
    FieldType.TIMESTAMP: 0,
    FieldType.LONGLONG: 0,
    FieldType.INT24: 0,
    FieldType.DATE: 0,
    FieldType.TIME: 0,
    FieldType.DATETIME: 0,
    FieldType.YEAR: 0,
    FieldType.NEWDATE: 0,
    FieldType.VARCHAR: 2,
    FieldType.BIT: 2,
    FieldType.TIMESTAMP2: 1,
    FieldType.DATETIME2: 1,
    FieldType.TIME2: 1,
    FieldType.VECTOR: 1,
    FieldType.JSON: 1,
    FieldType.NEWDECIMAL: 2,
    FieldType.ENUM: 2,
    FieldType.SET: 2,
    FieldType.TINY_BLOB: 1,
    FieldType.MEDIUM_BLOB: 1,
    FieldType.LONG_BLOB: 1,
    FieldType.BLOB: 1,
    FieldType.VAR_STRING: 2,
    FieldType.STRING: 2,
    FieldType.GEOMETRY: 1,
}


def field_type_name(code: int) -> str:
    """Return the type's name, or ``type 99`` for an undefined type."""
    try:
        return FieldType(code).name
    except ValueError:
        return f"type {code}"


def real_string(metadata: int) -> tuple[int, int]:
    """Return real type and length of a STRING (CHAR: maximum bytes; ENUM, SET: number's bytes).

    The high byte is the real type, the low byte the length. Real types are 0xf7, 0xf8 and 0xfe:
    all have 0x30 set. A CHAR over 255 bytes has the length's bits 8 and 9, inverted, in those
    two bits::

        metadata   tttt tttt  llll llll      t: 0xfe ^ ((length & 0x300) >> 4)
    """
    high, low = metadata >> 8, metadata & 0xFF
    if high & 0x30 != 0x30:
        low |= ((high & 0x30) ^ 0x30) << 4
        high |= 0x30
    if high not in (FieldType.STRING, FieldType.ENUM, FieldType.SET):
        raise UnsupportedEventError(
            f"a STRING column has the real type {field_type_name(high)} (metadata"
            f" 0x{metadata:04x}), expected STRING, ENUM or SET"
        )
    return high, low


def describe_field(code: int, metadata: int) -> str:
    """Describe type and metadata for messages: ``NEWDECIMAL(10,2)``, ``CHAR of 40 bytes``."""
    if code == FieldType.STRING:
        real, length = real_string(metadata)
        name = "CHAR" if real == FieldType.STRING else field_type_name(real)
        return f"{name} of {length} bytes"
    if code in (FieldType.VARCHAR, FieldType.VAR_STRING):
        return f"{field_type_name(code)} of {metadata} bytes"
    if code == FieldType.NEWDECIMAL:
        return f"NEWDECIMAL({metadata >> 8},{metadata & 0xFF})"
    if code == FieldType.BIT:
        return f"BIT({(metadata >> 8) * 8 + (metadata & 0xFF)})"
    if code in (FieldType.BLOB, FieldType.JSON, FieldType.GEOMETRY, FieldType.VECTOR):
        return f"{field_type_name(code)} with {metadata} length bytes"
    if METADATA_LENGTHS.get(code, 0):
        return f"{field_type_name(code)}({metadata})"
    return field_type_name(code)
