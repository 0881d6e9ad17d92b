"""Names of databases, tables and columns, and when two names are the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

__all__ = ["SYSTEM_DATABASES", "Table", "fold", "folding", "quoted", "table_folding"]

# A table's name: (database, table).
Table = tuple[str, str]

# Never captured: the server's own databases, whose names are in lower case everywhere.
SYSTEM_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})

# The servers fold the letters of Unicode 3.0 (strings/ctype-utf8.c); Python has those of 3.2.
_LETTERS = unicodedata.ucd_3_2_0
_LATER = frozenset("ȠϘϴҊӅӉӍԀԂԄԆԈԊԌԎ")


def fold(name: str) -> str:
    """Return a name in lower case, as column names (on some servers also table names) are compared.

    Folds letter by letter: Σ at the end of a word becomes σ.
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
    """Return the function that maps all spellings of a database or table name to one."""
    return str if case_sensitive else fold


def table_folding(case_sensitive: bool) -> Callable[[Table], Table]:
    """Return `folding` for both parts of a table's name."""
    part = folding(case_sensitive)
    return lambda table: (part(table[0]), part(table[1]))


def quoted(*names: str) -> str:
    """Quote names with backquotes and join them with dots, as in SQL: ``database.table``."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)
