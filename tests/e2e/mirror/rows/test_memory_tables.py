"""MEMORY tables, which are empty after a restart of the server: so is the Delta table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import LocalServer
from helpers.servers.available import own_kinds


@pytest.mark.parametrize("kind", own_kinds().values(), ids=own_kinds())
def test_restart_of_the_server_empties_the_delta_table_of_a_memory_table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: type[LocalServer]
) -> None:
    request.getfixturevalue(kind.name)
    with kind() as server:
        server.execute("CREATE DATABASE shop")
        mirrored = MirroredDatabase(spark, server, "shop", tmp_path, startingOffset="snapshot")
        mirrored.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE = MEMORY",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "CREATE TABLE of_partition (id INT PRIMARY KEY) ENGINE = MEMORY",
            "INSERT INTO of_partition VALUES (1)",
        )
        mirrored.run()
        mirrored.execute("UPDATE t SET n = 3 WHERE id = 1")
        mirrored.run()
        mirrored.assert_equal("t")
        server.restart()
        # The SELECT makes the server log that the table is empty.
        mirrored.execute("SELECT * FROM t", "INSERT INTO t VALUES (2, 5)")
        mirrored.execute("SELECT * FROM of_partition")
        mirrored.run()
        mirrored.assert_equal("t", "of_partition")
        assert mirrored.select("t")[1] == [(2, 5)]
