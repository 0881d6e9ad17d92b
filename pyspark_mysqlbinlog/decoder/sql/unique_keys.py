"""Unique keys, as statements define, drop and rename them.

They stand in for a primary key where a table has none. So what is kept of them must be true and
need not be all: whatever may have taken a key away, has. The server makes up the names of indexes
that have none, by rules that hang on all the table's indexes; here is only known what such a name
can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyspark_mysqlbinlog.decoder.sql.tokens import TokenKind, TokenStream
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import UniqueKey

__all__ = ["may_be_called", "spelled", "unique_key"]

# How an index is kept.
_WAYS = ("BTREE", "HASH", "RTREE")


def unique_key(stream: TokenStream, name: str = "") -> UniqueKey | None:
    """After UNIQUE: ``[KEY] [IF NOT EXISTS] [name] [USING BTREE] [ON table] (column, …)``.

    A prefix, ``column(9)``, tells rows apart, and so does the whole column then. None for what
    can't be told: whether IF NOT EXISTS made one, expressions, WITHOUT OVERLAPS.

    name : that of the constraint, which the index has where it has none of its own.
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
    """The columns in parentheses; none where there is anything else."""
    columns: list[str] = []
    is_told = stream.accept("(")
    while is_told and not stream.accept(")"):
        is_told = stream.peek().kind in (TokenKind.WORD, TokenKind.NAME)
        if is_told:
            columns.append(stream.name("a column"))
            if stream.at("("):
                stream.skip_parentheses()
            stream.accept_any("ASC", "DESC")
            is_told = stream.accept(",") or stream.at(")")
    if is_told:
        return tuple(columns)
    while not (stream.at_end() or stream.accept(")")):
        if stream.at("("):
            stream.skip_parentheses()
        else:
            stream.next()
    return ()


def spelled(keys: Iterable[UniqueKey], spelling: Mapping[str, str]) -> list[UniqueKey]:
    """Keys with their columns' names as the columns have them.

    spelling : name in lower case -> name. A key with another column is left out.
    """
    return [
        (name, tuple(spelling[fold(each)] for each in columns))
        for name, columns in keys
        if all(fold(each) in spelling for each in columns)
    ]


def may_be_called(key: UniqueKey, name: str) -> bool:
    """Whether a key's index may have this name."""
    return re.fullmatch(re.escape(fold(key[0])) + r"(_\d+)?", fold(name)) is not None
