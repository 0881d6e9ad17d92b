"""How Spark writes a mirror's checkpoint: on local disk without a process for each file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.spark_session import FAITHFUL_CHECKPOINTS, QUICK_CHECKPOINTS
from pyspark_mysqlbinlog.connector.delta import checkpoint_files
from pyspark_mysqlbinlog.connector.delta.checkpoint_files import without_processes

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture
def session(spark: SparkSession) -> Any:
    """The JVM of the tests' session, with settings of its own: the tests' say how to write."""
    settings = dict[str, str]()

    def get(name: str, default: str | None) -> str | None:
        return settings.get(name, default)

    conf = SimpleNamespace(get=get, set=settings.__setitem__, unset=settings.pop, all=settings)
    given: Any = spark
    return SimpleNamespace(_jvm=given._jvm, _jsparkSession=given._jsparkSession, conf=conf)


@pytest.mark.parametrize("checkpoint", ["/lake/checkpoint", "checkpoint", "file:///lake/a%20b"])
def test_a_checkpoint_on_local_disk(session: Any, checkpoint: str) -> None:
    with without_processes(session, checkpoint):
        assert session.conf.all == {MANAGER: QUICK_CHECKPOINTS}
    assert session.conf.all == {}


def test_a_query_that_does_not_start(session: Any) -> None:
    with pytest.raises(ValueError, match="no query"), without_processes(session, "/lake"):
        raise ValueError("no query")
    assert session.conf.all == {}


@pytest.mark.parametrize("checkpoint", ["s3a://lake/checkpoint", "hdfs:///lake/checkpoint"])
def test_a_checkpoint_elsewhere(session: Any, checkpoint: str) -> None:
    with without_processes(session, checkpoint):
        assert session.conf.all == {}


def test_what_the_session_says_stays(session: Any) -> None:
    session.conf.set(MANAGER, FAITHFUL_CHECKPOINTS)
    with without_processes(session, "/lake/checkpoint"):
        assert session.conf.all == {MANAGER: FAITHFUL_CHECKPOINTS}
    assert session.conf.all == {MANAGER: FAITHFUL_CHECKPOINTS}


def test_a_spark_that_has_it_elsewhere(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "_BY_FILE_SYSTEM", "org.apache.spark.NoSuchClass")
    with without_processes(session, "/lake/checkpoint"):
        assert session.conf.all == {}


def test_a_remote_session(session: Any) -> None:
    del session._jsparkSession
    with without_processes(session, "/lake/checkpoint"):
        assert session.conf.all == {}
