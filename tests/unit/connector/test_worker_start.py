"""What it costs to start an executor's Python worker, beyond what Spark and pyarrow import."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark_mysqlbinlog

PACKAGE = Path(pyspark_mysqlbinlog.__file__).parent
# CPU time, which other processes on the machine don't change; what a worker does to unpickle a
# reader and to read one range.
PROGRAM = """
import json, sys, time
import pyarrow, pyspark.worker, pyspark.sql.types
import pyspark.sql.pandas.types, pyspark.sql.streaming.datasource
before = set(sys.modules)
begin = time.process_time()
from pyspark_mysqlbinlog.connector import stream_reader, range_reader
from pyspark_mysqlbinlog.decoder.implementation import implementation
if implementation() == "c":
    import pyspark_mysqlbinlog.decoder.kernel_decoder
seconds = time.process_time() - begin
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - before)}))
"""


def test_imports_of_a_worker(tmp_path: Path) -> None:
    # As it is installed: with its byte code, which a checkout may lack.
    package = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(package, quiet=2)
    runs = [_run(tmp_path) for _ in range(3)]
    assert min(run["seconds"] for run in runs) < 0.3
    # What only the driver needs, or DDL.
    roots = {name.partition(".")[0] for name in runs[0]["modules"]}
    assert "pyspark_mysqlbinlog" in roots
    assert not roots & {"sqlglot", "deltalake", "pandas", "hypothesis", "Cython"}


def _run(path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
