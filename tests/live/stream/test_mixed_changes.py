"""Mixed changes while a query runs, is stopped, is killed, and resumes from its checkpoint.

The delivered rows, replayed into empty tables, must equal SELECT's; no change may occur twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from helpers.logs.live_log import schemas_of, selected
from helpers.replay import Replay
from helpers.servers import Server
from helpers.streams.stream_process import StreamProcess, options_of, wait_for_dumps_to_end
from helpers.writers.workload import Workload
from helpers.writers.workload_writer import UNWANTED, WANTED

# Spark's Python processes start quickly.
pytestmark = pytest.mark.usefixtures("quick_python")

LOG = logging.getLogger(__name__)

# How the driver is ended while changes are written.
STOP = "stop"
KILL = "kill"
KILL_BEFORE_SINK = "kill before the sink has the batch"
KILL_AFTER_SINK = "kill after the sink has the batch, before it is committed"
HOLDS = {KILL_BEFORE_SINK: "before-sink", KILL_AFTER_SINK: "after-sink"}


class Run(NamedTuple):
    """The number of changes, their rate per second, and how drivers end meanwhile."""

    changes: int
    rate: float
    ends: tuple[str, ...]


SHORT = Run(5_000, 1_500, (KILL_AFTER_SINK, STOP))
FULL = Run(100_000, 2_500, (STOP, KILL, KILL_AFTER_SINK, KILL_BEFORE_SINK, STOP))


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(FULL, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
def test_killed_stream_equals_select(
    any_server: Server,
    any_database: str,
    tmp_path: Path,
    run: Run,
) -> None:
    changes, rate, ends = run
    options = options_of(
        any_server,
        tables=f"{any_database}.*",
        excludeTables=f"{any_database}.{UNWANTED}",
        startingOffset=":".join(map(str, any_server.position())),
        # Several batches for the changes that accumulate while no driver runs.
        maxBytesPerTrigger="400k",
        # The stream reaches the end of the binlog even after uncaptured changes only.
        idleOffsetInterval="1s",
    )
    dumps = any_server.dump_threads()
    workload = Workload(any_server, any_database, seed=changes, rate=rate)
    begun = time.monotonic()
    with StreamProcess(tmp_path, options) as stream, workload:
        share = changes // (len(ends) + 1)
        for number, end in enumerate(ends, start=1):
            before = len(stream.commits())
            stream.start()
            # Each driver commits a batch before more changes are allowed.
            stream.wait_until(partial(_has_more, stream, before), "a batch is committed")
            workload.allow(share * number)
            _wait_for_changes(stream, workload, share * number - share * 3 // 4)
            reached = stream.hold(HOLDS[end]) if end in HOLDS else None
            if reached is not None:
                # The driver may have come to the end of what the writers were allowed.
                workload.allow(max(share * number, workload.changes + 10))
                stream.wait_until(reached.exists, f"the driver stands still {HOLDS[end]}")
            _wait_for_changes(stream, workload, share * number - share // 2)
            _end(stream, end)
            # The rest of the round is written while no driver runs, with at least ten changes,
            # so that the next driver has something to read.
            workload.allow(max(share * number, workload.changes + 10))
        stream.start()
        workload.allow(changes)
        workload.finish()
        written = time.monotonic() - begun
        last = any_server.position()
        stream.wait_until(lambda: stream.reached(last), f"the stream has reached {last}", 300)
        stream.stop()
        took = time.monotonic() - begun
        _check(stream, any_server, any_database, workload)
        batches = len(stream.commits())
    wait_for_dumps_to_end(any_server, dumps)
    LOG.info(
        "%d changes in %d operations, %d rotations, %d rollbacks, %d batches, restarts after: %s;"
        " written in %.0f s, all there after %.0f s",
        workload.changes,
        workload.transactions,
        workload.rotations,
        workload.rollbacks,
        batches,
        ", ".join(ends),
        written,
        took,
    )


def _has_more(stream: StreamProcess, before: int) -> bool:
    """Return whether one more batch is committed than by earlier drivers."""
    return len(stream.commits()) > before


def _wait_for_changes(stream: StreamProcess, workload: Workload, changes: int) -> None:
    stream.wait_until(
        lambda: workload.used_up or workload.changes >= changes, f"{changes} changes are written"
    )


def _end(stream: StreamProcess, end: str) -> None:
    if end == STOP:
        stream.stop()
        return
    stream.kill()
    if end in HOLDS:
        # The next driver has to replay this batch.
        assert stream.offsets()[-1] == stream.commits()[-1] + 1
        there = (stream.output / f"batch-{stream.offsets()[-1]:06}.jsonl").exists()
        assert there == (end == KILL_AFTER_SINK)
    stream.let_go()


def _check(stream: StreamProcess, server: Server, database: str, workload: Workload) -> None:
    schemas = [schema for schema in schemas_of(server, database) if schema.table in WANTED]
    assert sorted(schema.table for schema in schemas) == sorted(WANTED)
    assert stream.commits() == list(range(len(stream.commits())))
    replay = Replay(schemas)
    for number, rows in stream.batches():
        last: dict[int, tuple[int, ...]] = {}
        for row in rows:
            partition, seq = row["partition"], _seq(row)
            assert partition not in last or seq > last[partition], (number, partition, seq)
            last[partition] = seq
        # A repeated seq is an error here, across all batches.
        replay.apply(rows, ordered=False)
    for schema, shown in zip(schemas, selected(server, *schemas), strict=True):
        replay.assert_equals(database, schema.table, shown)
        assert replay.tokens(database, schema.table), f"{schema.table} was left empty"
    assert replay.count == workload.changes
    assert workload.rotations > 0
    assert workload.rollbacks > 0


def _seq(row: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(row["seq"].values())
