"""A process with a DeltaMirror that is killed and started again: equal to SELECT."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers.mirrors.mirror_process import (
    TABLES,
    Traffic,
    committed,
    delivered,
    mirror,
    rows_of_delta,
    rows_of_server,
)
from helpers.servers import Server
from helpers.waiting import wait_until


@pytest.fixture
def shop(live_server: Server, database: str) -> str:
    """Create tables with a key, with a key of two columns, and without one; return the database."""
    live_server.execute(
        "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, v VARCHAR(40), n DECIMAL(12,2))"
        " DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE `lines` (o INT, `line no` INT, v VARCHAR(40), PRIMARY KEY (o, `line no`))"
        " DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE events (n INT, v VARCHAR(9))",
        database=database,
    )
    return database


def _alive(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Return True, or raise AssertionError with the end of the log if the process has ended."""
    assert process.poll() is None, (folder / "log").read_text()[-3000:]
    return True


@pytest.mark.sample(2, group="kills")
def test_killed_mirror_equals_select_after_a_restart(
    live_server: Server, shop: str, tmp_path: Path
) -> None:
    with (
        Traffic(live_server, shop, seed=4),
        mirror(live_server, shop, tmp_path) as process,
    ):
        wait_until(
            lambda: _alive(process, tmp_path) and committed(tmp_path) >= 3,
            "three batches are committed",
            300,
        )
    # The binlog has rows without the new column before the ALTER, and rows with it after.
    live_server.execute(
        "UPDATE orders SET v = 'before the column' LIMIT 1",
        "ALTER TABLE orders ADD note VARCHAR(20)",
        "UPDATE orders SET note = 'ñ漢' LIMIT 2",
        database=shop,
    )
    # The second process uses Spark Connect, with the classic session's checkpoint.
    with mirror(live_server, shop, tmp_path, connect=True) as process:
        with Traffic(live_server, shop, seed=5):
            live_server.execute(
                "REPLACE INTO orders (id, v, n, note) VALUES (1000, 'the last', 1, 'new')",
                database=shop,
            )
        live_server.execute("UPDATE orders SET id = 2000 WHERE id = 1000", database=shop)
        end = live_server.position()
        wait_until(
            lambda: _alive(process, tmp_path) and delivered(tmp_path) >= end,
            f"{end} is reached",
            300,
        )
    for table in TABLES:
        assert rows_of_delta(tmp_path, shop, table) == rows_of_server(live_server, shop, table)
    rows = rows_of_delta(tmp_path, shop, "orders")
    assert any(row[0] == 2000 and row[3] == "new" for row in rows)
