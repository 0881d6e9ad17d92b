"""What an executor's Python worker imports, beyond what Spark and pyarrow import."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

from helpers.waiting import patience

# What a worker does to unpickle a reader and to read one range.
PROGRAM = """
import json, sys
import pyarrow, pyspark.worker, pyspark.sql.types
import pyspark.sql.pandas.types, pyspark.sql.streaming.datasource
before = set(sys.modules)
from pyspark_mysqlbinlog.connector.ranges import reader as range_reader
from pyspark_mysqlbinlog.connector.source import stream_reader
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
if implementation() == "c":
    import pyspark_mysqlbinlog.decoder.kernel.decoder
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_imports_of_a_worker() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = set(json.loads(done.stdout))
    roots = {name.partition(".")[0] for name in names}
    assert "pyspark_mysqlbinlog" in roots
    # What only the driver needs, or DDL.
    assert not roots & {"sqlglot", "deltalake", "pandas", "hypothesis", "Cython"}
    snapshot = "pyspark_mysqlbinlog.connector.snapshot"
    driver_only = ("coordinator", "planning.planner", "reading.chunk_reader")
    for name in driver_only:
        assert importlib.util.find_spec(f"{snapshot}.{name}") is not None
    assert not names & {f"{snapshot}.{name}" for name in driver_only}
