"""``flashback`` on live servers: the changes that it undoes, its window and its output."""

from __future__ import annotations

import json

import pymysql
import pytest

from helpers.servers import Server
from helpers.tools.flashbacks import CREATE, PARENT_AND_CHILD, Flashbacks, every_server_fixture
from pyspark_mysqlbinlog.connector.flashback.application import apply_plan
from pyspark_mysqlbinlog.connector.flashback.plan import FlashbackPlan
from pyspark_mysqlbinlog.connector.flashback.window import Window
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.options.values import FilePosition, Latest
from pyspark_mysqlbinlog.errors import UndoError

pytestmark = pytest.mark.one_server


# --- changes that are undone: (tables, changes)
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "an updated row keeps its ON UPDATE CURRENT_TIMESTAMP": (
        (
            (
                "CREATE TABLE t (id INT PRIMARY KEY, v INT,"
                " at TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
                " d DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
            ),
            "INSERT INTO t VALUES (1, 1, '2001-01-01', '2001-01-01'), (2, 2, '0000-00-00', NULL)",
        ),
        (
            "UPDATE t SET v = 3",
            # These UPDATEs keep the times; the undo would change them if it did not set them.
            "UPDATE t SET v = 4, at = at, d = d",
            "UPDATE t SET v = v + 1, at = '2002-02-02', d = '2002-02-02' WHERE id = 1",
        ),
    ),
    "a zero stays a zero in an AUTO_INCREMENT column": (
        (*CREATE, "INSERT INTO t VALUES (0, 'zero', 0)"),
        ("DELETE FROM t", "INSERT INTO t VALUES (0, 'z', 1), (-5, 'm', 2)"),
    ),
    "keys that changed places, in one statement": (
        CREATE,
        (
            "UPDATE t SET id = id + 1 ORDER BY id DESC",
            "UPDATE t SET id = -id",
            "UPDATE t SET id = 7 WHERE v = 'two'",
            "REPLACE INTO t VALUES (7, 'other', NULL)",
            "INSERT INTO t VALUES (7, 'x', 1) ON DUPLICATE KEY UPDATE n = 99",
        ),
    ),
    "copies of a row without a key": (
        (
            "CREATE TABLE t (a VARCHAR(9), b DOUBLE) CHARSET latin1",
            (
                "INSERT INTO t VALUES ('a', 1), ('a', 1), ('A', 1), ('a ', 1), (NULL, NULL),"
                " (NULL, NULL), ('z', -0e0), ('z', 0e0)"
            ),
        ),
        (
            "DELETE FROM t WHERE BINARY a = 'a' LIMIT 1",
            "UPDATE t SET b = 2 WHERE a IS NULL LIMIT 1",
            "UPDATE t SET a = 'A' WHERE BINARY a = 'a'",
            "DELETE FROM t WHERE a = 'a'",
            "INSERT INTO t VALUES ('b', 3), ('b', 3)",
            "UPDATE t SET b = 1 WHERE a = 'z' AND LEFT(CONCAT(b), 1) = '-'",
        ),
    ),
    "an index on a text is no reason to take an equal one": (
        (
            "CREATE TABLE t (a VARCHAR(9), KEY (a)) CHARSET latin1",
            "INSERT INTO t VALUES ('a'), ('A'), ('a ')",
        ),
        ("DELETE FROM t WHERE BINARY a = 'A'", "UPDATE t SET a = 'b' WHERE BINARY a = 'a '"),
    ),
    "a unique key instead of a primary key": (
        (
            "CREATE TABLE t (a VARCHAR(9) NOT NULL, b INT, UNIQUE (a)) CHARSET latin1",
            "INSERT INTO t VALUES ('a', 1), ('b', 1)",
        ),
        ("UPDATE t SET a = 'A' WHERE a = 'a'", "UPDATE t SET b = 2", "DELETE FROM t WHERE a = 'b'"),
    ),
    "parents before children": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
            "INSERT INTO p VALUES (1), (2)",
            "INSERT INTO c VALUES (1, 1), (2, 2)",
        ),
        (
            "INSERT INTO p VALUES (3)",
            "INSERT INTO c VALUES (3, 3)",
            "DELETE FROM c WHERE id = 1",
            "DELETE FROM p WHERE id = 1",
            "UPDATE c SET p = 3",
            "DELETE FROM p WHERE id = 2",
        ),
    ),
    "a parent with cascades that lost no child": (
        PARENT_AND_CHILD,
        (
            "INSERT INTO p VALUES (2, 2)",
            "UPDATE p SET v = 3",
            "INSERT INTO c VALUES (1, 1), (2, 2)",
        ),
    ),
    "rows that were rolled back are not undone": (
        CREATE,
        (
            "BEGIN",
            "INSERT INTO t VALUES (10, 'kept', 1)",
            "SAVEPOINT s",
            "INSERT INTO t VALUES (11, 'rolled back', 1)",
            "CREATE TEMPORARY TABLE x (i INT)",
            "DROP TEMPORARY TABLE x",
            "ROLLBACK TO s",
            "UPDATE t SET v = 'u' WHERE id = 10",
            "COMMIT",
            "BEGIN",
            "DELETE FROM t",
            "ROLLBACK",
        ),
    ),
    "only XA transactions that were committed are undone": (
        CREATE,
        (
            "XA START 'a'",
            "UPDATE t SET v = 'a' WHERE id = 1",
            "XA END 'a'",
            "XA PREPARE 'a'",
            "XA COMMIT 'a'",
            "XA START 'b'",
            "DELETE FROM t",
            "XA END 'b'",
            "XA PREPARE 'b'",
            "XA ROLLBACK 'b'",
            "UPDATE t SET n = n + 1",
        ),
    ),
    "names with quotes": (
        (
            "CREATE TABLE t (`a``b` INT PRIMARY KEY, `%s '\"` VARCHAR(9)) CHARSET utf8mb4",
            "INSERT INTO t VALUES (1, '%s'), (2, '''')",
        ),
        ("UPDATE t SET `%s '\"` = '%d'", "DELETE FROM t"),
    ),
}
GENERATED = (
    (
        (
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(20) AS (CONCAT('s', a)) STORED,"
            " v INT AS (a + 1) VIRTUAL, t TEXT AS (CONCAT(a, 'x')) VIRTUAL)"
        ),
        "INSERT INTO t (id, a) VALUES (1, 1), (2, NULL)",
    ),
    ("UPDATE t SET a = 5", "DELETE FROM t WHERE id = 1", "INSERT INTO t (id, a) VALUES (3, 3)"),
)


@pytest.mark.parametrize("case", CASES)
def test_flashback_restores_the_rows_before_the_changes(flashbacks: Flashbacks, case: str) -> None:
    create, changes = CASES[case]
    flashbacks.execute(*create)
    before = flashbacks.shown()
    flashbacks.begin()
    flashbacks.execute(*changes)
    assert flashbacks.shown() != before
    flashbacks.undo_and_check()
    assert flashbacks.shown() == before


# MySQL 5.6 has no generated columns.
@pytest.mark.parametrize("flashbacks", every_server_fixture()[1:], indirect=True)
def test_flashback_restores_rows_with_generated_columns(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*GENERATED[0])
    before = flashbacks.shown()
    flashbacks.begin()
    flashbacks.execute(*GENERATED[1])
    flashbacks.undo_and_check()
    assert flashbacks.shown() == before


def test_flashback_restores_invisible_and_default_expression_columns(mysql9: Server) -> None:
    with Flashbacks.on(mysql9, "flashback_invisible") as flashbacks:
        flashbacks.execute(
            "SET SESSION sql_generate_invisible_primary_key = 1",
            "CREATE TABLE t (a INT, b CHAR(36) DEFAULT (UUID()), c INT DEFAULT (1 + 1) INVISIBLE,"
            " d TIMESTAMP DEFAULT CURRENT_TIMESTAMP INVISIBLE)",
            "INSERT INTO t (a, b, c, d) VALUES (1, 'x', 7, '2001-01-01'), (2, 'y', NULL, NULL)",
        )
        before = flashbacks.shown()
        flashbacks.begin()
        flashbacks.execute("UPDATE t SET c = 9, a = a + 1", "DELETE FROM t")
        flashbacks.undo_and_check()
        assert flashbacks.shown() == before


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("mysql9", "SET SESSION binlog_transaction_compression = 1"),
        ("mariadb", "SET GLOBAL log_bin_compress = 1, log_bin_compress_min_len = 10"),
    ],
)
def test_flashback_undoes_compressed_changes(
    request: pytest.FixtureRequest, name: str, setting: str
) -> None:
    server: Server = request.getfixturevalue(name)
    with Flashbacks.on(server, "flashback_compressed") as flashbacks:
        flashbacks.execute(*CREATE)
        before = flashbacks.shown()
        flashbacks.begin()
        try:
            flashbacks.execute(
                setting, "BEGIN", "UPDATE t SET v = REPEAT('a', 20)", "DELETE FROM t", "COMMIT"
            )
        finally:
            if server.is_mariadb:
                server.execute("SET GLOBAL log_bin_compress = DEFAULT")
        flashbacks.undo_and_check()
        assert flashbacks.shown() == before


def test_trigger_created_before_the_confirmation_stops_the_flashback(
    flashbacks: Flashbacks,
) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("DELETE FROM t")
    options = parse_options(flashbacks.server.options(tables=f"{flashbacks.database}.t"))
    window = Window(FilePosition(*flashbacks.start), Latest())
    with FlashbackPlan.make(options, window) as plan:
        flashbacks.execute("CREATE TRIGGER late BEFORE INSERT ON t FOR EACH ROW SET NEW.n = 0")
        with pytest.raises(UndoError, match="have changed since the binlog was read"):
            apply_plan(options.server_settings(), plan)
    assert flashbacks.execute("SELECT COUNT(*) FROM t") == [(0,)]


def test_flashback_of_a_flashback_restores_the_changes(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'u'", "DELETE FROM t WHERE id = 2")
    after = flashbacks.shown()
    first = flashbacks.start
    flashbacks.begin()
    middle = flashbacks.since
    shown = flashbacks.run(
        "--since", f"{first[0]}:{first[1]}", "--until", middle, "--apply", "--yes"
    )
    assert shown.exit_code == 0, shown.output
    flashbacks.undo()
    assert flashbacks.shown() == after


# --- the window


def test_flashback_undoes_only_changes_in_the_window(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE, "UPDATE t SET v = 'before' WHERE id = 1")
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'in' WHERE id = 2")
    until = flashbacks.server.position()
    flashbacks.execute("UPDATE t SET v = 'after' WHERE id = 3")
    flashbacks.undo("--until", f"{until[0]}:{until[1]}")
    rows = flashbacks.execute("SELECT id, v FROM t ORDER BY id")
    assert rows == [(1, "before"), (2, "two"), (3, "after")]


def test_flashback_window_of_times_selects_whole_transactions(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.server.rotate()
    for second, name in enumerate(("a", "b", "c")):
        flashbacks.execute(
            f"SET timestamp = {2_000_000_000 + second}", f"UPDATE t SET v = '{name}' WHERE id = 1"
        )
    *statements, numbers = flashbacks.statements(
        "--since", "2033-05-18T03:33:21", "--until", "2033-05-18T03:33:22"
    )
    assert [each["undoes"]["time"] for each in statements] == ["2033-05-18T03:33:21Z"]
    assert numbers["changed_since_count"] == 1


def test_flashback_undoes_only_transactions_of_the_given_gtids(
    mysql9: Server, mariadb: Server
) -> None:
    for server in (mysql9, mariadb):
        with Flashbacks.on(server, "flashback_gtids") as flashbacks:
            flashbacks.execute(*CREATE)
            flashbacks.begin()
            for key in (1, 2, 3):
                flashbacks.execute(f"UPDATE t SET v = 'new' WHERE id = {key}")
            *statements, _ = flashbacks.statements("--since", flashbacks.since)
            gtids = [each["undoes"]["gtid"] for each in statements]
            assert len(set(gtids)) == 3
            shown = flashbacks.run("--gtids", gtids[1], "--apply", "--yes")
            assert shown.exit_code == 0, shown.output
            rows = flashbacks.execute("SELECT id, v FROM t ORDER BY id")
            assert rows == [(1, "new"), (2, "two"), (3, "new")]


def test_flashback_window_ending_inside_a_transaction_is_rejected(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("BEGIN", "DELETE FROM t LIMIT 1", "DELETE FROM t LIMIT 1", "COMMIT")
    statements = flashbacks.statements("--since", flashbacks.since)
    undoes = statements[0]["undoes"]
    until = f"{undoes['file']}:{undoes['pos']}"
    shown = flashbacks.run("--since", flashbacks.since, "--until", until)
    assert shown.exit_code == 1
    assert "inside of a transaction" in shown.output


# --- the output


def test_flashback_json_lists_statements_newest_first_and_then_counts(
    flashbacks: Flashbacks,
) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'ü' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    first, second, numbers = flashbacks.statements("--since", flashbacks.since)
    name = f"`{flashbacks.database}`.`t`"
    assert (first["operation"], second["operation"]) == ("insert", "update")
    assert first["sql"] == f"INSERT INTO {name} (`id`, `v`, `n`) VALUES (2, 'two', 2)"
    assert second["sql"] == (
        f"UPDATE {name} SET `v` = 'one' WHERE `id` = 1 AND CAST(`v` AS BINARY) = x'c3bc' AND"
        " `n` = 1"
    )
    assert numbers["tables"] == {f"{flashbacks.database}.t": {"update": 1, "insert": 1}}
    assert (numbers["statements"], numbers["applied"]) == (2, False)


def test_flashback_script_undoes_everything_or_nothing(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    before = flashbacks.shown()
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'it''s', n = NULL", "DELETE FROM t WHERE id = 2")
    script = flashbacks.run("--since", flashbacks.since).stdout
    after = flashbacks.shown()
    flashbacks.execute("UPDATE t SET n = 77 WHERE id = 1")
    with pytest.raises(pymysql.err.MySQLError, match="more than 1 row"):
        run_script(flashbacks, script)
    assert flashbacks.execute("SELECT COUNT(*) FROM t WHERE v = 'it''s'") == [(2,)]
    flashbacks.execute("UPDATE t SET n = NULL WHERE id = 1")
    assert flashbacks.shown() == after
    run_script(flashbacks, script)
    assert flashbacks.shown() == before


def run_script(flashbacks: Flashbacks, script: str) -> None:
    """Run the script as the mysql client does, line by line in one session."""
    with flashbacks.server.connect() as connection, connection.cursor() as cursor:
        for line in script.splitlines():
            if not line.startswith("--"):
                assert line.endswith(";")
                cursor.execute(line[:-1])


def test_flashback_dry_run_changes_nothing(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("DELETE FROM t")
    after = flashbacks.shown()
    numbers = flashbacks.run("--since", flashbacks.since, "--dry-run")
    assert (numbers.exit_code, numbers.stdout) == (0, f"{flashbacks.database}.t: 3 inserts\n")
    position = flashbacks.server.position()
    tried = flashbacks.run("--since", flashbacks.since, "--apply", "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert "rolled back" in tried.stdout
    assert (flashbacks.shown(), flashbacks.server.position()) == (after, position)


def test_nothing_is_applied_without_a_confirmation(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    before = flashbacks.shown()
    flashbacks.begin()
    flashbacks.execute("DELETE FROM t")
    declined = flashbacks.run("--since", flashbacks.since, "--apply", answer="n\n")
    assert declined.exit_code == 1
    assert flashbacks.execute("SELECT COUNT(*) FROM t") == [(0,)]
    confirmed = flashbacks.run("--since", flashbacks.since, "--apply", answer="y\n")
    assert confirmed.exit_code == 0, confirmed.output
    assert "t: 3 inserts" in confirmed.stdout
    assert flashbacks.shown() == before


def test_flashback_window_without_changes_has_nothing_to_undo(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    for more in ([], ["--apply", "--yes"]):
        shown = flashbacks.run("--since", flashbacks.since, *more)
        assert shown.exit_code == 0, shown.output
        assert "no change of these tables" in shown.stdout


def test_flashback_json_reports_that_it_was_applied(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("DELETE FROM t")
    shown = flashbacks.run("--since", flashbacks.since, "--apply", "--yes", "--json")
    assert shown.exit_code == 0, shown.output
    numbers = json.loads(shown.stdout)
    assert (numbers["applied"], numbers["statements"]) == (True, 3)
