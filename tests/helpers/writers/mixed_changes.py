"""Random changes of three tables: with a key, with a key of two columns, and without a key."""

from __future__ import annotations

import random

from helpers.mirrors.delta_mirrors import MirroredDatabase

__all__ = ["CREATE", "TABLES", "change"]

TABLES = ("t", "pairs", "plain")
CREATE = (
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n DECIMAL(12,2)) CHARSET utf8mb4",
    "CREATE TABLE pairs (a INT, b VARCHAR(9), c VARBINARY(9), PRIMARY KEY (b, a))",
    "CREATE TABLE plain (n INT, v VARCHAR(9))",
)
# Each entry is a transaction: a single statement, or several with BEGIN and COMMIT.
_CHOICES: tuple[tuple[str, ...], ...] = (
    ("REPLACE INTO t (id, v, n) VALUES ({key}, 'ñ漢{number}', {number}.25)",),
    ("UPDATE IGNORE t SET id = {other}, v = NULL WHERE id = {key}",),
    ("UPDATE IGNORE t SET id = id + 1 ORDER BY id DESC",),
    ("DELETE FROM t WHERE id = {key}",),
    ("REPLACE INTO pairs VALUES ({key}, '{other}', x'00FF')",),
    ("DELETE FROM pairs WHERE a = {other}",),
    ("INSERT INTO plain VALUES ({key}, NULL), ({key}, NULL)",),
    ("UPDATE plain SET v = 'w' WHERE n = {other} LIMIT 1",),
    ("DELETE FROM plain WHERE n = {key} LIMIT 1",),
    (
        "BEGIN",
        "REPLACE INTO t (id, v) VALUES ({key}, 'two')",
        "INSERT INTO plain VALUES (0, 'x')",
        "REPLACE INTO pairs VALUES ({key}, 'two', NULL)",
        "COMMIT",
    ),
)


def change(mirrored: MirroredDatabase, random_: random.Random, count: int) -> None:
    """Run `count` transactions, often several on the same key; some of them change nothing."""
    for number in range(count):
        values = {"number": number, "key": random_.randrange(30), "other": random_.randrange(30)}
        statements = random_.choice(_CHOICES)
        mirrored.execute(*(statement.format(**values) for statement in statements))
