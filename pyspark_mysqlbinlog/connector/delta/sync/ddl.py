"""Classifies the statement of a row."""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify

__all__ = ["is_drop", "kind_of", "may_add_rows"]

_DROPS = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE})


def kind_of(query: str | None) -> StatementKind:
    """Return the kind of a statement."""
    return classify(query or "", "").kind


def is_drop(query: str | None) -> bool:
    """Return whether a statement drops the table."""
    return kind_of(query) in _DROPS


def may_add_rows(query: str | None) -> bool:
    """Return whether a statement may add rows to an empty table without row events."""
    statement = classify(query or "", "")
    if statement.kind is StatementKind.ALTER_TABLE:
        return bool(statement.exchanged) or "IMPORT" in (query or "").upper()
    return statement.kind not in {*_DROPS, StatementKind.TRUNCATE}
