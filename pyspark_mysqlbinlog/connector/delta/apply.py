"""One table's changes of a batch to what they leave: of each key its last state.

A change gives states: a deleted row is gone, an inserted one is there, and an update whose key
changes is both, gone under the old key and there under the new one. Of each key's states the last
counts, by `seq`. What came before a TRUNCATE counts no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.column_names import delta_name
from pyspark_mysqlbinlog.connector.delta.counting import counted
from pyspark_mysqlbinlog.connector.delta.typed import TypedRows
from pyspark_mysqlbinlog.connector.delta.typed_images import IMAGE, TypedImages
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "DELETED",
    "GONE",
    "SEQ",
    "SEQ_TYPE",
    "after",
    "both_rows",
    "in_order",
    "last_states",
    "states_of",
]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

SEQ = "_seq"
GONE = "_gone"
DELETED = "_deleted"
SEQ_TYPE = pa.struct(
    [
        pa.field("epoch", pa.int32()),
        pa.field("file", pa.int32()),
        pa.field("pos", pa.int64()),
        pa.field("row", pa.int32()),
    ]
)
_ORDER = "_order"
# What of changes is needed for their states.
_KEPT = ("op", "before", "after", "seq", IMAGE)
_NOTHING = TypedImages()


def in_order(changes: pa.Table) -> pa.Table:
    """Changes sorted by `seq`."""
    seq = _columns_of(changes.column("seq"))
    keys = [(name, "ascending") for name in seq.column_names]
    places = pc.sort_indices(seq, sort_keys=keys)
    # Tasks give them in order, and so they mostly are: to move all the texts takes longer.
    is_sorted = places.cast(pa.int64()).equals(counted(0, changes.num_rows))
    return changes if is_sorted else changes.take(places)


def after(changes: pa.Table, seq: dict[str, int]) -> pa.Table:
    """The changes with a greater `seq`."""
    columns = _columns_of(changes.column("seq"))
    is_greater: Any = pa.scalar(False)
    for name in reversed(columns.column_names):
        value = seq[name]
        is_greater = pc.or_(
            pc.greater(columns.column(name), value),
            pc.and_(pc.equal(columns.column(name), value), is_greater),
        )
    return changes.filter(is_greater)


def _columns_of(seq: pa.ChunkedArray[Any]) -> pa.Table:
    typed: Any = seq.cast(SEQ_TYPE)
    return pa.Table.from_struct_array(typed)


def states_of(
    changes: pa.Table,
    schema: TableSchema,
    key: Sequence[str],
    *,
    last_values: bool = False,
    images: TypedImages = _NOTHING,
) -> pa.Table:
    """The states that changes of one schema give, with `SEQ`, `GONE`, in the changes' order.

    changes : inserts, updates, deletes and rows that were loaded, of one version of the table.
    key : the columns of its key, as Delta has them.
    last_values : rows that are gone have the values that they had, not those of their key alone.
    images : the typed images that changes refer to.
    """
    names = [delta_name(column.name) for column in schema.columns]
    place = counted(0, changes.num_rows)
    kept = [name for name in _KEPT if name in changes.column_names]
    changes = changes.select(kept).append_column(_ORDER, place)
    there = changes.filter(pc.is_valid(changes.column("after")))
    gone = changes.filter(pc.is_valid(changes.column("before")))

    whole = TypedRows(schema.columns, schema.full_name)
    of_key = TypedRows(
        (column for column in schema.columns if delta_name(column.name) in key),
        schema.full_name,
        only=True,
    )
    after_rows = images.read(there, "after", whole)
    before_keys = images.read(gone, "before", of_key)
    moved = _moved(gone, before_keys, there, after_rows)
    gone, before_keys = gone.filter(moved), before_keys.filter(moved)

    if last_values:
        gone_rows = images.read(gone, "before", whole)
    else:
        nothing = [
            before_keys.column(field.name)
            if field.name in key
            else pa.nulls(gone.num_rows, field.type)
            for field in whole.schema
        ]
        gone_rows = pa.table(nothing, names)
    states = pa.concat_tables(
        [
            _with_seq(gone_rows, gone, is_gone=True),
            _with_seq(after_rows, there, is_gone=False),
        ]
    )
    if not gone.num_rows:
        return states.drop([_ORDER])
    # The old key's end and the new key's beginning have one place, and are of two keys.
    return states.take(pc.sort_indices(states, sort_keys=[(_ORDER, "ascending")])).drop([_ORDER])


def both_rows(changes: pa.Table, schema: TableSchema, images: TypedImages = _NOTHING) -> pa.Table:
    """Each row that changes of one schema take away, and each that they bring.

    In the changes' order, an update's old row in front of its new one; as `states_of` gives them.
    """
    place = counted(0, changes.num_rows)
    kept = [name for name in _KEPT if name in changes.column_names]
    changes = changes.select(kept).append_column(_ORDER, place)
    there = changes.filter(pc.is_valid(changes.column("after")))
    gone = changes.filter(pc.is_valid(changes.column("before")))
    whole = TypedRows(schema.columns, schema.full_name)
    rows = pa.concat_tables(
        [
            _with_seq(images.read(gone, "before", whole), gone, is_gone=True),
            _with_seq(images.read(there, "after", whole), there, is_gone=False),
        ]
    )
    # Sorting is stable.
    return rows.take(pc.sort_indices(rows, sort_keys=[(_ORDER, "ascending")])).drop([_ORDER])


def _moved(gone: pa.Table, before: pa.Table, there: pa.Table, after: pa.Table) -> Any:
    """Of each row with a before image: whether the row is no longer there under its key."""
    index = pc.index_in(gone.column(_ORDER), there.column(_ORDER).combine_chunks())
    moved: Any = pc.is_null(index)
    for name in before.column_names:
        same = pc.equal(before.column(name), after.column(name).take(index))
        moved = pc.or_(moved, pc.invert(pc.fill_null(same, False)))
    return moved


def _with_seq(rows: pa.Table, changes: pa.Table, *, is_gone: bool) -> pa.Table:
    count = pa.repeat(is_gone, rows.num_rows)
    return (
        rows.append_column(SEQ, changes.column("seq").cast(SEQ_TYPE))
        .append_column(GONE, count)
        .append_column(_ORDER, changes.column(_ORDER))
    )


def last_states(states: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of each key the last of these states, which come in order."""
    if len(key) == 1 and _grows(states.column(key[0])):
        return states
    places = counted(0, states.num_rows)
    keyed = pa.table(
        [_grouped(states.column(name)) for name in key] + [places],
        [*(f"k{number}" for number in range(len(key))), _ORDER],
    )
    last = keyed.group_by(keyed.column_names[:-1], use_threads=False).aggregate([(_ORDER, "max")])
    if last.num_rows == states.num_rows:
        return states
    kept: Any = last.column(f"{_ORDER}_max")
    return states.take(kept.take(pc.sort_indices(kept)))


def _grows(values: Any) -> bool:
    """Whether each value is greater than the one before, as those of new rows mostly are."""
    neighbours = pc.less(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
    return pc.all(neighbours, skip_nulls=False).as_py() is True


def _grouped(values: Any) -> Any:
    """A key's values, the same where the server takes them for the same: 0 and -0 are one."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
