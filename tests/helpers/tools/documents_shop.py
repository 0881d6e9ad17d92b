"""The shop of the documentation: its code blocks run against one database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from pyspark.sql import SparkSession

from helpers.servers import Server
from helpers.streams.query_position import wait_for_position
from helpers.waiting import patience, wait_until

__all__ = ["ORDERS", "ROOT", "Shop", "Writing", "blocks", "open_shop"]

ROOT = Path(__file__).resolve().parents[3]

# Diagrams, and blocks without a language.
_DRAWN = {"", "text"}

_SECRET = "s3cret-Wort!"
# The columns of the table.
ORDERS = "id INT PRIMARY KEY, status VARCHAR(20), total DECIMAL(10,2)"


def blocks(name: str) -> list[tuple[str, str]]:
    """Return (language, code) of each block of a document, in order.

    name : below docs/, such as ``how-to/tune.md``; or ``README.md``.
    """
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [(language, code) for language, code in found if language not in _DRAWN]


class Shop:
    """The database of the documentation, in which its code blocks run."""

    def __init__(self, spark: SparkSession, server: Server, folder: Path) -> None:
        self.spark = spark
        self.server = server
        self.folder = folder
        self.begin = server.position()
        self.names: dict[str, Any] = {"spark": spark}
        password = folder / "password"
        password.write_text(_SECRET, encoding="utf-8")
        self._here = {
            'host="127.0.0.1", port=3357, user="tutorial", password="tutorial"': (
                f"host={server.host!r}, port={server.port}, user={server.user!r},"
                f" password={server.password!r}"
            ),
            '"checkpoints/': f'"{folder}/checkpoints/',
            'f"lake/': f'f"{folder}/tutorial_lake/',
            '.option("host", "db.example")': f'.option("host", "{server.host}")'
            f'.option("port", {server.port})',
            'host="127.0.0.1"': f'host="{server.host}", port={server.port}',
            '"host": "db.example"': f'"host": "{server.host}", "port": "{server.port}"',
            'host="db.example"': f'host="{server.host}", port={server.port}',
            'host="db"': f'host="{server.host}", port={server.port}',
            "mysql-bin.000042:4": "{}:{}".format(*self.begin),
            "/run/secrets/mysql": str(password),
            '"…"': f'"{_SECRET}"',
            "'…'": f"'{_SECRET}'",
            "/lake/": f"{folder}/lake/",
            # This session has no Delta jars; delta-rs writes the tables of other blocks.
            'format("delta")': 'format("parquet")',
            "query.awaitTermination()": "query.processAllAvailable()",
        }

    def as_here(self, code: str) -> str:
        """Return a block with this server and this folder filled in."""
        for there, here in self._here.items():
            code = code.replace(there, here)
        return code

    def python(self, code: str) -> None:
        """Run a block; its names are defined for the next block."""
        exec(compile(self.as_here(code), "recipe", "exec"), self.names)

    def sql(self, code: str) -> None:
        """Run a block's statements as the administrator."""
        statements = self.as_here(code).split(";")
        self.server.execute(*filter(None, (text.strip() for text in statements)))

    def write(self, first: int) -> None:
        """Make changes of every kind: changed and swapped keys, deletes, keys inserted again."""
        rows = ", ".join(f"({first + n}, 'placed', {n}.50)" for n in range(20))
        self.server.execute(
            f"INSERT INTO orders VALUES {rows}",
            f"UPDATE orders SET status = 'ñ漢' WHERE id = {first}",
            f"UPDATE orders SET id = {first + 100} WHERE id = {first + 1}",
            f"UPDATE orders SET id = {first + 101} WHERE id = {first + 2}",
            f"UPDATE orders SET id = {first + 2} WHERE id = {first + 101}",
            f"DELETE FROM orders WHERE id IN ({first + 3}, {first + 4})",
            f"INSERT INTO orders VALUES ({first + 4}, NULL, NULL)",
            # Each row takes the key that the row before it has left, in one statement.
            f"DELETE FROM orders WHERE id = {first + 5}",
            f"UPDATE orders SET id = id - 1 WHERE id > {first + 5} AND id < {first + 9}"
            " ORDER BY id",
            f"UPDATE orders SET total = total + 1 WHERE id = {first + 100}",
            database="shop",
        )

    def truncate(self) -> None:
        self.server.execute("TRUNCATE TABLE orders", database="shop")

    def wait_for_end(self, query: Any) -> None:
        """Wait until the query has delivered the whole binlog, and stop it."""
        self.write(900)  # a captured row moves the offset
        self.wait_for_last_change(query)
        query.stop()

    def wait_for_last_change(self, query: Any) -> None:
        """Wait until the query has delivered the binlog, whose last event is a captured change."""
        wait_for_position(query, self.server.position())

    def selected(self) -> list[tuple[Any, ...]]:
        rows = self.server.execute("SELECT id, status, total FROM orders", database="shop")
        assert len(rows) > 10
        return sorted(rows)


class Writing:
    """Changes by another thread during a block."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.rounds > 1, "changes are written", 60)
        return self

    def __exit__(self, *_: object) -> None:
        rounds = self.rounds
        wait_until(lambda: self.rounds > rounds, "changes were written to the end", 60)
        self._stopped.set()
        self._thread.join(patience(60))

    def _run(self) -> None:
        while not self._stopped.wait(0.01):
            if self.rounds % 10 == 5:
                self._shop.truncate()
            self._shop.server.execute("DELETE FROM orders", database="shop")
            self._shop.write(0)
            self.rounds += 1


@contextmanager
def open_shop(spark: SparkSession, server: Server, folder: Path) -> Iterator[Shop]:
    """Yield the database, with an empty table and the account that README creates."""
    server.execute(
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop DEFAULT CHARACTER SET utf8mb4",
        f"CREATE TABLE shop.orders ({ORDERS})",
    )
    made = Shop(spark, server, folder)
    users = "SELECT user FROM mysql.user WHERE user = 'spark'"
    if server.execute(users):
        server.execute("DROP USER 'spark'@'%'")
    made.sql(next(code for language, code in blocks("README.md") if language == "sql"))
    yield made
    for query in spark.streams.active:
        query.stop()
    server.execute("DROP DATABASE shop", "DROP USER 'spark'@'%'")
