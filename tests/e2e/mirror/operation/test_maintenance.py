"""A mirror with maintenance of its own, and with OPTIMIZE and VACUUM by other writers."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance

MINUTES = float(os.environ.get("MYSQLBINLOG_MAINTENANCE_MINUTES", "30"))
_TABLES = ("t", "texts", "copies")
_KEYS = 200
# Rounds of the mirror's own maintenance, which runs once a second while others write, compact and
# vacuum.
_ROUNDS = 4


@pytest.fixture
def mirrored(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    return MirroredDatabase(spark, live_server, database, tmp_path)


@pytest.mark.both_engines
def test_mirror_with_concurrent_maintenance_equals_select(
    mirrored: MirroredDatabase, own_rounds: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    _maintain(mirrored, 0, own_rounds)
    # A failed round of the mirror's own maintenance is only logged.
    assert "maintenance of its files failed" not in caplog.text


@pytest.mark.both_engines
@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 1200)
def test_mirror_with_long_concurrent_maintenance_equals_select(
    mirrored: MirroredDatabase, own_rounds: Counter[str]
) -> None:
    _maintain(mirrored, MINUTES * 60, own_rounds)


@pytest.fixture
def own_rounds(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the mirror's own maintenance rounds, counted by table name."""
    rounds: Counter[str] = Counter()
    maintain = Maintenance._maintain

    def counted(maintenance: Maintenance, uri: str) -> None:
        maintain(maintenance, uri)
        rounds[uri.rpartition("/")[2]] += 1

    monkeypatch.setattr(Maintenance, "_maintain", counted)
    return rounds


def _maintain(mirrored: MirroredDatabase, seconds: float, own_rounds: Counter[str]) -> None:
    """Write on the server and maintain the Delta tables for some seconds, then compare.

    This takes longer if the mirror has not yet maintained each table several times.
    """
    mirrored.settings |= {
        "maintenance_interval": "1s",
        # A merge takes much less time, so it does not lose the files that it reads.
        "table_properties": {"delta.deletedFileRetentionDuration": "interval 3 minutes"},
    }
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, w DECIMAL(20, 2))",
        "CREATE TABLE texts (k VARCHAR(20), n INT, v VARCHAR(20), PRIMARY KEY (k, n))"
        " DEFAULT CHARACTER SET utf8mb4",
        "CREATE TABLE copies (v INT, w VARCHAR(9))",
        "INSERT INTO t SELECT 1, 1, 1",
    )
    mirror = mirrored.mirror()
    query = mirror.start(mirrored.spark, processingTime="200 milliseconds")
    try:
        with _repeated(0.02, _traffic(mirrored)), _repeated(1, lambda: _foreign(mirrored)):
            end = monotonic() + seconds
            wait_until(
                lambda: (
                    not query.isActive
                    or mirror.stopped
                    or (monotonic() > end and _is_maintained(own_rounds))
                ),
                "each table is maintained",
                seconds + 240,
                every=0.1,
            )
        assert not mirror.stopped
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None, query.exception()
    # The last changes may have been committed after the query's last read.
    mirrored.run()
    assert not mirror.stopped
    mirrored.assert_equal(*_TABLES)
    assert _is_maintained(own_rounds), own_rounds


def _is_maintained(own_rounds: Counter[str]) -> bool:
    return all(own_rounds[table] >= _ROUNDS for table in _TABLES)


@contextlib.contextmanager
def _repeated(pause: float, work: Callable[[], object]) -> Iterator[None]:
    """Call `work` repeatedly in a thread during the block; raise its error at the end."""
    ended = Event()

    def repeat() -> None:
        while not ended.wait(pause):
            work()

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(repeat)
        try:
            yield
        finally:
            ended.set()
            done.result()


def _foreign(mirrored: MirroredDatabase) -> None:
    """Compact and vacuum the tables as another writer than the mirror."""
    for table in _TABLES:
        target = mirrored.target(table)
        if target.columns() is not None:
            # The mirror may remove files that these calls read. Then they fail, and are repeated.
            with contextlib.suppress(CommitFailedError):
                target.compact()
            with contextlib.suppress(CommitFailedError):
                target.vacuum()


def _traffic(mirrored: MirroredDatabase) -> Callable[[], None]:
    rng = random.Random(7)

    def statement(number: int) -> str:
        key = rng.randrange(_KEYS)
        return rng.choice(
            [
                f"REPLACE INTO t VALUES ({key}, {number}, {number}.25)",
                f"UPDATE t SET v = {number} WHERE id BETWEEN {key} AND {key + 20}",
                f"UPDATE IGNORE t SET id = id + {_KEYS} WHERE id = {key}",
                f"DELETE FROM t WHERE id BETWEEN {key} AND {key + 5}",
                f"REPLACE INTO texts VALUES ('ñ{key % 20}', {key}, '{number}')",
                f"UPDATE texts SET v = '{number}' WHERE k = 'ñ{key % 20}'",
                f"DELETE FROM texts WHERE n = {key}",
                f"INSERT INTO copies VALUES ({key % 5}, 'x'), ({key % 5}, 'x'), ({key}, NULL)",
                f"UPDATE copies SET w = 'y' WHERE v = {key % 5} LIMIT 1",
                f"DELETE FROM copies WHERE v BETWEEN {key} AND {key + 5} LIMIT 4",
            ]
        )

    numbers = count(1)
    return lambda: mirrored.execute(statement(next(numbers)))
