"""A process that starts as an executor's worker, and reports the time that this package adds.

Run as ``python start_up_worker.py PICKLE``, with a file from `decode_worker.pickled`.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
import time
from pathlib import Path

__all__: list[str] = []

# What Spark's own worker has imported before it unpickles a reader.
_SPARKS_OWN = (
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.pandas.types",
    "pyspark.sql.worker.plan_data_source_read",
)


def main(path: Path) -> None:
    for name in _SPARKS_OWN:
        importlib.import_module(name)
    content = path.read_bytes()
    moments = [time.perf_counter()]
    reader, partition = pickle.loads(content)
    moments.append(time.perf_counter())
    for _ in range(2):
        next(reader.read(partition))
        moments.append(time.perf_counter())
    begin, unpickled, first, second = moments
    # What the first batch takes longer than the same one again is imports and tables, too.
    seconds = (unpickled - begin) + max(0.0, (first - unpickled) - (second - first))
    sys.stdout.write(json.dumps({"seconds": seconds, "unpickled": unpickled - begin}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
