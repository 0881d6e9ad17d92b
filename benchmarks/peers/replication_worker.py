"""python-mysql-replication, as a child process: reads a part of a dump and counts its rows."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from benchmarks.harness.workers import answer_commands

__all__: list[str] = []


def read(address: str, file: str, rows: str) -> dict[str, Any]:
    """The first `rows` changes of a file, with checksums verified and column names asked for."""
    stream = BinLogStreamReader(
        json.loads(address),
        server_id=random.randrange(1 << 30, 1 << 31),
        log_file=file,
        log_pos=4,
        resume_stream=True,
        blocking=False,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        verify_checksum=True,
        use_column_name_cache=True,
        enable_logging=False,
    )
    wanted, found, begin, before = int(rows), 0, 0.0, 0
    try:
        for event in stream:
            found += len(event.rows)
            if not begin:
                # Connecting does not count; nor does what came before the clock ran.
                begin, before = time.perf_counter(), found
            if found >= wanted:
                break
    finally:
        stream.close()
    return {"rows": found, "timed_rows": found - before, "seconds": time.perf_counter() - begin}


if __name__ == "__main__":
    answer_commands({"read": read})
