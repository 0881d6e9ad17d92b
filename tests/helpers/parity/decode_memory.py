"""A program that prints how much its memory grows while it decodes the same events repeatedly.

It runs in its own process: in a process that has used Spark, Arrow and delta-rs, these also
allocate and free memory.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from helpers.logs.recorded_logs import load
from helpers.parity.decode_parity import PAYLOADS, Parity
from helpers.replay import captured_schemas
from pyspark_mysqlbinlog.protocol.blocks import pack_events

__all__: list[str] = []


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def _growth(payload: str) -> int:
    """Return the growth in bytes after the first 40 of 160 decodings."""
    scenarios = [load(name) for name in ("numbers", "temporals", "strings", "row_images")]
    schemas = [schema for described, _ in scenarios for schema in captured_schemas(described)]
    blocks = pack_events(event for _, events in scenarios for event in events[:60])
    parity = Parity(schemas, PAYLOADS[payload], batch_rows=2)
    assert parity.kernel(blocks).error is None

    def many() -> None:
        for _ in range(40):
            parity.kernel(blocks)
        gc.collect()

    many()
    before = _resident_bytes()
    for _ in range(3):
        many()
    return _resident_bytes() - before


if __name__ == "__main__":
    sys.stdout.write(str(_growth(sys.argv[1])))
