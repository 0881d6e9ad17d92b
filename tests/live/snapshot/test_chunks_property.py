"""Tables of any key that change during a snapshot: each row that stays is in one chunk."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from helpers.logs.live_log import client_of
from helpers.schemas.random_keys import RandomKey, random_keys
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.snapshots.chunk_walk import by_key, key_of, walk
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import (
    last_bound,
    next_bound,
    range_condition,
)
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

DATABASE = "load_any"
TABLE = (DATABASE, "t")
EXAMPLES = 60
SEED = int(os.environ["MYSQLBINLOG_FUZZ_SEED"])


def selected(client: ReplicaClient, condition: str, order: str = "") -> list[int]:
    found = client.query(f"SELECT n FROM {DATABASE}.t WHERE {condition} {order}")
    return [int(n) for (n,) in found]


def check_still(client: ReplicaClient, key: ChunkKey, size: int) -> None:
    """Check that chunks of an unchanged table have equal sizes and the server's order."""
    expected = selected(client, "TRUE", f"ORDER BY {by_key(key)}")
    chunks = list(walk(client, TABLE, key, size))
    assert [chunk.rows for chunk in chunks] == [
        expected[start : start + size] for start in range(0, len(expected), size)
    ]
    assert [chunk.said for chunk in chunks] == [len(chunk.rows) for chunk in chunks]
    if chunks:
        assert chunks[-1].upto == last_bound(client, TABLE, key)


class Changing:
    """A table that is changed between the chunks of its snapshot."""

    def __init__(
        self, client: ReplicaClient, writer: ReplicaClient, key: ChunkKey, inserted: int
    ) -> None:
        self.client = client
        self.writer = writer
        self.key = key
        self.number = inserted
        self.there = set(selected(client, "TRUE"))
        self.last = last_bound(client, TABLE, key)
        # Rows that are after the last bound when they are written are left to the binlog.
        self.read: list[int] = []

    def insert(self, values: str) -> None:
        self.writer.query(f"INSERT IGNORE INTO {DATABASE}.t VALUES ({values}, {self.number})")
        self.number += 1

    def delete(self, values: str) -> None:
        names = [f"c{number}" for number in range(len(self.key.columns))]
        matched = " AND ".join(
            f"{name} = {value}" for name, value in zip(names, values.split(", "), strict=True)
        )
        self.writer.query(f"DELETE FROM {DATABASE}.t WHERE {matched}")
        self.there &= set(selected(self.client, "TRUE"))

    def chunk(self, after: Bound | None, size: int) -> Bound | None:
        """Read the next chunk and return its end."""
        assert self.last is not None
        upto, _ = next_bound(self.client, TABLE, self.key, after, self.last, rows=size)
        if upto is not None:
            self.read += selected(self.client, range_condition(self.key, after, upto))
        return upto


@pytest.mark.parametrize("server_name", every_server())
def test_chunks_of_random_keys_contain_each_row_once(
    server_name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(server_name)
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE} CHARACTER SET utf8 COLLATE utf8_bin",
    )

    @seed(SEED)
    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(random_keys(newer=server.is_mysql9()), st.data())
    def check(made: tuple[RandomKey, st.SearchStrategy[str]], data: st.DataObject) -> None:
        definition, values = made
        writer.query(f"DROP TABLE IF EXISTS {DATABASE}.t")
        writer.query(definition.create.replace(" t ", f" {DATABASE}.t ", 1))
        rows = data.draw(st.lists(values, max_size=40, unique=True), "rows")
        for number, row in enumerate(rows):
            writer.query(f"INSERT IGNORE INTO {DATABASE}.t VALUES ({row}, {number})")
        if server.version().startswith("5.6.") and definition.has_bit_in_front:
            return  # see keys.py
        key = key_of(server, client, DATABASE)
        check_still(client, key, data.draw(st.integers(1, 9), "size"))

        table = Changing(client, writer, key, len(rows))
        after: Bound | None = None
        while table.last is not None:
            for change in data.draw(st.lists(st.tuples(st.booleans(), values), max_size=3)):
                (table.insert if change[0] else table.delete)(change[1])
            upto = table.chunk(after, data.draw(st.integers(1, 9), "size"))
            if upto is None:
                break
            after = upto
        if table.last is not None:
            beyond = set(selected(client, range_condition(key, table.last, None)))
            assert not beyond & table.there
            assert not beyond & set(table.read)
        assert [table.read.count(n) for n in sorted(table.there)] == [1] * len(table.there)
        assert len(table.read) == len(set(table.read))

    with client_of(server) as client, client_of(server) as writer:
        # Allow invalid dates, and zeros in AUTO_INCREMENT columns.
        writer.query("SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
        check()
    server.execute(f"DROP DATABASE {DATABASE}")
