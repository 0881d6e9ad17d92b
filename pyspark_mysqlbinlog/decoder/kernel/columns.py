"""What the kernel must know of a column: its table map's entry and its schema, joined.

The kernel does what it fully understands. A column that it does not (an odd width, a character set
that nobody has) has no spec; its table is the pure-Python twin's, which decodes it or says what is
wrong with it. `values/choose.py` is what this must agree with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark_mysqlbinlog.charsets import canonical_charset
from pyspark_mysqlbinlog.decoder.field_types import FieldType, real_string
from pyspark_mysqlbinlog.decoder.values.charsets import decoder_of
from pyspark_mysqlbinlog.decoder.values.codec import quote
from pyspark_mysqlbinlog.decoder.values.decimals import decimal_size
from pyspark_mysqlbinlog.errors import UnsupportedEventError
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["ColumnSpec", "column_spec"]

_INTEGERS: dict[int, int] = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.INT24: 3,
    FieldType.LONG: 4,
    FieldType.LONGLONG: 8,
}
# Types whose values are of one size, whatever their metadata.
_PLAIN: dict[int, tuple[str, int]] = {
    FieldType.FLOAT: ("Float", 4),
    FieldType.DOUBLE: ("Double", 8),
    FieldType.YEAR: ("Year", 1),
    FieldType.DATE: ("Date", 3),
    FieldType.NEWDATE: ("Date", 3),
    FieldType.TIME: ("TimeOld", 3),
    FieldType.DATETIME: ("DatetimeOld", 8),
    FieldType.TIMESTAMP: ("TimestampOld", 4),
}
# Kind, and bytes before the fraction.
_FRACTIONAL: dict[int, tuple[str, int]] = {
    FieldType.TIME2: ("Time", 3),
    FieldType.DATETIME2: ("Datetime", 5),
    FieldType.TIMESTAMP2: ("Timestamp", 4),
}
_BLOBS = (
    FieldType.BLOB,
    FieldType.TINY_BLOB,
    FieldType.MEDIUM_BLOB,
    FieldType.LONG_BLOB,
    FieldType.JSON,
    FieldType.GEOMETRY,
)
_MAX_DECIMAL_DIGITS = 65
_LARGEST_BINARY = 65_535


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column; `Column` in kernel/column.hpp tells the fields and the kinds.

    charset : MySQL's name, canonical; of kind Text only.
    labels : as they are numbered: ENUM's begin with '', the invalid value.
    """

    kind: str
    size: int
    name: str = ""
    is_unsigned: bool = False
    precision: int = 0
    scale: int = 0
    fsp: int = 0
    bits: int = 0
    padded: int = -1
    charset: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def json_key(self) -> str:
        """The name as a JSON string, with its colon."""
        return f"{quote(self.name)}:"


def column_spec(
    code: int, metadata: int, schema: ColumnSchema | None, excluded: bool = False
) -> ColumnSpec | None:
    """The spec of a column whose type, metadata and schema are known to fit (see fit.py).

    schema : None where there is none, which will do for an excluded column.

    None where the kernel can't read such a column.
    """
    try:
        spec = _skipped(code, metadata) if excluded or schema is None else None
        if spec is None and schema is not None and not excluded:
            spec = _shown(code, metadata, schema)
        if spec is None:
            return None
        # What is not text can't be handed on as UTF-8.
        "\0".join((spec.name, *spec.labels)).encode()
    except (UnsupportedEventError, UnicodeEncodeError):
        return None
    return spec


def _length_bytes(longest: int) -> int:
    return 1 if longest <= 255 else 2


def _skipped(code: int, metadata: int) -> ColumnSpec | None:
    fixed = partial(ColumnSpec, "FixedSkip")
    if code in _INTEGERS:
        return fixed(_INTEGERS[code])
    if code in _PLAIN:
        return fixed(_PLAIN[code][1])
    if code in _FRACTIONAL:
        return fixed(_FRACTIONAL[code][1] + (metadata + 1) // 2)
    if code == FieldType.NULL:
        return fixed(0)
    if code == FieldType.NEWDECIMAL:
        precision, scale = metadata >> 8, metadata & 0xFF
        return fixed(decimal_size(precision, scale)) if scale <= precision else None
    if code == FieldType.BIT:
        return fixed((metadata >> 8) + (metadata & 0xFF != 0))
    if code in (FieldType.VARCHAR, FieldType.VAR_STRING):
        return ColumnSpec("PrefixedSkip", _length_bytes(metadata))
    if code in _BLOBS:
        return ColumnSpec("PrefixedSkip", metadata) if 1 <= metadata <= 4 else None
    if code == FieldType.STRING:
        real, length = real_string(metadata)
        if real == FieldType.STRING:
            return ColumnSpec("PrefixedSkip", _length_bytes(length))
        return fixed(length)
    return None


def _shown(code: int, metadata: int, schema: ColumnSchema) -> ColumnSpec | None:
    name = schema.name
    if code in _INTEGERS:
        return ColumnSpec("Integer", _INTEGERS[code], name, is_unsigned=schema.unsigned)
    if code in _PLAIN:
        kind, size = _PLAIN[code]
        return ColumnSpec(kind, size, name)
    if code in _FRACTIONAL:
        kind, size = _FRACTIONAL[code]
        if metadata > 6:
            return None
        return ColumnSpec(kind, size + (metadata + 1) // 2, name, fsp=metadata)
    match code:
        case FieldType.NEWDECIMAL:
            precision, scale = metadata >> 8, metadata & 0xFF
            if not 0 < precision <= _MAX_DECIMAL_DIGITS or scale > precision:
                return None
            size = decimal_size(precision, scale)
            return ColumnSpec("Decimal", size, name, precision=precision, scale=scale)
        case FieldType.BIT:
            bits = (metadata >> 8) * 8 + (metadata & 0xFF)
            return ColumnSpec("Bit", (bits + 7) // 8, name, bits=bits) if 0 < bits <= 64 else None
        case FieldType.VARCHAR:
            return _string(_length_bytes(metadata), schema)
        case FieldType.BLOB if 1 <= metadata <= 4:
            return _string(metadata, schema)
        case FieldType.JSON if 1 <= metadata <= 4:
            return ColumnSpec("Json", metadata, name)
        case FieldType.GEOMETRY if 1 <= metadata <= 4:
            return ColumnSpec("Geometry", metadata, name)
        case FieldType.STRING:
            real, length = real_string(metadata)
            if real == FieldType.STRING:
                return _string(_length_bytes(length), schema)
            return _labels(real, length, schema)
    return None


def _string(length_bytes: int, schema: ColumnSchema) -> ColumnSpec | None:
    kind = schema.type
    if kind == "binary":
        padded = -1 if schema.length is None else schema.length
        if padded > _LARGEST_BINARY:
            return None
        return ColumnSpec("Binary", length_bytes, schema.name, padded=padded)
    if kind == "varbinary" or kind.endswith("blob"):
        return ColumnSpec("Binary", length_bytes, schema.name)
    charset = canonical_charset(schema.charset or "")
    if decoder_of(charset) is None:
        return None
    return ColumnSpec("Text", length_bytes, schema.name, charset=charset)


def _labels(real: int, size: int, schema: ColumnSchema) -> ColumnSpec | None:
    if size not in (1, 2, 3, 4, 8):
        return None
    if schema.type == "bigint":
        # Without a schema labels are their numbers (see positional.py).
        return ColumnSpec("Integer", size, schema.name, is_unsigned=True)
    if real == FieldType.ENUM:
        labels = ("", *schema.labels)
        return ColumnSpec("Enum", size, schema.name, labels=labels) if size <= 2 else None
    if len(schema.labels) > 64:
        return None
    return ColumnSpec("Set", size, schema.name, labels=schema.labels)
