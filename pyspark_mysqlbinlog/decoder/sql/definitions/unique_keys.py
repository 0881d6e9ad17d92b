"""Unique keys, as statements define, drop and rename them.

They replace the primary key of a table that has none. The known keys must be correct, but need not
be complete: a statement that may have removed a key counts as having removed it. The server
generates the names of unnamed indexes by rules that depend on all indexes of the table; only the
possible forms of such a name are known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyspark_mysqlbinlog.decoder.sql.tokens import TokenKind, TokenStream
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import UniqueKey

__all__ = ["may_be_called", "spelled", "unique_key"]

# Index types.
_WAYS = ("BTREE", "HASH", "RTREE")


def unique_key(stream: TokenStream, name: str = "") -> UniqueKey | None:
    """Parse after UNIQUE: ``[KEY] [IF NOT EXISTS] [name] [USING BTREE] [ON table] (column, …)``.

    If a prefix, ``column(9)``, is unique, the whole column is as well. None for unknown keys:
    IF NOT EXISTS (may have made none), expressions, WITHOUT OVERLAPS.

    name : that of the constraint, used if the index has no name of its own.
    """
    stream.accept_any("KEY", "INDEX")
    conditional = stream.accept("IF", "NOT", "EXISTS")
    is_way = stream.peek().word in ("USING", "TYPE") and stream.peek(1).word in _WAYS
    if not (is_way or stream.at("(")):
        name = stream.name("an index")
    while not (stream.at("(") or stream.at_end()):
        stream.next()
    columns = _columns(stream)
    if conditional or not columns:
        return None
    return name or columns[0], columns


def _columns(stream: TokenStream) -> tuple[str, ...]:
    """Parse the columns in parentheses; empty if they contain anything else."""
    columns: list[str] = []
    has_columns = stream.accept("(")
    while has_columns and not stream.accept(")"):
        has_columns = stream.peek().kind in (TokenKind.WORD, TokenKind.NAME)
        if has_columns:
            columns.append(stream.name("a column"))
            if stream.at("("):
                stream.skip_parentheses()
            stream.accept_any("ASC", "DESC")
            has_columns = stream.accept(",") or stream.at(")")
    if has_columns:
        return tuple(columns)
    while not (stream.at_end() or stream.accept(")")):
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()
    return ()


def spelled(keys: Iterable[UniqueKey], spelling: Mapping[str, str]) -> list[UniqueKey]:
    """Return the keys with their columns' names spelled as the columns are.

    spelling : name in lower case -> name. A key with an unknown column is omitted.
    """
    return [
        (name, tuple(spelling[fold(each)] for each in columns))
        for name, columns in keys
        if all(fold(each) in spelling for each in columns)
    ]


def may_be_called(key: UniqueKey, name: str) -> bool:
    """Whether a key's index may have this name."""
    return re.fullmatch(re.escape(fold(key[0])) + r"(_\d+)?", fold(name)) is not None
