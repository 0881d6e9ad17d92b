"""CONVERT TO that changes no column: the table's default character set by server version.

tests/live/ddl/test_conversions.py runs such statements on the available servers.
"""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.decoder.sql.alter.apply import apply_alter
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_create_table
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.errors import UnknownSchemaError
from pyspark_mysqlbinlog.tables import TableSchema

NUMBERS = "CREATE TABLE t (id INT PRIMARY KEY, b BLOB) CHARSET latin1"
CONVERT = "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4"
CHANGES, STAYS, NOT_KNOWN = "utf8mb4", "latin1", None


def altered(version: str, *statements: str) -> TableSchema:
    context = SqlContext.of(0, version)
    schema = parse_create_table(statements[0], "d", None, context=context)
    for sql in statements[1:]:
        schema = apply_alter(sql, schema, "gbk", "gbk", context)
    return schema


@pytest.mark.parametrize(
    ("version", "default"),
    [
        ("5.6.24-log", STAYS),
        ("5.7.41-log", CHANGES),
        ("5.7.44", CHANGES),
        ("5.7.12-enterprise-commercial-advanced-log", CHANGES),
        ("10.11.19-MariaDB-0+deb12u1-log", CHANGES),
        ("5.5.5-10.6.12-MariaDB-log", CHANGES),
        # The behavior of these versions is not known.
        ("5.7.11-log", NOT_KNOWN),
        ("5.7.9-log", NOT_KNOWN),
        ("5.6.28-log", NOT_KNOWN),
        ("5.6.15-log", NOT_KNOWN),
        ("5.5.62-log", NOT_KNOWN),
        ("8.0.36", NOT_KNOWN),
        ("8.4.0", NOT_KNOWN),
        ("10.2.8-MariaDB", NOT_KNOWN),
        ("10.0.12-MariaDB", NOT_KNOWN),
        # No version: statements from a user's file.
        ("", NOT_KNOWN),
    ],
)
def test_table_charset_after_noop_convert_depends_on_the_server_version(
    version: str, default: str | None
) -> None:
    assert altered(version, NUMBERS, CONVERT).charset == default
    if default is None:
        with pytest.raises(UnknownSchemaError, match="that its definition"):
            altered(version, NUMBERS, CONVERT, "ALTER TABLE t ADD note TEXT")
    else:
        after = altered(version, NUMBERS, CONVERT, "ALTER TABLE t ADD note TEXT")
        assert after.columns[-1].charset == default
    # The next statement with a character set makes it known again.
    altered_table = altered(
        version, NUMBERS, CONVERT, "ALTER TABLE t CHARACTER SET ucs2, ADD note TEXT"
    )
    assert (altered_table.charset, altered_table.columns[-1].charset) == ("ucs2", "ucs2")


@pytest.mark.parametrize("version", ["5.6.24-log", "5.7.9", "5.7.41-log", "8.0.36", ""])
def test_effective_convert_sets_the_table_charset_on_all_versions(version: str) -> None:
    for more in (", COMMENT 'x'", ", ADD n INT", ", FORCE", ", ALGORITHM=COPY", ", DROP b"):
        assert altered(version, NUMBERS, CONVERT + more).charset == "utf8mb4", more
    text = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9)) CHARSET latin1"
    assert altered(version, text, CONVERT).charset == "utf8mb4"
    assert altered(version, NUMBERS, "ALTER TABLE t CONVERT TO CHARSET latin1").charset == "latin1"


@pytest.mark.parametrize(
    "clauses", ["DROP INDEX i, ADD INDEX i (id)", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)"]
)
def test_convert_with_a_recreated_index_leaves_charset_unknown_on_5_6(clauses: str) -> None:
    """5.6 treats the recreated index as a no-op, and can skip CONVERT TO with it."""
    create = "CREATE TABLE t (id INT, b BLOB, KEY i (id), PRIMARY KEY (id)) CHARSET latin1"
    assert altered("5.6.24-log", create, f"{CONVERT}, {clauses}").charset is None
    assert altered("5.7.41-log", create, f"{CONVERT}, {clauses}").charset == "utf8mb4"


def test_convert_of_text_in_the_same_charset_leaves_charset_unknown_on_5_6() -> None:
    """On 5.6, the result depends on the column's collation, which is unknown."""
    create = "CREATE TABLE t (s TEXT CHARSET utf8mb4) CHARSET latin1"
    assert altered("5.6.24-log", create, CONVERT).charset is None
    assert altered("5.7.41-log", create, CONVERT).charset == "utf8mb4"
