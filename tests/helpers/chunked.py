"""A live table walked through in chunks by its key, beside what SELECT gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from helpers.live_log import schemas_of
from helpers.servers import Server
from pyspark_mysqlbinlog.checkpoints.load_state import Bound
from pyspark_mysqlbinlog.connector.load.bounds import last_bound, next_bound, where
from pyspark_mysqlbinlog.connector.load.keys import (
    LoadKey,
    choose_key,
    quoted,
    quoted_table,
)
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["Walked", "key_of", "reads_of", "walk"]


@dataclass(frozen=True)
class Walked:
    """One chunk: its bounds, how many rows were said to be in it, and their numbers by key."""

    after: Bound | None
    upto: Bound
    said: int
    rows: list[int]


def key_of(server: Server, client: ReplicaClient, database: str, table: str = "t") -> LoadKey:
    """The key that a table is read by; it must have one."""
    (schema,) = (found for found in schemas_of(server, database) if found.table == table)
    key = choose_key(client, schema)
    assert key is not None
    return key


def by_key(key: LoadKey) -> str:
    return ", ".join(quoted(column.name) for column in key.columns)


def walk(
    client: ReplicaClient, table: tuple[str, str], key: LoadKey, rows: int, column: str = "n"
) -> Iterator[Walked]:
    """Chunks of `rows` rows up to what is the last key now; `column` numbers the rows."""
    last = last_bound(client, table, key)
    after: Bound | None = None
    while last is not None:
        upto, said = next_bound(client, table, key, after, rows, last)
        if upto is None:
            return
        found = client.query(
            f"SELECT {quoted(column)} FROM {quoted_table(table)} FORCE INDEX ({quoted(key.name)})"
            f" WHERE {where(key, after, upto)} ORDER BY {by_key(key)}"
        )
        yield Walked(after, upto, said, [int(number) for (number,) in found])
        after = upto


def reads_of(client: ReplicaClient, query: str) -> dict[str, int]:
    """How many rows the engine gave for a query, by the way they were come by."""
    client.query("FLUSH STATUS")
    client.query(query)
    shown = client.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
    return {name.removeprefix("Handler_read_"): int(count) for name, count in shown}
