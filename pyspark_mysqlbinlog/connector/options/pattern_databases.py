"""The databases that table patterns can match, including tables that do not exist yet.

A name with globs contains the pattern of its database. Of a regex, only a prefix without
metacharacters up to its first dot is evaluated: ``/shop\\..*/`` matches in `shop`; the databases of
``/(shop|crm)\\..*/`` are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pyspark_mysqlbinlog.connector.options.table_filter import Pattern, TableFilter
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, folding

__all__ = [
    "excludes_all_of",
    "is_covered",
    "may_match_database",
    "named_databases",
    "single_database",
]

_META = frozenset(".^$*+?{}[]()|")
_QUANTIFIERS = ("*", "+", "?", "{")


def single_database(pattern: Pattern) -> str | None:
    """Return the only database whose tables the pattern can match; None if there may be several."""
    if pattern.parts:
        database = pattern.parts[0]
        return None if database.is_glob else database.text
    beginning = _beginning(pattern.text[1:-1])
    return None if beginning is None else beginning[0]


def named_databases(tables: TableFilter) -> Iterator[str]:
    """Yield the databases that the patterns of `tables` name, existing or not."""
    for pattern in tables.included:
        name = single_database(pattern)
        if name is not None:
            yield name


def may_match_database(tables: TableFilter, database: str) -> bool | None:
    """Whether a table of this database may be captured; None if unknown."""
    if folding(tables.case_sensitive)(database) in SYSTEM_DATABASES or excludes_all_of(
        tables, database
    ):
        return False
    if tables.tables is None:
        return True
    answers = [_reaches(pattern, database, tables.case_sensitive) for pattern in tables.included]
    return True if True in answers else None if None in answers else False


def excludes_all_of(tables: TableFilter, database: str) -> bool:
    """Whether a pattern of `excludeTables` surely matches all tables of a database."""
    return any(
        _reaches(pattern, database, tables.case_sensitive) is True and _takes_all(pattern)
        for pattern in tables.excluded
    )


def is_covered(glob: str, like: str) -> bool:
    """Whether a LIKE pattern matches every name that a glob matches.

    Parameters
    ----------
    glob : with ``*`` and ``?``.
    like : with ``%`` and ``_``, which are literal after a backslash.
    """
    return _covers(_like_tokens(like), glob)


@lru_cache(maxsize=4096)
def _covers(like: tuple[str, ...], glob: str) -> bool:
    """Compare letter by letter; only ``%`` covers a star of the glob."""
    if not like:
        return not glob
    first = like[0]
    if first == "%":
        return _covers(like[1:], glob) or (bool(glob) and _covers(like, glob[1:]))
    if not glob or glob[0] == "*":
        return False
    return (first == "_" or first == "=" + glob[0]) and _covers(like[1:], glob[1:])


def _like_tokens(like: str) -> tuple[str, ...]:
    tokens, letters = [], iter(like)
    for letter in letters:
        if letter == "\\":
            tokens.append("=" + next(letters, letter))
        else:
            tokens.append(letter if letter in "%_" else "=" + letter)
    return tuple(tokens)


def _reaches(pattern: Pattern, database: str, case_sensitive: bool) -> bool | None:
    if pattern.parts:
        return pattern.database_matches(database)
    name = single_database(pattern)
    fold = folding(case_sensitive)
    return None if name is None else fold(name) == fold(database)


def _takes_all(pattern: Pattern) -> bool:
    """Whether the pattern's table part matches any name."""
    if pattern.parts:
        return pattern.parts[1].is_glob and set(pattern.parts[1].text) == {"*"}
    beginning = _beginning(pattern.text[1:-1])
    return beginning is not None and beginning[1] in (".*", ".+")


def _beginning(source: str) -> tuple[str, str] | None:
    """Return a regex's text before and after its first dot; None if it is not plain text."""
    if "|" in source:
        return None
    text, at = "", 1 if source.startswith("^") else 0
    while at < len(source):
        letter, at = source[at], at + 1
        if letter == "\\":
            letter, at = source[at : at + 1], at + 1
            if not letter or letter.isalnum():
                return None  # a class of characters, or an anchor
        elif letter in _META:
            return None
        if source.startswith(_QUANTIFIERS, at):
            return None
        if letter == ".":
            return text, source[at:]
        text += letter
    return None
