"""The statement that undoes a change: it finds the row by all of its bytes.

The row must be as the change left it. A statement that finds no such row changes nothing, and its
row count is 0. In a table without a key, equal rows are interchangeable, so LIMIT 1 selects any of
them.

An update sets the columns that it changed, and each TIMESTAMP and DATETIME, because a column with
ON UPDATE CURRENT_TIMESTAMP would get the present time. All values are constants.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.flashback.changes import Change, Image
from pyspark_mysqlbinlog.connector.flashback.literals import (
    condition,
    is_invalid_enum,
    stored_literal,
)
from pyspark_mysqlbinlog.errors import UndoError
from pyspark_mysqlbinlog.names import quoted

__all__ = ["UndoStatement"]

_OPERATIONS = {"c": "delete", "u": "update", "d": "insert"}
_CLOCKS = frozenset({"timestamp", "datetime"})


@dataclass(frozen=True, slots=True)
class UndoStatement:
    """A statement, and the change that it undoes.

    Attributes
    ----------
    operation : what the statement does.
    table : database.table.
    file, pos, row, time, gtid : of the change.
    sql : the statement; it must change one row.
    proof : a SELECT that returns a row if the row is restored, byte by byte; empty for a delete.
    is_lenient : the strict mode would reject a value that the row had.
    """

    operation: str
    table: str
    file: str
    pos: int
    row: int
    time: int
    gtid: str | None
    sql: str
    proof: str
    is_lenient: bool

    @classmethod
    def of(cls, change: Change) -> Self | None:
        """Return the statement; None if the change is one of generated columns alone.

        UndoError if a value has no literal.
        """
        wanted, present = change.before, change.after
        if (
            wanted is not None
            and present is not None
            and [each.raw for each in wanted] == [each.raw for each in present]
        ):
            return None
        facts = change.facts
        _check_children(change)
        return cls(
            _OPERATIONS[change.op],
            facts.schema.full_name,
            change.file,
            change.pos,
            change.row,
            change.time,
            change.gtid,
            _sql(change),
            ""
            if wanted is None
            else f"SELECT 1 FROM {facts.name} WHERE {_conditions(change, wanted)} LIMIT 1",
            wanted is not None and any(map(is_invalid_enum, wanted)),
        )

    def packed(self) -> bytes:
        """Return the statement as bytes, for `unpack`."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Return the statement of bytes from `packed`."""
        return cls(**json.loads(data))


def _sql(change: Change) -> str:
    facts, table_map = change.facts, change.plan.table_map
    wanted, present = change.before, change.after
    if present is None:
        assert wanted is not None
        names = ", ".join(quoted(cell.column.name) for cell in wanted)
        values = ", ".join(stored_literal(cell, table_map) for cell in wanted)
        return f"INSERT INTO {facts.name} ({names}) VALUES ({values})"
    limit = "" if facts.schema.row_key else " LIMIT 1"
    where = f"WHERE {_conditions(change, present)}{_without_children(change)}{limit}"
    if wanted is None:
        return f"DELETE FROM {facts.name} {where}"
    by_index = {cell.at: cell for cell in present}
    assignments = ", ".join(
        f"{quoted(cell.column.name)} = {stored_literal(cell, table_map)}"
        for cell in wanted
        # Only NULL has no bytes, so equal bytes are equal values.
        if cell.raw != by_index[cell.at].raw
        or (cell.column.schema is not None and cell.column.schema.type in _CLOCKS)
    )
    return f"UPDATE {facts.name} SET {assignments} {where}"


def _without_children(change: Change) -> str:
    """Return the conditions that no child row refers to the row, if it would be changed, too.

    For an update of referenced columns, `_check_children` has raised before.
    """
    found = []
    for child in change.facts.children:
        if change.op != "c" or not child.on_delete:
            continue
        parent = change.facts.name
        equal = " AND ".join(
            f"{quoted(*child.table, column)} = {parent}.{quoted(referenced)}"
            for column, referenced in child.columns
        )
        found.append(f" AND NOT EXISTS (SELECT 1 FROM {quoted(*child.table)} WHERE {equal})")
    return "".join(found)


def _check_children(change: Change) -> None:
    """Raise UndoError if the change may have changed child rows that the binlog lacks."""
    changed = _changed_columns(change)
    facts = change.facts
    for child in facts.children:
        is_moved = any(column in changed for _, column in child.columns)
        is_of_itself = child.table == facts.table
        if (
            (change.op == "d" and child.on_delete)
            or (change.op == "u" and child.on_update and is_moved)
            or (change.op == "c" and child.on_delete and is_of_itself)
        ):
            raise UndoError(
                f"the foreign key {child} changes rows when this table's change, and the binlog may"
                " not have these changes; restore such rows by hand",
                file=change.file,
                position=change.pos,
                table=facts.schema.full_name,
            )


def _changed_columns(change: Change) -> frozenset[str]:
    """Return the names of the columns that an update changes."""
    if change.before is None or change.after is None:
        return frozenset()
    return frozenset(
        old.column.name
        for old, new in zip(change.before, change.after, strict=True)
        if old.raw != new.raw
    )


def _conditions(change: Change, image: Image) -> str:
    """Return the conditions for a row, those on its key first."""
    facts = change.facts
    key = facts.schema.row_key
    ordered = sorted(image, key=lambda cell: cell.column.name not in key)
    return " AND ".join(
        condition(cell, change.plan.table_map, seekable=cell.column.name in facts.seekable)
        for cell in ordered
    )
