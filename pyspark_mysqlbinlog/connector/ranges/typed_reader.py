"""A range with typed row images, for a consumer that takes each table's rows separately.

Rows have the types of payload=struct, in batches of one table each. Condition: each table has one
schema in the range, and several tables together have at most 256 columns. Any other range, and one
with a row that no struct can hold, is returned as JSON; the consumer of the JSON reports the error,
for the affected table only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.ranges.reader import read_range, unpacked_schemas
from pyspark_mysqlbinlog.connector.ranges.sub_batches import SubBatchBoundaries
from pyspark_mysqlbinlog.connector.ranges.typed_rows import (
    nested_payload,
    nested_schema,
    with_images,
)
from pyspark_mysqlbinlog.connector.tail.prepared_transactions import first_needed
from pyspark_mysqlbinlog.errors import SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.options.model import Options
    from pyspark_mysqlbinlog.connector.ranges.split import RangePartition

__all__ = ["read_typed_range", "read_typed_stretches"]

# The limit for all tables together, if there are several: each has columns in each batch until the
# batch is split.
_MAX_COLUMNS = 256


def read_typed_range(
    options: Options, partition: RangePartition, schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    """Like `read_range`, with all images of a batch either structs of one table or texts.

    The rows of a table are in binlog order. Statement rows, which have no images, may be in any
    batch.

    schema : of batches with texts.
    """
    stretches = read_typed_stretches(options, partition, schema)
    with closing(stretches):
        for stretch in stretches:
            yield from stretch


def read_typed_stretches(
    options: Options,
    partition: RangePartition,
    schema: pa.Schema,
    *,
    boundaries: SubBatchBoundaries | None = None,
) -> Generator[list[pa.RecordBatch]]:
    """Like `read_typed_range`, part by part of the binlog, each with a list of batches.

    boundaries : records how far the log was read.
    """
    given = 0
    tables = _tables(options, partition)
    if tables:
        try:
            nested = nested_schema(schema, tables)
            typed = read_range(options, partition, nested, nested_payload, boundaries=boundaries)
            with closing(typed):
                for batch in typed:
                    yield [*_by_table(batch)]
                    given += batch.num_rows
            return
        except (SchemaError, UnrepresentableValueError):
            pass
    with closing(read_range(options, partition, schema, boundaries=boundaries)) as batches:
        for batch in batches:
            # Both ways return the same rows in the same order.
            passed = min(given, batch.num_rows)
            given -= passed
            if passed < batch.num_rows:
                yield [batch.slice(passed)]


def _tables(
    options: Options, partition: RangePartition
) -> dict[Table, Sequence[ColumnSchema]] | None:
    """Return the columns of all tables with rows in a range; None if structs are impossible."""
    history = unpacked_schemas(partition.schemas)
    captures = options.table_filter(partition.case_sensitive).captures
    excludes = options.column_filter(partition.case_sensitive).excludes
    transforms = options.transforms(partition.case_sensitive)
    position = Position.of if partition.log is None else partition.log.position
    begin = first_needed(partition.start, partition.pending_xa, position)
    found: dict[Table, Sequence[ColumnSchema]] = {}
    count = 0
    for table in history.tables():
        if not captures(*table):
            continue
        versions = _versions_between(history, table, begin, partition.end)
        shapes = [what for _, what in versions if isinstance(what, TableSchema)]
        if shapes and len(versions) > 1:
            return None
        # Rows of unknown tables have no place in structs, either.
        if shapes:
            shown = shapes[0] if transforms is None else transforms.masked(shapes[0])
            columns = [each for each in shown.columns if not excludes(*table, each.name)]
            found[table] = columns
            count += len(columns)
            if not columns or (len(found) > 1 and count > _MAX_COLUMNS):
                return None
    return found


def _versions_between(
    history: SchemaHistory, table: Table, start: Position, end: Position
) -> list[Version]:
    """Return a table's versions that are valid anywhere between two positions."""
    versions = history.versions(*table)
    ends = [begin for begin, _ in versions[1:]]
    return [
        version
        for at, version in enumerate(versions)
        if version[0] < end and (at == len(ends) or start < ends[at])
    ]


def _by_table(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch with images of several tables into one per table, with its structs."""
    tables = [*_sides(batch)]
    # A table has rows if its images are not all null.
    filled = [
        images for images in tables if any(each.null_count < batch.num_rows for each in images)
    ]
    if len(filled) == 1:
        yield _with_images(batch, *filled[0])
        return
    # Imported only here: it is slow to import, and most batches have one table.
    from pyarrow import compute  # noqa: PLC0415 (see above)

    pc: Any = compute
    others: Any = pa.repeat(pa.scalar(True), batch.num_rows)
    for before, after in filled:
        is_its = pc.or_(pc.is_valid(before), pc.is_valid(after))
        others = pc.and_not(others, is_its)
        yield _with_images(batch, before, after).filter(is_its)
    if others.true_count:
        texts = pa.nulls(batch.num_rows, pa.string())
        yield _with_images(batch, texts, texts).filter(others)


def _sides(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array[Any], pa.Array[Any]]]:
    """Yield `before` and `after` of each table; null in the rows of others."""
    before, after = batch.column("before"), batch.column("after")
    assert isinstance(before, pa.StructArray)
    assert isinstance(after, pa.StructArray)
    for at, database in enumerate(before.type):
        olds, news = before.field(at), after.field(at)
        assert isinstance(olds, pa.StructArray)
        assert isinstance(news, pa.StructArray)
        assert isinstance(database.type, pa.StructType)
        for place in range(database.type.num_fields):
            yield olds.field(place), news.field(place)


def _with_images(
    batch: pa.RecordBatch, before: pa.Array[Any], after: pa.Array[Any]
) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns |= {"before": before, "after": after}
    return pa.RecordBatch.from_arrays(
        [*columns.values()], schema=with_images(batch.schema, before.type)
    )
