"""A live table read in chunks by its key, and the cost of the statements that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from helpers.logs.live_log import schemas_of
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import (
    last_bound,
    next_bound,
)
from pyspark_mysqlbinlog.connector.snapshot.chunks.conditions import range_condition
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import (
    ChunkKey,
    choose_key,
)
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Plans", "Reads", "Walked", "by_key", "counting_reads", "key_of", "plans_of", "walk"]


@dataclass(frozen=True)
class Walked:
    """One chunk: its bounds, the reported number of rows, and the rows' numbers by key."""

    after: Bound | None
    upto: Bound
    said: int
    rows: list[int]


def key_of(server: Server, client: ReplicaClient, database: str, table: str = "t") -> ChunkKey:
    """Return the key by which a table is read; it must have one."""
    (schema,) = (found for found in schemas_of(server, database) if found.table == table)
    key = choose_key(client, schema)
    assert key is not None
    return key


def by_key(key: ChunkKey) -> str:
    return ", ".join(quoted(column.name) for column in key.columns)


def walk(
    client: ReplicaClient, table: tuple[str, str], key: ChunkKey, rows: int, column: str = "n"
) -> Iterator[Walked]:
    """Yield chunks of `rows` rows up to the current last key; `column` numbers the rows."""
    last = last_bound(client, table, key)
    after: Bound | None = None
    while last is not None:
        upto, said = next_bound(client, table, key, after, last, rows=rows)
        if upto is None:
            return
        found = client.query(
            f"SELECT {quoted(column)} FROM {quoted(*table)} FORCE INDEX ({quoted(key.name)})"
            f" WHERE {range_condition(key, after, upto)} ORDER BY {by_key(key)}"
        )
        yield Walked(after, upto, said, [int(number) for (number,) in found])
        after = upto


@dataclass
class Reads:
    """The number of rows that a session's statements read from the engine."""

    total: int = -1


@contextmanager
def counting_reads(client: ReplicaClient) -> Iterator[Reads]:
    reads = Reads()
    before = _handler_reads(client)
    yield reads
    reads.total = _handler_reads(client) - before


def _handler_reads(client: ReplicaClient) -> int:
    shown = client.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
    return sum(int(count) for _, count in shown)


@dataclass
class Plans:
    """The server's plans for the SELECTs that a client sent."""

    statements: list[str]
    explained: list[dict[str, Any]]

    def sorting(self) -> list[dict[str, Any]]:
        return [plan for plan in self.explained if "sort" in str(plan["Extra"])]

    def extras(self) -> list[str]:
        return [str(plan["Extra"]) for plan in self.explained if plan["table"] is not None]

    def keys(self) -> set[str | None]:
        return {plan["key"] for plan in self.explained}


@contextmanager
def plans_of(client: ReplicaClient) -> Iterator[Plans]:
    """Record the block's SELECTs, and EXPLAIN them at its end."""
    plans = Plans([], [])
    query = client.query

    def noted(sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if sql.startswith("SELECT"):
            plans.statements.append(sql)
        return query(sql, arguments)

    with patch.object(client, "query", noted):
        yield plans
    # The default format of 9.x is a tree.
    explain = "EXPLAIN FORMAT=TRADITIONAL" if client.server_version.startswith("9.") else "EXPLAIN"
    for statement in plans.statements:
        plans.explained.extend(client.records(f"{explain} {statement}"))
