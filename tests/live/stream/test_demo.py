"""The demo: its comparison detects differences; its run ends with equal tables and no files."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pymysql.err import OperationalError
from rich.console import Console

from helpers.servers import Server
from helpers.waiting import patience, wait_until

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TABLES = ("customers", "products", "orders", "order_items")


@pytest.fixture
def shop_compare(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    # The examples are not a package: the previous line puts their directory on the path.
    import shop_compare  # type: ignore[import-not-found]

    return shop_compare


@pytest.fixture
def without_shop(live_server: Server, shop_compare: Any) -> Iterator[Server]:
    """Yield a server without the shop; a lock makes other runs wait: its names are fixed."""
    # The examples are not a package: `shop_compare` puts their directory on the path.
    import shop_workload  # type: ignore[import-not-found]

    def remove() -> None:
        cursor.execute(f"DROP DATABASE IF EXISTS {shop_workload.DATABASE}")
        reader = "SELECT 1 FROM mysql.user WHERE user = %s"
        if cursor.execute(reader, (shop_workload.READER,)):
            cursor.execute(shop_workload.TEARDOWN[1])

    with live_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, %s)", (shop_workload.DATABASE, patience(600)))
        assert cursor.fetchone() == (1,)
        # Remains of a killed run.
        remove()
        yield live_server
        remove()


@pytest.fixture
def shop(without_shop: Server) -> Server:
    """Return a server with the shop's tables, and a few rows in them."""
    import shop_workload

    server = without_shop
    server.execute(*(text for text in shop_workload.SETUP if shop_workload.READER not in text))
    server.execute(
        "INSERT INTO customers (name, email) VALUES ('Zoë', 'zoe@example.com'), ('李', 'l@b.c')",
        "INSERT INTO products VALUES ('TEA001', 'Tea', 8.90, 3, 'eco,gift', 0.4)",
        "INSERT INTO orders VALUES (7, 1, 'paid', 1.50,"
        " '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012', NULL)",
        "INSERT INTO order_items VALUES (1, 1, 'TEA001', 2, 8.90)",
        database=shop_workload.DATABASE,
    )
    return server


def _write(server: Server, folder: Path) -> None:
    """Write the rows that SELECT returns to Delta tables, with the mirror's column at the end."""
    for table in TABLES:
        with server.connect(database="shop_demo") as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT *, 0 AS _seq FROM {table}")
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor]
        path = folder / "shop_demo" / table
        write_deltalake(path, pa.Table.from_pylist(rows), mode="overwrite")


def test_demo_comparison_detects_each_difference(
    shop: Server, shop_compare: Any, tmp_path: Path
) -> None:
    _write(shop, tmp_path)
    text = io.StringIO()
    console = Console(file=text, width=120)
    assert shop_compare.compare(console, shop, tmp_path)
    assert text.getvalue().count("equal") == len(TABLES)
    assert "\x1b" not in text.getvalue()
    for change, back in (
        ("UPDATE customers SET spent = 0.01 LIMIT 1", "UPDATE customers SET spent = 0"),
        (
            "INSERT INTO order_items VALUES (1, 2, 'TEA001', 2, 8.90)",
            "DELETE FROM order_items WHERE line = 2",
        ),
        ("UPDATE products SET kilos = 0.41", "UPDATE products SET kilos = 0.4"),
        (
            "UPDATE orders SET changed = '2024-02-29 12:34:56.789013'",
            "UPDATE orders SET changed = '2024-02-29 12:34:56.789012'",
        ),
        ("ALTER TABLE orders ADD coupon INT", "ALTER TABLE orders DROP coupon"),
    ):
        shop.execute(change, database="shop_demo")
        assert not shop_compare.compare(console, shop, tmp_path), change
        shop.execute(back, database="shop_demo")
        assert shop_compare.compare(console, shop, tmp_path), back
    assert text.getvalue().count("DIFFERENT") == 5


def test_demo_workload_skips_a_change_that_deadlocks_with_an_alter(shop: Server) -> None:
    """The ALTER waits for a transaction that has read the table, and that one for the ALTER."""
    import shop_workload

    def alter() -> None:
        shop.execute("ALTER TABLE orders ADD n INT", database=shop_workload.DATABASE)

    def waits() -> bool:
        connections = shop.execute("SHOW PROCESSLIST")
        return any(row[6] == "Waiting for table metadata lock" for row in connections)

    def pay(cursor: Any) -> bool:
        cursor.execute("SELECT id FROM orders")
        thread.start()
        wait_until(waits, "the ALTER waits", 30)
        cursor.execute("UPDATE orders SET status = 'paid' WHERE id = 7")
        return True

    thread = Thread(target=alter, daemon=True)
    workload = shop_workload.Shop(shop.connect, seed=1, pause=0)
    with shop.connect(database=shop_workload.DATABASE, autocommit=False) as connection:
        assert not workload._done(pay, connection.cursor())
        connection.rollback()
    thread.join(patience(30))
    assert not thread.is_alive()


def test_demo_workload_skips_a_change_of_a_table_altered_since_its_snapshot(shop: Server) -> None:
    """The server reports error 1412: the altered table is newer than the first SELECT."""
    import shop_workload

    raised: list[int] = []

    def discount(cursor: Any) -> bool:
        cursor.execute("SELECT sku FROM products")
        shop.execute("ALTER TABLE orders ADD n INT", database=shop_workload.DATABASE)
        try:
            cursor.execute("UPDATE orders SET n = 1 WHERE id = 7")
        except OperationalError as error:
            raised.append(error.args[0])
            raise
        return True

    workload = shop_workload.Shop(shop.connect, seed=1, pause=0)
    with shop.connect(database=shop_workload.DATABASE, autocommit=False) as connection:
        cursor = connection.cursor()
        assert not workload._done(discount, cursor)
        assert raised == [1412]
        connection.rollback()
        assert workload._done(workload._ship, cursor)  # the altered table is used again


def test_demo_ends_with_equal_tables_and_removes_its_files(
    without_shop: Server, tmp_path: Path
) -> None:
    server = without_shop
    url = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}"
    environment = os.environ | {"MYSQLBINLOG_TEST_URL": url, "TMPDIR": str(tmp_path)}
    environment.pop("PYTHONSAFEPATH", None)  # the examples import one another
    command = [sys.executable, str(EXAMPLES / "shop_demo.py"), "--seconds", "6"]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=patience(600)
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("│ equal") == len(TABLES), found.stdout
    assert "\x1b" not in found.stdout
    assert list(tmp_path.iterdir()) == []
    assert server.execute("SHOW DATABASES LIKE 'shop_demo'") == []
