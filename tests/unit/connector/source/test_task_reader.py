"""Executors unpickle a reader and read one task."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StringType

from helpers.waiting import patience
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

BINLOGS = Path(__file__).resolve().parents[3] / "data" / "binlogs57"

# Modules that Spark and pyarrow import are not counted.
WORKER = """
import json, pickle, sys
from pathlib import Path
import pyarrow, pyspark.worker, pyspark.sql.types
import pyspark.sql.pandas.types, pyspark.sql.streaming.datasource
before = set(sys.modules)
reader, partition = pickle.loads(Path(sys.argv[1]).read_bytes())
rows = sum(batch.num_rows for batch in reader.read(partition))
print(json.dumps([rows, sorted(set(sys.modules) - before)]))
"""

# Modules that plan batches and snapshots, or read ahead.
DRIVER_ONLY = {
    "pyspark_mysqlbinlog.connector.source.batch_reader",
    "pyspark_mysqlbinlog.connector.source.stream_reader",
    "pyspark_mysqlbinlog.connector.source.stream.binding",
    "pyspark_mysqlbinlog.connector.source.stream.failover",
    "pyspark_mysqlbinlog.connector.snapshot.coordinator",
    "pyspark_mysqlbinlog.connector.snapshot.planning.planner",
    "pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader",
    "pyspark_mysqlbinlog.connector.tail.log_tail",
}


def readers() -> tuple[MySQLBinlogReader, MySQLBinlogStreamReader]:
    options = parse_options({"path": str(BINLOGS / "numbers.001.binlog"), "payload": "json"})
    schema = output_schema(StringType())
    return MySQLBinlogReader(options, schema), MySQLBinlogStreamReader(options, schema)


def pickled(reader: DataSourceReader | DataSourceStreamReader, part: InputPartition) -> bytes:
    """Return a reader and a task as Spark pickles them."""
    pickler: Any = CloudPickleSerializer
    content: bytes = pickler().dumps((reader, part))
    return content


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_worker_reads_a_task_without_driver_modules(kind: str, tmp_path: Path) -> None:
    batch, stream = readers()
    (part,) = batch.partitions()
    expected = sum(rows.num_rows for rows in batch.read(part))
    path = tmp_path / "task"
    path.write_bytes(pickled(batch if kind == "batch" else stream, part))
    done = subprocess.run(
        [sys.executable, "-P", "-c", WORKER, str(path)],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows, names = json.loads(done.stdout)
    assert rows == expected > 0
    roots = {name.partition(".")[0] for name in names}
    assert not roots & {"sqlglot", "deltalake", "pandas", "hypothesis", "Cython"}
    for name in DRIVER_ONLY:
        assert importlib.util.find_spec(name) is not None
    assert not DRIVER_ONLY & set(names)


def test_empty_spark_partition_of_a_batch_read_gives_no_rows() -> None:
    batch, _ = readers()
    assert list(batch.read(InputPartition(None))) == []
