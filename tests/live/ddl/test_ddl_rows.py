"""DDL rows: the statements that give one, and its contents."""

from __future__ import annotations

from helpers.logs.live_log import new_database
from helpers.servers import Server
from helpers.streams.stream_query import Query, run


def test_ddl_gives_rows_only_if_it_changes_or_loses_data(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    database = table.partition(".")[0]
    query = Query(
        any_server, f"{database}.*", payload="json", operations="insert,update,truncate,ddl"
    ).start()
    queries.append(query)
    statements = [
        (f"ALTER TABLE {table} ADD n INT", None),
        (f"ALTER TABLE {table} COMMENT 'x'", None),
        (f"ALTER TABLE {table} ADD d INT NOT NULL DEFAULT 7", ("t", "data-changing")),
        (f"ALTER TABLE {table} MODIFY a BIGINT UNSIGNED", ("t", "data-changing")),
        (f"ALTER TABLE {table} DROP b", ("t", "data-losing")),
        (f"CREATE TABLE {database}.u (id INT) PARTITION BY HASH (id) PARTITIONS 2", None),
        (f"INSERT INTO {database}.u VALUES (1)", ("u", "c")),
        (f"ALTER TABLE {database}.u TRUNCATE PARTITION p0", ("u", "t")),
        (f"TRUNCATE TABLE {database}.u", ("u", "t")),
        (f"RENAME TABLE {database}.u TO {database}.v", None),
        (f"DROP TABLE {database}.v", ("v", "data-losing")),
        (f"DROP TABLE IF EXISTS {database}.v", None),
    ]
    any_server.execute(*(statement for statement, _ in statements))
    rows = query.rows()
    found = []
    for row in rows:
        text = row["source"]["query"]
        kind = row["op"]
        if kind == "ddl":
            kind, _, text = text.removeprefix("/* ").partition(" */ ")
            assert (row["before"], row["after"]) == (None, None)
        found.append((row["table"], kind))
        assert row["seq"]["row"] == 0
    assert found == [expected for _, expected in statements if expected is not None]
    texts = [row["source"]["query"] for row in rows]
    assert texts[4] == f"ALTER TABLE {database}.u TRUNCATE PARTITION p0"
    assert texts[2].endswith(statements[4][0])
    places = [tuple(row["seq"].values()) for row in rows]
    assert places == sorted(set(places))
    assert all(before == after for before, after in query.replayed())


def test_executable_comments_give_rows_only_if_the_server_executes_them(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """Whether a comment is executed depends on the kind of server and its version."""
    query = Query(any_server, table, payload="json", operations="truncate,ddl").start()
    queries.append(query)
    is_mariadb = any_server.is_mariadb
    statements = [
        ("/*!50000 ALTER TABLE {t} DROP a */", True),
        ("ALTER TABLE {t} ADD c INT /*!50600 NOT NULL DEFAULT 7 */", True),
        ("ALTER TABLE {t} ADD d INT /*!50750 NOT NULL DEFAULT 7 */", any_server.is_mysql9()),
        ("ALTER TABLE {t} ADD f INT /*!99999 NOT NULL DEFAULT 7 */", False),
        ("ALTER TABLE {t} ADD e INT /*M!50600 NOT NULL DEFAULT 7 */", is_mariadb),
        ("/*!50000 TRUNCATE TABLE {t} */", True),
        ("TRUNCATE TABLE {t}", True),
    ]
    if is_mariadb:
        statements[-1] = ("/*M! TRUNCATE TABLE {t} */", True)
        statements.append(("/*!100100 ALTER TABLE {t} DROP b */", True))
    run(any_server, table, *(statement for statement, _ in statements))
    found = [row["source"]["query"] for row in query.rows()]
    expected = [statement.format(t=table) for statement, gives in statements if gives]
    assert [
        text.removeprefix("/* data-losing */ ").removeprefix("/* data-changing */ ")
        for text in found
    ] == expected
    assert all(before == after for before, after in query.replayed())


def test_ddl_gives_no_rows_by_default(any_server: Server, table: str, queries: list[Query]) -> None:
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, "ALTER TABLE {t} DROP a", "INSERT INTO {t} VALUES (1, 2)")
    assert [row["op"] for row in query.rows()] == ["c"]


def test_dropping_several_tables_or_a_database_gives_one_row_per_table(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    database = table.partition(".")[0]
    any_server.execute(
        f"CREATE TABLE {database}.x (id INT)",
        f"CREATE TABLE {database}.y (id INT)",
        f"CREATE TABLE {database}.z (id INT)",
    )
    query = Query(any_server, f"{database}.*", payload="json", operations="ddl").start()
    queries.append(query)
    any_server.execute(f"DROP TABLE {database}.x, {database}.y", f"DROP DATABASE {database}")
    rows = query.rows()
    assert [(row["table"], row["seq"]["row"]) for row in rows][:2] == [("x", 0), ("y", 1)]
    assert {row["table"] for row in rows[2:]} == {"t", "z"}
    assert len({tuple(row["seq"].values()) for row in rows}) == len(rows)
    any_server.execute(f"CREATE DATABASE {database}")


def test_replaced_database_gives_one_row_per_table(mariadb: Server, queries: list[Query]) -> None:
    with new_database(mariadb, "replaced") as database:
        create = [f"CREATE TABLE {database}.{name} (id INT)" for name in ("t", "z")]
        mariadb.execute(*create)
        query = Query(mariadb, f"{database}.*", payload="json", operations="insert,ddl").start()
        queries.append(query)
        replace = f"CREATE OR REPLACE DATABASE {database}"
        mariadb.execute(
            replace, create[0], f"INSERT INTO {database}.t VALUES (1)", replace, database=database
        )
        rows = query.rows()
    found = [(row["op"], row["table"], row["source"]["query"]) for row in rows]
    lost = f"/* data-losing */ {replace}"
    assert sorted(found[:2]) == [("ddl", "t", lost), ("ddl", "z", lost)]
    assert [row[:2] for row in found[2:]] == [("c", "t"), ("ddl", "t")]
    assert len({tuple(row["seq"].values()) for row in rows}) == len(rows)


def test_dropped_database_gives_rows_for_tables_of_unknown_schema(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A table with unknown columns loses its rows, too."""
    database = table.partition(".")[0]
    query = Query(any_server, f"{database}.*", payload="json", operations="ddl").start()
    queries.append(query)
    unknown = (
        # MySQL 9 does not have the mode NO_TABLE_OPTIONS.
        [
            "CREATE TEMPORARY TABLE w LIKE u",
            "CREATE TABLE lost LIKE w",
            "CREATE TABLE gone LIKE w",
        ]
        if any_server.is_mysql9()
        else [
            "SET sql_mode = 'NO_TABLE_OPTIONS'",
            "CREATE TABLE lost SELECT * FROM u",
            "CREATE TABLE gone SELECT * FROM u",
        ]
    )
    any_server.execute(
        "CREATE TABLE u (v VARCHAR(9)) DEFAULT CHARSET latin1",
        *unknown,
        "DROP TABLE gone",
        f"DROP DATABASE {database}",
        database=database,
    )
    rows = query.rows()
    assert sorted(row["table"] for row in rows) == ["gone", "lost", "t", "u"]
    assert len({tuple(row["seq"].values()) for row in rows}) == len(rows)
    any_server.execute(f"CREATE DATABASE {database}")
