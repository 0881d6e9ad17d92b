"""A running mirror, of which the duration and the merges of each batch are recorded."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import compute
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.query import batch_runner
from pyspark_mysqlbinlog.connector.delta.query.progress import BatchProgress
from pyspark_mysqlbinlog.connector.delta.read.direct_read import DirectReader
from pyspark_mysqlbinlog.connector.delta.read.sub_batch import SubBatch
from pyspark_mysqlbinlog.connector.delta.rows.columns import TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeTarget
from pyspark_mysqlbinlog.connector.delta.sync import batch_writer

__all__ = ["FollowedMirror"]

pc: Any = compute

# A mirror keeps its last 100 batches.
_BETWEEN_LOOKS = 0.25
# Seconds. Ten minutes of small batches write 60 GB, of which only the last files are a table's.
_BETWEEN_CLEANINGS = 30
_OLD = 60
_TIMEOUT = 300
_PARTS = (
    (batch_runner, "collected", "collect"),
    (batch_writer, "final_states", "read values"),
    (batch_writer, "latest_per_key", "final states"),
    (DeltalakeTarget, "merge", "merge"),
)


class FollowedMirror:
    """One mirror in a folder of its own.

    keeps : what is merged is kept, for `merge_copies`.
    """

    def __init__(self, folder: Path, options: Mapping[str, str], *, keeps: bool) -> None:
        self.folder = folder
        self._options = options
        self._keeps = keeps
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._merges: list[tuple[str, pa.Table, list[str]]] = []
        self._batches: dict[int, BatchProgress] = {}
        self._told = -1
        self._query: StreamingQuery | None = None
        self._mirror: DeltaMirror | None = None
        self._copies: dict[str, DeltaTable] = {}
        self._stack = ExitStack()
        self._done = Event()

    def load(self, spark: SparkSession) -> float:
        """Load the tables; the seconds that it took."""
        begin = time.perf_counter()
        self._new().start(spark, availableNow=True).awaitTermination()
        seconds = time.perf_counter() - begin
        if self._keeps:
            shutil.copytree(self.folder / "tables", self.folder / "copies")
        return seconds

    def go_on(self, spark: SparkSession, interval: str) -> None:
        """Let the mirror follow the log.

        interval : of its trigger; empty for none.
        """
        for owner, name, part in _PARTS:
            self._time(owner, name, part)
        self._time_steps()
        self._mirror = self._new()
        trigger = {"processingTime": interval} if interval else {}
        self._query = self._mirror.start(spark, **trigger)
        looking = Thread(target=self._look, daemon=True)
        looking.start()
        self._stack.callback(looking.join)
        self._stack.callback(self._done.set)
        self._stack.callback(self._query.stop)

    def stop(self) -> None:
        self._stack.close()

    def until(self, place: tuple[str, int]) -> list[dict[str, Any]]:
        """The batches with rows that have not been told yet, when Delta has all before a place."""
        assert self._query is not None
        deadline = time.monotonic() + _TIMEOUT
        while True:
            batches = list(self._batches.values())
            if batches and (batches[-1].file, batches[-1].pos) >= place:
                break
            error = self._query.exception()
            if error is not None:
                raise error
            if time.monotonic() > deadline:
                raise TimeoutError(f"Delta has not come to {place} in {_TIMEOUT} s")
            time.sleep(0.05)
        new = [each for each in batches if each.number > self._told and each.rows]
        self._told = batches[-1].number
        durations = self._durations(self._told)
        return [asdict(each) | {"durations": durations[each.number]} for each in new]

    def spent(self) -> dict[str, float]:
        """Seconds in parts of the mirror's work, since this was asked last."""
        spent, self._spent = self._spent, defaultdict(float)
        return dict(spent)

    def _durations(self, last: int) -> dict[int, dict[str, float]]:
        """Return the seconds of each batch by phase, as Spark reports them."""
        assert self._query is not None
        deadline = time.monotonic() + _TIMEOUT
        # Spark reports a batch after the mirror does. Before, it may report an idle trigger under
        # the same number.
        while True:
            found = [
                each for each in self._query.recentProgress if "addBatch" in each["durationMs"]
            ]
            if found and found[-1]["batchId"] >= last:
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return {
            each["batchId"]: {name: ms / 1000 for name, ms in each["durationMs"].items()}
            for each in found
        }

    def merge_copies(self) -> float:
        """Merge what was kept into the copies; seconds of the merges."""
        spent = 0.0
        for uri, states, key in self._merges:
            table = self._copies.get(uri)
            if table is None:
                path = uri.replace(str(self.folder / "tables"), str(self.folder / "copies"))
                table = self._copies[uri] = DeltaTable(path)
            same = " AND ".join(f"t.{name} = s.{name}" for name in key)
            has_tombstones = pc.any(states.column(TOMBSTONE)).as_py()
            rows = states if has_tombstones else states.drop_columns([TOMBSTONE])
            begin = time.perf_counter()
            merger = table.merge(
                rows, same, source_alias="s", target_alias="t", streamed_exec=False
            )
            if has_tombstones:
                merger = merger.when_matched_delete(f"s.{TOMBSTONE}")
            (
                merger.when_matched_update_all(except_cols=[TOMBSTONE])
                .when_not_matched_insert_all(
                    f"NOT s.{TOMBSTONE}" if has_tombstones else None, [TOMBSTONE]
                )
                .execute()
            )
            spent += time.perf_counter() - begin
        self._merges.clear()
        return spent

    def sums(self, column: str) -> dict[str, int]:
        return _sums(self.folder / "tables", column)

    def copied_sums(self, column: str) -> dict[str, int]:
        return _sums(self.folder / "copies", column)

    def _new(self) -> DeltaMirror:
        return DeltaMirror(
            f"{self.folder}/tables/{{table}}",
            str(self.folder / "checkpoint"),
            self._options,
            maintenance_interval=None,
        )

    def _look(self) -> None:
        assert self._mirror is not None
        cleaned = time.monotonic()
        while not self._done.wait(_BETWEEN_LOOKS):
            for batch in self._mirror.progress.batches:
                self._batches.setdefault(batch.number, batch)
            if time.monotonic() - cleaned > _BETWEEN_CLEANINGS:
                cleaned = time.monotonic()
                self._remove_old_files()

    def _remove_old_files(self) -> None:
        """Remove the files of earlier versions: the mirror, their only user, reads the last one."""
        for log in (self.folder / "tables").rglob("_delta_log"):
            held = {uri.rpartition("/")[2] for uri in DeltaTable(str(log.parent)).file_uris()}
            for file in log.parent.glob("*.parquet"):
                if file.name not in held and time.time() - file.stat().st_mtime > _OLD:
                    file.unlink()

    def _time(self, owner: Any, name: str, part: str) -> None:
        """Count the seconds that a function takes; keep what a merge is given."""
        function: Callable[..., Any] = getattr(owner, name)

        def timed(*given: Any, **named: Any) -> Any:
            if part == "merge" and self._keeps:
                target, states, key, _ = given
                self._merges.append((target.uri, states, list(key)))
            begin = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self._spent[part] += time.perf_counter() - begin

        self._stack.enter_context(patch.object(owner, name, timed))

    def _time_steps(self) -> None:
        """Count the seconds that the mirror waits for the log, or reads it."""
        steps = DirectReader.sub_batches

        def timed(reading: DirectReader, *given: Any) -> Iterator[SubBatch]:
            with closing(steps(reading, *given)) as found:
                while True:
                    begin = time.perf_counter()
                    step = next(found, None)
                    self._spent["read the binlog"] += time.perf_counter() - begin
                    if step is None:
                        return
                    yield step

        self._stack.enter_context(patch.object(DirectReader, "sub_batches", timed))


def _sums(folder: Path, column: str) -> dict[str, int]:
    return {
        path.name: pc.sum(
            DeltaTable(str(path)).to_pyarrow_table(columns=[column]).column(column)
        ).as_py()
        for path in sorted(folder.iterdir())
    }
