"""Commits rows at a steady pace, as a child process, and notes when each was committed."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pymysql

from benchmarks.harness.workers import answer_commands
from benchmarks.workload.orders import DATABASE, TABLE, Orders

__all__: list[str] = []

# Larger than all keys of the workload.
_keys = count(1_000_000_000)
_orders = Orders(seed=1)
# Larger than all customers of the workload.
_NUMBERS = 1_000_000_000
_CONNECTIONS = 4


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


def update(address: str, tables: str, rows: str, rate: str, seconds: str) -> dict[str, Any]:
    """Transactions that set `customer` of one row to a number of their own, `rate` a second.

    tables : separated by spaces; each has the keys 1 … `rows`.
    """
    draw = random.Random(1)
    names, keys = tables.split(), int(rows)
    count = max(1, int(float(rate) * float(seconds)))
    statements = [
        f"UPDATE {draw.choice(names)} SET customer = {number} WHERE id = {draw.randint(1, keys)}"
        for number in range(_NUMBERS, _NUMBERS + count)
    ]
    commits: list[tuple[int, float]] = []
    begin = time.time()

    def write(first: int) -> None:
        with (
            pymysql.connect(autocommit=True, **json.loads(address)) as connection,
            connection.cursor() as cursor,
        ):
            for at in range(first, count, _CONNECTIONS):
                wait = begin + at / float(rate) - time.time()
                if wait > 0:
                    time.sleep(wait)
                cursor.execute(statements[at])
                commits.append((_NUMBERS + at, time.time()))

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(write, range(_CONNECTIONS)))
    return {"commits": sorted(commits)}


if __name__ == "__main__":
    answer_commands({"update": update, "write": write})
