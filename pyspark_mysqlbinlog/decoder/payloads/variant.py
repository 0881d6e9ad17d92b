"""Encode values as Spark's VARIANT: Parquet's variant format, version 1.

A variant is two byte strings. `metadata` is the dictionary of all its keys::

    header u8: (offset size - 1) << 6 | sorted << 4 | version 1
    size | offsets[size + 1] | the keys in UTF-8                     each number of `offset size`

`value` begins with a header byte, whose low two bits are the basic type::

    tttt tt00   primitive of type t, then its bytes (numbers little-endian)
    llll ll01   string of l < 64 bytes
    0w ii oo 10 object: size (u8, u32 if w) | ids[size] | offsets[size + 1] | values
    000 w oo 11 array:  size (u8, u32 if w) | offsets[size + 1] | values

`ii` and `oo` are the bytes of an id and of an offset, minus one. The ids of an object are in the
order of their keys, the values in any order. Keys are ordered as in Java (UTF-16 units), because
Spark searches a key in a large object by bisection with Java's compareTo. Beyond the format itself,
Spark requires integers in the narrowest type, and rejects a variant over `SIZE_LIMIT`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate

from pyspark_mysqlbinlog.decoder.schemas.struct_types import MOST_DIGITS
from pyspark_mysqlbinlog.decoder.values.json_binary import JsonTree
from pyspark_mysqlbinlog.errors import UnrepresentableValueError

__all__ = [
    "FALSE",
    "NULL",
    "SIZE_LIMIT",
    "TRUE",
    "Keys",
    "decimal_value",
    "encode_array",
    "encode_binary",
    "encode_date",
    "encode_decimal",
    "encode_double",
    "encode_fields",
    "encode_float",
    "encode_integer",
    "encode_metadata",
    "encode_object",
    "encode_string",
    "encode_timestamp",
    "encode_timestamp_ntz",
    "encode_tree",
    "key_order",
    "within_limit",
]

# org.apache.spark.types.variant.VariantUtil.SIZE_LIMIT, for the value and for the metadata.
SIZE_LIMIT = 128 << 20

NULL, TRUE, FALSE = b"\x00", b"\x04", b"\x08"
_VERSION = 1

_int1 = struct.Struct("<Bb").pack
_int2 = struct.Struct("<Bh").pack
_int4 = struct.Struct("<Bi").pack
_int8 = struct.Struct("<Bq").pack
_double = struct.Struct("<Bd").pack
_float = struct.Struct("<Bf").pack
_length = struct.Struct("<BI").pack
_decimal4 = struct.Struct("<BBi").pack
_decimal8 = struct.Struct("<BBq").pack
_NUMBERS = {1: "B", 2: "H", 4: "I"}

# Key -> its id, in the order of first use: the dictionary of one variant.
Keys = dict[str, int]


def encode_integer(value: int) -> bytes:
    """Encode as int1, int2, int4, int8, or beyond as a decimal: UNSIGNED reaches 2^64 - 1."""
    if -0x80 <= value < 0x80:
        return _int1(3 << 2, value)
    if -0x8000 <= value < 0x8000:
        return _int2(4 << 2, value)
    if -0x8000_0000 <= value < 0x8000_0000:
        return _int4(5 << 2, value)
    if -(1 << 63) <= value < 1 << 63:
        return _int8(6 << 2, value)
    return decimal_value(value, 0)


def encode_double(value: float) -> bytes:
    return _double(7 << 2, value)


def encode_float(value: float) -> bytes:
    """Encode the stored float32."""
    return _float(14 << 2, value)


def decimal_value(unscaled: int, scale: int) -> bytes:
    """Encode as decimal4, 8 or 16: the first whose 9, 18 or 38 digits hold digits and scale."""
    digits = max(len(str(abs(unscaled))), scale)
    if digits <= 9:
        return _decimal4(8 << 2, scale, unscaled)
    if digits <= 18:
        return _decimal8(9 << 2, scale, unscaled)
    assert digits <= MOST_DIGITS, digits
    return bytes((10 << 2, scale)) + unscaled.to_bytes(16, "little", signed=True)


def encode_decimal(text: str) -> bytes:
    """Encode a decimal of up to 38 digits from its text, such as ``-12.50``; keep its scale."""
    whole, _, fraction = text.partition(".")
    return decimal_value(int(whole + fraction), len(fraction))


def encode_date(days: int) -> bytes:
    """Encode days since 1970."""
    return _int4(11 << 2, days)


def encode_timestamp(micros: int) -> bytes:
    """Encode microseconds since 1970 UTC."""
    return _int8(12 << 2, micros)


def encode_timestamp_ntz(micros: int) -> bytes:
    """Encode microseconds since 1970 in local time."""
    return _int8(13 << 2, micros)


def encode_binary(raw: bytes) -> bytes:
    return _length(15 << 2, len(raw)) + raw


def encode_string(text: str) -> bytes:
    raw = text.encode()
    size = len(raw)
    if size < 64:
        return bytes((size << 2 | 1,)) + raw
    return _length(16 << 2, size) + raw


def _width(number: int) -> int:
    """Return the bytes of an id or offset that is at most `number`."""
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3 if number < 1 << 24 else 4


def _numbers(numbers: Sequence[int], width: int) -> bytes:
    code = _NUMBERS.get(width)
    if code is None:
        return b"".join([number.to_bytes(width, "little") for number in numbers])
    return struct.pack(f"<{len(numbers)}{code}", *numbers)


def key_order(key: str) -> bytes:
    """Return the sort key of an object's key: Java's String.compareTo, by UTF-16 units."""
    return key.encode("utf-16-be", "surrogatepass")


def encode_object(values: Sequence[bytes], ids: Sequence[int], order: Sequence[int]) -> bytes:
    """Encode an object.

    Parameters
    ----------
    values : encoded, in the order in which they are written.
    ids : of the keys, in the order of the keys.
    order : for each id, the index of its value. The last value may be an empty one without a
        field.
    """
    ends = [0, *accumulate(map(len, values))]
    size = len(ids)
    total = ends[-1]
    id_width, width = _width(max(ids, default=0)), _width(total)
    large = size > 0xFF
    header = (large << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | 2
    offsets = [ends[at] for at in order]
    offsets.append(total)
    return b"".join(
        (
            bytes((header,)),
            size.to_bytes(4 if large else 1, "little"),
            _numbers(ids, id_width),
            _numbers(offsets, width),
            *values,
        )
    )


def encode_array(values: Sequence[bytes]) -> bytes:
    """Encode an array of encoded values."""
    ends = [0, *accumulate(map(len, values))]
    width = _width(ends[-1])
    large = len(values) > 0xFF
    header = (large << 2 | (width - 1)) << 2 | 3
    size = len(values).to_bytes(4 if large else 1, "little")
    return b"".join((bytes((header,)), size, _numbers(ends, width), *values))


def encode_fields(fields: Mapping[str, bytes], keys: Keys) -> bytes:
    """Encode an object of encoded values by key; new keys get ids."""
    names = sorted(fields, key=key_order)
    place = {name: at for at, name in enumerate(fields)}
    ids = [keys.setdefault(name, len(keys)) for name in names]
    return encode_object(list(fields.values()), ids, [place[name] for name in names])


def encode_metadata(keys: Iterable[str]) -> bytes:
    """Encode the dictionary: keys in the order of their ids."""
    raw = [key.encode() for key in keys]
    ends = [0, *accumulate(map(len, raw))]
    width = _width(max(ends[-1], len(raw)))
    header = (width - 1) << 6 | _VERSION
    parts = (bytes((header,)), _numbers([len(raw)], width), _numbers(ends, width), *raw)
    return within_limit(b"".join(parts))


def within_limit(encoded: bytes) -> bytes:
    """Return a whole value or its metadata; UnrepresentableValueError if too large for Spark."""
    if len(encoded) > SIZE_LIMIT:
        raise UnrepresentableValueError(
            f"the row's variant is {len(encoded)} bytes, expected at most {SIZE_LIMIT}, the limit"
            " of Spark; exclude its largest columns with excludeColumns, or use"
            " payload=json"
        )
    return encoded


def encode_tree(tree: JsonTree, keys: Keys) -> bytes:
    """Encode a JSON document; dates and opaque values in it are strings, as SELECT shows them.

    A decimal of more than 38 digits is a string, as for a column. MySQL limits the depth of
    documents to 100, so recursion is safe.
    """
    if isinstance(tree, str):
        return encode_string(tree)
    if tree is None:
        return NULL
    if isinstance(tree, bool):
        return TRUE if tree else FALSE
    if isinstance(tree, int):
        return encode_integer(tree)
    if isinstance(tree, float):
        return encode_double(tree)
    if isinstance(tree, dict):
        return encode_fields({key: encode_tree(each, keys) for key, each in tree.items()}, keys)
    if isinstance(tree, list):
        return encode_array([encode_tree(each, keys) for each in tree])
    if isinstance(tree, Decimal):
        text = f"{tree:f}"
        if sum(map(str.isdigit, text)) > MOST_DIGITS:
            return encode_string(text)
        return encode_decimal(text)
    return encode_string(tree.text)
