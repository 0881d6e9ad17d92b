"""Rows as bytes that are equal only for equal rows, and the net change of a series of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import pack
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["MultiplicityChange", "canonical_row_bytes", "net_changes"]


@dataclass(frozen=True, slots=True)
class MultiplicityChange:
    """Net effect of a series of changes on the multiplicity of one row.

    Attributes
    ----------
    last : index of its last change in the series.
    net : number of copies added, or removed if negative.
    minimum : minimum of the running change; 0 or less.
    """

    last: int
    net: int
    minimum: int


def net_changes(rows: Iterable[bytes], tombstone_flags: Iterable[bool]) -> list[MultiplicityChange]:
    """Return the net change of each distinct row; each item removes (tombstone) or adds one copy.

    rows : from `canonical_row_bytes`.
    """
    found: dict[bytes, tuple[int, int, int]] = {}
    for at, (row, is_tombstone) in enumerate(zip(rows, tombstone_flags, strict=True)):
        _, change, least = found.get(row, (0, 0, 0))
        change += -1 if is_tombstone else 1
        found[row] = at, change, min(least, change)
    return [MultiplicityChange(*each) for each in found.values()]


def canonical_row_bytes(rows: pa.Table) -> pa.Array[Any]:
    """Return bytes for each row that are the same for an equal row, and for no other."""
    parts = [_texts(column.combine_chunks()) for column in rows.columns]
    if not parts:
        raise MirrorError("a table without columns has no rows to compare")
    joined: pa.Array[Any] = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    return joined


def _texts(values: Any) -> Any:
    """Return ``length:bytes`` for each value, or ``-`` for NULL."""
    kind = values.type
    if pa.types.is_struct(kind):
        inside = [_texts(pc.struct_field(values, [at])) for at in range(kind.num_fields)]
        plain = pc.binary_join_element_wise(*inside, pa.scalar(b"", pa.large_binary()))
    elif pa.types.is_list(kind):  # VECTOR
        floats = values.to_pylist()
        packed = [None if each is None else pack(f"<{len(each)}f", *each) for each in floats]
        plain = pa.array(packed, pa.large_binary())
    elif pa.types.is_floating(kind):
        bits = pa.int32() if kind == pa.float32() else pa.int64()
        plain = values.view(bits).cast(pa.string())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        plain = values.cast(pa.int64()).cast(pa.string())
    elif pa.types.is_date32(kind):
        plain = values.cast(pa.int32()).cast(pa.string())
    elif pa.types.is_boolean(kind):
        plain = values.cast(pa.int8()).cast(pa.string())
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        plain = values.cast(pa.string())
    else:
        plain = values
    plain = plain.cast(pa.large_binary())
    lengths = pc.binary_length(plain).cast(pa.string()).cast(pa.large_binary())
    texts = pc.binary_join_element_wise(lengths, plain, pa.scalar(b":", pa.large_binary()))
    return pc.if_else(values.is_null(), pa.scalar(b"-", pa.large_binary()), texts)
