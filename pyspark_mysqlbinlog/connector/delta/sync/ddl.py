"""Classifies the statement of a row.

The row has the statement's text, but neither its session's sql_mode nor its server's version. The
server executed the statement, so its executable comments are read as text, and double quotes as
those of a name: no string precedes the words and names that are read here.
"""

from __future__ import annotations

import re

from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext

__all__ = ["empties_table", "is_drop", "kind_of", "may_add_rows", "replaces_table"]

_DROPS = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE})
_UNREAD = frozenset({StatementKind.UNKNOWN, StatementKind.OTHER})
_MAX_VERSION = 999999
# Each skips some executable comments that the other one reads.
_CONTEXTS = tuple(
    SqlContext(ansi_quotes=True, server_version=_MAX_VERSION, mariadb=mariadb)
    for mariadb in (False, True)
)
# Text in an executable comment may be a clause, or none.
_MAY_ADD_ROWS = re.compile(r"IMPORT|/\*M?!", re.IGNORECASE)


def kind_of(query: str | None) -> StatementKind:
    """Return the kind of a statement."""
    return _classified(query).kind


def empties_table(query: str | None) -> bool:
    """Return whether a truncate removes all rows; one of a partition does not."""
    if query is None:
        return True  # the row before the snapshot of a table without a key
    statement = _classified(query)
    return statement.kind is StatementKind.TRUNCATE or statement.whole_table


def is_drop(query: str | None) -> bool:
    """Return whether a statement drops the table."""
    return kind_of(query) in _DROPS


def replaces_table(query: str | None) -> bool:
    """Return whether a statement drops the table and creates it again."""
    return _classified(query).or_replace


def may_add_rows(query: str | None) -> bool:
    """Return whether a statement may add rows to an empty table without row events."""
    statement = _classified(query)
    if statement.kind is StatementKind.ALTER_TABLE:
        return bool(statement.exchanged or _MAY_ADD_ROWS.search(query or ""))
    return statement.kind not in {*_DROPS, StatementKind.TRUNCATE}


def _classified(query: str | None) -> Statement:
    mysql, mariadb = (classify(query or "", "", context) for context in _CONTEXTS)
    return mariadb if mysql.kind in _UNREAD else mysql
