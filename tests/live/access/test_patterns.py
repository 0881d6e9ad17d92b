"""Patterns that match no table, and accounts that cannot see the tables of a pattern."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import Spark, ids, insert
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.server.warn_once import forget_warnings
from pyspark_mysqlbinlog.errors import AccessDeniedError

USER = "reader_patterns"
Account = Callable[..., dict[str, str]]


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Forget which warnings have been logged, as in a new process."""
    forget_warnings()


@pytest.fixture
def database(any_server: Server, any_database: str) -> str:
    any_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=any_database)
    return any_database


@pytest.fixture
def account(any_server: Server, database: str) -> Iterator[Account]:
    """``account("SELECT ON …")`` returns the login options of a new user with these grants."""
    any_server.execute(f"CREATE USER {USER}@'%' IDENTIFIED BY 'secret'")

    def grant(*grants: str) -> dict[str, str]:
        for each in ("REPLICATION SLAVE, REPLICATION CLIENT ON *.*", *grants):
            any_server.execute(f"GRANT {each} TO {USER}@'%'", database=database)
        return {"user": USER, "password": "secret"}

    yield grant
    any_server.execute(f"DROP USER {USER}@'%'")


def _refused(stream: Spark) -> str:
    with pytest.raises(AccessDeniedError) as caught:
        stream.initial()
    return caught.value.message


def test_pattern_that_matches_no_table_gives_a_warning(
    any_server: Server, database: str, new_stream: NewStream, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
        assert new_stream(any_server, f"{database}.*").initial()["file"]
        assert caplog.records == []
        assert new_stream(any_server, f"{database}.*,x{database}.*").initial()["file"]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"option tables: x{database}.* matches no table now")


def test_pattern_without_select_grant_raises_access_denied_error(
    any_server: Server, database: str, new_stream: NewStream, account: Account
) -> None:
    reader = account()
    message = _refused(new_stream(any_server, f"{database}.*", **reader))
    assert message.endswith(f"GRANT SELECT ON `{database}`.* to this account")
    assert "GRANT SELECT ON *.* to this account" in _refused(
        new_stream(any_server, f"{database[:-1]}?.*", **reader)
    )
    # If column names are not read from the server, no SELECT is needed.
    for more in ({"onUnknownSchema": "positional"}, {"startingOffset": "earliest"}):
        tables = f"{database}.*"
        assert new_stream(any_server, tables, **(reader | more)).initial()["file"]


def test_all_tables_with_select_on_one_database_only_is_rejected(
    any_server: Server, database: str, new_stream: NewStream, account: Account
) -> None:
    reader = account(f"SELECT ON `{database}`.*")
    stream = new_stream(any_server, f"{database}.*", **reader)
    start = stream.latest(stream.initial())
    insert(any_server, f"{database}.t", 5)
    assert ids(stream.rows(start, stream.next_batch(start))) == [5]
    assert "GRANT SELECT ON *.* to this account" in _refused(new_stream(any_server, None, **reader))
    assert new_stream(any_server, None, **(reader | {"excludeTables": "other.*"})).initial()["file"]


def test_pattern_beyond_the_granted_tables_gives_a_warning(
    any_server: Server,
    database: str,
    new_stream: NewStream,
    account: Account,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = account("SELECT ON t")
    with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
        assert new_stream(any_server, f"{database}.*", **reader).initial()["file"]
    assert "may capture tables that the account cannot see" in caplog.text


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL", "NO_LOG"])
def test_mariadb_pattern_without_select_grant_is_rejected_for_any_metadata(
    mariadb: Server, new_stream: NewStream, metadata: str
) -> None:
    """FULL is not enough: rows of a system-versioned table look like those of any other."""
    (before,) = mariadb.execute("SELECT @@GLOBAL.binlog_row_metadata")[0]
    mariadb.execute(
        "CREATE DATABASE described",
        "CREATE TABLE described.t (id INT PRIMARY KEY, v VARCHAR(9))",
        f"CREATE USER {USER}@'%' IDENTIFIED BY 'secret'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}@'%'",
        f"SET GLOBAL binlog_row_metadata = {metadata}",
    )
    reader = {"user": USER, "password": "secret"}
    try:
        stream = new_stream(mariadb, "described.*", **reader)
        assert "GRANT SELECT ON `described`.* to this account" in _refused(stream)
    finally:
        mariadb.execute(
            f"SET GLOBAL binlog_row_metadata = {before}",
            "DROP DATABASE described",
            f"DROP USER {USER}@'%'",
        )


# An account that can see the table only through a role, which is not active.
BY_ROLE = (
    "CREATE DATABASE by_role",
    "CREATE TABLE by_role.t (id INT PRIMARY KEY)",
    f"CREATE USER {USER}@'%' IDENTIFIED BY 'secret'",
    f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}@'%'",
    "CREATE ROLE role_patterns",
    "GRANT SELECT ON by_role.* TO role_patterns",
    f"GRANT role_patterns TO {USER}@'%'",
)


def test_select_by_inactive_role_or_with_partial_revoke_is_rejected_on_mysql(
    mysql9: Server, new_stream: NewStream, caplog: pytest.LogCaptureFixture
) -> None:
    """As in information_schema, a role that is not active grants nothing."""
    mysql9.execute(
        "SET GLOBAL partial_revokes = ON",
        *BY_ROLE,
    )
    reader = {"user": USER, "password": "secret"}
    try:
        assert "`by_role`.*" in _refused(new_stream(mysql9, "by_role.*", **reader))
        mysql9.execute(f"SET DEFAULT ROLE ALL TO {USER}@'%'")
        with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
            assert new_stream(mysql9, "by_role.*", **reader).initial()["file"]
        assert caplog.records == []
        mysql9.execute(
            f"SET DEFAULT ROLE NONE TO {USER}@'%'",
            f"GRANT SELECT ON *.* TO {USER}@'%'",
            f"REVOKE SELECT ON by_role.* FROM {USER}@'%'",
        )
        assert "`by_role`.*" in _refused(new_stream(mysql9, "by_role.*", **reader))
        mysql9.execute(
            f"REVOKE SELECT ON *.* FROM {USER}@'%'", f"GRANT SELECT ON `by_rol_`.* TO {USER}@'%'"
        )
        assert "`by_role`.*" in _refused(new_stream(mysql9, "by_role.*", **reader))
    finally:
        mysql9.execute(
            "DROP DATABASE by_role",
            f"DROP USER {USER}@'%'",
            "DROP ROLE role_patterns",
            "SET GLOBAL partial_revokes = OFF",
        )


def test_select_by_role_counts_only_if_the_role_is_active_on_mariadb(
    mariadb: Server, new_stream: NewStream, caplog: pytest.LogCaptureFixture
) -> None:
    """As in information_schema, a role's grants count only while the role is set."""
    mariadb.execute(
        *BY_ROLE,
    )
    reader = {"user": USER, "password": "secret"}
    try:
        assert "`by_role`.*" in _refused(new_stream(mariadb, "by_role.*", **reader))
        mariadb.execute(f"SET DEFAULT ROLE role_patterns FOR {USER}@'%'")
        with caplog.at_level(logging.WARNING, "pyspark_mysqlbinlog"):
            assert new_stream(mariadb, "by_role.*", **reader).initial()["file"]
        assert caplog.records == []
    finally:
        mariadb.execute("DROP DATABASE by_role", f"DROP USER {USER}@'%'", "DROP ROLE role_patterns")
