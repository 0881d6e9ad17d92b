"""The driver is killed around batch 0, with startingOffset=latest and running traffic.

The start is the position in batch 0's offset once that offset is durable. A driver that is killed
earlier leaves nothing to resume from. Every change after the start must arrive exactly once, no
change before it may arrive, and batch 0 must be empty. SHOW BINLOG EVENTS shows which changes are
after the start.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from helpers.servers import Server
from helpers.streams.stream_process import StreamProcess, options_of, wait_for_dumps_to_end
from helpers.waiting import wait_until

# Spark's Python processes start quickly.
pytestmark = pytest.mark.usefixtures("quick_python")

LOG = logging.getLogger(__name__)

# When the driver is killed.
BEFORE_START = "before the start is looked up"
START_FOUND = "the start is found"
OFFSET_WRITTEN = "the offset is written"
BEFORE_SINK = "before batch 0 reaches the sink"
AFTER_SINK = "after batch 0 reached the sink"
COMMITTED = "batch 0 is committed"

# Where the driver is held at each moment, and what the checkpoint and the sink then contain.
HELD = {
    BEFORE_START: "before-initial",
    START_FOUND: "before-latest",
    OFFSET_WRITTEN: "before-partitions",
    BEFORE_SINK: "before-sink",
    AFTER_SINK: "after-sink",
}
OFFSET, BATCH, COMMIT = "the offset", "the batch", "the commit"
DURABLE = {
    BEFORE_START: [],
    START_FOUND: [],
    OFFSET_WRITTEN: [OFFSET],
    BEFORE_SINK: [OFFSET],
    AFTER_SINK: [OFFSET, BATCH],
    COMMITTED: [OFFSET, BATCH, COMMIT],
}


class Traffic:
    """One connection that inserts the numbers 1, 2, 3, … into `changes`, a transaction each."""

    def __init__(self, server: Server, database: str) -> None:
        self._server = server
        self._database = database
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.last = 0
        self.error: Exception | None = None
        server.execute(
            "CREATE TABLE changes (id INT PRIMARY KEY, what VARCHAR(40))",
            "CREATE TABLE others (id INT PRIMARY KEY)",
            database=database,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            with self._server.connect(database=self._database) as connection:
                cursor = connection.cursor()
                while not self._ended.wait(0.006):
                    cursor.execute("INSERT INTO changes VALUES (%s, 'new')", (self.last + 1,))
                    self.last += 1
                    cursor.execute("INSERT INTO others VALUES (%s)", (self.last,))
        except Exception as error:  # noqa: BLE001 (raised by __exit__)
            self.error = error


def _kill_at(stream: StreamProcess, moment: str) -> None:
    """Start a driver, kill it at a moment and check what is durable."""
    reached = stream.hold(HELD.get(moment, "after-sink"))
    stream.start()
    stream.wait_until(reached.exists, moment)
    if moment == COMMITTED:
        # The next batch does not come to its sink.
        stream.hold("before-sink")
        stream.let_go("after-sink")
        stream.wait_until(lambda: stream.commits() == [0], moment)
    stream.kill()
    stream.let_go()
    durable = {
        OFFSET: bool(stream.offsets()),
        BATCH: (stream.output / "batch-000000.jsonl").exists(),
        COMMIT: bool(stream.commits()),
    }
    assert [what for what, there in durable.items() if there] == DURABLE[moment]


def _count_inserts_after(server: Server, position: tuple[str, int], database: str) -> int:
    """Return the number of transactions of `changes` in the binlog from a position on."""
    file, pos = position
    found = 0
    for name, _ in server.binlog_files():
        if name >= file:
            begin = f" FROM {pos}" if name == file else ""
            for row in server.execute(f"SHOW BINLOG EVENTS IN '{name}'{begin}"):
                found += row[2] == "Table_map" and f"({database}.changes)" in str(row[5])
    return found


def _trial(server: Server, database: str, folder: Path, moment: str) -> None:
    server.execute(f"DROP DATABASE {database}", f"CREATE DATABASE {database}", "FLUSH BINARY LOGS")
    dumps = server.dump_threads()
    options = options_of(
        server,
        tables=f"{database}.changes",
        startingOffset="latest",
        idleOffsetInterval="1s",
    )
    with StreamProcess(folder, options) as stream:
        with Traffic(server, database) as traffic:
            wait_until(lambda: traffic.last > 20, "there is traffic", 60)
            before = server.position()
            _kill_at(stream, moment)
            killed_at = traffic.last
            offset = (stream.checkpoint / "offsets" / "0").read_text() if stream.offsets() else None
            # Many changes are committed while no driver reads.
            wait_until(lambda: traffic.last > killed_at + 50, "traffic goes on", 60)
            stream.start()
            stream.wait_until(lambda: len(stream.commits()) > 2, "batches are committed")
        last = server.position()
        stream.wait_until(lambda: stream.reached(last), f"the stream has reached {last}")
        stream.stop()

        if offset is not None:
            assert (stream.checkpoint / "offsets" / "0").read_text() == offset
        first = stream.offset(0)
        assert first >= before
        inserted_after = _count_inserts_after(server, first, database)
        everything = server.execute("SELECT id FROM changes ORDER BY id", database=database)
        ids = [int(row[0]) for row in everything]
        assert ids == list(range(1, traffic.last + 1))
        if offset is not None:
            # At least the changes that were committed while no driver read.
            assert inserted_after >= 50
        assert 0 < inserted_after < len(ids)

        batches = dict(stream.batches())
        assert batches[0] == []
        arrived = [
            json.loads(row["after"])["id"]
            for rows in batches.values()
            for row in sorted(rows, key=lambda row: tuple(row["seq"].values()))
        ]
        assert arrived == ids[-inserted_after:]
    wait_for_dumps_to_end(server, dumps)


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize("moment", DURABLE)
def test_killed_driver_in_batch_0_loses_nothing(
    live_server: Server, database: str, tmp_path: Path, moment: str
) -> None:
    _trial(live_server, database, tmp_path, moment)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_killed_drivers_in_batch_0_lose_nothing(
    live_server: Server, database: str, tmp_path: Path
) -> None:
    for number, moment in enumerate(list(DURABLE) * 4):
        begun = time.monotonic()
        _trial(live_server, database, tmp_path / str(number), moment)
        LOG.info("killed when %s: %.0f s", moment, time.monotonic() - begun)
