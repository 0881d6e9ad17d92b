"""The kind of a statement whose sql_mode and server are not known."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.delta.sync.ddl import (
    is_drop,
    is_replacement,
    is_whole_truncate,
    kind_of,
    may_add_rows,
)
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind

KINDS = [
    ("/* data-losing */ DROP TABLE t", StatementKind.DROP_TABLE),
    ('/* data-losing */ DROP TABLE "t"', StatementKind.DROP_TABLE),
    ("/* data-losing */ /*!80000 DROP TABLE t */", StatementKind.DROP_TABLE),
    ("/* data-losing */ /*M!100000 DROP TABLE t */", StatementKind.DROP_TABLE),
    ('TRUNCATE TABLE "x_partition"', StatementKind.TRUNCATE),
    ("DELETE FROM `d`.`my_partition`", StatementKind.DML),
    ('ALTER TABLE "t" TRUNCATE PARTITION "p"', StatementKind.ALTER_TABLE),
    ("REPAIR TABLE t", StatementKind.OTHER),
    (None, StatementKind.OTHER),
]


@pytest.mark.parametrize(("query", "kind"), KINDS)
def test_kind_is_that_of_the_executed_statement(query: str | None, kind: StatementKind) -> None:
    assert kind_of(query) is kind


ADDING = [
    ("ALTER TABLE t DROP a", False),
    ('ALTER TABLE "t" EXCHANGE PARTITION "p" WITH TABLE "u"', True),
    ("ALTER TABLE t IMPORT TABLESPACE", True),
    ("ALTER TABLE t DROP a /*M!100000 , ADD b INT DEFAULT 5 */", True),
    ('TRUNCATE TABLE "t"', False),
    ('DROP TABLE "t"', False),
    ("RENAME TABLE t TO old, new TO t", True),
]


@pytest.mark.parametrize(("query", "adds"), ADDING)
def test_exchange_import_and_executable_comments_may_add_rows(query: str, adds: bool) -> None:
    assert may_add_rows(query) is adds


def test_only_create_or_replace_replaces_the_table() -> None:
    assert is_replacement('/* data-losing */ CREATE OR REPLACE TABLE "t" (id INT)')
    assert is_replacement("CREATE OR REPLACE TABLE t LIKE u")
    assert not is_replacement("CREATE TABLE t (id INT)")


def test_create_or_replace_database_drops_the_table() -> None:
    statement = "/* data-losing */ CREATE OR REPLACE DATABASE `d`"
    assert is_drop(statement)
    assert not is_replacement(statement)
    assert not may_add_rows(statement)


EMPTYING = [
    ('TRUNCATE TABLE "x_partition"', True),
    ("TRUNCATE TABLE t /* no partition */", True),
    ("TRUNCATE /*!80000 TABLE */ t", True),
    ("DELETE FROM `d`.`my_partition`", True),
    ('DELETE FROM "d"."my_partition"', True),
    ("ALTER TABLE t TRUNCATE PARTITION p", False),
    ('ALTER TABLE "t" TRUNCATE PARTITION "p"', False),
    ("/*!50500 ALTER TABLE t TRUNCATE PARTITION p */", False),
    (None, True),
]


@pytest.mark.parametrize(("query", "empties"), EMPTYING)
def test_only_a_truncate_of_partitions_keeps_rows(query: str | None, empties: bool) -> None:
    assert is_whole_truncate(query) is empties
