"""The same rows in every kind of session: classic, Spark Connect, and a cluster with executors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from servers import Server

_SCRIPT = Path(__file__).with_name("session_reads.py")
_ROWS = 3000


@pytest.fixture(scope="module")
def table(live_server: Server) -> str:
    """A table with a few thousand changes, in transactions small and large."""
    live_server.execute(
        "DROP DATABASE IF EXISTS sessions",
        "CREATE DATABASE sessions DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE sessions.t"
        " (id INT PRIMARY KEY, v VARCHAR(40), n DECIMAL(30,4), d DATETIME(6))",
    )
    for first in range(0, _ROWS, 500):
        rows = ", ".join(
            f"({number}, 'ñ {number}', {number}.5, '2026-01-01 00:00:00.000001')"
            for number in range(first, first + 500)
        )
        live_server.execute(f"INSERT INTO sessions.t VALUES {rows}")
    for number in range(50):
        live_server.execute(f"UPDATE sessions.t SET v = '漢 {number}' WHERE id = {number}")
    return "sessions.t"


def _read(kind: str, server: Server, table: str, folder: Path) -> list[list[str]]:
    """What a batch and a stream give."""
    options = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "tables": table,
        "payload": "struct",
        "startingOffset": "earliest",
        # Many ranges, some of them carried and some pulled.
        "maxBytesPerTrigger": "100k",
        "targetPartitionBytes": "10k",
    }
    folder.mkdir()
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"options": options, "folder": str(folder)}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(_SCRIPT), kind, str(settings)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def test_every_session_gives_the_same_rows(live_server: Server, table: str, tmp_path: Path) -> None:
    batch, stream = _read("local", live_server, table, tmp_path / "local")
    assert len(batch) == _ROWS + 50
    assert stream == batch
    assert _read("connect", live_server, table, tmp_path / "connect") == [batch, batch]
    assert _read("cluster", live_server, table, tmp_path / "cluster") == [batch, batch]
