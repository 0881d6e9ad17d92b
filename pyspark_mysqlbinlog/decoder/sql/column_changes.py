"""The effect on a table's columns and existing rows from one schema version to the next.

If the stream has no statement row, the statement changed only the table's shape (see
decoder/sql/ddl_effect.py): it added columns that are NULL, or widened or renamed columns. A missing
column was then renamed, because statements that drop a column, or give it the name of another one,
have a statement row. A statement with a row can still be followed if dropping columns is all that
it does to rows. After any other statement the rows are unknown, and the table needs a new snapshot.

The row has the statement's text, but neither its session's sql_mode nor its server's version. So a
text that they may give another meaning is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_mysqlbinlog.decoder.sql.alter.clauses import AlterTable, parse_alter
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, alter_effect
from pyspark_mysqlbinlog.decoder.sql.redaction import without_literals
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["CannotFollowError", "FollowRenames", "renamed"]

# A function such as `renamed`.
FollowRenames = Callable[[TableSchema, TableSchema, str | None], Mapping[str, str]]
# Executable comments, which some servers skip, and backslashes, which NO_BACKSLASH_ESCAPES makes
# plain characters: both decide which text is a clause. Under ANSI_QUOTES, names in double quotes
# are not read as names here, and a text without backslashes has the same clauses.
_DEPENDS_ON_CONTEXT = re.compile(r"/\*M?!|\\")


class CannotFollowError(Exception):
    """The effect of a statement on the rows is unknown; the message contains the reason."""


def renamed(before: TableSchema, after: TableSchema, statement: str | None) -> Mapping[str, str]:
    """Return the new name of each column that remains: name before -> name after.

    statement : the statement in between, if the stream has a row for it.

    Raises CannotFollowError if the statement may have changed rows.
    """
    if statement is not None:
        return _of_statement(before, after, statement)
    old = {fold(column.name): column.name for column in before.columns}
    new = {fold(column.name): column.name for column in after.columns}
    removed = [name for folded, name in old.items() if folded not in new]
    added = [name for folded, name in new.items() if folded not in old]
    # With several columns the pairs are unknown, because the statement is not in the stream.
    if len(removed) > 1 or len(removed) > len(added) or (removed and len(added) > 1):
        raise CannotFollowError(
            f"columns {removed} were renamed, but to which of {added} is unknown"
        )
    names = {old[folded]: new[folded] for folded in old if folded in new}
    return names | dict(zip(removed, added, strict=False))


def _of_statement(before: TableSchema, after: TableSchema, statement: str) -> Mapping[str, str]:
    shown = f"{without_literals(statement)[:200]!r}"
    reason = f"a statement changed rows without row events: {shown}"
    if (
        _DEPENDS_ON_CONTEXT.search(statement)
        or classify(statement, "").kind is not StatementKind.ALTER_TABLE
    ):
        raise CannotFollowError(reason)
    try:
        alter = parse_alter(statement)
    except MySQLBinlogError:
        raise CannotFollowError(reason) from None
    rest = replace(alter, drops=[])
    dropped = {fold(name) for name, _ in alter.drops}
    kept = replace(
        before, columns=tuple(each for each in before.columns if fold(each.name) not in dropped)
    )
    if alter_effect(rest, kept, after) is not DdlEffect.SHAPE_ONLY:
        raise CannotFollowError(reason)
    came_from = _came_from(alter)
    new = {fold(column.name): column.name for column in after.columns}
    names = {
        column.name: new[folded]
        for column in kept.columns
        if (folded := came_from.get(fold(column.name), fold(column.name))) in new
    }
    if len(names) != len(kept.columns):
        raise CannotFollowError(f"the columns after a statement differ from its text: {shown}")
    held = {fold(column.name) for column in before.columns}
    came = {fold(now): fold(was) for was, now in names.items()}
    if any(folded in held and came.get(folded) != folded for folded in new):
        # The column names are the same, but the columns differ.
        raise CannotFollowError(reason)
    return names


def _came_from(alter: AlterTable) -> dict[str, str]:
    """Return name before -> name after of the columns that the statement renames; folded."""
    return {
        fold(each.old): fold(each.definition.name) for each in alter.changes if each.old is not None
    } | {fold(old): fold(new) for old, new in alter.renames}
