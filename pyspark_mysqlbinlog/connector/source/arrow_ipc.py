"""Record batches in packets: each is one row for Spark, with the whole batch as bytes.

Spark turns every Arrow batch of a data source into rows of its own, and `toArrow` turns them back:
for a sink that wants Arrow and takes all columns this is most of its work. A packet goes through as
it is. A stream gives packets when its schema is `IPC_ROWS`, as for a mirror with change logs.

Packets of the other kind, `SLIM_IPC_ROWS`, are for whoever wants the rows and nothing else. Of the
column `source` they have what the rows' meaning hangs on, `query` and `missing`, as columns; the
rest of it takes longer to pack and unpack than all else. And many rows come typed, as
payload=struct gives them, each packet those of one table as it looks there: they need not become
JSON and be read again (see load/chunk_reader.py and ranges/typed_reader.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, envelope
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.options.model import Options

__all__ = [
    "IPC_ROWS",
    "SLIM_IPC_ROWS",
    "check_json",
    "group_by_schema",
    "lean",
    "packets",
    "unpacked",
]

# As a packed stream's only column.
IPC_ROWS = StructType([StructField("packet", BinaryType())])
SLIM_IPC_ROWS = StructType([StructField("lean_packet", BinaryType())])
_CONTENT = envelope(StringType())
_OF_SOURCE = ("query", "missing")


def check_json(options: Options) -> StructType:
    """The columns inside of packets; OptionError unless the options give these."""
    if options.payload_kind != "json":
        raise OptionError(
            f"option payload: packets hold payload=json, and this stream is of"
            f" payload={options.payload_kind}; leave .schema(...) out"
        )
    return _CONTENT


def packets(
    batches: Iterator[pa.RecordBatch], kind: StructType = IPC_ROWS
) -> Iterator[pa.RecordBatch]:
    """Each batch as a packet.

    kind : `IPC_ROWS` or `SLIM_IPC_ROWS`.
    """
    schema = arrow_schema(kind)
    # Row images of a table are much alike; what is small goes faster through two sockets.
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for whole in batches:
        batch = lean(whole) if kind == SLIM_IPC_ROWS else whole
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema, options=options) as stream:
            stream.write_batch(batch)
        packet = pa.array([out.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packet], schema=schema)


def unpacked(table: pa.Table) -> list[pa.Table]:
    """What a frame's packets hold, in their order: of each kind of content a table.

    The first is that of JSON, with or without rows.
    """
    content = arrow_schema(_CONTENT)
    if table.column_names == SLIM_IPC_ROWS.names:
        content = lean(pa.RecordBatch.from_pylist([], content)).schema
    held = (pa.ipc.open_stream(packet.as_buffer()).read_all() for packet in table.column(0))
    return group_by_schema(held, content)


def group_by_schema(held: Iterable[pa.Table], content: pa.Schema) -> list[pa.Table]:
    """Tables joined to one of each kind of content, in their order; the first is of JSON.

    content : of JSON.
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


def lean(changes: Any) -> Any:
    """Changes, a record batch or a table, with the columns that lean packets have."""
    source = changes.column("source")
    # Not by pyarrow.compute: every worker of a stream would import it.
    parts = dict(zip((field.name for field in source.type), source.flatten(), strict=True))
    kept = [name for name in changes.schema.names if name != "source"]
    columns = [changes.column(name) for name in kept]
    columns += [parts[name] for name in _OF_SOURCE]
    return type(changes).from_arrays(columns, names=[*kept, *_OF_SOURCE])
