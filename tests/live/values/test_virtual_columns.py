"""Generated columns on a real server: their DDL, and their values in the binlog."""

from __future__ import annotations

import json
from random import Random

import pytest

from helpers.logs.live_log import client_of, log_rows, new_database, schemas_of, selected
from helpers.replay import Replay
from helpers.schemas.tracker_harness import Follower
from helpers.servers import Server
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext

CREATE = """
    CREATE TABLE t (
        id INT PRIMARY KEY, u INT, a INT, s VARCHAR(60), p TEXT,
        vi INT AS (a + 1) VIRTUAL, vv VARCHAR(80) AS (CONCAT(s, '!')) VIRTUAL,
        vt TEXT AS (REPEAT(CHAR(64 + a % 60 USING utf8mb4), a % 40)), vb BLOB AS (CONCAT(s, 'b')),
        vg POINT GENERATED ALWAYS AS (POINT(a, id)) VIRTUAL, st TEXT AS (CONCAT(s, '.')) STORED,
        x TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, UNIQUE KEY (u)
    )
"""
DDL = [
    CREATE,
    "CREATE TABLE alike LIKE t",
    "ALTER TABLE t ADD n1 MEDIUMTEXT AS (s) AFTER a, ADD n2 LONGBLOB AS (s) STORED, ADD n3 BLOB",
    "ALTER TABLE t MODIFY vt LONGTEXT AS (CONCAT(s, 'long')) VIRTUAL",
    "ALTER TABLE t CHANGE st kept TEXT AS (CONCAT(s, '.')) STORED COMMENT 'VIRTUAL'",
    "ALTER TABLE t DROP n1, ADD n1 TEXT",
    "ALTER TABLE alike CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE alike RENAME TO renamed, ADD COLUMN last_one TEXT AS (p)",
    "RENAME TABLE renamed TO alike, t TO other",
]
CHANGES = ["ins", "ins", "upd", "all", "odku", "replace", "del", "join", "null"]


@pytest.fixture
def generating(any_server: Server) -> Server:
    """Return a server that has generated columns."""
    with client_of(any_server) as client:
        context = SqlContext.of(0, client.server_version)
    if not context.mariadb and context.server_version < 50706:
        pytest.skip("MySQL has generated columns from 5.7.6 on")
    return any_server


def test_generated_columns_tracked_from_ddl_equal_those_of_the_server(
    generating: Server, any_database: str
) -> None:
    with Follower.of(generating, any_database) as follower:
        for statement in DDL:
            with generating.connect(database=any_database) as connection:
                connection.cursor().execute(statement)
            follower.catch_up()
            shown = follower.from_server()
            assert {name: follower.now(name) for name in shown} == shown
        virtual = {
            name: {column.name for column in schema.columns if column.virtual}
            for name, schema in shown.items()
        }
    own = {"vi", "vv", "vt", "vb", "vg"}
    mysql = {"other": own, "alike": own | {"last_one"}}
    assert virtual == ({name: set() for name in mysql} if is_mariadb(generating) else mysql)


@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
@pytest.mark.parametrize("triggers", [False, True], ids=["no trigger", "triggers"])
def test_replayed_changes_of_generated_columns_equal_select(
    generating: Server, any_database: str, triggers: bool, engine: str
) -> None:
    """Before images are compared, too, except for the columns that are named as missing."""
    if "11.8" in generating.version():
        pytest.skip("it logs generated columns of inserted rows only: see the last test")
    with generating.connect(database=any_database) as connection:
        cursor = connection.cursor()
        is_mysql = not is_mariadb(generating)
        cursor.execute(f"{CREATE} ENGINE={engine}")
        if is_mysql:
            cursor.execute("ALTER TABLE t ADD vj JSON AS (JSON_OBJECT('a', a, 's', s))")
        cursor.execute("CREATE TABLE o (id INT PRIMARY KEY, d INT)")
        cursor.execute("INSERT INTO o VALUES (1, 5), (2, 6), (3, 7)")
        if triggers:
            for when in ("AFTER INSERT", "AFTER UPDATE", "BEFORE DELETE"):
                name = when.replace(" ", "_")
                cursor.execute(f"CREATE TRIGGER {name} {when} ON t FOR EACH ROW SET @seen = 1")
        start = generating.position()
        random = Random(200)
        # A MyISAM table's REPLACE writes other values into after images, too.
        kinds = [kind for kind in CHANGES if engine == "InnoDB" or kind != "replace"]
        for _ in range(200):
            cursor.execute(change(random, random.choice(kinds)))
    schemas = [each for each in schemas_of(generating, any_database) if each.table == "t"]
    rows = log_rows(generating, start, any_database, schemas)
    replay = Replay(schemas)
    replay.apply(rows)
    (shown,) = selected(generating, *schemas)
    replay.assert_equals(any_database, "t", shown)
    found = {tuple(row["source"]["missing"] or ()) for row in rows if row["op"] == "u"}
    doubtful = ("before.vt", "before.vb", "before.vg", "before.vj")
    assert found == {doubtful if is_mysql else ()}


def is_mariadb(server: Server) -> bool:
    with client_of(server) as client:
        return client.is_mariadb


def change(random: Random, kind: str) -> str:
    row, unique, a = random.randrange(1, 7), random.randrange(1, 7), random.randrange(1, 150)
    text = "".join(random.choice("abcdeé") for _ in range(random.randrange(30)))
    values = f"(id, u, a, s, p) VALUES ({row}, {unique}, {a}, '{text}', 'p{text}')"
    statements = {
        "ins": f"INSERT IGNORE INTO t {values}",
        "upd": f"UPDATE t SET a = {a}, s = '{text}' WHERE id = {row}",
        "all": f"UPDATE t SET a = a + {random.randrange(1, 9)}",
        "odku": f"INSERT INTO t {values} ON DUPLICATE KEY UPDATE a = a + 1, s = '{text}'",
        "replace": f"REPLACE INTO t {values}",
        "del": f"DELETE FROM t WHERE id = {row}",
        "join": "UPDATE t JOIN o ON t.id % 4 = o.id SET t.a = t.a + o.d, t.p = 'j'",
        "null": f"UPDATE t SET s = NULL WHERE id = {row}",
    }
    return statements[kind]


def test_mariadb_11_logs_generated_columns_of_inserted_rows_only(mariadb11: Server) -> None:
    """UPDATE and DELETE leave them out, though binlog_row_image is FULL."""
    with new_database(mariadb11, "generated") as database:
        start = mariadb11.position()
        mariadb11.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL,"
            " s INT AS (a + 2) STORED)",
            "INSERT INTO t (id, a) VALUES (1, 10)",
            "UPDATE t SET a = 11",
            "DELETE FROM t",
            database=database,
        )
        rows = log_rows(mariadb11, start, database, schemas_of(mariadb11, database))
    missing = [(row["op"], row["source"]["missing"]) for row in rows]
    assert missing == [
        ("c", None),
        ("u", ["before.v", "before.s", "after.v", "after.s"]),
        ("d", ["before.v", "before.s"]),
    ]
    assert json.loads(rows[0]["after"]) == {"id": 1, "a": 10, "v": 11, "s": 12}
