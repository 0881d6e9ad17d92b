"""Commits rows at a steady pace, as a child process, and notes when each was committed."""

from __future__ import annotations

import json
import time
from itertools import count
from typing import Any

import pymysql

from orders import DATABASE, TABLE, Orders
from workers import answer_commands

__all__: list[str] = []

# Far behind the workload's own.
_keys = count(1_000_000_000)
_orders = Orders(seed=1)


def write(address: str, rate: str, seconds: str) -> dict[str, Any]:
    """Transactions of one row, `rate` a second; at least one."""
    connection = pymysql.connect(autocommit=True, **json.loads(address))
    commits: list[tuple[int, float]] = []
    with connection, connection.cursor() as cursor:
        begin = time.time()
        for number in range(max(1, int(float(rate) * float(seconds)))):
            key = next(_keys)
            statement = f"INSERT INTO {DATABASE}.{TABLE} VALUES {_orders.values(key)}"
            wait = begin + number / float(rate) - time.time()
            if wait > 0:
                time.sleep(wait)
            cursor.execute(statement)
            commits.append((key, time.time()))
    return {"commits": commits}


if __name__ == "__main__":
    answer_commands({"write": write})
