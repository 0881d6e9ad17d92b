"""What an executor does with chunks: their rows, as the log would have brought them.

A row of a SELECT is made into the row image that the log would hold of it, and goes through the
decoder of the log: so each payload gives the very values that the stream gives. Each chunk has a
watermark of its own, which is proven before its transaction begins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.load_state import Chunk
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.load.bounds import where
from pyspark_mysqlbinlog.connector.load.keys import choose_key, quoted
from pyspark_mysqlbinlog.connector.load.partition import LoadPartition
from pyspark_mysqlbinlog.connector.load.prover import Prover
from pyspark_mysqlbinlog.connector.load.sizes import engine_of
from pyspark_mysqlbinlog.connector.log.retry import LOG, known_server
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.reader import SchemasAt, payload_factory
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.connector.server.settings import check_identity
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.result_rows import row_images
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.events import event_blocks
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, unpack_events
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["read_chunks"]

_RETRY_TIMEOUT = 60.0  # seconds, as for pulls: Spark tries a task again on top
# In front of whatever happened at the watermark: a TRUNCATE there has row 0.
_BEFORE_ALL_ROWS = -1


def read_chunks(
    options: Options, partition: LoadPartition, schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    """Record batches of one task's chunks.

    Whoever does not take all of them must close it: it holds a connection.

    Raises
    ------
    MySQLBinlogError : whatever can't be asked, proven, read or told by `schema`; see errors.py.
    """
    settings = options.server_settings()
    for chunk in partition.chunks:
        with known_server(_RETRY_TIMEOUT, ReplicaClient.connect, settings) as client:
            check_identity(client, partition.server_uuid)
            yield from _read_chunk(options, partition, chunk, client, schema)


def _read_chunk(
    options: Options,
    partition: LoadPartition,
    chunk: Chunk,
    client: ReplicaClient,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    database, table = chunk.table
    found = read_table_schemas(client, lambda *name: name == chunk.table)
    engine = engine_of(client, chunk.table)
    if not found or engine is None:
        LOG.warning("%s.%s is not there any more: it is not loaded", database, table)
        return
    prover = Prover.ask(client, options.snapshot_proof, case_sensitive=partition.case_sensitive)
    connect = partial(ReplicaClient.connect, options.server_settings())
    watermark = prover.prove(client, connect, chunk.table, engine)
    excludes = options.column_filter(partition.case_sensitive).excludes
    typed_json = options.payload_kind == "variant" or options.json_type == "variant"
    plan = ResultPlan.make(found[0], excludes, typed_json=typed_json)
    behind = _rows_of(client, plan, chunk, partition.conditions.get(chunk.table))
    client.begin_raw_rows()
    client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    place = watermark.position
    blocks = event_blocks(
        plan,
        read_rows(client, plan, behind, row_images),
        file=place.file,
        pos=place.pos,
        timestamp=watermark.time,
        server_id=watermark.server_id,
    )
    decoder = Decoder(
        SchemasAt(SchemaHistory().with_table(BEGINNING, found[0]), _number),
        schema,
        partition.epoch,
        frozenset({"insert"}),
        file_ordinal=_number,
        excluded=excludes,
        payload=payload_factory(options, partition.case_sensitive),
    )
    for batch in _decoded(decoder, blocks):
        yield _as_loaded(batch)


def _rows_of(client: ReplicaClient, plan: ResultPlan, chunk: Chunk, condition: str | None) -> str:
    """What stands behind FROM and the table: its whole, when its key is another one now."""
    key = choose_key(client, plan.schema)
    hint, conditions = "", []
    if key is not None and key.mark == chunk.key:
        hint = f"FORCE INDEX ({quoted(key.name)}) "
        conditions.append(where(key, chunk.after, chunk.upto))
    if condition is not None:
        conditions.append(f"({condition})")
    return f"{hint}WHERE {' AND '.join(conditions) or 'TRUE'}"


def _decoded(decoder: Decoder, blocks: Iterable[EventBlock]) -> Iterator[pa.RecordBatch]:
    if implementation() == "python":
        return decoder.decode(unpack_events(blocks))
    from pyspark_mysqlbinlog.decoder.kernel.decoder import (  # noqa: PLC0415 - it needs the kernel
        KernelDecoder,
    )

    return KernelDecoder(decoder).decode(blocks)


def _number(file: str) -> int:
    return Position.of(file, FIRST_EVENT).number


def _as_loaded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Inserted rows as loaded ones: ``r``, and in front of all that happened at the watermark."""
    rows = pa.repeat(pa.scalar(_BEFORE_ALL_ROWS, pa.int32()), batch.num_rows)
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["op"] = pa.repeat(pa.scalar("r"), batch.num_rows)
    for name in ("seq", "source"):
        struct = columns[name]
        parts = [rows if field.name == "row" else struct.field(field.name) for field in struct.type]
        columns[name] = pa.StructArray.from_arrays(parts, fields=list(struct.type))
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)
