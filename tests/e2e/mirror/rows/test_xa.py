"""XA transactions and savepoints through a mirror: equal to SELECT."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.mirrors.mirror_steps import killed_after, with_short_steps
from helpers.servers import Server
from helpers.writers.xa_writer import XaWriter


@pytest.mark.sample(2)
@pytest.mark.parametrize("start", ["binlog", "snapshot"])
def test_tables_equal_select_after_random_xa_transactions(  # noqa: PLR0917 (fixtures)
    spark: SparkSession,
    any_server: Server,
    any_database: str,
    tmp_path: Path,
    ddl_seed: int,
    monkeypatch: pytest.MonkeyPatch,
    start: str,
) -> None:
    """Some are prepared before a snapshot or a batch and committed after it.

    The mirror that starts from the binlog is also killed between sub-batches.
    """
    with_short_steps(monkeypatch)
    options = {"startingOffset": "snapshot"} if start == "snapshot" else {}
    mirrored = MirroredDatabase(spark, any_server, any_database, tmp_path, **options)
    writer = XaWriter(any_server, any_database, Random(ddl_seed))
    try:
        for turn in range(5):
            for _ in range(10):
                writer.step()
            for value in range(3):
                mirrored.execute(f"INSERT INTO x VALUES ({1_000_000 + 10 * turn + value}, 'x')")
            if turn in {2, 3} and start == "binlog":
                with killed_after(turn - 1, monkeypatch):
                    mirrored.run()
            if turn == 4:
                writer.finish()
            mirrored.run("checkpoint" if turn < 3 else "another checkpoint")
            mirrored.assert_equal("t", "x")
    finally:
        writer.forget()
