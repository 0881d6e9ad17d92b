"""Checks for keys that differ on the server but not in Delta, because SELECT shows the same text.

An ENUM with a label '' shows its invalid value as '', too. Some character sets have several codes
for one character, or codes without a character. Rows with such keys would become one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.charsets import canonical_charset
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.decoder.values.charsets import ambiguous_characters
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["check_keys_unambiguous"]


def check_keys_unambiguous(states: pa.Table, schema: TableSchema, key: Collection[str]) -> None:
    """MirrorError if a key's value may be several different values on the server.

    states : rows of this schema.
    key : the columns of its key, as in Delta.
    """
    for column in schema.columns:
        name = delta_name(column.name)
        if name in key and (why := _ambiguity(column, states.column(name))):
            raise MirrorError(
                f"the key column {column.name} {why}: Delta cannot distinguish such rows; change"
                " the column or its values on the server, and reload the table, or write only a"
                " change log of it",
                table=schema.full_name,
            )


def _ambiguity(column: ColumnSchema, values: pa.ChunkedArray[Any]) -> str | None:
    if column.labels:
        return _ambiguous_label(column, values)
    pattern = _ambiguous_text(canonical_charset(column.charset)) if column.charset else None
    if pattern is None:
        return None
    found = values.filter(pc.fill_null(pc.match_substring_regex(values, pattern), False))
    if not len(found):
        return None
    return (
        f"has {found[0].as_py()!r}, which may be shown for several values in the character set"
        f" {column.charset} (in utf8mb4 each is shown as itself)"
    )


def _ambiguous_label(column: ColumnSchema, values: pa.ChunkedArray[Any]) -> str | None:
    if column.type == "set":
        is_doubtful = "" in column.labels or len({*column.labels}) < len(column.labels)
        return "has an empty label, or one twice" if is_doubtful and len(values) else None
    # The invalid value is shown as ''.
    counts = Counter(["", *column.labels])
    doubtful = pa.array([label for label, count in counts.items() if count > 1], pa.string())
    found = values.filter(pc.is_in(values, doubtful))
    return f"has {found[0].as_py()!r}, the text of several of its values" if len(found) else None


@cache
def _ambiguous_text(charset: str) -> str | None:
    """Return a pattern that finds an ambiguous character; None if the charset has none."""
    characters = ambiguous_characters(charset)
    return "|".join(map(re.escape, sorted(characters))) or None
