"""A program that reads one chunk as a Python worker does, and prints its time and memory.

Arguments: the server's port, one of its binlog files, a table as ``database.table``, the payload,
and the sink's time for each batch in seconds. The last line of the output is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, VariantType

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.schemas.struct_schema import read_payload_type
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.schema import output_schema


def resident() -> int:
    """Return the peak resident memory of this program so far, in MB.

    getrusage would include the memory of the process that started it.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) >> 10
    raise RuntimeError("/proc/self/status has no VmHWM")


def main(port: str, file: str, name: str, payload: str, pause: str) -> None:
    options = parse_options(
        {
            "host": "127.0.0.1", "port": port, "user": "root", "password": "", "tables": name,
            "payload": payload, "sslMode": "DISABLED",
        }
    )  # fmt: skip
    others = {"json": StringType(), "variant": VariantType()}
    kind = others.get(payload) or read_payload_type(options)
    schema = to_arrow_schema(output_schema(kind), timezone="UTC")
    database, _, table = name.partition(".")
    since = Position.of(file, FIRST_EVENT)
    partition = ChunkPartition((Chunk((database, table)),), case_sensitive=True, since=since)
    before, began = resident(), time.monotonic()
    rows = size = 0
    for batch in read_chunks(options, partition, schema):
        rows += batch.num_rows
        size += batch.nbytes
        time.sleep(float(pause))
    # The parent process reads it.
    print(  # noqa: T201
        json.dumps(
            {
                "rows": rows,
                "bytes": size,
                "seconds": time.monotonic() - began,
                "before": before,
                "peak": resident(),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
