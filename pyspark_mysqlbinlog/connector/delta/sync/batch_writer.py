"""Applies a batch to one table: its sections one after another, then one merge.

The states that result from the changes are collected under the current column names. They are
merged at the end, and wherever later states cannot be collected with earlier ones: if the primary
key changes, if a column gets a name that the Delta table still uses for another column, and before
a statement after which the rows are unknown. Right before a merge the Delta table gets the columns
of that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.delta.rows.ambiguous_keys import check_keys_unambiguous
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import cast_column, pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import (
    ROW_BEFORE_ALL,
    SEQ,
    SEQ_TYPE,
    TOMBSTONE,
    check_distinct,
    delta_name,
)
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, pack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.connector.delta.rows.row_images import typed_field
from pyspark_mysqlbinlog.connector.delta.rows.sections import SchemaSection
from pyspark_mysqlbinlog.connector.delta.rows.states import (
    all_states,
    final_states,
    key_of,
    latest_per_key,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.partition_checks import check_partition_values
from pyspark_mysqlbinlog.connector.delta.sync.constants import (
    FULL_IMAGES_HINT,
    KEYED_SNAPSHOT_OF_KEYLESS_TABLE,
    RELOAD_HINT,
)
from pyspark_mysqlbinlog.connector.delta.sync.ddl import (
    is_drop,
    is_replacement,
    is_whole_truncate,
    kind_of,
    may_add_rows,
)
from pyspark_mysqlbinlog.connector.delta.sync.multiset import (
    apply_multiset,
    check_multiset_supported,
)
from pyspark_mysqlbinlog.connector.delta.sync.soft_deletes import (
    merge_key_recorded,
    record_merge_key,
)
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.decoder.sql.column_changes import CannotFollowError
from pyspark_mysqlbinlog.errors import MirrorError, SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "TableBatchWriter",
    "TableSnapshot",
    "delta_schema",
]


_STATEMENTS = pa.array(["t", "ddl"])


def delta_schema(schema: TableSchema) -> pa.Schema:
    """Return the columns of a table's Delta table."""
    check_distinct((column.name for column in schema.columns), schema.full_name)
    return pa.schema([*map(typed_field, schema.columns), pa.field(SEQ, SEQ_TYPE)])


def _key_types(
    schema: TableSchema, names: Mapping[str, str] | None = None
) -> list[tuple[str | None, pa.DataType | None]]:
    """Return each key column's name and its type in Delta; an excluded column's type is None.

    names : column name in `schema` -> name after a statement; None if no name changes.
    """
    types = _described(delta_schema(schema))
    return [
        (name if names is None else names.get(name), types.get(name)) for name in key_of(schema)
    ]


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A snapshot that reads all of a table's rows, including those of a table renamed to it.

    Attributes
    ----------
    restart_after : called with a `seq` after which the rows are unknown: the source restarts the
        snapshot there, which delivers all rows. None if the source does not reload automatically.
    on_unreadable : called with the reason if snapshot rows cannot be read: they have columns that
        the stream has not reached yet. The source reloads the table at the statement that
        alters them. None if the source does not reload automatically.
    remove_older : removes the rows that are older than the snapshot, which replaces them anyway.
    is_unread : its rows are read after all changes of the batch, so changes of a keyless table
        need not be counted.
    """

    restart_after: Callable[[Mapping[str, int]], None] | None
    on_unreadable: Callable[[str], None] | None
    remove_older: Callable[[], None]
    is_unread: bool = False


class TableBatchWriter:
    """Writes one table's part of a batch: `add_section` for each section in order, then `flush`.

    Both raise MirrorError if the rows after a position are unknown. Earlier changes are merged.

    Parameters
    ----------
    marker : commit marker of the batch's end.
    applied : packed position up to which the Delta table is complete.
    versions : of the table, in the batch.
    load : the snapshot that is in progress or begins in this batch.
    images : the typed images that changes refer to.
    dropped_at : the last packed position at which the table is dropped in this batch.
    precomputed : the final states of all of the table's changes, if they were precomputed.
    """

    def __init__(
        self,
        name: str,
        target: DeltaTarget,
        marker: CommitMarker,
        applied: int,
        versions: TableVersions,
        *,
        load: TableSnapshot | None = None,
        images: ImageStore,
        dropped_at: int | None = None,
        precomputed: PrecomputedStates | None = None,
    ) -> None:
        self._name = name
        self._target = target
        self._marker = marker
        self._applied = applied
        self._versions = versions
        self._snapshot = load
        self._is_unread = load is not None and load.is_unread
        self._images = images
        self._precomputed = precomputed
        self._dropped_at = dropped_at
        self.schema: TableSchema | None = None
        self._start: Position | None = None  # where this version of the table begins
        self._is_there = False
        self._is_known = True
        self._reason = ""  # that of the last unknown schema
        # The Delta table's columns at the start or after a merge. Empty if they do not matter:
        # the table is a new one.
        self._delta_columns: Mapping[str, pa.DataType] = {}
        # A column's current name in Delta spelling -> its name in the Delta table.
        self._source_columns: dict[str, str] = {}
        self._states: list[pa.Table] = []
        self._emptied: dict[str, int] | None = None
        # A statement whose effect on the rows is not known yet.
        self._pending_statement: dict[str, Any] | None = None

    def add_section(self, section: SchemaSection) -> None:
        """Apply the next version and its changes."""
        self._on_schema(section.start, section.what)
        changes, begin = section.changes, 0
        for at in pc.indices_nonzero(pc.is_in(changes.column("op"), _STATEMENTS)).to_pylist():
            self._buffer_rows(changes.slice(begin, at - begin))
            self._on_statement(changes.slice(at, 1).to_pylist()[0])
            begin = at + 1
        self._buffer_rows(changes.slice(begin))

    def flush(self) -> None:
        """Merge the collected states."""
        if self._pending_statement is not None and (
            self._is_there or not is_drop(self._pending_statement["query"])
        ):
            self._invalidate_at(self._pending_statement)
        self._merge(self._marker)

    def _on_schema(self, start: Position, what: TableSchema | UnknownSchema) -> None:
        statement, self._pending_statement = self._pending_statement, None
        if isinstance(what, UnknownSchema):
            self._is_there = self._is_there and not what.is_dropped
            self._is_known = what.is_dropped
            self._reason = what.reason
            if self._is_there and statement is not None:
                self._invalidate_at(statement)
        elif self.schema is None and pack_position(start) <= self._applied:
            self._is_there = True
            self.schema = what
            self._hold(what)
        elif statement is not None and is_replacement(statement["query"]):
            self._is_known = True
            self._create(start, what)
        elif not self._is_there and self._is_known:
            self._create(start, what)
        elif self.schema is None or not self._is_known:
            # The columns were queried from the server; earlier changes of the rows are unknown.
            self._invalidate(_begin_of(start), "its columns were unknown for a while", brings=True)
            self._is_known = self._is_there = True
            self.schema = what
            self._hold(what)
        elif what != self.schema or (statement is not None and self._is_logged_otherwise(start)):
            self._alter(start, what, statement)
        elif statement is not None:
            self._invalidate_at(statement)
        if isinstance(what, TableSchema):
            self._start = start

    def _is_logged_otherwise(self, start: Position) -> bool:
        """Return whether a statement changed columns that are excluded or masked."""
        assert self._start is not None
        return self._versions.logged_from(self._start) != self._versions.logged_from(start)

    def _create(self, start: Position, what: TableSchema) -> None:
        if pack_position(start) in self._versions.came_by_rename and self._snapshot is None:
            self._invalidate(
                _begin_of(start),
                "another table with unknown rows was renamed to its name",
                brings=True,
            )
        # Discard the rows of an earlier table of this name.
        self._states.clear()
        self._emptied = self._with_epoch(_begin_of(start))
        self._is_there = True
        self.schema, self._delta_columns = what, {}
        # Only soft-deleted rows stay.
        self._source_columns = _as_they_are(what) if self._target.soft_deletes else {}

    def _alter(self, start: Position, what: TableSchema, statement: dict[str, Any] | None) -> None:
        before = self.schema
        assert before is not None
        assert self._start is not None
        if (
            self._snapshot is not None
            and statement is not None
            and kind_of(statement["query"]) is StatementKind.RENAME_TABLE
        ):
            # Another table was renamed to this name, as gh-ost does.
            self._create(start, what)
            return
        try:
            query = None if statement is None else statement["query"]
            found = self._versions.renamed(self._start, start, query)
            names = {delta_name(old): delta_name(new) for old, new in found.items()}
        except CannotFollowError as error:
            seq = _begin_of(start) if statement is None else statement["seq"]
            brings = statement is not None and may_add_rows(statement["query"])
            self._invalidate(seq, str(error), brings=brings)
            kept = {delta_name(column.name) for column in what.columns}
            names = {name: name for name in _as_they_are(before) if name in kept}
        # A change of a type counts, too: two values may become equal.
        is_other_key = _key_types(before, names) != _key_types(what)
        origins = self._origins(names)
        # If a column takes a name that the Delta table uses for another one, merge before: after a
        # kill the Delta table's columns would not show whether they have changed.
        takes_name = any(
            name in self._delta_columns and origins.get(name) != name for name in _as_they_are(what)
        )
        if takes_name or (is_other_key and self._states):
            self._merge(self._marker_before(start, statement))
        if is_other_key and self._snapshot is not None:
            # No change was counted while the table had no key.
            if self._is_unread and not key_of(before) and self._snapshot.restart_after is not None:
                self._snapshot.restart_after(self._with_epoch(_begin_of(start)))
            # Several older rows may have one value of the new key, and a merge would keep them.
            self._snapshot.remove_older()
        self._states = [_renamed(states, names) for states in self._states]
        self._source_columns = self._origins(names)
        self.schema = what

    def _origins(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return column name after a statement -> the column's name in the Delta table.

        names : old -> new column names of the statement, from `renamed`.
        """
        return {names[name]: held for name, held in self._source_columns.items() if name in names}

    def _marker_before(self, start: Position, statement: dict[str, Any] | None) -> CommitMarker:
        """Return the commit marker of everything before the statement that begins a version.

        A process that continues from it applies the statement again, with the old columns.
        """
        version = pack_position(start) - 1 if statement is None else _place(statement)
        return replace(self._marker, position=version, batch=None, fingerprint=None)

    def _on_statement(self, statement: dict[str, Any]) -> None:
        """Note a statement that changes rows without row events."""
        if self._pending_statement is not None:
            self._invalidate_at(self._pending_statement)
        if statement["op"] == "ddl" or not is_whole_truncate(statement["query"]):
            self._pending_statement = statement
        else:
            self._emptied = statement["seq"]
            self._states.clear()

    def _buffer_rows(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._pending_statement is not None:
            # The pending statement changed no column, so it changed rows.
            self._invalidate_at(self._pending_statement)
        if self.schema is None or not self._is_there:
            what = "that does not exist" if self._is_known else "whose columns are not known"
            why = f" ({self._reason})" if self._reason else ""
            raise self._error(f"the binlog has rows of a table {what}{why}; {RELOAD_HINT}")
        lost = self._lost_columns(rows)
        if lost:
            self._merge(replace(self._marker, position=_place(rows.slice(0, 1).to_pylist()[0])))
            raise self._error(f"the binlog has rows without {min(lost)}: {FULL_IMAGES_HINT}")
        key = key_of(self.schema)
        if not key:
            self._check_multiset_supported(rows)
            if self._is_unread:
                return
        elif missing := set(key) - set(delta_schema(self.schema).names):
            raise self._error(
                f"excludeColumns excludes {min(missing)}, a column of the key that identifies rows"
            )
        try:
            self._states.append(self._states_of(rows, key))
        except (SchemaError, UnrepresentableValueError) as error:
            is_loaded = pc.equal(rows.column("op"), "r")
            if not pc.any(is_loaded).as_py():
                raise
            # Snapshot rows have the server's current columns; the stream may not be there yet.
            if self._snapshot is None or self._snapshot.on_unreadable is None:
                raise self._error(
                    f"it was altered during its snapshot ({error.message}); {RELOAD_HINT}"
                ) from None
            self._snapshot.on_unreadable(error.message)
            self._buffer_rows(rows.filter(pc.invert(is_loaded)))

    def _lost_columns(self, rows: pa.Table) -> set[str]:
        """Return columns whose values are needed but missing in the binlog."""
        needed = {"after": rows}
        if self._target.soft_deletes:
            # An update's old row may lack virtual columns, which no setting adds.
            needed["before"] = rows.filter(pc.equal(rows.column("op"), "d"))
        lost = set()
        for side, its_rows in needed.items():
            missing = pc.unique(pc.list_flatten(its_rows.column("missing"))).to_pylist()
            lost |= {name.partition(".")[2] for name in missing if name.startswith(f"{side}.")}
        return lost

    def _states_of(self, rows: pa.Table, key: list[str]) -> pa.Table:
        assert self.schema is not None
        if not key:
            return all_states(rows, self.schema, self._images)
        states, last_values = None, self._target.soft_deletes
        if self._precomputed is not None:
            states = self._precomputed.of(rows, self.schema, last_values=last_values)
        if states is None:
            states = final_states(
                rows, self.schema, key, last_values=last_values, images=self._images
            )
        check_keys_unambiguous(states, self.schema, key)
        return states

    def _check_multiset_supported(self, rows: pa.Table) -> None:
        """MirrorError unless this table's equal rows can be counted with these changes."""
        assert self.schema is not None
        check_multiset_supported(self.schema, soft_deletes=self._target.soft_deletes)
        if "r" in pc.unique(rows.column("op")).to_pylist():
            raise self._error(KEYED_SNAPSHOT_OF_KEYLESS_TABLE)
        if any(pc.list_flatten(rows.column("missing")).to_pylist()):
            raise self._error(
                "the table has no key, and the binlog has rows of it with columns missing:"
                f" {FULL_IMAGES_HINT}"
            )

    def _merge(self, marker: CommitMarker) -> None:
        """Merge the collected states, with a commit marker."""
        if self.schema is None:
            return
        key = key_of(self.schema)
        # The last of these commits gets the marker.
        is_key_noted = merge_key_recorded(self._target, key)
        own = None if self._states else marker
        own_of_rows = own if is_key_noted else None
        is_shaped = self._shape(self.schema, own_of_rows if self._emptied is None else None)
        if self._emptied is not None:
            self._target.delete_older_than(self._emptied, own_of_rows)
        if not is_key_noted:
            record_merge_key(self._target, self._name, key, self._source_columns, own)
        if self._states:
            fields = delta_schema(self.schema)
            states = pa.concat_tables([_cast_to_schema(fields, each) for each in self._states])
            check_partition_values(self._target, states, self._name, key)
            if not key:
                apply_multiset(self._target, states, marker, self._name)
            for name in key:
                if states.column(name).null_count:
                    raise self._error(
                        f"the key's column {name} has an invalid date, which Delta cannot store"
                    )
            if key:
                # Each part already has only the last states.
                if len(self._states) > 1:
                    states = latest_per_key(states, key)
                self._target.merge(states, key, marker)
            if is_shaped and self._target.txn_version(str(marker.log)) != marker.position:
                # States that change nothing make no commit. Without the marker, a replay would
                # change the columns again, which a cycle of renames has made equal to the first.
                self._target.set_properties({}, marker)
        self._states, self._emptied = [], None
        self._hold(self.schema)

    def _hold(self, schema: TableSchema) -> None:
        """Record that the Delta table has the columns of `schema`."""
        self._source_columns = _as_they_are(schema)
        self._delta_columns = _described(delta_schema(schema))

    def _shape(self, schema: TableSchema, marker: CommitMarker | None) -> bool:
        """Give the Delta table the MySQL table's columns; return whether they were others."""
        needed, held = delta_schema(schema), self._target.columns()
        if held is None:
            self._target.create(needed, {})
            return True
        if _described(held) == _described(needed):
            return False  # an earlier process may have changed them before it ended
        self._check_held(_described(held))
        came_from = {SEQ: SEQ} | {
            name: old
            for name, old in self._source_columns.items()
            if old in held.names
            # Columns of a table that a snapshot or another table replaces need no conversion.
            and (
                (self._snapshot is None and self._delta_columns)
                or held.field(old).type == needed.field(name).type
            )
        }
        stays = all(
            came_from.get(name) == name and needed.field(name).type == held.field(name).type
            for name in held.names
        )
        if stays:
            added = [field for field in needed if field.name not in held.names]
            self._target.add_columns(added, marker)
        else:
            self._target.rewrite_columns(needed, came_from, marker)
        return True

    def _check_held(self, found: Mapping[str, pa.DataType]) -> None:
        """MirrorError if the Delta table has neither its last known columns nor the current ones.

        Otherwise values would be taken from the wrong columns.
        """
        if not self._delta_columns or self._snapshot is not None or self._target.is_empty():
            return
        others = {*found.items()} ^ {*self._delta_columns.items()}
        if others:
            raise self._error(
                "the Delta table has columns that the mirror did not add, or lacks some that it"
                f" added: {', '.join(sorted({name for name, _ in others}))}; {RELOAD_HINT}"
            )

    def _is_empty(self) -> bool:
        """Return whether there are no rows: then no statement can change any."""
        return not self._states and (self._emptied is not None or self._target.is_empty())

    def _invalidate_at(self, statement: dict[str, Any]) -> None:
        """Handle a statement that changed rows without row events; see `_invalidate`."""
        self._pending_statement = None
        if is_replacement(statement["query"]):
            # The binlog contains all rows of the new table.
            self._emptied = statement["seq"]
            self._states.clear()
            return
        query = f"{(statement['query'] or '')[:200]!r}"
        reason = f"the binlog does not contain the rows that a statement changed: {query}"
        self._invalidate(statement["seq"], reason, brings=may_add_rows(statement["query"]))

    def _invalidate(self, seq: Mapping[str, int], reason: str, *, brings: bool = False) -> None:
        """Restart the snapshot or raise MirrorError, because the rows are unknown after `seq`.

        Earlier changes are merged. Nothing is done if there are no rows. If the table is dropped
        later in the batch, its rows are removed at once.

        brings : the statement may add rows to an empty table.
        """
        if not brings and self._is_empty():
            return
        at = pack(seq["file"], seq["pos"])
        if self._snapshot is None and self._dropped_at is not None and at < self._dropped_at:
            # The table is dropped later, with all of its rows.
            self._emptied = self._with_epoch(seq)
            self._states.clear()
            return
        begins = None if self._snapshot is None else self._snapshot.restart_after
        if begins is not None:
            begins(self._with_epoch(seq))
            self._is_unread = True
        self._merge(replace(self._marker, position=at, batch=None, fingerprint=None))
        if begins is None:
            raise self._error(f"{reason}; {RELOAD_HINT}")

    def _with_epoch(self, seq: Mapping[str, int]) -> dict[str, int]:
        return {"epoch": self._marker.log.epoch, **seq}

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _begin_of(position: Position) -> dict[str, int]:
    """Return a `seq` before everything that happens at a position."""
    return {"file": position.number, "pos": position.pos, "row": ROW_BEFORE_ALL}


def _place(change: Mapping[str, Any]) -> int:
    return pack(change["seq"]["file"], change["seq"]["pos"])


def _as_they_are(schema: TableSchema) -> dict[str, str]:
    return {name: name for name in (delta_name(column.name) for column in schema.columns)}


def _described(columns: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in columns}


def _renamed(states: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Rename the columns as a statement did, and drop the columns that it dropped."""
    kept = [name for name in states.column_names if name in names or name in {SEQ, TOMBSTONE}]
    return states.select(kept).rename_columns([names.get(name, name) for name in kept])


def _cast_to_schema(fields: pa.Schema, states: pa.Table) -> pa.Table:
    """Return the states with a table's columns, in its order and types."""
    columns = [
        cast_column(states.column(field.name), field.type)
        if field.name in states.column_names
        else pa.nulls(states.num_rows, field.type)
        for field in fields
    ]
    return pa.table(
        [*columns, states.column(TOMBSTONE)], schema=fields.append(pa.field(TOMBSTONE, pa.bool_()))
    )
