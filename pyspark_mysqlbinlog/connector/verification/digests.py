"""Digests of rows: 128 bits that stand for a row, and for its key.

Both sides of a comparison have their rows in the form of the Delta table, so equal rows have equal
canonical bytes (see `row_bytes`), and equal digests. Rows of a table without a key have no other
identity than their contents: the digest of such a row is that of its key, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import canonical_row_bytes

__all__ = ["KEY", "ROW", "digests_of", "key_digests", "row_digests"]

# No Delta column has these names, because an equals sign is replaced in them.
KEY, ROW = "=key", "=row"
_BYTES = 16


def digests_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the key of each row, and the columns `KEY` and `ROW`.

    key : the columns of the table's key; none if it has no key.
    """
    row = row_digests(rows)
    columns = {name: rows.column(name) for name in key}
    of_key = key_digests(rows.select(key)) if key else row
    return pa.table(columns | {KEY: of_key, ROW: row})


def row_digests(rows: pa.Table) -> pa.Array[Any]:
    """Return the digest of each row."""
    return _digests(canonical_row_bytes(rows))


def key_digests(keys: pa.Table) -> pa.Array[Any]:
    """Return the digest of each key: the same for keys that are equal on the server."""
    compared = [_comparable(column) for column in keys.columns]
    return _digests(canonical_row_bytes(pa.table(compared, keys.column_names)))


def _comparable(values: Any) -> Any:
    """Return a key's values without the sign of a zero, which the server ignores in a key."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values


def _digests(values: pa.Array[Any]) -> pa.Array[Any]:
    # None of them is null, which an Array's annotations leave open.
    data = b"".join(
        [blake2b(value, digest_size=_BYTES).digest() for value in values.to_pylist()]  # type: ignore[arg-type]
    )
    kind = pa.binary(_BYTES)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])
