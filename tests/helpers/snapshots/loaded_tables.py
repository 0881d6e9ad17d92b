"""Tables of which a mirror takes a snapshot, and changes to their rows in the meantime."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

from helpers.servers import Server

__all__ = ["TABLES", "fill", "some_changes"]

TABLES = ("pairs", "small", "t")


def fill(server: Server, database: str, rows: int) -> None:
    """Create the tables: two with `rows` rows, one with two rows."""

    def execute(*statements: str) -> None:
        server.execute(*statements, database=database)

    execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60), n INT) DEFAULT CHARSET utf8mb4",
        "CREATE TABLE pairs (a INT, b VARCHAR(9), v INT, PRIMARY KEY (b, a))",
        "CREATE TABLE small (id INT PRIMARY KEY, v INT)",
        "INSERT INTO small VALUES (1, 1), (2, 2)",
    )
    for first in range(0, rows, 5000):
        numbers = range(first, min(first + 5000, rows))
        of_t = ", ".join(f"({n}, REPEAT('ñ', 20), {n})" for n in numbers)
        of_pairs = ", ".join(f"({n}, '{n % 7}', {n})" for n in numbers)
        execute(f"INSERT INTO t VALUES {of_t}", f"INSERT INTO pairs VALUES {of_pairs}")
    # Snapshots are planned by these statistics.
    execute("ANALYZE TABLE t, pairs, small")


def some_changes(
    server: Server, database: str, random_: random.Random, rows: int
) -> Callable[[], None]:
    """Return a function that makes changes in all parts of the tables at each call.

    Of 40 rows, about 13 are deleted, and as many get a key after all existing keys.
    """
    later = count(rows)

    def change() -> None:
        listed = ", ".join(map(str, random_.sample(range(rows), 40)))
        server.execute(
            f"UPDATE t SET v = 'changed', n = n + 1 WHERE id IN ({listed})",
            f"DELETE FROM t WHERE id IN ({listed}) AND id % 3 = 0",
            f"UPDATE t SET id = id + 1000000 WHERE id IN ({listed}) AND id % 3 = 1",
            f"UPDATE pairs SET b = '9' WHERE a IN ({listed}) AND a % 2 = 0",
            f"DELETE FROM pairs WHERE a IN ({listed}) AND a % 5 = 0",
            f"INSERT INTO t VALUES ({next(later)}, 'new', NULL)",
            "UPDATE small SET v = v + 1",
            database=database,
        )

    return change
