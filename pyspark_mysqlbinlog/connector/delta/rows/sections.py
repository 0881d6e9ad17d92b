"""One table's changes of a batch, taken apart by the version of the table that they were made on.

So a batch may span an ALTER: each section is read with the columns that its rows have.
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

__all__ = ["Section", "drop_applied", "packed_positions", "sections"]


@dataclass(frozen=True, slots=True)
class Section:
    """The changes that were made on one version of a table.

    Attributes
    ----------
    start : where the version begins.
    what : the table, or why it is not known, or that it is not there.
    changes : in order; may be none.
    """

    start: Position
    what: TableSchema | UnknownSchema
    changes: pa.Table


def sections(changes: pa.Table, versions: Sequence[Version]) -> Iterator[Section]:
    """The changes, which are in order, version by version; a version without changes, too."""
    if len(versions) == 1:
        yield Section(*versions[0], changes)
        return
    places = packed_positions(changes)
    begins = [pack_position(start) for start, _ in versions]
    # What is told of at a place before the first version lies in none.
    ends: list[int | None] = [*begins[1:], None]
    for (start, what), begin, end in zip(versions, begins, ends, strict=True):
        is_in = pc.greater_equal(places, begin)
        if end is not None:
            is_in = pc.and_(is_in, pc.less(places, end))
        yield Section(start, what, changes.filter(is_in))


def drop_applied(changes: pa.Table, applied: int) -> pa.Table:
    """Without the changes from before a boundary; rows that were loaded always count."""
    if not applied:
        return changes
    is_new = pc.greater_equal(packed_positions(changes), applied)
    counts = pc.or_(is_new, pc.equal(changes.column("op"), "r"))
    # Mostly all of them do: to copy them takes longer.
    return changes if pc.all(counts).as_py() is not False else changes.filter(counts)


def packed_positions(changes: pa.Table | pa.RecordBatch) -> Any:
    """Where each change is, as `packed_position.pack` has it."""
    seq = changes.column("seq").cast(SEQ_TYPE)
    file = pc.struct_field(seq, "file").cast(pa.int64())
    return pc.bit_wise_or(pc.shift_left(file, 40), pc.struct_field(seq, "pos"))
