"""Snapshots while the binlog gets another base name: where and when chunks are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.logs.log_names import INDEX, own_servers, restart_with_log_name
from helpers.servers import LocalServer
from helpers.servers.available import mariadb_kind, own_kinds
from helpers.streams.source_runner import Offset, Spark, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.offset import Offset as OffsetOfStream
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.snapshot.coordinator import SnapshotCoordinator
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits

pytestmark = pytest.mark.one_server

TABLE, KEYLESS = "shop.t", "shop.k"


@pytest.fixture(params=[*own_servers(), mariadb_kind()])
def shop(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a new server whose binlog is in aaa-bin, with three rows in each of two tables."""
    kind: type[LocalServer] = request.param
    if kind in own_kinds().values():
        request.getfixturevalue(kind.name)  # ends the test if it is missing
    with kind([INDEX, "--innodb-flush-log-at-trx-commit=1"]) as server:
        restart_with_log_name(server, "aaa-bin")
        server.execute(
            "CREATE DATABASE shop",
            f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)",
            f"CREATE TABLE {KEYLESS} (id INT)",
        )
        for table in (TABLE, KEYLESS):
            insert(server, table, 1, 2, 3)
        yield server


def begun(stream: Spark) -> Offset:
    start = stream.initial()
    assert stream.latest(start) == start
    return start


def is_loaded(offset: Offset) -> bool:
    return bool(offset["snapshot"]) and SnapshotState.unpack(offset["snapshot"]).is_done


def follow(stream: Spark, start: Offset, *, ends: bool) -> tuple[list[dict[str, Any]], Offset]:
    """Return the rows up to the end of the run if `ends`, or until the snapshot is complete."""
    rows: list[dict[str, Any]] = []
    while ends or not is_loaded(start):
        end = stream.latest(start) if ends else stream.next_batch(start)
        if end == start:
            break
        rows += stream.rows(start, end)
        start = end
    return rows, start


def loaded(rows: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    """Return a table's snapshot rows; check that no `ddl` row reports a table without snapshot."""
    assert [row["source"]["query"] for row in rows if row["op"] == "ddl"] == []
    images = [row["after"] for row in rows if (row["op"], row["table"]) == ("r", table)]
    return sorted(map(json.loads, images), key=str)


def three() -> list[dict[str, int]]:
    return [{"id": number} for number in (1, 2, 3)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("most_connections", ["1", "4"])
def test_available_now_completes_the_snapshot_despite_base_name_change(
    shop: LocalServer,
    new_stream: NewStream,
    monkeypatch: pytest.MonkeyPatch,
    most_connections: str,
) -> None:
    """The name changes after the run's end is fixed, and the plans of chunks are delayed."""
    real, asked = SnapshotCoordinator.try_planned, list[str]()

    def slow(
        load: SnapshotCoordinator, state: SnapshotState, limits: BatchLimits
    ) -> SnapshotState | None:
        asked.append("")
        return real(load, state, limits) if len(asked) % 2 == 0 else None

    monkeypatch.setattr(SnapshotCoordinator, "try_planned", slow)
    options = {"startingOffset": "snapshot", "maxConnections": most_connections}
    stream = new_stream(shop, TABLE, **options)
    stream.reader.prepareForTriggerAvailableNow()
    start = begun(stream)
    restart_with_log_name(shop, "bbb-bin")
    tail = stream.reader.tail
    assert tail is not None
    wait_until(lambda: tail.next_sequence, "the tail is at the end of its sequence")
    rows, end = follow(stream, start, ends=True)
    assert loaded(rows, "t") == three()
    assert is_loaded(end)


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", ["before the run", "within the run"])
@pytest.mark.parametrize("trigger", ["default", "available now"])
def test_keyless_table_is_snapshotted_after_base_name_change(
    shop: LocalServer, new_stream: NewStream, trigger: str, change: str
) -> None:
    """The exact position is in the last sequence of files, which the stream must reach first."""
    options = {"startingOffset": "snapshot", "snapshotExactKeyless": "true"}
    stream = new_stream(shop, "shop.*", **options)
    start = begun(stream)
    stream.reader.stop()
    if change == "before the run":
        restart_with_log_name(shop, "bbb-bin")
    stream = new_stream(shop, "shop.*", **options)
    ends = trigger == "available now"
    if ends:
        stream.reader.prepareForTriggerAvailableNow()
    if change == "within the run":
        restart_with_log_name(shop, "bbb-bin")
    rows, end = follow(stream, start, ends=ends)
    assert loaded(rows, "k") == loaded(rows, "t") == three()
    assert end["epoch"] == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("given", [{"reload": "again: shop.*"}, {"tables": "shop.*"}])
def test_new_snapshot_starts_after_the_empty_base_name_change_batch(
    shop: LocalServer, new_stream: NewStream, given: dict[str, str]
) -> None:
    """The batch of the change is empty; the reload must be recorded in the batch that starts it."""
    options = {"startingOffset": "snapshot"}
    stream = new_stream(shop, TABLE, **options)
    _, start = follow(stream, begun(stream), ends=False)
    stream.reader.stop()
    restart_with_log_name(shop, "bbb-bin")
    stream = new_stream(shop, **{"tables": TABLE, **options, **given})
    tail = stream.reader._start_tail(OffsetOfStream.from_dict(start))
    wait_until(lambda: tail.next_sequence, "the tail is at the end of its sequence")
    between = stream.next_batch(start)
    assert (between["epoch"], stream.rows(start, between)) == (1, [])
    state = SnapshotState.unpack(between["snapshot"])
    assert (state.pending, state.reload) == ((), "")
    end = stream.next_batch(between)
    rows = stream.rows(between, end)
    while not is_loaded(end):
        start, end = end, stream.next_batch(end)
        rows += stream.rows(start, end)
    assert loaded(rows, "t" if "reload" in given else "k") == three()
