"""The effect of a DDL statement on the rows that a table already has.

DDL that changes or removes rows writes no row events, so consumers must be notified. A statement
whose text cannot be parsed has the worst effect.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark_mysqlbinlog.decoder.sql.alter.clauses import AlterTable, ColumnChange, parse_alter
from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.tokens import DEFAULT_CONTEXT, SqlContext
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, ColumnSchema, TableSchema

__all__ = ["DdlEffect", "alter_effect", "ddl_effect"]


class DdlEffect(StrEnum):
    """From harmless to worst."""

    SHAPE_ONLY = "shape only"
    DATA_CHANGING = "data-changing"
    DATA_LOSING = "data-losing"


_LOSING = frozenset({StatementKind.DROP_TABLE, StatementKind.DROP_DATABASE, StatementKind.TRUNCATE})


def ddl_effect(
    statement: Statement,
    sql: str,
    before: TableSchema | None,
    after: TableSchema | None,
    context: SqlContext = DEFAULT_CONTEXT,
) -> DdlEffect:
    """Classify a DDL statement by its effect on existing rows.

    Parameters
    ----------
    sql : the statement's text.
    before, after : the table before and after the statement; None if its schema is unknown, or the
        table does not exist.
    context : for parsing the text.
    """
    kind = statement.kind
    if kind in _LOSING or statement.or_replace:
        return DdlEffect.DATA_LOSING
    if kind is StatementKind.RENAME_TABLE:
        # A swap: an existing name then has another table's rows.
        freed: set[tuple[str, str]] = set()
        for old, new in statement.renames:
            if new in freed:
                return DdlEffect.DATA_CHANGING
            freed.add(old)
        return DdlEffect.SHAPE_ONLY
    if kind is not StatementKind.ALTER_TABLE or statement.only_indexes:
        return DdlEffect.SHAPE_ONLY
    try:
        alter = parse_alter(sql, context)
    except MySQLBinlogError:
        return DdlEffect.DATA_LOSING
    return alter_effect(alter, before, after)


def alter_effect(
    alter: AlterTable, before: TableSchema | None, after: TableSchema | None
) -> DdlEffect:
    """Classify an ALTER TABLE."""
    if alter.loses_rows or alter.drops or alter.ignore:
        return DdlEffect.DATA_LOSING
    if alter.changes_rows:
        return DdlEffect.DATA_CHANGING
    touches_columns = alter.changes or alter.renames or alter.convert_to is not None
    is_known = before is not None and after is not None
    if not touches_columns and alter.key is None and not (alter.recomputes and is_known):
        return DdlEffect.SHAPE_ONLY
    if before is None or after is None:
        return DdlEffect.DATA_CHANGING
    if _may_recompute(alter) and any(
        column.generated for column in (*before.columns, *after.columns)
    ):
        return DdlEffect.DATA_CHANGING
    old = {fold(column.name): column for column in before.columns}
    came_from = {
        fold(each.definition.name): fold(each.old) for each in alter.changes if each.old is not None
    } | {fold(new): fold(previous) for previous, new in alter.renames}
    added = {fold(each.definition.name) for each in alter.changes if each.old is None}
    filled = {
        fold(each.definition.name)
        for each in alter.changes
        if _makes_values(each, is_new=fold(each.definition.name) in added)
    }
    for column in after.columns:
        name = fold(column.name)
        source = None if name in added else came_from.get(name, name)
        if name in old and source != name:
            # An existing name then has another column's values, or new ones.
            return DdlEffect.DATA_CHANGING
        previous = None if source is None else old.get(source)
        keeps = column.nullable if previous is None else _keeps_values(previous, column)
        if name in filled or not keeps:
            return DdlEffect.DATA_CHANGING
    return DdlEffect.SHAPE_ONLY


def _may_recompute(alter: AlterTable) -> bool:
    """Whether generated columns may have other values after the statement.

    Their expressions are evaluated again, possibly in another time zone or language, with columns
    that have another default or display width: CONCAT of an INT(3) ZEROFILL has three digits.
    """
    redefines = any(each.old is not None for each in alter.changes)
    return redefines or alter.recomputes or alter.convert_to is not None


def _makes_values(change: ColumnChange, *, is_new: bool) -> bool:
    """Whether the server generates values of the column, or may change its existing values.

    No schema records whether the old column was AUTO_INCREMENT or rounded.
    """
    definition = change.definition
    if definition.generated or is_new:
        return definition.generated or definition.fills
    return definition.counts or definition.parsed.rounds


_TEXTS = {
    name: rank
    for family in (
        ("tinytext", "text", "mediumtext", "longtext"),
        ("tinyblob", "blob", "mediumblob", "longblob"),
    )
    for rank, name in enumerate(family)
}
_INTEGERS = {
    name: rank for rank, name in enumerate(("tinyint", "smallint", "mediumint", "int", "bigint"))
}
_GROWING = frozenset({"char", "varchar", "varbinary"})


def _keeps_values(old: ColumnSchema, new: ColumnSchema) -> bool:
    """Whether every value that `old` can have is the same in `new`."""
    if old.nullable and not new.nullable:
        return False
    if (old.unsigned, old.charset, old.scale) != (new.unsigned, new.charset, new.scale):
        return False
    if old.type in INTEGER_TYPES and new.type in INTEGER_TYPES:
        return _INTEGERS[new.type] >= _INTEGERS[old.type]
    if old.type in _TEXTS and new.type in _TEXTS and old.type[-4:] == new.type[-4:]:
        return _TEXTS[new.type] >= _TEXTS[old.type]
    if old.type != new.type:
        return False
    if old.type in _GROWING or old.type == "decimal":
        return (new.length or 0) >= (old.length or 0)
    return old.length == new.length and old.labels == new.labels[: len(old.labels)]
