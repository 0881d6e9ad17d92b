"""Record batches as Arrow IPC messages: Spark sees one row with the whole batch as bytes.

Spark converts every Arrow batch of a data source into rows, and `toArrow` converts them back: for
a sink that takes Arrow and all columns this is most of the work. An IPC message passes through
unchanged. A stream returns them if its schema is `IPC_ROWS`, as for a mirror with change logs.

`SLIM_IPC_ROWS` is for a sink that needs only the rows. Of the column `source` it keeps as columns
what determines the meaning of the rows, `query` and `missing`; the rest costs more time to pack and
unpack than everything else. Many rows come typed, as with payload=struct, each message with rows of
one table under one schema: this avoids JSON (see snapshot/reading/chunk_reader.py and
ranges/typed_reader.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.options.model import Options

__all__ = [
    "IPC_ROWS",
    "SLIM_IPC_ROWS",
    "check_json",
    "group_by_schema",
    "packets",
    "unpacked",
    "without_source",
]

# The only column of a packed stream.
IPC_ROWS = StructType([StructField("packet", BinaryType())])
SLIM_IPC_ROWS = StructType([StructField("lean_packet", BinaryType())])
_CONTENT = output_schema(StringType())
_OF_SOURCE = ("query", "missing")


def check_json(options: Options) -> StructType:
    """Return the columns inside of the messages; OptionError unless the options match them."""
    if options.payload_kind != "json":
        raise OptionError(
            f"option payload: packed rows require payload=json, found"
            f" payload={options.payload_kind}; remove .schema(...)"
        )
    return _CONTENT


def packets(
    batches: Iterator[pa.RecordBatch], kind: StructType = IPC_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield each batch as an IPC message.

    kind : `IPC_ROWS` or `SLIM_IPC_ROWS`.
    """
    schema = arrow_schema(kind)
    # Row images of a table resemble each other, and small data passes two sockets faster.
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for whole in batches:
        batch = without_source(whole) if kind == SLIM_IPC_ROWS else whole
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema, options=options) as stream:
            stream.write_batch(batch)
        packet = pa.array([out.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packet], schema=schema)


def unpacked(table: pa.Table) -> list[pa.Table]:
    """Return the contents of a frame's messages in their order: one table per schema.

    The first has the schema of JSON rows, with or without rows.
    """
    content = arrow_schema(_CONTENT)
    if table.column_names == SLIM_IPC_ROWS.names:
        content = without_source(pa.RecordBatch.from_pylist([], content)).schema
    held = (pa.ipc.open_stream(packet.as_buffer()).read_all() for packet in table.column(0))
    return group_by_schema(held, content)


def group_by_schema(held: Iterable[pa.Table], content: pa.Schema) -> list[pa.Table]:
    """Concatenate tables of equal schema, in their order; the first has the schema of JSON rows.

    content : the schema of JSON rows.
    """
    found: dict[pa.Schema, list[pa.Table]] = {content: []}
    for each in held:
        is_typed = pa.types.is_struct(each.schema.field("after").type)
        assert is_typed or each.schema == content, each.schema
        found.setdefault(each.schema, []).append(each)
    return [
        pa.concat_tables(parts) if parts else schema.empty_table()
        for schema, parts in found.items()
    ]


def without_source(changes: Any) -> Any:
    """Return changes (a record batch or a table) with the columns of `SLIM_IPC_ROWS`."""
    source = changes.column("source")
    # Without pyarrow.compute: every worker of a stream would import it.
    parts = dict(zip((field.name for field in source.type), source.flatten(), strict=True))
    kept = [name for name in changes.schema.names if name != "source"]
    columns = [changes.column(name) for name in kept]
    columns += [parts[name] for name in _OF_SOURCE]
    return type(changes).from_arrays(columns, names=[*kept, *_OF_SOURCE])
