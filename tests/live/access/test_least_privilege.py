"""The documented grants are sufficient, and without any one of them the error names it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import Spark, new_reader
from pyspark_mysqlbinlog.errors import AccessDeniedError, MySQLBinlogError, UnknownTableError

USER = "least@'%'"
STREAM = ("REPLICATION SLAVE ON *.*", "REPLICATION CLIENT ON *.*", "SELECT ON {}.*")
SNAPSHOT = (*STREAM, "PROCESS ON *.*")
# The missing grant, the error's type and its words; the rest of the text is the server's.
MISSING: list[tuple[str, type[MySQLBinlogError], str]] = [
    ("REPLICATION SLAVE ON *.*", AccessDeniedError, "REPLICATION SLAVE"),
    ("REPLICATION CLIENT ON *.*", AccessDeniedError, "REPLICATION CLIENT"),
    ("SELECT ON {}.*", UnknownTableError, "SELECT grant"),
    ("PROCESS ON *.*", AccessDeniedError, "GRANT PROCESS"),
]
Run = Callable[..., list[int]]


@pytest.fixture
def run(any_server: Server, any_database: str) -> Iterator[Run]:
    """``run(grants, **options)`` returns the ids that a stream of such an account delivers."""
    any_server.execute(
        f"CREATE USER {USER} IDENTIFIED BY 's3cret'",
        f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {any_database}.t VALUES (1)",
    )

    def stream(grants: tuple[str, ...], **options: str) -> list[int]:
        for grant in grants:
            any_server.execute(f"GRANT {grant.format(any_database)} TO {USER}")
        account = {"user": USER.partition("@")[0], "password": "s3cret"}
        spark = Spark(new_reader(any_server, f"{any_database}.t", **account, **options))
        try:
            here = spark.latest(spark.initial())
            any_server.execute(f"INSERT INTO {any_database}.t VALUES (2)")
            found: list[int] = []
            while 2 not in found:
                end = spark.next_batch(here)
                rows = spark.rows(here, end)
                found += [json.loads(row["after"])["id"] for row in rows if row["after"]]
                here = end
            return found
        finally:
            spark.reader.stop()

    yield stream
    any_server.execute(f"DROP USER {USER}")


def test_documented_grants_are_sufficient_for_a_stream(run: Run) -> None:
    assert run(STREAM) == [2]


def test_documented_grants_are_sufficient_for_a_snapshot(run: Run) -> None:
    assert sorted(set(run(SNAPSHOT, startingOffset="snapshot"))) == [1, 2]


@pytest.mark.parametrize(("missing", "kind", "words"), MISSING, ids=[each[0] for each in MISSING])
def test_error_for_a_missing_grant_names_the_grant(
    run: Run, missing: str, kind: type[MySQLBinlogError], words: str
) -> None:
    grants = tuple(grant for grant in SNAPSHOT if grant != missing)
    with pytest.raises(kind, match=words):
        run(grants, startingOffset="snapshot")
