"""One table's changes of a batch to what they leave: of each key its last state.

A change gives states: a deleted row is gone, an inserted one is there, and an update whose key
changes is both, gone under the old key and there under the new one. Of each key's states the last
counts, by `seq`. What came before a TRUNCATE counts no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import counted, pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import GONE, SEQ, SEQ_TYPE, delta_name
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore, Side
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["all_states", "final_states", "key_of", "latest_per_key", "sorted_by_seq"]

_ORDER = "_row_number"
_NOTHING = ImageStore()


def key_of(schema: TableSchema) -> list[str]:
    """The columns that tell a table's rows apart, as Delta has them."""
    return [delta_name(name) for name in schema.row_key]


def sorted_by_seq(changes: pa.Table) -> pa.Table:
    """Changes sorted by `seq`."""
    seq = _columns_of(changes.column("seq"))
    # Tasks give them in order, and so they mostly are.
    if _is_sorted(seq):
        return changes
    keys = [(name, "ascending") for name in seq.column_names]
    return changes.take(pc.sort_indices(seq, sort_keys=keys))


def _is_sorted(seq: pa.Table) -> bool:
    """Whether no row of whole numbers is smaller than the one before it."""
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
    """Of each key the last state that changes of one schema leave, with `SEQ` and `GONE`.

    Those that are gone come first; each kind is in the changes' order.

    changes : inserts, updates, deletes and rows that were loaded, of one version of the table.
    key : the columns of its key, as Delta has them.
    last_values : rows that are gone have the values that they had, not those of their key alone.
    images : the typed images that changes refer to.
    """
    whole = RowImageReader(schema.columns, schema.full_name)
    gone = images.of_side(changes, "before", whole if last_values else whole.only(key))
    there = images.of_side(changes, "after", whole)
    # Most values are not looked at: those of a key's last state alone count.
    gone_at, there_at = _last_places(gone.columns(key), there.columns(key), gone.has, there.has)
    known = gone.rows(gone_at)
    columns: list[Any] = [
        known.column(field.name)
        if field.name in known.column_names
        else pa.nulls(known.num_rows, field.type)
        for field in whole.schema
    ]
    gone_rows = pa.table(columns, schema=whole.schema)
    seq = changes.select(["seq"])
    return pa.concat_tables(
        [
            _with_seq(gone_rows, seq.take(gone_at), is_tombstone=True),
            _with_seq(there.rows(there_at), seq.take(there_at), is_tombstone=False),
        ]
    )


def _last_places(
    before: pa.Table, after: pa.Table, has_before: Any, has_after: Any
) -> tuple[Any, Any]:
    """Which changes take a key's row away for good, and which bring its last one.

    before, after : each change's key on that side; nulls where it has none.
    has_before, has_after : of each change, whether it has one.
    """
    same = has_after
    for name in before.column_names:
        is_equal = pc.equal(before.column(name), after.column(name))
        same = pc.and_(same, pc.fill_null(is_equal, False))
    gone = pc.indices_nonzero(pc.and_not(has_before, same))
    there = pc.indices_nonzero(has_after)
    # The old key's end and the new key's beginning are of one change, and of two keys.
    order = pc.sort_indices(pa.chunked_array([gone, there]))
    keys = pa.concat_tables([before.take(gone), after.take(there)])
    if len(gone):
        keys = keys.take(order)
    last = _last(keys.columns)
    chosen = order if last is None else order.take(last)
    is_tombstone = pc.less(chosen, len(gone))
    behind = pc.subtract(chosen.filter(pc.invert(is_tombstone)), len(gone))
    return gone.take(chosen.filter(is_tombstone)), there.take(behind)


def all_states(changes: pa.Table, schema: TableSchema, images: ImageStore = _NOTHING) -> pa.Table:
    """Each row that changes of one schema take away, and each that they bring.

    In the changes' order, an update's old row before its new one; as `final_states` gives them.
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
        GONE, pa.repeat(is_tombstone, rows.num_rows)
    )


def latest_per_key(states: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of each key the last of these states, which come in order."""
    places = _last([states.column(name) for name in key])
    return states if places is None else states.take(places)


def _last(keys: Sequence[Any]) -> Any:
    """The places of each key's last row, in order; None where all are.

    keys : the columns of a key.
    """
    if len(keys) == 1 and _grows(keys[0]):
        return None
    count = len(keys[0])
    keyed = pa.table(
        [*map(_grouped, keys), counted(0, count)],
        [*(f"k{number}" for number in range(len(keys))), _ORDER],
    )
    last = keyed.group_by(keyed.column_names[:-1], use_threads=False).aggregate([(_ORDER, "max")])
    if last.num_rows == count:
        return None
    kept: Any = last.column(f"{_ORDER}_max")
    return kept.take(pc.sort_indices(kept))


def _grows(values: Any) -> bool:
    """Whether each value is greater than the one before, as those of new rows mostly are."""
    neighbours = pc.less(values.slice(0, max(len(values) - 1, 0)), values.slice(1))
    return pc.all(neighbours, skip_nulls=False).as_py() is True


def _grouped(values: Any) -> Any:
    """A key's values, the same where the server takes them for the same: 0 and -0 are one."""
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
