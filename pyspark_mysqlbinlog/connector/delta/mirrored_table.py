"""One table of a mirror: its Delta table is given the shape of the server's, then the changes.

Each change counts once (see `marks`). The changes of a batch are taken apart by the version of the
table that they were made on, so that a batch may span an ALTER: each part is read with the columns
that it has, and brought to those of the last version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.apply import (
    GONE,
    SEQ,
    SEQ_TYPE,
    after,
    in_order,
    last_states,
    states_of,
)
from pyspark_mysqlbinlog.connector.delta.engine import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.marks import Mark, place
from pyspark_mysqlbinlog.connector.delta.typed import typed_field
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["STOPPED", "BatchEnd", "MirroredTable"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

_LOG = logging.getLogger(__name__)
# The property of a Delta table that is kept in step no more: why.
STOPPED = "mysqlbinlog.stopped"
_LOAD_ANEW = "load the table anew"


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """Where a batch ends, and what one table looks like in it.

    Attributes
    ----------
    versions : those that hold anywhere in the batch, ascending; columns that nobody wants left out.
    position : the boundary.
    mark : the boundary, as the Delta table keeps it.
    """

    versions: tuple[Version, ...]
    position: Position
    mark: Mark

    @property
    def schema(self) -> TableSchema | None:
        """The table at the end; None where it is not there, or not known."""
        started = [what for start, what in self.versions if start <= self.position]
        return started[-1] if started and isinstance(started[-1], TableSchema) else None


class MirroredTable:
    """One table. `apply` raises MirrorError where the Delta table can't be kept equal."""

    def __init__(self, name: str, target: DeltaTarget) -> None:
        self._name = name
        self._target = target
        self._shaped_for: TableSchema | None = None
        self.stopped = target.properties().get(STOPPED)

    def stop(self, error: MirrorError) -> None:
        """Keep the table in step no more, in this query or a later one."""
        self.stopped = error.message
        if self._target.columns() is None:
            self._target.create(pa.schema([pa.field(SEQ, SEQ_TYPE)]), {STOPPED: error.message})
        else:
            self._target.set_property(STOPPED, error.message)

    def shape(self, end: BatchEnd) -> None:
        """Give the Delta table the columns that the server's table has at the batch's end."""
        schema = end.schema
        if schema is None or schema == self._shaped_for:
            return
        wanted = pa.schema([*map(typed_field, schema.columns), pa.field(SEQ, SEQ_TYPE)])
        held = self._target.columns()
        if held is None:
            self._target.create(wanted, {})
        else:
            self._add_columns(held, wanted)
        self._shaped_for = schema

    def _add_columns(self, held: pa.Schema, wanted: pa.Schema) -> None:
        lost = [name for name in held.names if name not in wanted.names]
        if lost:
            raise self._error(f"the server's table no longer has {lost}; {_LOAD_ANEW}")
        for field in wanted:
            if field.name in held.names and held.field(field.name).type != field.type:
                raise self._error(
                    f"{field.name} is {field.type} on the server, and"
                    f" {held.field(field.name).type} in Delta; {_LOAD_ANEW}"
                )
        added = [field for field in wanted if field.name not in held.names]
        if added:
            self._target.add_columns(added)

    def apply(self, changes: pa.Table, end: BatchEnd) -> int:
        """Bring one batch's changes in; returns how many of them were new."""
        applied = self._target.applied(end.mark.app_id)
        changes = _not_applied(in_order(changes), applied)
        if not changes.num_rows:
            return 0
        count = changes.num_rows
        self._expect_only_rows(changes)
        self.shape(end)
        emptied = changes.filter(pc.equal(changes.column("op"), "t"))
        if emptied.num_rows:
            last = emptied.column("seq")[-1].as_py()
            self._target.empty(last)
            changes = after(changes, last)
        rows = changes.filter(pc.is_in(changes.column("op"), pa.array(["c", "u", "d", "r"])))
        schema = self._shaped_for
        if rows.num_rows and schema is not None:
            self._expect_whole(rows)
            key = schema.primary_key
            if not key:
                raise self._error("the table has no primary key; leave it out")
            states = pa.concat_tables(self._segments(rows, end, schema))
            self._expect_keys(states, key)
            self._target.merge(last_states(states, key), key, end.mark)
        return count

    def _expect_only_rows(self, changes: pa.Table) -> None:
        """MirrorError where the log does not tell what became of the rows."""
        for change in changes.filter(
            pc.is_in(changes.column("op"), pa.array(["ddl", "t"]))
        ).to_pylist():
            query = change["query"] or ""
            if change["op"] == "ddl" or "PARTITION" in query.upper():
                raise self._error(
                    "a statement changed rows without telling the log which:"
                    f" {query[:200]!r}; {_LOAD_ANEW}"
                )

    def _expect_whole(self, rows: pa.Table) -> None:
        """MirrorError where the log does not have all columns of a row."""
        absent = pc.list_flatten(rows.column("absent"))
        lost = pc.unique(absent.filter(pc.starts_with(absent, "after."))).to_pylist()
        if lost:
            raise self._error(
                f"the log has rows without {lost[0].removeprefix('after.')}: set"
                f" binlog_row_image=FULL everywhere, and {_LOAD_ANEW}"
            )

    def _expect_keys(self, states: pa.Table, key: Sequence[str]) -> None:
        """MirrorError for a key that Delta can't tell from others."""
        for name in key:
            if states.column(name).null_count:
                raise self._error(
                    f"the key's column {name} has a date that is no day, which Delta can't hold"
                )

    def _segments(self, rows: pa.Table, end: BatchEnd, schema: TableSchema) -> Iterator[pa.Table]:
        """The states of the rows, version by version, with the columns of the last one."""
        fields = pa.schema([typed_field(column) for column in schema.columns])
        for version, part in _by_version(rows, end.versions):
            if not isinstance(version, TableSchema):
                raise self._error(f"its columns are not known: {version}")
            if version.primary_key != schema.primary_key:
                raise self._error(
                    f"the primary key changed from {version.primary_key} to"
                    f" {schema.primary_key}; {_LOAD_ANEW}"
                )
            states = states_of(part, version, schema.primary_key)
            yield self._brought_to(fields, states)

    def _brought_to(self, fields: pa.Schema, states: pa.Table) -> pa.Table:
        lost = set(states.column_names) - {*fields.names, SEQ, GONE}
        if lost:
            raise self._error(f"the server's table no longer has {sorted(lost)}; {_LOAD_ANEW}")
        columns = [
            states.column(field.name).cast(field.type)
            if field.name in states.column_names
            else pa.nulls(states.num_rows, field.type)
            for field in fields
        ]
        return pa.table(
            [*columns, states.column(SEQ), states.column(GONE)], [*fields.names, SEQ, GONE]
        )

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _places(changes: pa.Table) -> Any:
    """Where each change is, as `marks.place` has it."""
    seq = changes.column("seq").cast(SEQ_TYPE)
    file = pc.struct_field(seq, "file").cast(pa.int64())
    return pc.bit_wise_or(pc.shift_left(file, 40), pc.struct_field(seq, "pos"))


def _not_applied(changes: pa.Table, applied: int | None) -> pa.Table:
    """Without the changes that are in the Delta table; rows that were loaded always count."""
    if applied is None:
        return changes
    is_new = pc.greater_equal(_places(changes), applied)
    return changes.filter(pc.or_(is_new, pc.equal(changes.column("op"), "r")))


def _by_version(rows: pa.Table, versions: Sequence[Version]) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each version of a table."""
    places = _places(rows)
    starts = [place(start.number, start.pos) for start, _ in versions]
    ends: list[int | None] = [*starts[1:], None]
    for (_, what), start, end in zip(versions, starts, ends, strict=True):
        of_version = pc.greater_equal(places, start)
        if end is not None:
            of_version = pc.and_(of_version, pc.less(places, end))
        part = rows.filter(of_version)
        if part.num_rows:
            yield what, part
