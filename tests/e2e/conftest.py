"""Fixtures of the end-to-end tests: accounts, and errors as Spark shows them.

The tests in errors/ provoke each error on a real server or file and read it from the query's
exception. `fails` checks the form of the error (one line, the error class first, no cause, no
password); the tests check its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from helpers.servers import Server
from helpers.servers.available import own_kind
from helpers.streams.spark_session import DELTA_JARS, Reads, with_delta
from helpers.waiting import patience
from pyspark_mysqlbinlog import errors

# The password of every account; no error may contain it.
SECRET = "s3cret-Wort!"
REPLICATION = "REPLICATION SLAVE, REPLICATION CLIENT ON *.*"
AVAILABLE_NOW = {"availableNow": True}


@dataclass(frozen=True)
class ShownError:
    """The error at the end of the traceback in an exception's text, and the whole text."""

    name: str
    message: str
    text: str


def shown_error(error: PySparkException) -> ShownError:
    """Return the package's error in an exception; it must be one line and have no cause."""
    text = str(error)
    assert SECRET not in text, "the password is shown"
    assert "During handling of the above exception" not in text, text
    assert "The above exception was the direct cause" not in text, text
    lines = text.splitlines()
    shown = [
        _lines_after_frames(lines, at + 1)
        for at, line in enumerate(lines)
        if line.endswith("Traceback (most recent call last):")
    ]
    # Spark can show a failed task's error twice: as the task's and as the job's.
    line, following = shown[0]
    assert all(other == line for other, _ in shown), text
    # Any text after it must be Spark's, not a second line of the error.
    assert re.match(r"$| SQLSTATE|\tat |Driver stacktrace|JVM stacktrace", following), text
    qualified, _, message = line.partition(": ")
    module, _, name = qualified.rpartition(".")
    assert module == errors.__name__, line
    assert name in errors.__all__, line
    return ShownError(name, message, text)


def _lines_after_frames(lines: list[str], at: int) -> tuple[str, str]:
    """Return the line after a traceback's frames, and the line after it."""
    while lines[at].startswith((" ", "\t")):
        at += 1
    return lines[at], lines[at + 1] if at + 1 < len(lines) else ""


@pytest.fixture(scope="session", autouse=True)
def _quick_python(quick_python: None) -> None:
    """Also start the Python workers of other Spark processes as forks."""


# First, because the order of the hooks is the order of the parts of a case's identifier. It would
# depend on when pytest loads this file: first if it is given a path in this folder, else later.
@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # A DeltaMirror with engine="auto" selects the engine by its session.
    if metafunc.definition.get_closest_marker("both_engines"):
        metafunc.parametrize("spark", ["deltalake", "spark"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """Return the test run's Spark session; for the engine `spark`, a session with Delta's jars."""
    if getattr(request, "param", "deltalake") == "deltalake":
        return spark
    if not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    return with_delta(spark)


Fails = Callable[..., ShownError]


@pytest.fixture
def fails(tmp_path: Path) -> Fails:
    """``fails(frame)``: run a batch or streaming read that must fail, and return its error.

    A stream uses the default trigger unless `trigger` is given. `rows` collects the rows that are
    delivered before the error.
    """

    runs: list[int] = []

    def run(
        frame: Callable[[], DataFrame],
        *,
        trigger: dict[str, Any] | None = None,
        checkpoint: Path | None = None,
        rows: list[Any] | None = None,
        started: Callable[[], None] | None = None,
    ) -> ShownError:
        def read_all() -> None:
            read = frame()
            if not read.isStreaming:
                read.collect()
            else:
                writer = read.writeStream.option(
                    "checkpointLocation", str(checkpoint or tmp_path / f"checkpoint-{len(runs)}")
                )
                runs.append(1)
                # foreachBatch would wrap a task's error in a second Python error.
                if rows is None:
                    writer = writer.format("noop")
                else:
                    writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
                if trigger is not None:
                    writer = writer.trigger(**trigger)
                query = writer.start()
                try:
                    if started is not None:
                        started()
                    ended = query.awaitTermination(patience(300))
                    assert ended, "the query did not fail within 300 s"
                finally:
                    query.stop()

        with pytest.raises(PySparkException) as caught:
            read_all()
        return shown_error(caught.value)

    return run


@pytest.fixture(params=["stream", "available now", "batch"])
def reading(request: pytest.FixtureRequest, fails: Fails) -> Callable[..., ShownError]:
    """``reading(reads, tables=…)``: return the error of a failing read of this kind."""

    def read(reads: Reads, **options: Any) -> ShownError:
        if request.param == "batch":
            return fails(lambda: reads.batch(**options))
        trigger = AVAILABLE_NOW if request.param == "available now" else None
        return fails(lambda: reads.stream(**options), trigger=trigger)

    return read


@pytest.fixture(scope="module")
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield a MySQL server of this module, whose binlog and settings the tests may change.

    The tests are skipped where the shared server of the same kind is not available.
    """
    request.getfixturevalue(own_kind().name)
    with own_kind()() as server:
        yield server


@pytest.fixture(scope="module")
def shop(own_server: Server) -> Server:
    """Return a server with the table shop.orders and three transactions on it."""
    own_server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(20))",
        "INSERT INTO shop.orders VALUES (1, 'one')",
        "INSERT INTO shop.orders VALUES (2, 'two')",
        "INSERT INTO shop.orders VALUES (3, 'three')",
    )
    return own_server


Account = Callable[..., Reads]
_NUMBERS = count()


@pytest.fixture
def account(spark: SparkSession) -> Iterator[Account]:
    """``account(server, "REPLICATION SLAVE ON *.*", …)``: return reads as a new user."""
    made: list[tuple[Server, str]] = []

    def create(server: Server, *grants: str) -> Reads:
        # Unique: a query left over from another test would connect as this user.
        user = f"reader_{next(_NUMBERS)}"
        server.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{SECRET}'")
        made.append((server, user))
        for grant in grants:
            server.execute(f"GRANT {grant} TO '{user}'@'%'")
        reads = Reads(spark, server)
        reads.options |= {"user": user, "password": SECRET}
        return reads

    yield create
    for server, user in made:
        server.execute(f"DROP USER '{user}'@'%'")
