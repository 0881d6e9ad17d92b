"""A worker's memory stays bounded, whatever the size of the table that it reads at once."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.servers import Server

_LOG = logging.getLogger(__name__)
_SCRIPT = Path(__file__).parents[2] / "helpers" / "snapshots" / "load_worker.py"
_MB = 1 << 20
# In addition to the memory before the read; a worker that has just started has 90 MB or more.
_MOST = 110
_MOST_IN_ALL = 200


def fill(server: Server, table: str, doublings: int) -> int:
    """Create a table of 225 bytes per row without logging it; return its size in bytes."""
    insert = f"INSERT INTO {table} (a, b, c, d, e, f)"
    texts = "CONCAT(LEFT(e, 160), id), CONCAT('t ', id)"
    server.execute(
        "SET sql_log_bin = 0",
        f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b BIGINT, c DATETIME,"
        " d DECIMAL(12,2), e VARCHAR(200), f VARCHAR(40)) CHARSET utf8mb4",
        f"{insert} VALUES (1, 2, NOW(), 12.5, REPEAT('x', 180), '')",
        *[f"{insert} SELECT a + id, b + id, c, d + id % 100, {texts} FROM {table}"] * doublings,
        f"ANALYZE TABLE {table}",
    )
    name = table.partition(".")
    return int(
        server.execute(
            "SELECT DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA ="
            f" '{name[0]}' AND TABLE_NAME = '{name[2]}'"
        )[0][0]
    )


@pytest.mark.parametrize(
    ("doublings", "size"),
    [
        pytest.param(19, 100, id="100 MB"),
        pytest.param(22, 900, id="1 GB", marks=pytest.mark.slow),
    ],
)
def test_keyless_snapshot_keeps_worker_memory_flat(
    live_server: Server, database: str, doublings: int, size: int
) -> None:
    table = f"{database}.t"
    assert fill(live_server, table, doublings) > size * _MB
    for payload, pause in (("struct", "0"), ("json", "0"), ("variant", "0"), ("struct", "0.02")):
        file, _ = live_server.position()
        arguments = [str(live_server.port), file, table, payload, pause]
        done = subprocess.run(
            [sys.executable, _SCRIPT, *arguments], capture_output=True, check=False, timeout=900
        )
        assert done.returncode == 0, done.stderr.decode()
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        _LOG.info("%s: %s", arguments[1:], found)
        assert found["rows"] == 1 << doublings
        assert found["peak"] - found["before"] < _MOST, found
        assert found["peak"] < _MOST_IN_ALL, found
