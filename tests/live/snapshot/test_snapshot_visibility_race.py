"""Snapshots under many writers that sync each commit to disk: no row is missing or stale.

A snapshot can lose a change only between the moment when it is logged and the moment when it is
visible. Therefore the writers commit all the time, and the server syncs its binlog at each commit.
A round reads the table from its beginning, in many small chunks, over several connections.
Sometimes its process ends in the middle of a batch, and another one resumes. Then the rows and
changes are applied by `seq` and must equal what SELECT shows.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pymysql
import pytest

from helpers.servers import Server
from helpers.snapshots.load_rows import applied, select_json
from helpers.streams.stream_query import Query, Rows
from helpers.writers.gtid_modes import switch, switchable_mode
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState

LOG = logging.getLogger(__name__)
COLUMNS = ("id", "a", "b")
# The columns that `applied` needs; a million rows of all columns take Python a minute.
LOOKED_AT = ["op", "database", "table", "before", "after", "seq"]
WRITERS = 16
# More tables: one visibility check covers the last keys of all; rows are added after them.
SMALL = 4


@pytest.fixture
def synced(any_server: Server, proof: str) -> Iterator[Server]:
    """Yield a server that syncs its binlog at each commit, with GTIDs for the gtid check."""
    with ExitStack() as stack:
        if proof == "gtid":
            if not any_server.version().startswith("5.7."):
                pytest.skip("only 5.7 gives GTIDs back after the engine's commit")
            stack.enter_context(switchable_mode(any_server))
            switch(any_server, "ON")
        stack.enter_context(_synced(any_server))
        yield any_server


@contextmanager
def _synced(server: Server) -> Iterator[None]:
    ((before,),) = server.execute("SELECT @@global.sync_binlog")
    server.execute("SET GLOBAL sync_binlog = 1")
    yield
    server.execute(f"SET GLOBAL sync_binlog = {before}")


def fill(server: Server, table: str, count: int) -> None:
    server.execute(f"INSERT INTO {table} VALUES (1, 1, 1)")
    done = 1
    while done < count:
        more = min(done, count - done)
        server.execute(f"INSERT INTO {table} SELECT id + {done}, a, b FROM {table} LIMIT {more}")
        done += more


def small_tables(table: str) -> list[str]:
    return [f"{table}_{number}" for number in range(SMALL)]


@contextmanager
def writers(server: Server, table: str, rows: int, seed: int) -> Iterator[None]:
    """Run sessions that insert, update, delete and change keys, one statement per commit.

    In the small tables, they insert rows after the last key.
    """
    over, small = threading.Event(), small_tables(table)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        chance = random.Random(seed * 100 + number)
        with server.connect() as connection, connection.cursor() as cursor:
            count = 0
            while not over.is_set():
                count += 1
                some = chance.randrange(1, rows + 1)
                fresh = rows * (number + 2) + count
                statement = chance.choice(
                    (
                        f"UPDATE {table} SET a = {count}, b = {number} WHERE id = {some}",
                        f"UPDATE {table} SET a = {count}, b = {number} WHERE id = {some}",
                        f"INSERT INTO {table} VALUES ({fresh}, {count}, {number})",
                        f"INSERT INTO {table} VALUES ({-fresh}, {count}, {number})",
                        f"DELETE FROM {table} WHERE id = {some}",
                        f"REPLACE INTO {table} VALUES ({some}, {count}, {number})",
                        f"UPDATE {table} SET id = {fresh} WHERE id = {some}",
                        f"UPDATE {table} SET id = {-fresh} WHERE id = {some}",
                        f"INSERT INTO {chance.choice(small)} (a, b) VALUES ({count}, {number})",
                        f"INSERT INTO {chance.choice(small)} (a, b) VALUES ({count}, {number})",
                    )
                )
                # A deadlock or lock wait timeout undoes only the statement.
                with suppress(pymysql.err.OperationalError, pymysql.err.IntegrityError):
                    cursor.execute(statement)

    def guarded(number: int) -> None:
        try:
            write(number)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures


def read_together(query: Query, start: dict[str, Any], end: dict[str, Any]) -> Rows:
    """Return a batch's rows; its tasks are read in parallel, as executors do."""
    assert query.spark is not None
    reader = query.spark.reader
    parts = reader.partitions(start, end)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(
            lambda part: [b.select(LOOKED_AT).to_pylist() for b in reader.read(part)], parts
        )
        return [row for batches in found for rows in batches for row in rows]


def load_all(query: Query, chance: random.Random) -> Rows:
    """Read batches up to the end of the snapshot.

    Some batches are planned by one reader and read by another, and some are read twice.
    """
    rows: Rows = []
    query.start()
    while True:
        assert query.checkpoint is not None and query.spark is not None
        if SnapshotState.unpack(query.checkpoint["snapshot"]).is_done:
            return rows
        end = query.spark.next_batch(query.checkpoint)
        fate = chance.random()
        if fate < 0.1:
            query.stop()
            query.start()
        elif fate < 0.15:
            # The batch was read, and its sink failed before the commit.
            read_together(query, query.checkpoint, end)
        rows += read_together(query, query.checkpoint, end)
        query.checkpoint = end


PROOFS = ("auto", "gtid", "innodb_trx", "lock")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("count", "rounds", "proof"),
    [
        *(pytest.param(4_000, 1, proof, id=f"short-{proof}") for proof in PROOFS),
        *(
            pytest.param(
                1_000_000,
                50 if proof == "auto" else 1,
                proof,
                id=f"full-{proof}",
                marks=[pytest.mark.slow, pytest.mark.timeout(7200)],
            )
            for proof in PROOFS
        ),
    ],
)
# pytest passes fixtures by name.
def test_snapshot_with_concurrent_writers_equals_select(  # noqa: PLR0917
    synced: Server, table: str, queries: list[Query], count: int, rounds: int, proof: str
) -> None:
    seed = random.randrange(1 << 30)
    # pytest prints the seed if the test fails.
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    fill(synced, table, count)
    tables = [table, *small_tables(table)]
    for small in tables[1:]:
        synced.execute(
            f"CREATE TABLE {small} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT)",
            f"INSERT INTO {small} (a, b) VALUES (0, 0)",
        )
    for number in range(rounds):
        query = Query(
            synced,
            ", ".join(tables),
            payload="json",
            startingOffset="snapshot",
            maxRowsPerTrigger=str(max(count // 5, 1000)),
            snapshotVisibilityCheck=proof,
        )
        queries.append(query)
        with writers(synced, table, count, seed + number):
            rows = load_all(query, chance)
        rows += query.rows()
        query.stop()
        wrong, there = [], 0
        for each in tables:
            expected, found = select_json(synced, each, *COLUMNS), applied(rows, each)
            keys = expected.keys() | found.keys()
            wrong += [(each, key) for key in keys if expected.get(key) != found.get(key)]
            there += len(expected)
        assert not wrong, f"round {number}: {len(wrong)} rows, such as {min(wrong)}"
        changes = sum(row["op"] != "r" for row in rows)
        LOG.info("round %d: %d rows, %d changes: equal", number, there, changes)
