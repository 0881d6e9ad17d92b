"""Classifies the statement of a row.

A row contains the statement's text, but neither the session's sql_mode nor the server's version.
The server executed the statement, so the contents of executable comments are read as SQL, and
double quotes as quotes of a name: no string precedes the words and names that are read here.
"""

from __future__ import annotations

import re

from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext

__all__ = ["is_drop", "is_replacement", "is_whole_truncate", "kind_of", "may_add_rows"]

_UNREAD = frozenset({StatementKind.UNKNOWN, StatementKind.OTHER})
_MAX_VERSION = 999999
# Each skips some executable comments that the other one reads.
_CONTEXTS = tuple(
    SqlContext(ansi_quotes=True, server_version=_MAX_VERSION, mariadb=mariadb)
    for mariadb in (False, True)
)
# A server skips the executable comments of later versions, so a clause in one may not apply.
_MAY_ADD_ROWS = re.compile(r"IMPORT|/\*M?!", re.IGNORECASE)


def kind_of(query: str | None) -> StatementKind:
    """Return the kind of a statement."""
    return _classified(query).kind


def is_whole_truncate(query: str | None) -> bool:
    """Return whether a truncate removes all rows; one of a partition does not."""
    if query is None:
        return True  # the row before the snapshot of a table without a key
    statement = _classified(query)
    return statement.kind is StatementKind.TRUNCATE or statement.whole_table


def is_drop(query: str | None) -> bool:
    """Return whether a statement drops the table, or its database."""
    return _drops(_classified(query))


def is_replacement(query: str | None) -> bool:
    """Return whether a statement drops the table and creates it again."""
    statement = _classified(query)
    return statement.or_replace and not statement.drops_database


def may_add_rows(query: str | None) -> bool:
    """Return whether a statement may add rows to an empty table without row events."""
    statement = _classified(query)
    if statement.kind is StatementKind.ALTER_TABLE:
        return bool(statement.exchanged or _MAY_ADD_ROWS.search(query or ""))
    return statement.kind is not StatementKind.TRUNCATE and not _drops(statement)


def _drops(statement: Statement) -> bool:
    return statement.kind is StatementKind.DROP_TABLE or statement.drops_database


def _classified(query: str | None) -> Statement:
    mysql, mariadb = (classify(query or "", "", context) for context in _CONTEXTS)
    return mariadb if mysql.kind in _UNREAD else mysql
