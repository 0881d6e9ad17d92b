"""What becomes of a table's columns, and of the rows that are there, from one version to the next.

Where no row of the stream tells of a statement, it changed the table's shape only (see
decoder/sql/ddl_effect.py): columns were added that are NULL, widened or renamed. Then a column that
is no longer there was renamed, for a statement that drops one is told, and so is one by which a
column gets the name of another. Where a statement is told it can be followed all the same when all
that it does to rows is to drop columns. After any other one nobody knows what the rows are, and the
table has to be loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark_mysqlbinlog.decoder.sql.alter_clauses import AlterTable, parse_alter
from pyspark_mysqlbinlog.decoder.sql.ddl_effect import DdlEffect, alter_effect
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["CannotFollowError", "renamed"]


class CannotFollowError(Exception):
    """Nobody knows what a statement made of the rows; the message says why."""


def renamed(before: TableSchema, after: TableSchema, told: str | None) -> Mapping[str, str]:
    """What each column that stays is called: name before -> name after.

    told : the statement in between, where a row of the stream tells of it.

    Raises CannotFollowError where the rows may be others behind the statement.
    """
    if told is not None:
        return _of_statement(before, after, told)
    old = {fold(column.name): column.name for column in before.columns}
    new = {fold(column.name): column.name for column in after.columns}
    gone = [name for folded, name in old.items() if folded not in new]
    come = [name for folded, name in new.items() if folded not in old]
    # Of several it can't be told which one is which: the statement is not in the stream.
    if len(gone) > 1 or len(gone) > len(come) or (gone and len(come) > 1):
        raise CannotFollowError(f"the columns {gone} were renamed, to which of {come} is not told")
    names = {old[folded]: new[folded] for folded in old if folded in new}
    return names | dict(zip(gone, come, strict=False))


def _of_statement(before: TableSchema, after: TableSchema, told: str) -> Mapping[str, str]:
    shown = f"{told[:200]!r}"
    not_told = f"a statement changed rows without telling the log which: {shown}"
    try:
        alter = parse_alter(told)
    except MySQLBinlogError:
        raise CannotFollowError(not_told) from None
    rest = replace(alter, drops=[])
    dropped = {fold(name) for name, _ in alter.drops}
    kept = replace(
        before, columns=tuple(each for each in before.columns if fold(each.name) not in dropped)
    )
    if alter_effect(rest, kept, after) is not DdlEffect.SHAPE_ONLY:
        raise CannotFollowError(not_told)
    came_from = _came_from(alter)
    new = {fold(column.name): column.name for column in after.columns}
    names = {
        column.name: new[folded]
        for column in kept.columns
        if (folded := came_from.get(fold(column.name), fold(column.name))) in new
    }
    if len(names) != len(kept.columns):
        raise CannotFollowError(f"the columns behind a statement are others than it says: {shown}")
    held = {fold(column.name) for column in before.columns}
    came = {fold(now): fold(was) for was, now in names.items()}
    if any(folded in held and came.get(folded) != folded for folded in new):
        # The columns look as before, and are others.
        raise CannotFollowError(not_told)
    return names


def _came_from(alter: AlterTable) -> dict[str, str]:
    """Name before -> name after, of the columns that the statement renames; folded."""
    return {
        fold(each.old): fold(each.definition.name) for each in alter.changes if each.old is not None
    } | {fold(old): fold(new) for old, new in alter.renames}
