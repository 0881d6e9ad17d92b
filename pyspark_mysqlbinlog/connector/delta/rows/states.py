"""Reduces one table's changes of a batch to final states: the last state of each key.

A change gives states: a delete gives a tombstone, an insert a live row, and an update that changes
the key gives both, a tombstone for the old key and a live row for the new one. Only the last state
of each key, by `seq`, counts. States before a TRUNCATE do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import int_range, pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE, delta_name
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore, Side
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["all_states", "final_states", "key_of", "latest_per_key", "sorted_by_seq"]

_ORDER = "_row_number"
_NOTHING = ImageStore()


def key_of(schema: TableSchema) -> list[str]:
    """Return the columns that identify a table's rows, as in Delta."""
    return [delta_name(name) for name in schema.row_key]


def sorted_by_seq(changes: pa.Table) -> pa.Table:
    """Sort changes by `seq`."""
    seq = _columns_of(changes.column("seq"))
    # Tasks deliver them in order, so usually they are sorted.
    if _is_sorted(seq):
        return changes
    keys = [(name, "ascending") for name in seq.column_names]
    return changes.take(pc.sort_indices(seq, sort_keys=keys))


def _is_sorted(seq: pa.Table) -> bool:
    """Return whether no row of integers is smaller than the previous one."""
    first, second = seq.slice(0, max(seq.num_rows - 1, 0)), seq.slice(1)
    is_behind: Any = pa.scalar(True)
    for name in reversed(seq.column_names):
        one, other = first.column(name), second.column(name)
        is_behind = pc.or_(pc.less(one, other), pc.and_(pc.equal(one, other), is_behind))
    return pc.all(is_behind).as_py() is not False


def _columns_of(seq: pa.ChunkedArray[Any]) -> pa.Table:
    typed: Any = seq.cast(SEQ_TYPE)
    return pa.Table.from_struct_array(typed)


def final_states(
    changes: pa.Table,
    schema: TableSchema,
    key: Sequence[str],
    *,
    last_values: bool = False,
    images: ImageStore = _NOTHING,
) -> pa.Table:
    """Return the last state of each key after changes of one schema, with `SEQ` and `TOMBSTONE`.

    Tombstones come first; each kind is in the changes' order.

    changes : inserts, updates, deletes and snapshot rows, of one version of the table.
    key : the columns of its key, as in Delta.
    last_values : tombstones have all values of their rows, not only the key.
    images : the typed images that changes refer to.
    """
    whole = RowImageReader(schema.columns, schema.full_name)
    before = images.of_side(changes, "before", whole if last_values else whole.select(key))
    after = images.of_side(changes, "after", whole)
    # Most values are not read: only those of a key's last state are needed.
    tombstones_at, live_at = _last_places(
        before.columns(key), after.columns(key), before.has, after.has
    )
    known = before.rows(tombstones_at)
    columns: list[Any] = [
        known.column(field.name)
        if field.name in known.column_names
        else pa.nulls(known.num_rows, field.type)
        for field in whole.schema
    ]
    tombstones = pa.table(columns, schema=whole.schema)
    seq = changes.select(["seq"])
    return pa.concat_tables(
        [
            _with_seq(tombstones, seq.take(tombstones_at), is_tombstone=True),
            _with_seq(after.rows(live_at), seq.take(live_at), is_tombstone=False),
        ]
    )


def _last_places(
    before: pa.Table, after: pa.Table, has_before: Any, has_after: Any
) -> tuple[Any, Any]:
    """Return the indices of changes that leave a key without a row, and of those that write one.

    before, after : each change's key on that side; nulls if it has none.
    has_before, has_after : whether each change has one.
    """
    same = has_after
    for name in before.column_names:
        is_equal = pc.equal(before.column(name), after.column(name))
        same = pc.and_(same, pc.fill_null(is_equal, False))
    tombstones_at = pc.indices_nonzero(pc.and_not(has_before, same))
    live_at = pc.indices_nonzero(has_after)
    # A change of the key ends the old key and begins the new one in one change.
    order = pc.sort_indices(pa.chunked_array([tombstones_at, live_at]))
    keys = pa.concat_tables([before.take(tombstones_at), after.take(live_at)])
    if len(tombstones_at):
        keys = keys.take(order)
    last = _last(keys.columns)
    chosen = order if last is None else order.take(last)
    is_tombstone = pc.less(chosen, len(tombstones_at))
    live_rows = pc.subtract(chosen.filter(pc.invert(is_tombstone)), len(tombstones_at))
    return tombstones_at.take(chosen.filter(is_tombstone)), live_at.take(live_rows)


def all_states(changes: pa.Table, schema: TableSchema, images: ImageStore = _NOTHING) -> pa.Table:
    """Return each row that changes of one schema remove, and each that they add.

    In the changes' order, an update's old row before its new one; columns as in `final_states`.
    """
    whole, seq = RowImageReader(schema.columns, schema.full_name), changes.select(["seq"])
    places, parts = [], []
    sides: Sequence[tuple[Side, bool]] = (("before", True), ("after", False))
    for side, is_tombstone in sides:
        its = images.of_side(changes, side, whole)
        at = pc.indices_nonzero(its.has)
        parts.append(_with_seq(its.rows(at), seq.take(at), is_tombstone=is_tombstone))
        places.append(at)
    # Sorting is stable.
    return pa.concat_tables(parts).take(pc.sort_indices(pa.chunked_array(places)))


def _with_seq(rows: pa.Table, seq: pa.Table, *, is_tombstone: bool) -> pa.Table:
    typed = seq.column("seq").cast(SEQ_TYPE)
    return rows.append_column(SEQ, typed).append_column(
        TOMBSTONE, pa.repeat(is_tombstone, rows.num_rows)
    )


def latest_per_key(states: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last state of each key; the states are in order."""
    places = _last([states.column(name) for name in key])
    return states if places is None else states.take(places)


def _last(keys: Sequence[Any]) -> Any:
    """Return the indices of each key's last row, in order; None if all rows are last.

    keys : the columns of a key.
    """
    if len(keys) == 1 and _grows(keys[0]):
        return None
    count = len(keys[0])
    keyed = pa.table(
        [*map(_grouped, keys), int_range(0, count)],
        [*(f"k{number}" for number in range(len(keys))), _ORDER],
    )
    last = keyed.group_by(keyed.column_names[:-1], use_threads=False).aggregate([(_ORDER, "max")])
    if last.num_rows == count:
        return None
    kept: Any = last.column(f"{_ORDER}_max")
    return kept.take(pc.sort_indices(kept))


def _grows(values: Any) -> bool:
    """Return whether each value is greater than the previous one, as usual for new rows."""
    neighbours = pc.less(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
    return pc.all(neighbours, skip_nulls=False).as_py() is True


def _grouped(values: Any) -> Any:
    """Return a key's values with 0 instead of -0: the two are equal on the server."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
