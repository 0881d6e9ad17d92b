"""Rewrites of tables while the properties of another table are set, in one process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from helpers.waiting import patience

# Runs in a subprocess: a deadlock would freeze the interpreter, with any timeout in it.
_PROGRAM = """
import sys
from threading import Thread

import pyarrow as pa
from deltalake import write_deltalake

from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine

COLUMNS = pa.schema([("a", pa.int64())])

def rewrite(name):
    target = DeltalakeEngine().target(f"{sys.argv[1]}/{name}")
    for _ in range(20):
        target.rewrite_columns(COLUMNS, {"a": "a"})

def set_properties(name):
    target = DeltalakeEngine().target(f"{sys.argv[1]}/{name}")
    for number in range(100):
        target.set_properties({"a.number": str(number)})

for name in "tuv":
    write_deltalake(f"{sys.argv[1]}/{name}", pa.table({"a": range(50_000)}))
threads = [Thread(target=rewrite, args=("t",)), Thread(target=rewrite, args=("u",))]
threads.append(Thread(target=set_properties, args=("v",)))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ended")
"""


def test_parallel_rewrites_and_property_changes_do_not_deadlock(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", _PROGRAM, str(tmp_path)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=patience(120), check=False
    )
    assert ended.stdout == "ended\n", ended.stderr
