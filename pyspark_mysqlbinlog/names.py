"""Names of databases, tables and columns, and when two of them are the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

__all__ = ["SYSTEM_DATABASES", "Table", "fold", "folding", "quoted", "table_folding"]

# A table's name: (database, table).
Table = tuple[str, str]

# Never followed and never wanted: the server's own, whose names are in lower case everywhere.
SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})

# The servers know the letters of Unicode 3.0 (strings/ctype-utf8.c); Python knows those of 3.2.
_LETTERS = unicodedata.ucd_3_2_0
_LATER = frozenset("ȠϘϴҊӅӉӍԀԂԄԆԈԊԌԎ")


def fold(name: str) -> str:
    """A name in lower case: column names are compared so, and on some servers tables' names, too.

    Letter by letter: at a word's end Σ is σ as it is elsewhere.
    """
    return name.lower() if name.isascii() else "".join(map(_lower, name))


@cache
def _lower(letter: str) -> str:
    if letter == "İ":
        return "i"
    lower = letter.lower()
    is_known = letter not in _LATER and "Cn" not in map(_LETTERS.category, (letter, lower))
    return lower if is_known else letter


def folding(case_sensitive: bool) -> Callable[[str], str]:
    """What makes one of all spellings of a database's or a table's name."""
    return str if case_sensitive else fold


def table_folding(case_sensitive: bool) -> Callable[[Table], Table]:
    """The same for both parts of a table's name."""
    part = folding(case_sensitive)
    return lambda table: (part(table[0]), part(table[1]))


def quoted(*names: str) -> str:
    """A name as SQL has it, in backquotes, behind what it belongs to: ``database.table``."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
