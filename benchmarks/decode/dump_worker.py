"""Child process that reads a dump without decoding: the speed of the server and the socket alone.

The bytes are received into one buffer, and only counted.
"""

from __future__ import annotations

import json
import random
import struct
import time
from typing import Any

import pymysql
from pymysql.constants import COMMAND

from benchmarks.harness.workers import answer_commands

__all__: list[str] = []

_BUFFER = 1 << 20
_NON_BLOCKING = 1
_TIMES = 4


def read(address: str, file: str, size: str) -> dict[str, Any]:
    """Receive the first `size` bytes of the dump that begins with the file, several times."""
    each = [_read(json.loads(address), file, int(size)) for _ in range(_TIMES)]
    return {"bytes": sum(found for found, _ in each), "seconds": sum(took for _, took in each)}


def _read(address: dict[str, Any], file: str, wanted: int) -> tuple[int, float]:
    """Return (bytes, seconds) after the first bytes: the server's preparation is excluded."""
    connection: Any = pymysql.connect(**address)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum")
        server_id = random.randrange(1 << 30, 1 << 31)
        payload = struct.pack("<IHI", 4, _NON_BLOCKING, server_id) + file.encode()
        connection._execute_command(COMMAND.COM_BINLOG_DUMP, payload)
        buffer = bytearray(_BUFFER)
        receive = connection._sock.recv_into
        first = found = receive(buffer)
        begin = time.perf_counter()
        while found < wanted:
            count = receive(buffer)
            if not count:
                raise EOFError(f"the dump ended after {found} bytes, expected {wanted}")
            found += count
        return found - first, time.perf_counter() - begin
    finally:
        connection._force_close()


if __name__ == "__main__":
    answer_commands({"read": read})
