"""Statements that start a reload while an earlier one is pending or running: the last counts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabases
from helpers.servers import Server

pytestmark = pytest.mark.both_engines

_KEYLESS = "CREATE TABLE t (a INT, b INT, c VARCHAR(9), UNIQUE (a, b))"
_KEYED = "CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(9))"
# The table, and ALTER TABLE clauses that change its rows or its key, one after another.
REPLACED: list[tuple[str, list[str]]] = [
    (_KEYLESS, ["MODIFY a INT NOT NULL", "MODIFY b INT NOT NULL"]),
    (_KEYLESS, ["MODIFY a INT NOT NULL", "ADD z INT NOT NULL DEFAULT 7"]),
    (_KEYLESS, ["ADD z INT DEFAULT 7", "MODIFY a INT NOT NULL", "MODIFY b BIGINT NOT NULL"]),
    (_KEYLESS, ["MODIFY c VARCHAR(5)", "ADD PRIMARY KEY (a)"]),
    (_KEYLESS, ["ADD PRIMARY KEY (a)", "ADD z INT NOT NULL DEFAULT 7"]),
    (_KEYLESS, ["ADD PRIMARY KEY (a)", "MODIFY c VARCHAR(5)", "DROP PRIMARY KEY, MODIFY a INT"]),
    (_KEYLESS, ["MODIFY c VARCHAR(5)", "ADD y INT", "ADD z INT DEFAULT 7"]),
    (_KEYED, ["ADD z INT DEFAULT 7", "MODIFY a VARCHAR(9)"]),
    (_KEYED, ["ADD z INT DEFAULT 7", "DROP PRIMARY KEY, MODIFY a INT"]),
    (_KEYED, ["MODIFY b INT NOT NULL", "DROP PRIMARY KEY, ADD z INT DEFAULT 7", "ADD UNIQUE (b)"]),
    (
        _KEYED,
        ["DROP PRIMARY KEY, MODIFY a INT", "ADD UNIQUE (b)", "MODIFY b BIGINT NOT NULL"],
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c VARCHAR(9), UNIQUE (b))",
        ["ADD z INT DEFAULT 7", "DROP PRIMARY KEY, MODIFY a BIGINT"],
    ),
    # Rows that are deleted on the server have the next key of a row that is not.
    (
        _KEYED,
        [
            "PARTITION BY LIST (a % 2) (PARTITION p VALUES IN (1), PARTITION q VALUES IN (0))",
            "TRUNCATE PARTITION p",
            "COMMENT 'again'; INSERT INTO t (a, b, c) VALUES (4, 4, 'one')",
            "REMOVE PARTITIONING",
            "DROP PRIMARY KEY, ADD PRIMARY KEY (c)",
        ],
    ),
    (
        "CREATE TABLE t (a INT, b INT, c VARCHAR(9))",
        ["MODIFY b BIGINT NOT NULL", "ADD z INT NOT NULL DEFAULT 7, ADD PRIMARY KEY (b)"],
    ),
]


@pytest.fixture(scope="module", params=["large batches", "small batches"])
def replaced(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    live_server: Server,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MirroredDatabases]:
    """Yield databases after `REPLACED`, read in large or small batches. No table is stopped."""
    folder = tmp_path_factory.mktemp("replaced_reloads")
    cases = MirroredDatabases(spark, live_server, folder, "replaced_reloads", len(REPLACED))
    for mirrored, (create, _) in zip(cases, REPLACED, strict=True):
        mirrored.execute(create, "INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'x')")
    cases.run()
    for mirrored, (_, clauses) in zip(cases, REPLACED, strict=True):
        for number, each in enumerate(clauses):
            mirrored.execute(
                *f"ALTER TABLE t {each}".split("; "),
                f"INSERT INTO t (a, b, c) VALUES ({10 + number}, {10 + number}, 'in{number}')",
                f"UPDATE t SET c = 'u{number}' WHERE a = 2",
                f"DELETE FROM t WHERE a = {9 + number}",
            )
    if request.param == "small batches":
        cases[0].options["maxRowsPerTrigger"] = "1"
    with _errors() as errors:
        cases.run()
    assert errors == []
    yield cases
    cases.drop()


@contextmanager
def _errors() -> Iterator[list[str]]:
    """Yield the messages that the mirror logs as errors during the block."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    # Only one method of one handler is replaced, so a subclass would add nothing.
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("pyspark_mysqlbinlog.connector.delta.query.mirror_tables")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


@pytest.mark.sample(1, by="replaced")
@pytest.mark.parametrize(
    "case", range(len(REPLACED)), ids=["; ".join(clauses) for _, clauses in REPLACED]
)
def test_replaced_reload_is_equal_to_select(replaced: MirroredDatabases, case: int) -> None:
    replaced[case].assert_equal("t")


@pytest.mark.sample(1, by="replaced")
def test_row_changes_after_replaced_reloads_equal_select(replaced: MirroredDatabases) -> None:
    replaced.execute(
        "INSERT INTO t (a, b, c) VALUES (20, 20, 'new')",
        "UPDATE t SET c = 'w' WHERE a = 3",
        "DELETE FROM t WHERE a = 1",
    )
    replaced.run()
    for mirrored in replaced:
        mirrored.assert_equal("t")
