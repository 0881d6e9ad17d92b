"""A table, and queries and streams of it that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from servers import Server
from source_runner import Spark, new_reader
from stream_query import Query

NewStream = Callable[..., Spark]


@pytest.fixture
def queries() -> Iterator[list[Query]]:
    made: list[Query] = []
    yield made
    for query in made:
        query.stop()


@pytest.fixture
def new_stream() -> Iterator[NewStream]:
    """``new_stream(server, tables, **options)``: as `new_reader`, driven as Spark does."""
    made: list[Spark] = []

    def make(server: Server, tables: str, **options: str) -> Spark:
        made.append(Spark(new_reader(server, tables, **options)))
        return made[-1]

    yield make
    for spark in made:
        spark.reader.stop()


@pytest.fixture
def table(any_server: Server, any_database: str) -> str:
    any_server.execute(f"CREATE TABLE `{any_database}`.t (id INT PRIMARY KEY, a INT, b INT)")
    return f"{any_database}.t"
