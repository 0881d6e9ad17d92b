"""How Spark writes a mirror's checkpoint on local disk: with few processes for each batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.streams.spark_session import FAITHFUL_CHECKPOINTS, QUICK_CHECKPOINTS
from pyspark_mysqlbinlog.connector.delta.query.checkpoint import manager as checkpoint_manager
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.manager import (
    use_filesystem_checkpoint_manager,
)

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield a session without a checkpoint manager, as a user has; the tests otherwise set one."""
    spark.conf.unset(MANAGER)
    yield spark
    spark.conf.set(MANAGER, QUICK_CHECKPOINTS)


def said(session: SparkSession) -> str | None:
    return session.conf.get(MANAGER, None)


def test_mirror_query_on_local_disk_uses_the_filesystem_checkpoint_manager(
    session: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(session, live_server, database, tmp_path)
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    query: Any = mirrored.mirror().start(session, availableNow=True)
    assert said(session) is None
    query.awaitTermination()
    mirrored.assert_equal("t")
    in_jvm = query._jsq.streamingQuery()
    for log in (in_jvm.offsetLog(), in_jvm.commitLog()):
        assert log.fileManager().getClass().getName() == QUICK_CHECKPOINTS


@pytest.mark.parametrize("checkpoint", ["/lake/checkpoint", "checkpoint", "file:///lake/a%20b"])
def test_local_checkpoint_sets_the_filesystem_checkpoint_manager_temporarily(
    session: SparkSession, checkpoint: str
) -> None:
    with use_filesystem_checkpoint_manager(session, checkpoint):
        assert said(session) == QUICK_CHECKPOINTS
    assert said(session) is None


def test_failed_start_of_a_query_resets_the_checkpoint_manager(session: SparkSession) -> None:
    with (
        pytest.raises(ValueError, match="no query"),
        use_filesystem_checkpoint_manager(session, "/lake"),
    ):
        raise ValueError("no query")
    assert said(session) is None


@pytest.mark.parametrize("checkpoint", ["s3a://lake/checkpoint", "hdfs:///lake/checkpoint"])
def test_remote_checkpoint_leaves_the_checkpoint_manager_unset(
    session: SparkSession, checkpoint: str
) -> None:
    with use_filesystem_checkpoint_manager(session, checkpoint):
        assert said(session) is None


def test_checkpoint_manager_set_in_the_session_is_kept(session: SparkSession) -> None:
    session.conf.set(MANAGER, FAITHFUL_CHECKPOINTS)
    with use_filesystem_checkpoint_manager(session, "/lake/checkpoint"):
        assert said(session) == FAITHFUL_CHECKPOINTS
    assert said(session) == FAITHFUL_CHECKPOINTS


def test_spark_without_the_manager_class_leaves_the_checkpoint_manager_unset(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_manager, "_BY_FILE_SYSTEM", "org.apache.spark.NoSuchClass")
    with use_filesystem_checkpoint_manager(session, "/lake/checkpoint"):
        assert said(session) is None


def test_session_without_a_jvm_raises_no_error_for_the_checkpoint_manager() -> None:
    remote: Any = SimpleNamespace()
    with use_filesystem_checkpoint_manager(remote, "/lake/checkpoint"):
        pass
