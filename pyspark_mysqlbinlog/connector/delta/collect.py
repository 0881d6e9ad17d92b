"""A batch of the stream as one Arrow table of changes, and each table's part of it.

Changes have images as texts; those of rows that a load brought may be typed, and are kept aside
(see `loaded_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.loaded_rows import LoadedRows, with_numbers
from pyspark_mysqlbinlog.connector.packets import PACKETS, TYPED_PACKETS, unpacked
from pyspark_mysqlbinlog.names import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["by_table", "collected"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute


def collected(batch: DataFrame, *, with_source: bool) -> tuple[pa.Table, LoadedRows]:
    """What is needed of a batch's changes, which come in packets or as rows.

    With the images of loaded rows that came typed, to which the changes refer.
    """
    names = ["op", "ts", "database", "table", "before", "after", "seq"]
    if batch.schema not in {PACKETS, TYPED_PACKETS}:
        changes = batch.select(*names, "source").toArrow()
        return with_numbers(_with_source(changes, keep=with_source), None), LoadedRows()
    texts, *typed = unpacked(batch.toArrow())
    found = [with_numbers(_with_source(texts, keep=with_source), None)]
    found += [with_numbers(_of_typed(each, texts.schema), part) for part, each in enumerate(typed)]
    return pa.concat_tables(found), LoadedRows([each.column("after") for each in typed])


def by_table(changes: pa.Table) -> dict[Table, pa.Table]:
    """Each table's changes."""
    names = changes.select(["database", "table"]).group_by(["database", "table"]).aggregate([])
    rows = names.to_pylist()
    if len(rows) == 1:
        return {(rows[0]["database"], rows[0]["table"]): changes}
    parts = {}
    for row in rows:
        is_its = pc.and_(
            pc.equal(changes.column("database"), row["database"]),
            pc.equal(changes.column("table"), row["table"]),
        )
        parts[row["database"], row["table"]] = changes.filter(is_its)
    return parts


def _without_images(changes: pa.Table, content: pa.Schema) -> pa.Table:
    """Typed changes as those of texts are; what follows asks whether there is an image."""
    count = changes.num_rows
    images = {"before": pa.nulls(count, pa.string()), "after": pa.repeat("", count)}
    columns = [images.get(name, changes.column(name)) for name in content.names]
    return pa.table(columns, schema=content)


def _with_source(changes: pa.Table, *, keep: bool = False) -> pa.Table:
    """With what a mirror needs of the column `source`."""
    source = changes.column("source")
    if not keep:
        changes = changes.drop(["source"])
    for name in ("query", "absent"):
        changes = changes.append_column(name, pc.struct_field(source, name))
    return changes


def _of_typed(changes: pa.Table, content: pa.Schema) -> pa.Table:
    """Typed rows of a load, as `_with_source` gives changes whose images are texts."""
    changes = _with_source(_without_images(changes, content))
    # It tells of dates that are no day, which are null here as in all of a mirror's rows.
    at = changes.column_names.index("absent")
    nothing = pa.nulls(changes.num_rows, changes.schema.field("absent").type)
    return changes.set_column(at, "absent", nothing)
