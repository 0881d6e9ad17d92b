"""A snapshot whose processes are killed: no committed chunk is lost or read again."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from helpers.servers import Server
from helpers.snapshots.load_rows import applied, select_json
from helpers.streams.stream_process import StreamProcess, options_of
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState

# Spark's Python processes start quickly.
pytestmark = pytest.mark.usefixtures("quick_python")

COLUMNS = ("id", "a", "b")
TABLES = 5


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize(
    ("rows", "kills"),
    [
        pytest.param(3_000, 3, id="short"),
        pytest.param(40_000, 20, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_killed_snapshot_reads_each_chunk_once(
    live_server: Server, tmp_path: Path, database: str, rows: int, kills: int
) -> None:
    """Some kills come before a batch's rows are in the sink, some after its commit."""
    seed = random.randrange(1 << 30)
    # pytest prints the seed if the test fails.
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    tables = [f"{database}.t{number}" for number in range(TABLES)]
    for table in tables:
        live_server.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT)")
        values = ", ".join(f"({n}, {n % 7}, {-n})" for n in range(1, rows + 1))
        live_server.execute(f"INSERT INTO {table} VALUES {values}")
    # About two thirds of the rows are read when the last kill comes.
    most = 2 * max(TABLES * rows * 2 // 3 // (kills + 1), 1000)
    options = options_of(
        live_server,
        tables=f"{database}.*",
        startingOffset="snapshot",
        maxRowsPerTrigger=str(most),
    )
    with StreamProcess(tmp_path, options) as stream:
        stream.start()
        for number in range(kills):
            if chance.random() < 0.5:
                is_due: Callable[[], bool] = partial(
                    _has_commits, stream, len(stream.commits()) + 1
                )
                what = "a batch more is committed"
            else:
                is_due = stream.hold("before-sink").exists
                what = "a batch is about to be written"
            # Only now: so there is another batch although the load may be done.
            table = chance.choice(tables)
            some = chance.randrange(1, rows)
            live_server.execute(
                f"UPDATE {table} SET a = {number + 100} WHERE id % 10 = {number % 10}",
                f"DELETE FROM {table} WHERE id = {some}",
                f"INSERT INTO {table} VALUES ({rows + 1 + number}, 0, 0)",
                f"UPDATE {table} SET id = {-1 - number} WHERE id = {some + 1}",
            )
            stream.wait_until(is_due, what)
            stream.kill()
            stream.let_go()
            stream.start()
        end = live_server.position()
        stream.wait_until(
            lambda: stream.reached(end) and _load(stream).is_done, "the load is done", 600
        )
        stream.stop()
        found = [row for _, batch in stream.batches() for row in batch]
        chunks = Counter(_chunks(stream))
    assert len(chunks) > kills
    assert set(chunks.values()) == {1}
    for table in tables:
        assert applied(found, table) == select_json(live_server, table, *COLUMNS), table


def _has_commits(stream: StreamProcess, count: int) -> bool:
    return len(stream.commits()) >= count


def _load(stream: StreamProcess) -> SnapshotState:
    return _state(stream, stream.commits()[-1])


def _state(stream: StreamProcess, batch: int) -> SnapshotState:
    lines = (stream.checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return SnapshotState.unpack(json.loads(lines[2])["snapshot"])


def _chunks(stream: StreamProcess) -> list[Chunk]:
    """Return the chunks of all committed batches, in order."""
    return [chunk for batch in stream.commits() for chunk in _state(stream, batch).chunks]
