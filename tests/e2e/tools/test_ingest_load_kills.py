"""The command `ingest`, killed repeatedly during a snapshot of changing tables: equal to SELECT."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.snapshots.loaded_tables import TABLES, fill, some_changes
from helpers.tools.ingest_process import Ingest
from helpers.waiting import wait_until

# A sub-batch has some thousand rows.
_STEP = "96k"


@contextmanager
def _again_and_again(work: Callable[[], None]) -> Iterator[None]:
    """Call `work` in a thread ten times a second during the block."""
    ended, errors = Event(), list[Exception]()

    def run() -> None:
        try:
            while not ended.wait(0.1):
                work()
        except Exception as error:  # noqa: BLE001 (raised again after the block)
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


def _commits(folder: Path) -> int:
    """Return the number of commits in all Delta tables."""
    return sum(1 for _ in folder.glob("lake/*/*/_delta_log/*.json"))


def _has_commits(folder: Path, count: int) -> bool:
    return _commits(folder) >= count


@pytest.mark.sample(2, group="kills")
@pytest.mark.parametrize(
    ("kills", "rows"),
    [
        pytest.param(2, 30_000, id="short"),
        pytest.param(20, 400_000, id="full", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_killed_ingest_in_a_snapshot_is_equal_to_select(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    live_server: Server,
    database: str,
    tmp_path: Path,
    ddl_seed: int,
    kills: int,
    rows: int,
) -> None:
    chance = random.Random(ddl_seed)
    fill(live_server, database, rows)
    change = some_changes(live_server, database, random.Random(ddl_seed), rows)
    ingest = Ingest(
        live_server,
        database,
        tmp_path,
        ["--engine", "deltalake", "--option", f"maxBytesPerTrigger={_STEP}"],
    )
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    # Those that come while the table is in the middle of its load.
    loading = 0
    with ingest:
        with _again_and_again(change):
            for number in count():
                ingest.wait_for_batch()
                more = _commits(tmp_path) + chance.randrange(8)
                wait_until(partial(_has_commits, tmp_path, more), "Delta has more commits")
                ingest.kill()
                found = mirrored.delta("t").metadata().configuration
                loading += bool(found.get("mysqlbinlog.snapshotInProgress"))
                if loading == kills:
                    break
                if not found.get("mysqlbinlog.snapshotInProgress"):
                    # This process was late, and the load was done.
                    ingest.reload(f"again {number}", f"{database}.*")
        ingest.once()
    mirrored.assert_equal(*TABLES)
