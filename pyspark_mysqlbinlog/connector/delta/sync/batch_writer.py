"""The way of one table through a batch: its sections one after another, then one merge.

What the changes leave is gathered, under the names that the columns have at that moment. It is
merged at the end, and wherever what comes behind can't be gathered with what came before: where the
primary key becomes another, where a column gets a name that the Delta table still has for another
one, and in front of a statement after which nobody knows what the rows are. The Delta table gets
the shape of the moment right before that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.connector.delta.rows.ambiguous_keys import check_keys_unambiguous
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import (
    GONE,
    ROW_BEFORE_ALL,
    SEQ,
    SEQ_TYPE,
    check_distinct,
    delta_name,
)
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, pack_position
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import PrecomputedStates
from pyspark_mysqlbinlog.connector.delta.rows.row_images import typed_field
from pyspark_mysqlbinlog.connector.delta.rows.sections import Section
from pyspark_mysqlbinlog.connector.delta.rows.states import (
    all_states,
    final_states,
    key_of,
    latest_per_key,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import Mark
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.store.partition_checks import check_partition_values
from pyspark_mysqlbinlog.connector.delta.sync.ddl import is_drop, kind_of, may_add_rows
from pyspark_mysqlbinlog.connector.delta.sync.multiset import (
    apply_multiset,
    check_multiset_supported,
)
from pyspark_mysqlbinlog.connector.delta.sync.soft_deletes import (
    merge_key_recorded,
    record_merge_key,
)
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.decoder.sql.column_changes import CannotFollowError, renamed
from pyspark_mysqlbinlog.errors import MirrorError, SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "KEYED_SNAPSHOT_OF_KEYLESS_TABLE",
    "RELOAD_HINT",
    "TableSnapshot",
    "Walk",
    "delta_schema",
]


RELOAD_HINT = "load the table anew"
KEYED_SNAPSHOT_OF_KEYLESS_TABLE = (
    "the table has no key where the log has come to, and its rows were read by one: it was altered"
    " while it was being loaded, or excludeColumns leaves out a column of its key, or its key is"
    f" not known; {RELOAD_HINT}, or start with a new checkpoint, which learns them anew"
)
_STATEMENTS = pa.array(["t", "ddl"])


def delta_schema(schema: TableSchema) -> pa.Schema:
    """The columns of the Delta table of a table."""
    check_distinct((column.name for column in schema.columns), schema.full_name)
    return pa.schema([*map(typed_field, schema.columns), pa.field(SEQ, SEQ_TYPE)])


def _key_types(
    schema: TableSchema, names: Mapping[str, str] | None = None
) -> list[tuple[str | None, pa.DataType | None]]:
    """The columns of a table's key, with their types in Delta; None for those that are left out.

    names : what they are called now -> what they are called then; None where they stay.
    """
    types = _described(delta_schema(schema))
    return [
        (name if names is None else names.get(name), types.get(name)) for name in key_of(schema)
    ]


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A load that reads the table's rows: those that come with another table are among them.

    Attributes
    ----------
    restart_after : is told of a `seq` at which nobody knows the rows any more: the load that the
        source begins there brings them all. None where it begins none by itself.
    on_unreadable : is told why loaded rows can't be read: they have a shape that the log has not
        come to yet, and the source loads the table again when it comes there. None likewise.
    remove_older : removes the rows that are older than the load: it replaces them in any case.
    is_unread : its rows are read after all changes of the batch, so that none need be counted.
    """

    restart_after: Callable[[Mapping[str, int]], None] | None
    on_unreadable: Callable[[str], None] | None
    remove_older: Callable[[], None]
    is_unread: bool = False


class Walk:
    """Takes the sections of a batch in order; `finish` ends it.

    Both raise MirrorError where the rows behind a place are not known. What came before is merged.

    Parameters
    ----------
    mark : of the batch's end.
    applied : the place up to which the Delta table has everything.
    came_by_rename : places at which another table took this one's name.
    load : that goes on, or begins in this batch.
    images : the typed images that changes refer to.
    gone : the last place at which the table goes in this batch.
    prepared : what all of the table's changes leave, if that was made ahead.
    """

    def __init__(
        self,
        name: str,
        target: DeltaTarget,
        mark: Mark,
        applied: int,
        came_by_rename: frozenset[int],
        *,
        load: TableSnapshot | None = None,
        images: ImageStore,
        gone: int | None = None,
        prepared: PrecomputedStates | None = None,
    ) -> None:
        self._name = name
        self._target = target
        self._mark = mark
        self._applied = applied
        self._came_by_rename = came_by_rename
        self._load = load
        self._is_unread = load is not None and load.is_unread
        self._images = images
        self._prepared = prepared
        self._gone = gone
        self.schema: TableSchema | None = None
        self._is_there = False
        self._is_known = True
        self._reason = ""  # why it is not
        # The columns that the Delta table has when this begins, or after a merge. Empty where what
        # it has is of no account: the table is a new one.
        self._held: Mapping[str, pa.DataType] = {}
        # A column's name now, as Delta is to have it -> its name in the Delta table.
        self._came_from: dict[str, str] = {}
        self._states: list[pa.Table] = []
        self._emptied: dict[str, int] | None = None
        # A statement of which it is not known yet what it did to the rows.
        self._told: dict[str, Any] | None = None

    def take(self, section: Section) -> None:
        """The next version, and its changes."""
        self._enter(section.start, section.what)
        changes, begin = section.changes, 0
        for at in pc.indices_nonzero(pc.is_in(changes.column("op"), _STATEMENTS)).to_pylist():
            self._gather(changes.slice(begin, at - begin))
            self._hear(changes.slice(at, 1).to_pylist()[0])
            begin = at + 1
        self._gather(changes.slice(begin))

    def finish(self) -> None:
        """Merge what was gathered."""
        if self._told is not None and (self._is_there or not is_drop(self._told["query"])):
            self._lose_at(self._told)
        self._merge(self._mark)

    def _enter(self, start: Position, what: TableSchema | UnknownSchema) -> None:
        told, self._told = self._told, None
        if isinstance(what, UnknownSchema):
            self._is_there = self._is_there and not what.gone
            self._is_known = what.gone
            self._reason = what.reason
            if self._is_there and told is not None:
                self._lose_at(told)
        elif self.schema is None and pack_position(start) <= self._applied:
            self._is_there = True
            self.schema = what
            self._hold(what)
        elif not self._is_there and self._is_known:
            self._create(start, what)
        elif self.schema is None or not self._is_known:
            # The server was asked what it looks like; nobody told what became of its rows.
            self._lose(_begin_of(start), "its columns were not known for a while", brings=True)
            self._is_known = self._is_there = True
            self.schema = what
            self._hold(what)
        elif what != self.schema:
            self._alter(start, what, told)
        elif told is not None:
            self._lose_at(told)

    def _create(self, start: Position, what: TableSchema) -> None:
        if pack_position(start) in self._came_by_rename and self._load is None:
            self._lose(
                _begin_of(start),
                "another table took its name, with rows that nobody told of",
                brings=True,
            )
        # Rows of a table that had the name before.
        self._states.clear()
        self._emptied = self._with_epoch(_begin_of(start))
        self._is_there = True
        self.schema, self._held = what, {}
        # All that stays of rows that were deleted before.
        self._came_from = _as_they_are(what) if self._target.soft_deletes else {}

    def _alter(self, start: Position, what: TableSchema, told: dict[str, Any] | None) -> None:
        before = self.schema
        assert before is not None
        if (
            self._load is not None
            and told is not None
            and kind_of(told["query"]) is StatementKind.RENAME_TABLE
        ):
            # Another table took the name, as that of gh-ost does.
            self._create(start, what)
            return
        try:
            found = renamed(before, what, None if told is None else told["query"])
            names = {delta_name(old): delta_name(new) for old, new in found.items()}
        except CannotFollowError as error:
            seq = _begin_of(start) if told is None else told["seq"]
            brings = told is not None and may_add_rows(told["query"])
            self._lose(seq, str(error), brings=brings)
            kept = {delta_name(column.name) for column in what.columns}
            names = {name: name for name in _as_they_are(before) if name in kept}
        # With another type, too: two of its values may be one in that.
        is_other_key = _key_types(before, names) != _key_types(what)
        origins = self._origins(names)
        # By its columns the Delta table would not tell, after a kill, whether it has them already.
        takes_name = any(
            name in self._held and origins.get(name) != name for name in _as_they_are(what)
        )
        if takes_name or (is_other_key and self._states):
            self._merge(self._mark_before(start, told))
        if is_other_key and self._load is not None:
            # Nothing was counted while it had no key.
            if self._is_unread and not key_of(before) and self._load.restart_after is not None:
                self._load.restart_after(self._with_epoch(_begin_of(start)))
            # Among them may be several with one value of the new key, which a merge would keep.
            self._load.remove_older()
        self._states = [_renamed(states, names) for states in self._states]
        self._came_from = self._origins(names)
        self.schema = what

    def _origins(self, names: Mapping[str, str]) -> dict[str, str]:
        """Where the values of columns behind a statement are in the Delta table: name -> its name.

        names : what the statement made of the columns' names, as `renamed` has them.
        """
        return {names[name]: held for name, held in self._came_from.items() if name in names}

    def _mark_before(self, start: Position, told: dict[str, Any] | None) -> Mark:
        """Of a commit that has all in front of a statement, behind which a version begins.

        Whoever goes on from it comes to the statement again, from the columns before.
        """
        version = pack_position(start) - 1 if told is None else _place(told)
        return replace(self._mark, version=version, batch=None, fingerprint=None)

    def _hear(self, statement: dict[str, Any]) -> None:
        """A statement that touches rows without row events."""
        if self._told is not None:
            self._lose_at(self._told)
        is_whole = (
            "PARTITION" not in (statement["query"] or "").upper()
            or kind_of(statement["query"]) is StatementKind.TRUNCATE
        )
        if statement["op"] == "ddl" or not is_whole:
            self._told = statement
        else:
            self._emptied = statement["seq"]
            self._states.clear()

    def _gather(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if self._told is not None:
            # It changed no column: then it changed rows.
            self._lose_at(self._told)
        if self.schema is None or not self._is_there:
            what = "that is not there" if self._is_known else "whose columns are not known"
            why = f" ({self._reason})" if self._reason else ""
            raise self._error(f"there are rows of a table {what}{why}; {RELOAD_HINT}")
        lost = self._lost_columns(rows)
        if lost:
            self._merge(replace(self._mark, version=_place(rows.slice(0, 1).to_pylist()[0])))
            raise self._error(
                f"the log has rows without {min(lost)}: set"
                f" binlog_row_image=FULL everywhere, and {RELOAD_HINT}"
            )
        key = key_of(self.schema)
        if not key:
            self._check_multiset_supported(rows)
            if self._is_unread:
                return
        elif missing := set(key) - set(delta_schema(self.schema).names):
            raise self._error(
                f"excludeColumns leaves out {min(missing)}, of the key by which rows are told apart"
            )
        try:
            self._states.append(self._states_of(rows, key))
        except (SchemaError, UnrepresentableValueError) as error:
            is_loaded = pc.equal(rows.column("op"), "r")
            if not pc.any(is_loaded).as_py():
                raise
            # Loaded rows are those of now, which the log has not come to yet.
            if self._load is None or self._load.on_unreadable is None:
                raise self._error(
                    f"it was altered while it was being loaded ({error.message}); {RELOAD_HINT}"
                ) from None
            self._load.on_unreadable(error.message)
            self._gather(rows.filter(pc.invert(is_loaded)))

    def _lost_columns(self, rows: pa.Table) -> set[str]:
        """Columns whose values are needed, and not in the log."""
        needed = {"after": rows}
        if self._target.soft_deletes:
            # An update's old row may lack virtual columns, which no setting brings back.
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
        if self._prepared is not None:
            states = self._prepared.of(rows, self.schema, last_values=last_values)
        if states is None:
            states = final_states(
                rows, self.schema, key, last_values=last_values, images=self._images
            )
        check_keys_unambiguous(states, self.schema, key)
        return states

    def _check_multiset_supported(self, rows: pa.Table) -> None:
        """MirrorError unless equal rows of this table can be counted, by these changes."""
        assert self.schema is not None
        check_multiset_supported(self.schema, soft_deletes=self._target.soft_deletes)
        if "r" in pc.unique(rows.column("op")).to_pylist():
            raise self._error(KEYED_SNAPSHOT_OF_KEYLESS_TABLE)
        if any(pc.list_flatten(rows.column("missing")).to_pylist()):
            raise self._error(
                "the table has no key, and the log has rows of it with columns missing: set"
                f" binlog_row_image=FULL everywhere, and {RELOAD_HINT}"
            )

    def _merge(self, mark: Mark) -> None:
        """Bring in what was gathered, up to a place."""
        if self.schema is None:
            return
        key = key_of(self.schema)
        # The last of these commits has the mark.
        is_key_noted = merge_key_recorded(self._target, key)
        own = None if self._states else mark
        own_of_rows = own if is_key_noted else None
        self._shape(self.schema, own_of_rows if self._emptied is None else None)
        if self._emptied is not None:
            self._target.empty(self._emptied, own_of_rows)
        if not is_key_noted:
            record_merge_key(self._target, self._name, key, self._came_from, own)
        if self._states:
            fields = delta_schema(self.schema)
            states = pa.concat_tables([_brought_to(fields, each) for each in self._states])
            check_partition_values(self._target, states, self._name)
            if not key:
                apply_multiset(self._target, states, mark, self._name)
            for name in key:
                if states.column(name).null_count:
                    raise self._error(
                        f"the key's column {name} has a date that is no day, which Delta can't hold"
                    )
            if key:
                # Of each piece they are the last already.
                if len(self._states) > 1:
                    states = latest_per_key(states, key)
                self._target.merge(states, key, mark)
        self._states, self._emptied = [], None
        self._hold(self.schema)

    def _hold(self, schema: TableSchema) -> None:
        """The Delta table has the columns of this."""
        self._came_from = _as_they_are(schema)
        self._held = _described(delta_schema(schema))

    def _shape(self, schema: TableSchema, mark: Mark | None) -> None:
        """Give the Delta table the columns that the table has."""
        wanted, held = delta_schema(schema), self._target.columns()
        if held is None:
            self._target.create(wanted, {})
            return
        if _described(held) == _described(wanted):
            return  # it was given them, maybe, by a process that ended then
        self._check_held(_described(held))
        came_from = {SEQ: SEQ} | {
            name: old
            for name, old in self._came_from.items()
            if old in held.names
            # What a load brings again, and another table's rows, need not be made of these.
            and (
                (self._load is None and self._held)
                or held.field(old).type == wanted.field(name).type
            )
        }
        stays = all(
            came_from.get(name) == name and wanted.field(name).type == held.field(name).type
            for name in held.names
        )
        if stays:
            added = [field for field in wanted if field.name not in held.names]
            self._target.add_columns(added, mark)
        else:
            self._target.rewrite_columns(wanted, came_from, mark)

    def _check_held(self, found: Mapping[str, pa.DataType]) -> None:
        """MirrorError where the Delta table has neither the columns of before nor those of now.

        Values would be taken from columns that are others than they seem.
        """
        if not self._held or self._load is not None or self._target.is_empty():
            return
        others = {*found.items()} ^ {*self._held.items()}
        if others:
            raise self._error(
                "the Delta table has columns that the mirror did not give it, or lacks some that it"
                f" did: {', '.join(sorted({name for name, _ in others}))}; {RELOAD_HINT}"
            )

    def _is_empty(self) -> bool:
        """Whether there are no rows: what is done to them then does no harm."""
        return not self._states and (self._emptied is not None or self._target.is_empty())

    def _lose_at(self, told: dict[str, Any]) -> None:
        """A statement changed the rows; see `_lose`."""
        query = f"{(told['query'] or '')[:200]!r}"
        reason = f"a statement changed rows without telling the log which: {query}"
        self._lose(told["seq"], reason, brings=may_add_rows(told["query"]))
        self._told = None

    def _lose(self, seq: Mapping[str, int], reason: str, *, brings: bool = False) -> None:
        """From here on nobody knows the rows: raise, unless there are none or a load brings them.

        Where the table is gone later in the batch its rows go at once. What came before is merged.

        brings : there may be rows where there were none.
        """
        if not brings and self._is_empty():
            return
        at = pack(seq["file"], seq["pos"])
        if self._load is None and self._gone is not None and at < self._gone:
            # The table goes later on, and takes all of them along.
            self._emptied = self._with_epoch(seq)
            self._states.clear()
            return
        begins = None if self._load is None else self._load.restart_after
        if begins is not None:
            begins(self._with_epoch(seq))
            self._is_unread = True
        self._merge(replace(self._mark, version=at, batch=None, fingerprint=None))
        if begins is None:
            raise self._error(f"{reason}; {RELOAD_HINT}")

    def _with_epoch(self, seq: Mapping[str, int]) -> dict[str, int]:
        return {"epoch": self._mark.log.epoch, **seq}

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)


def _begin_of(position: Position) -> dict[str, int]:
    """A `seq` in front of all that happens at a position."""
    return {"file": position.number, "pos": position.pos, "row": ROW_BEFORE_ALL}


def _place(change: Mapping[str, Any]) -> int:
    return pack(change["seq"]["file"], change["seq"]["pos"])


def _as_they_are(schema: TableSchema) -> dict[str, str]:
    return {name: name for name in (delta_name(column.name) for column in schema.columns)}


def _described(columns: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in columns}


def _renamed(states: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The states under the columns' names behind a statement, without those that it dropped."""
    kept = [name for name in states.column_names if name in names or name in {SEQ, GONE}]
    return states.select(kept).rename_columns([names.get(name, name) for name in kept])


def _brought_to(fields: pa.Schema, states: pa.Table) -> pa.Table:
    """The states with a table's columns, in its order and types."""
    columns = [
        states.column(field.name).cast(field.type)
        if field.name in states.column_names
        else pa.nulls(states.num_rows, field.type)
        for field in fields
    ]
    return pa.table(
        [*columns, states.column(GONE)], schema=fields.append(pa.field(GONE, pa.bool_()))
    )
