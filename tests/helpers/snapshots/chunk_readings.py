"""Reads of single chunks, as a snapshot's task does them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, VariantType

from helpers.logs.live_log import client_of, new_database, schemas_of
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import last_bound, next_bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import choose_key
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.schema import output_schema

__all__ = ["Reading", "Row", "fill", "place", "planned", "with_table"]

Row = dict[str, Any]


class Reading:
    """The chunks that one snapshot task reads, of tables of one database.

    more : further options; `where_NAME` is the condition of table NAME.
    """

    def __init__(self, server: Server, *chunks: Chunk, **more: str) -> None:
        (database,) = {chunk.table[0] for chunk in chunks}
        texts = server.options(tables=f"{database}.*", payload="json", sslMode="DISABLED") | more
        conditions = {
            table: texts.pop(f"where_{table[1]}")
            for table in {chunk.table for chunk in chunks}
            if f"where_{table[1]}" in texts
        }
        self.options = parse_options(texts)
        kind: Any = StringType()
        if self.options.payload_kind == "struct":
            kind = read_payload_type(self.options)
        elif self.options.payload_kind == "variant":
            kind = VariantType()
        self.schema = to_arrow_schema(output_schema(kind), timezone="UTC")
        self.partition = ChunkPartition(
            chunks,
            case_sensitive=True,
            since=Position.of(*server.position()),
            epoch=3,
            conditions=conditions,
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        return read_chunks(self.options, self.partition, self.schema)

    def rows(self) -> list[Row]:
        return [row for batch in self.batches() for row in batch.to_pylist()]

    def images(self) -> list[Row]:
        return [json.loads(row["after"]) for row in self.rows()]


def place(row: Row) -> tuple[str, int]:
    return row["source"]["file"], row["source"]["pos"]


@contextmanager
def with_table(server: Server, database: str) -> Iterator[Server]:
    """Yield the server with a new database, whose table `t` has 100 rows."""
    with new_database(server, database):
        fill(server, database)
        yield server


def fill(server: Server, database: str) -> None:
    """Create the table `t` with 100 rows."""
    values = ", ".join(f"({n}, {n * 10})" for n in range(1, 101))
    server.execute(
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {database}.t VALUES {values}",
    )


def planned(server: Server, table: tuple[str, str], rows: int) -> list[Chunk]:
    """Return a table's chunks of up to `rows` rows each."""
    (schema,) = [each for each in schemas_of(server, table[0]) if each.table == table[1]]
    with client_of(server) as client:
        key = choose_key(client, schema)
        assert key is not None
        last = last_bound(client, table, key)
        assert last is not None
        chunks: list[Chunk] = []
        after = None
        while after != last:
            upto, _ = next_bound(client, table, key, after, last, rows=rows)
            chunks.append(Chunk(table, key.fingerprint, after, upto))
            after = upto
    return chunks
