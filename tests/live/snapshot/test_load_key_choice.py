"""The key that a snapshot reads a table by, and changes of the key's fingerprint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.logs.live_log import client_of, new_database, schemas_of
from helpers.servers import Server
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey, choose_key
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def chosen(server: Server, database: str) -> ChunkKey | None:
    (schema,) = schemas_of(server, database)
    with client_of(server) as client:
        return choose_key(client, schema)


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE u (b), PRIMARY KEY (a)", "PRIMARY"),
        ("a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a)", "PRIMARY"),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE u (b), UNIQUE v (a)", "u"),
        # Many rows can share a prefix; a prefix with the column's full length is a whole key.
        ("a VARCHAR(9) NOT NULL, b INT NOT NULL, PRIMARY KEY (a(3)), UNIQUE u (b)", "u"),
        ("a VARCHAR(9) NOT NULL, PRIMARY KEY (a(3))", None),
        ("a VARCHAR(9) NOT NULL, PRIMARY KEY (a(9))", "PRIMARY"),
        ("a TEXT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a(3))", None),
        ("a TINYBLOB NOT NULL, PRIMARY KEY (a(255))", None),
        # NULL can occur many times.
        ("a INT, b INT NOT NULL, UNIQUE u (a), UNIQUE v (b)", "v"),
        ("a INT, b INT NOT NULL, UNIQUE u (b, a)", None),
        ("a INT NOT NULL, KEY k (a)", None),
        ("a INT", None),
        ("a SET('x') NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b), UNIQUE u (b)", "u"),
        ("a SET('x') NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)", "PRIMARY"),
        ("a INT NOT NULL, PRIMARY KEY USING HASH (a)) ENGINE=MEMORY (", None),
        ("a INT NOT NULL, PRIMARY KEY USING BTREE (a)) ENGINE=MEMORY (", "PRIMARY"),
        ("a INT NOT NULL, PRIMARY KEY (a)) ENGINE=MyISAM (", "PRIMARY"),
        ("a INT NOT NULL, PRIMARY KEY (a)) PARTITION BY HASH (a) (", "PRIMARY"),
        ("g GEOMETRY NOT NULL, UNIQUE u (g(20))", None),
    ],
)
def test_snapshot_key_is_a_usable_primary_or_unique_key(
    any_server: Server, any_database: str, definitions: str, expected: str | None
) -> None:
    if any_server.is_mysql9() and "GEOMETRY" in definitions:
        pytest.skip("8.0 and later have no such key")
    any_server.execute(f"CREATE TABLE t ({definitions})".replace(" ()", ""), database=any_database)
    key = chosen(any_server, any_database)
    assert (key and key.name) == expected


def test_special_characters_in_key_and_column_names_are_preserved(
    any_server: Server, any_database: str
) -> None:
    any_server.execute(
        "CREATE TABLE `t``%s` (`a``%d` INT NOT NULL, `É` INT NOT NULL,"
        " UNIQUE `k``%s` (`É`, `a``%d`))",
        database=any_database,
    )
    key = chosen(any_server, any_database)
    assert key is not None
    assert (key.name, [column.name for column in key.columns]) == ("k`%s", ["É", "a`%d"])


@pytest.fixture(params=["mariadb", "mysql9"])
def newer(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server with more kinds of keys in turn, with an empty database."""
    server: Server = request.getfixturevalue(request.param)
    with new_database(server, NEWER):
        yield server


NEWER = "newer_keys"


def test_key_with_mixed_sort_directions_is_not_chosen(newer: Server) -> None:
    """MySQL 8.0 and MariaDB 10.8 store descending keys; earlier versions ignore DESC."""
    for key, expected in {"a DESC, b DESC": "PRIMARY", "a, b DESC": None}.items():
        newer.execute(
            "DROP TABLE IF EXISTS t",
            f"CREATE TABLE t (a INT, b INT, PRIMARY KEY ({key}))",
            database=NEWER,
        )
        found = chosen(newer, NEWER)
        assert (found and found.name) == expected


def test_ignored_or_invisible_index_is_not_chosen_as_key(newer: Server) -> None:
    newer.execute(
        "CREATE TABLE t (p TEXT NOT NULL, a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (p(9)),"
        f" UNIQUE u (a) {'IGNORED' if newer.is_mariadb else 'INVISIBLE'}, UNIQUE v (b))",
        database=NEWER,
    )
    key = chosen(newer, NEWER)
    assert key is not None and key.name == "v"


def test_expression_index_is_not_chosen_as_key(mysql9: Server) -> None:
    with new_database(mysql9, NEWER):
        mysql9.execute(
            "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, UNIQUE u ((a + 1)),"
            " UNIQUE v (a, (b + 1)), UNIQUE w (b))",
            database=NEWER,
        )
        key = chosen(mysql9, NEWER)
        assert key is not None and key.name == "w"


@pytest.mark.parametrize(
    ("server", "collation"),
    [
        ("mariadb", "utf8mb4_general_nopad_ci"),
        ("mariadb", "latin1_nopad_bin"),
        ("mariadb", "utf8mb4_uca1400_nopad_ai_ci"),
        ("mysql9", "utf8mb4_0900_ai_ci"),
        ("mysql9", "utf8mb4_0900_bin"),
        ("mysql9", "utf8mb4_ja_0900_as_cs_ks"),
    ],
)
def test_char_key_with_nopad_collation_is_not_chosen(
    request: pytest.FixtureRequest, server: str, collation: str
) -> None:
    """The order of CHAR values in the index can differ from their order in a condition."""
    found_server: Server = request.getfixturevalue(server)
    charset = collation.partition("_")[0]
    with new_database(found_server, NEWER):
        for kind, expected in {"CHAR(9)": None, "VARCHAR(9)": "PRIMARY"}.items():
            found_server.execute(
                "DROP TABLE IF EXISTS t",
                f"CREATE TABLE t (a {kind} CHARACTER SET {charset} COLLATE {collation}"
                " PRIMARY KEY)",
                database=NEWER,
            )
            found = chosen(found_server, NEWER)
            assert (found and found.name) == expected


def test_partitioned_key_is_chosen_only_if_read_in_key_order(
    any_server: Server, any_database: str
) -> None:
    """MySQL 5.6 returns another order if a BIT comes first, so the key is not chosen there."""
    values = ", ".join(f"({a}, {b})" for a in (0, 1, 17) for b in (0, 5, 3, -7, 300))
    any_server.execute(
        "CREATE TABLE t (a BIT(5), b INT, PRIMARY KEY (a, b)) PARTITION BY KEY (a, b) PARTITIONS 3",
        f"INSERT INTO t VALUES {values}",
        database=any_database,
    )
    by_index, sorted_rows = (
        any_server.execute(f"SELECT a, b FROM t {hint} ORDER BY a, b", database=any_database)
        for hint in ("FORCE INDEX (PRIMARY)", "IGNORE INDEX (PRIMARY)")
    )
    is_right = by_index == sorted_rows
    assert is_right == (not any_server.version().startswith("5.6."))
    assert (chosen(any_server, any_database) is not None) == is_right


def test_key_with_unknown_column_is_not_chosen(any_server: Server, any_database: str) -> None:
    """The table was altered between the read of its schema and the choice of the key."""
    any_server.execute("CREATE TABLE t (new INT PRIMARY KEY)", database=any_database)
    schema = TableSchema(any_database, "t", (ColumnSchema("old", "int"),))
    with client_of(any_server) as client:
        assert choose_key(client, schema) is None


def test_key_choice_of_missing_table_raises_server_error(
    any_server: Server, any_database: str
) -> None:
    with client_of(any_server) as client, pytest.raises(ServerError) as raised:
        choose_key(client, TableSchema(any_database, "t", (ColumnSchema("a", "int"),)))
    assert raised.value.code == 1146


TABLE = (
    "CREATE TABLE t (a INT NOT NULL, b VARCHAR(10) NOT NULL, c ENUM('x', 'y') NOT NULL,"
    " d DECIMAL(9, 2) NOT NULL, e BINARY(4) NOT NULL, other INT, PRIMARY KEY (a, b, c, d, e))"
    " CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
)


@pytest.mark.parametrize(
    "change",
    [
        "MODIFY a BIGINT NOT NULL",
        "MODIFY a INT UNSIGNED NOT NULL",
        "MODIFY b VARCHAR(10) COLLATE utf8mb4_bin NOT NULL",
        "MODIFY b VARCHAR(10) CHARACTER SET latin1 NOT NULL",
        "MODIFY b CHAR(10) NOT NULL",
        "MODIFY b VARCHAR(9) NOT NULL",
        "MODIFY c ENUM('y', 'x') NOT NULL",
        "MODIFY c ENUM('w', 'x', 'y') NOT NULL",
        "MODIFY c ENUM('x', 'Y') NOT NULL",
        "MODIFY c SET('x', 'y') NOT NULL",
        "MODIFY d DECIMAL(9, 1) NOT NULL",
        # The server pads the values to the new length, so the values change.
        "MODIFY e BINARY(5) NOT NULL",
        "CHANGE a z INT NOT NULL",
        "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (b, a, c, d, e)",
        "DROP PRIMARY KEY, ADD PRIMARY KEY (a, b, c, d)",
        "DROP PRIMARY KEY, ADD UNIQUE u (a, b, c, d, e)",
    ],
)
def test_change_of_the_key_changes_its_fingerprint(
    any_server: Server, any_database: str, change: str
) -> None:
    any_server.execute(TABLE, database=any_database)
    before = chosen(any_server, any_database)
    any_server.execute(f"ALTER TABLE t {change}", database=any_database)
    after = chosen(any_server, any_database)
    assert before is not None and after is not None
    assert before.fingerprint != after.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        "ADD z INT",
        "ADD z INT FIRST",
        "DROP other",
        "MODIFY other BIGINT",
        "ADD INDEX (other), ADD UNIQUE (other)",
        "MODIFY a INT NOT NULL DEFAULT 7 COMMENT 'new'",
        "MODIFY a INT NOT NULL AFTER other",
        "DEFAULT CHARACTER SET latin1",
        "ENGINE = MyISAM",
        "RENAME TO u",
        "FORCE",
    ],
)
def test_change_outside_the_key_keeps_the_key_equal(
    any_server: Server, any_database: str, change: str
) -> None:
    any_server.execute(TABLE, database=any_database)
    before = chosen(any_server, any_database)
    any_server.execute(f"ALTER TABLE t {change}", database=any_database)
    assert before is not None
    assert before == chosen(any_server, any_database)
