"""Fixtures: a table, queries and streams that end with the test, and servers of one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from helpers.schemas.tracker_harness import Follower
from helpers.servers import LocalServer, Server
from helpers.servers.available import every_server, own_kinds
from helpers.streams.source_runner import Spark, new_reader
from helpers.streams.stream_query import Query

NewStream = Callable[..., Spark]

# The database of the `follower` fixture.
DATABASE = "followed_live"


@pytest.fixture
def queries() -> Iterator[list[Query]]:
    made: list[Query] = []
    yield made
    for query in made:
        query.stop()


@pytest.fixture
def new_stream() -> Iterator[NewStream]:
    """``new_stream(server, tables, **options)`` drives a `new_reader` of these as Spark does."""
    made: list[Spark] = []

    def make(server: Server, tables: str | None, **options: str) -> Spark:
        made.append(Spark(new_reader(server, tables, **options)))
        return made[-1]

    yield make
    for spark in made:
        spark.reader.stop()


@pytest.fixture
def table(any_server: Server, any_database: str) -> str:
    any_server.execute(f"CREATE TABLE `{any_database}`.t (id INT PRIMARY KEY, a INT, b INT)")
    return f"{any_database}.t"


@pytest.fixture(params=own_kinds())
def own_server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a new server of each kind in turn; it loses no commit when it is killed."""
    request.getfixturevalue(request.param)  # ends the test if it is missing
    with own_kinds()[request.param](options=["--innodb-flush-log-at-trx-commit=1"]) as server:
        yield server


@pytest.fixture(params=own_kinds())
def folding_server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a new server of each kind in turn; it keeps the names of tables in lower case."""
    request.getfixturevalue(request.param)  # ends the test if it is missing
    with own_kinds()[request.param](options=["--lower-case-table-names=1"]) as server:
        yield server


@pytest.fixture(params=every_server())
def follower(request: pytest.FixtureRequest) -> Iterator[Follower]:
    """Yield a tracker of an empty utf8mb4 database, on each server in turn."""
    server: Server = request.getfixturevalue(request.param)
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARSET utf8mb4"
    )
    with Follower.of(server, DATABASE) as follower:
        yield follower
    server.execute(f"DROP DATABASE {DATABASE}")
