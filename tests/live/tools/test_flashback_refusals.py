"""``flashback`` on live servers: rows that changed after the window, and rejected changes."""

from __future__ import annotations

import pytest

from helpers.servers import Server
from helpers.tools.flashbacks import (
    CHILD,
    CREATE,
    PARENT_AND_CHILD,
    Flashbacks,
)

pytestmark = pytest.mark.one_server


# --- rows that changed after the window


@pytest.mark.parametrize(
    ("later", "listed"),
    [
        ("UPDATE t SET n = 5 WHERE id = 1", ["id=1: update"]),
        ("DELETE FROM t WHERE id = 1", ["id=1: delete"]),
        ("INSERT INTO t VALUES (2, 'again', 2)", ["id=2: insert"]),
        ("UPDATE t SET id = 2 WHERE id = 3", ["id=3: update"]),
        ("UPDATE t SET v = 'NEW' WHERE id = 1", ["id=1: update"]),
    ],
)
def test_rows_changed_after_the_window_are_listed_and_stop_the_flashback(
    flashbacks: Flashbacks, later: str, listed: list[str]
) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    until = "{}:{}".format(*flashbacks.server.position())
    flashbacks.execute(later)
    after = flashbacks.shown()
    window = ["--since", flashbacks.since, "--until", until]
    shown = flashbacks.run(*window)
    assert shown.exit_code == 3
    assert [text for text in listed if text in shown.stdout] == listed
    numbers = flashbacks.statements(*window)[-1]
    assert numbers["changed_since_count"] == len(listed)
    applied = flashbacks.run(*window, "--apply", "--yes")
    assert applied.exit_code == 3
    assert "RowChangedError" in applied.output
    assert flashbacks.shown() == after


def test_row_changed_back_after_the_window_is_undone(flashbacks: Flashbacks) -> None:
    flashbacks.execute(*CREATE)
    before = flashbacks.shown()
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 'new' WHERE id = 1")
    until = "{}:{}".format(*flashbacks.server.position())
    flashbacks.execute("UPDATE t SET v = 'x' WHERE id = 1", "UPDATE t SET v = 'new' WHERE id = 1")
    flashbacks.undo("--until", until)
    assert flashbacks.shown() == before


def test_key_changed_in_case_after_the_window_stops_the_flashback(flashbacks: Flashbacks) -> None:
    flashbacks.execute(
        "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v INT) CHARSET latin1",
        "INSERT INTO t VALUES ('a', 1)",
    )
    flashbacks.begin()
    flashbacks.execute("UPDATE t SET v = 2")
    until = "{}:{}".format(*flashbacks.server.position())
    flashbacks.execute("UPDATE t SET k = 'A'")
    window = ["--since", flashbacks.since, "--until", until]
    applied = flashbacks.run(*window, "--apply", "--yes")
    assert applied.exit_code == 3
    assert flashbacks.execute("SELECT k, v FROM t") == [("A", 2)]


def test_children_added_after_the_window_are_not_deleted_by_a_cascade(
    flashbacks: Flashbacks,
) -> None:
    flashbacks.execute(*PARENT_AND_CHILD)
    flashbacks.begin()
    flashbacks.execute("INSERT INTO p VALUES (2, 2)")
    until = "{}:{}".format(*flashbacks.server.position())
    flashbacks.execute("INSERT INTO c VALUES (1, 2)")
    window = ["--since", flashbacks.since, "--until", until]
    applied = flashbacks.run(*window, "--apply", "--yes")
    assert applied.exit_code == 3, applied.output
    assert flashbacks.execute("SELECT COUNT(*) FROM c") == [(1,)]


# --- changes that are rejected: (tables, changes, text of the error)
REFUSED: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "DDL": (CREATE, ("DELETE FROM t", "ALTER TABLE t ADD c INT"), "ALTER TABLE t ADD c INT"),
    "DDL before": (CREATE, ("ALTER TABLE t ADD c INT", "DELETE FROM t"), "in the window"),
    "TRUNCATE": (CREATE, ("TRUNCATE TABLE t",), "TRUNCATE TABLE t"),
    "DROP": (CREATE, ("DELETE FROM t", "DROP TABLE t", CREATE[0]), "DROP TABLE"),
    "RENAME": (CREATE, ("DELETE FROM t", "RENAME TABLE t TO u"), "RENAME TABLE"),
    "statement format": (
        CREATE,
        ("SET SESSION binlog_format = 'STATEMENT'", "DELETE FROM t"),
        "StatementFormatError",
    ),
    "minimal": (
        CREATE,
        ("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE t SET v = 'x'"),
        "lacks",
    ),
    "noblob": (
        (
            "CREATE TABLE t (id INT PRIMARY KEY, v INT, b BLOB)",
            "INSERT INTO t VALUES (1, 1, 'x')",
        ),
        ("SET SESSION binlog_row_image = 'NOBLOB'", "UPDATE t SET v = 2"),
        "lacks b",
    ),
    "trigger": (
        (
            *CREATE,
            "CREATE TABLE log (id INT)",
            "CREATE TRIGGER watch AFTER UPDATE ON t FOR EACH ROW INSERT INTO log VALUES (1)",
        ),
        ("UPDATE t SET n = 5",),
        "watch",
    ),
    "cascade": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            CHILD.format("gone", "ON DELETE CASCADE"),
            "INSERT INTO p VALUES (1)",
            "INSERT INTO c VALUES (1, 1)",
        ),
        ("DELETE FROM p",),
        "foreign key gone",
    ),
    "cascade of a key": (
        (
            "CREATE TABLE p (id INT PRIMARY KEY)",
            CHILD.format("moved", "ON UPDATE CASCADE"),
            "INSERT INTO p VALUES (1)",
        ),
        ("UPDATE p SET id = 2",),
        "foreign key moved",
    ),
    "no transactions": (
        ("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=MyISAM",),
        ("INSERT INTO t VALUES (1)",),
        "MyISAM has no transactions",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_changes_that_cannot_be_undone_exactly_are_rejected(
    flashbacks: Flashbacks, case: str
) -> None:
    create, changes, text = REFUSED[case]
    flashbacks.execute(*create)
    flashbacks.begin()
    flashbacks.execute(*changes)
    after = flashbacks.shown()
    shown = flashbacks.run("--since", flashbacks.since, "--apply", "--yes")
    assert shown.exit_code == 1, shown.output
    assert text in shown.output
    assert flashbacks.shown() == after


def test_flashback_of_partial_json_updates_is_rejected(mysql9: Server) -> None:
    with Flashbacks.on(mysql9, "flashback_partial") as flashbacks:
        flashbacks.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            "INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('x', 1000), 'b', 1))",
        )
        flashbacks.begin()
        flashbacks.execute(
            "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            "UPDATE t SET j = JSON_SET(j, '$.b', 2)",
        )
        shown = flashbacks.run("--since", flashbacks.since)
        assert (shown.exit_code, "PARTIAL_JSON" in shown.output) == (1, True), shown.output


def test_ddl_before_the_window_or_of_other_tables_does_not_prevent_flashback(
    flashbacks: Flashbacks,
) -> None:
    flashbacks.execute(*CREATE)
    flashbacks.begin()
    flashbacks.execute("DELETE FROM t", "CREATE TABLE other (i INT)", "ALTER TABLE other ADD j INT")
    shown = flashbacks.run(
        "--since", flashbacks.since, "--apply", "--yes", tables=f"{flashbacks.database}.t"
    )
    assert shown.exit_code == 0, shown.output
    assert flashbacks.execute("SELECT COUNT(*) FROM t") == [(3,)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "no window is given"),
        (("--since", "yesterday"), "--since"),
        (("--since", "10m", "--until", "soon"), "--until"),
        (("--since", "10m", "--option", "host=x"), "--option host"),
        (("--gtids", "nonsense"), "--gtids"),
    ],
)
def test_wrong_flashback_argument_is_named_in_the_error(
    flashbacks: Flashbacks, arguments: tuple[str, ...], text: str
) -> None:
    shown = flashbacks.run(*arguments)
    assert (shown.exit_code, text in shown.output) == (2, True), shown.output


def test_missing_flashback_table_is_named_in_the_error(flashbacks: Flashbacks) -> None:
    shown = flashbacks.run("--since", "10m", tables=f"{flashbacks.database}.missing")
    assert (shown.exit_code, "missing" in shown.output) == (1, True)


# All MySQL versions show triggers by the same privilege.
@pytest.mark.parametrize("flashbacks", ["mysql56", "mariadb"], indirect=True)
def test_flashback_without_trigger_grant_is_rejected(flashbacks: Flashbacks) -> None:
    flashbacks.execute(
        *CREATE,
        "CREATE USER 'undoer'@'%' IDENTIFIED BY 'undo'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'undoer'@'%'",
        f"GRANT SELECT ON {flashbacks.database}.* TO 'undoer'@'%'",
    )
    try:
        flashbacks.begin()
        flashbacks.execute("DELETE FROM t")
        account = ["--user", "undoer", "--option", "password=undo"]
        other = [*account, "--option", "sslMode=DISABLED", "--since", flashbacks.since]
        refused = flashbacks.run(*other, password=False)
        assert (refused.exit_code, "GRANT TRIGGER ON" in refused.output) == (1, True)
        flashbacks.execute(f"GRANT TRIGGER ON {flashbacks.database}.t TO 'undoer'@'%'")
        allowed = flashbacks.run(*other, password=False)
        assert (allowed.exit_code, "INSERT INTO" in allowed.stdout) == (0, True)
    finally:
        flashbacks.execute("DROP USER 'undoer'@'%'")
