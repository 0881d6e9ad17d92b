"""Which batches of a mirror another server may replay. No server responds in these tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.replay import BatchReplay
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import ConnectionFailedError

OPTIONS = parse_options(
    {"host": "127.0.0.1:1,127.0.0.1:2", "user": "u", "retryTimeout": "100ms", "tables": "d.*"}
)
FIRST = Offset(
    Position.of("b.000001", 4), server_uuid="a", gtid="", tables=OPTIONS.table_filter_hash
)
LAST = replace(FIRST, position=Position.of("b.000001", 400))


@pytest.fixture
def replay() -> BatchReplay:
    return BatchReplay(OPTIONS, DirectReader(OPTIONS, with_source=True))


def test_replay_without_any_server_raises_connection_failed_error(replay: BatchReplay) -> None:
    with pytest.raises(ConnectionFailedError, match="no server can continue for a"):
        replay.read(FIRST, LAST)


def test_batch_with_snapshot_chunks_is_not_replayed_by_another_server(replay: BatchReplay) -> None:
    """The replay would lack the chunks, even if the batch's server is available again."""
    state = SnapshotState(chunks=(Chunk(("d", "t")),))
    assert replay.read(FIRST, replace(LAST, snapshot=state.pack())) is None


def test_empty_batch_and_batch_of_other_tables_or_epoch_are_not_replayed(
    replay: BatchReplay,
) -> None:
    assert replay.read(FIRST, FIRST) is None
    assert replay.read(FIRST, replace(LAST, tables="others")) is None
    assert replay.read(FIRST, replace(LAST, epoch=2)) is None
