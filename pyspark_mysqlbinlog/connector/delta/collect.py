"""A batch of the stream as one Arrow table of changes, and each table's part of it.

Changes have images as texts; those of rows that a load brought may be typed, and are kept aside
(see `loaded_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.loaded_rows import LoadedRows, with_numbers
from pyspark_mysqlbinlog.connector.packets import LEAN_PACKETS, PACKETS, lean, unpacked
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
    if batch.schema == LEAN_PACKETS:
        texts, *typed = unpacked(batch.toArrow())
        found = [with_numbers(texts, None)]
        found += [
            with_numbers(_without_images(each, texts.schema), part)
            for part, each in enumerate(typed)
        ]
        return pa.concat_tables(found), LoadedRows([each.column("after") for each in typed])
    changes = unpacked(batch.toArrow())[0] if batch.schema == PACKETS else batch.toArrow()
    known = lean(changes)
    if with_source:
        known = known.append_column("source", changes.column("source"))
    return with_numbers(known, None), LoadedRows()


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
    """Typed rows of a load as changes whose images are texts; an empty text is an image, too."""
    count = changes.num_rows
    # `absent` names dates that are no day, with their texts, which are null in all of a mirror's
    # rows. A column that a loaded row does not have can't be.
    absent = pc.list_flatten(changes.column("absent"))
    assert pc.all(pc.match_substring(absent, "=")).as_py() is not False, absent
    nothing = {
        "before": pa.nulls(count, pa.string()),
        "after": pa.repeat("", count),
        "absent": pa.nulls(count, content.field("absent").type),
    }
    columns = [nothing[name] if name in nothing else changes.column(name) for name in content.names]
    return pa.table(columns, schema=content)
