"""Splits one table's changes of a batch by the version of the table that they were made on.

So a batch may span an ALTER: each section is read with the columns of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, Version
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["SchemaSection", "drop_applied", "packed_positions", "split_by_schema"]


@dataclass(frozen=True, slots=True)
class SchemaSection:
    """The changes that were made on one version of a table.

    Attributes
    ----------
    start : where the version begins.
    what : the table, or why it is not known, or that it does not exist.
    changes : in order; may be empty.
    """

    start: Position
    what: TableSchema | UnknownSchema
    changes: pa.Table


def split_by_schema(changes: pa.Table, versions: Sequence[Version]) -> Iterator[SchemaSection]:
    """Split the changes, which are in order, by version; versions without changes included."""
    if len(versions) == 1:
        yield SchemaSection(*versions[0], changes)
        return
    places = packed_positions(changes)
    begins = [pack_position(start) for start, _ in versions]
    # Changes before the first version are in no section.
    ends: list[int | None] = [*begins[1:], None]
    for (start, what), begin, end in zip(versions, begins, ends, strict=True):
        is_in = pc.greater_equal(places, begin)
        if end is not None:
            is_in = pc.and_(is_in, pc.less(places, end))
        yield SchemaSection(start, what, changes.filter(is_in))


def drop_applied(changes: pa.Table, applied: int) -> pa.Table:
    """Drop the changes before a boundary; snapshot rows are always kept."""
    if not applied:
        return changes
    is_new = pc.greater_equal(packed_positions(changes), applied)
    counts = pc.or_(is_new, pc.equal(changes.column("op"), "r"))
    # Usually all are kept: a copy would take longer.
    return changes if pc.all(counts).as_py() is not False else changes.filter(counts)


def packed_positions(changes: pa.Table | pa.RecordBatch) -> Any:
    """Return each change's position, packed as by `packed_position.pack`."""
    seq = changes.column("seq").cast(SEQ_TYPE)
    file = pc.struct_field(seq, "file").cast(pa.int64())
    return pc.bit_wise_or(pc.shift_left(file, 40), pc.struct_field(seq, "pos"))
