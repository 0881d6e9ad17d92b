"""The Delta mirror of examples/: killed in the middle, started again, it is what SELECT shows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers.mirror_process import (
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
def shop(any_server: Server, any_database: str) -> str:
    """Two tables, one of them with a key of two columns."""
    any_server.execute(
        "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, v VARCHAR(40), n DECIMAL(12,2))"
        " DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE `lines` (o INT, `line no` INT, v VARCHAR(40), PRIMARY KEY (o, `line no`))"
        " DEFAULT CHARACTER SET utf8mb4",
        database=any_database,
    )
    return any_database


def _alive(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """True; AssertionError with the end of its log when it has ended."""
    assert process.poll() is None, (folder / "log").read_text()[-3000:]
    return True


def test_killed_and_started_again_it_is_what_select_shows(
    any_server: Server, shop: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for number in range(1, 4):
        any_server.execute(f"INSERT INTO orders (id) VALUES ({number})", database=shop)
    with Traffic(any_server, shop, seed=4), mirror(any_server, shop, tmp_path) as process:
        wait_until(
            lambda: _alive(process, tmp_path) and committed(tmp_path) >= 3,
            "three batches are committed",
            300,
        )
    # The log behind the ALTER has rows with the new column, and some without it before.
    any_server.execute(
        "UPDATE orders SET v = 'before the column' LIMIT 1",
        "ALTER TABLE orders ADD note VARCHAR(20)",
        "UPDATE orders SET note = 'ñ漢' LIMIT 2",
        database=shop,
    )
    # Once in a classic session, once in Spark Connect, from the classic one's checkpoint.
    connect = "mariadb" not in request.node.name
    with mirror(any_server, shop, tmp_path, connect=connect) as process:
        with Traffic(any_server, shop, seed=5):
            any_server.execute(
                "REPLACE INTO orders (id, v, n, note) VALUES (1000, 'the last', 1, 'new')",
                database=shop,
            )
        any_server.execute("UPDATE orders SET id = 2000 WHERE id = 1000", database=shop)
        end = any_server.position()
        wait_until(
            lambda: _alive(process, tmp_path) and delivered(tmp_path) >= end,
            f"{end} is reached",
            300,
        )
    for table in TABLES:
        assert rows_of_delta(tmp_path, shop, table) == rows_of_server(any_server, shop, table)
    rows = rows_of_delta(tmp_path, shop, "orders")
    assert any(row[0] == 2000 and row[3] == "new" for row in rows)
    assert "are not loaded" in (tmp_path / "log").read_text()
