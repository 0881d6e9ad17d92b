"""A table, and queries of it that end with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import Server
from stream_query import Query


@pytest.fixture
def queries() -> Iterator[list[Query]]:
    made: list[Query] = []
    yield made
    for query in made:
        query.stop()


@pytest.fixture
def table(any_server: Server, any_database: str) -> str:
    any_server.execute(f"CREATE TABLE `{any_database}`.t (id INT PRIMARY KEY, a INT, b INT)")
    return f"{any_database}.t"
