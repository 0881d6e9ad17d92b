"""A batch of the stream as one Arrow table of changes, and each table's part of it.

Changes have images as texts; typed images are stored separately (see `image_store`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.image_store import (
    ImagePart,
    ImageStore,
    with_image_ids,
)
from pyspark_mysqlbinlog.connector.source.arrow_ipc import (
    IPC_ROWS,
    SLIM_IPC_ROWS,
    group_by_schema,
    unpacked,
    without_source,
)
from pyspark_mysqlbinlog.names import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc

__all__ = ["by_table", "collected", "of_batches"]


def collected(batch: DataFrame, *, with_source: bool) -> tuple[pa.Table, ImageStore]:
    """Collect the necessary columns of a batch's changes, which arrive as IPC rows or plain rows.

    Also returns the typed images that the changes refer to.
    """
    if batch.schema == SLIM_IPC_ROWS:
        return _of_contents(unpacked(batch.toArrow()))
    changes = unpacked(batch.toArrow())[0] if batch.schema == IPC_ROWS else batch.toArrow()
    return _of_texts(changes, with_source=with_source)


def of_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, with_source: bool
) -> tuple[pa.Table, ImageStore]:
    """Return the same as `collected`, from the record batches of a range's reader.

    schema : of the batches whose images are texts.
    with_source : all images are texts.
    """
    if with_source:
        return _of_texts(pa.Table.from_batches(batches, schema), with_source=True)
    content = without_source(schema.empty_table()).schema
    held = (pa.Table.from_batches([without_source(batch)]) for batch in batches)
    return _of_contents(group_by_schema(held, content))


def _of_contents(contents: Sequence[pa.Table]) -> tuple[pa.Table, ImageStore]:
    texts, *typed = contents
    found = [with_image_ids(texts, None)]
    found += [
        with_image_ids(_without_images(each, texts.schema), part) for part, each in enumerate(typed)
    ]
    parts = [ImagePart(each.column("before"), each.column("after")) for each in typed]
    return pa.concat_tables(found), ImageStore(parts)


def _of_texts(changes: pa.Table, *, with_source: bool) -> tuple[pa.Table, ImageStore]:
    known = without_source(changes)
    if with_source:
        known = known.append_column("source", changes.column("source"))
    return with_image_ids(known, None), ImageStore()


def by_table(changes: pa.Table) -> dict[Table, pa.Table]:
    """Split changes by table."""
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
    """Convert typed changes to changes with text images; an empty text marks an image."""
    made: dict[str, Any] = {side: _marks(changes.column(side)) for side in ("before", "after")}
    columns = [made[name] if name in made else changes.column(name) for name in content.names]
    return pa.table(columns, schema=content)


def _marks(images: Any) -> Any:
    return pc.if_else(pc.is_valid(images), pa.scalar("", pa.string()), pa.scalar(None, pa.string()))
