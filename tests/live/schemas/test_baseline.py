"""Schema histories of a start in the past, with later DDL, against a real server."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Thread

import pytest

from helpers.logs.live_log import new_database
from helpers.mirrors.delayed_commits import HeldBySemiSync
from helpers.servers import Server
from helpers.servers.available import own_kind
from helpers.waiting import patience
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_log, history_of_server
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.tables import TableSchema

DATABASE = "baselines"
ACCOUNT = "baseline"


class Followed:
    """One database on a server, and the history of its tables."""

    def __init__(self, server: Server, client: ReplicaClient, database: str) -> None:
        self.server = server
        self.client = client
        self.database = database
        self.log = ServerLog(server.settings())

    def run(self, *statements: str) -> Position:
        """Run the statements and return the binlog's end after them."""
        self.server.execute(*statements, database=self.database)
        return self.here()

    def here(self) -> Position:
        return current_position(self.client)

    def history(self, start: Position | None) -> SchemaHistory:
        history, end = history_of_server(
            self.client, self.log, start, self.captures, case_sensitive=True
        )
        assert start is None or end >= start
        return history

    def captures(self, database: str, table: str) -> bool:
        return database == self.database

    def columns(self, history: SchemaHistory, position: Position, table: str) -> list[str] | None:
        schema = history.at(position, self.database, table)
        return None if schema is None else [column.name for column in schema.columns]

    def reason(self, history: SchemaHistory, position: Position, table: str) -> str:
        return history.unknown_reason(position, self.database, table)


@pytest.fixture
def followed(live_server: Server, database: str) -> Iterator[Followed]:
    with ReplicaClient.connect(live_server.settings()) as client:
        yield Followed(live_server, client, database)


def test_schema_without_later_ddl_is_valid_from_the_start(followed: Followed) -> None:
    start = followed.run("CREATE TABLE t (id INT PRIMARY KEY, v INT UNSIGNED)")
    followed.run("INSERT INTO t VALUES (1, 2)", "FLUSH BINARY LOGS", "TRUNCATE TABLE t")
    for place in (start, None):
        history = followed.history(place)
        assert list(history.tables()) == [(followed.database, "t")]
        assert followed.columns(history, place or followed.here(), "t") == ["id", "v"]
    schema = followed.history(start).at(start, followed.database, "t")
    assert schema is not None
    assert schema.primary_key == ("id",)
    assert [column.unsigned for column in schema.columns] == [False, True]


def test_table_created_after_start_is_known_from_its_create(followed: Followed) -> None:
    start = followed.here()
    after = followed.run("CREATE TABLE t (id INT)")
    history = followed.history(start)
    assert followed.columns(history, start, "t") is None
    assert followed.columns(history, after, "t") == ["id"]


def test_table_altered_after_start_is_known_only_from_its_alter(followed: Followed) -> None:
    start = followed.run("CREATE TABLE t (id INT)")
    rows = followed.run("INSERT INTO t VALUES (1)")
    after = followed.run("ALTER TABLE t ADD v INT")
    history = followed.history(start)
    assert followed.columns(history, start, "t") is None
    assert followed.columns(history, rows, "t") is None
    assert followed.columns(history, after, "t") == ["id", "v"]


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE t ADD UNIQUE (v)"],
        ["CREATE UNIQUE INDEX v ON t (v)"],
        ["ALTER TABLE t ADD UNIQUE v (v)", "ALTER TABLE t ENGINE=InnoDB"],
        ["ALTER TABLE t ADD UNIQUE v (id)", "ALTER TABLE t DROP INDEX v, ADD UNIQUE v (v)"],
    ],
)
def test_unique_key_added_after_start_is_known_only_from_its_statement(
    followed: Followed, statements: list[str]
) -> None:
    """The columns are known from the start."""
    start = followed.run("CREATE TABLE t (id INT, v INT NOT NULL)")
    rows = followed.run("INSERT INTO t VALUES (1, 1), (2, 1)", "DELETE FROM t WHERE id = 2")
    after = followed.run(*statements)
    later = followed.run("INSERT INTO t VALUES (3, 3)")
    history = followed.history(start)
    keys = []
    for place in (start, rows, after, later):
        schema = history.at(place, followed.database, "t")
        assert schema is not None
        assert [column.name for column in schema.columns] == ["id", "v"]
        keys.append(schema.unique_keys)
    assert keys[:2] == [(), ()]
    assert keys[2:] == [(("v", ("v",)),)] * 2


def test_table_created_and_altered_after_start_has_each_version(followed: Followed) -> None:
    start = followed.here()
    created = followed.run("CREATE TABLE t (id INT)")
    altered = followed.run("ALTER TABLE t ADD v INT")
    again = followed.run("INSERT INTO t VALUES (1, 2)", "ALTER TABLE t DROP id")
    history = followed.history(start)
    assert followed.columns(history, created, "t") == ["id"]
    assert followed.columns(history, altered, "t") == ["id", "v"]
    assert followed.columns(history, again, "t") == ["v"]


def test_table_dropped_after_start_is_unknown(followed: Followed) -> None:
    followed.run("CREATE TABLE t (id INT)", "CREATE TABLE stays (id INT)")
    start = followed.here()
    after = followed.run("DROP TABLE t")
    history = followed.history(start)
    assert followed.columns(history, start, "t") is None
    assert followed.columns(history, after, "t") is None
    assert "it was dropped" in followed.reason(history, after, "t")
    assert followed.columns(history, start, "stays") == ["id"]


def test_table_recreated_after_start_is_known_from_its_create(followed: Followed) -> None:
    start = followed.run("CREATE TABLE t (a INT)")
    dropped = followed.run("DROP TABLE t")
    after = followed.run("CREATE TABLE t (b INT, c INT)")
    history = followed.history(start)
    assert followed.columns(history, start, "t") is None
    assert followed.columns(history, dropped, "t") is None
    assert followed.columns(history, after, "t") == ["b", "c"]


def test_swapped_tables_are_known_only_from_the_rename(followed: Followed) -> None:
    """gh-ost's swap: the columns after the RENAME must not be used for rows before it."""
    start = followed.run("CREATE TABLE t (a INT)", "CREATE TABLE _t_gho (a INT, b INT)")
    after = followed.run("RENAME TABLE t TO _t_del, _t_gho TO t")
    history = followed.history(start)
    assert followed.columns(history, start, "t") is None
    assert followed.columns(history, start, "_t_gho") is None
    assert followed.columns(history, after, "t") == ["a", "b"]
    assert followed.columns(history, after, "_t_del") == ["a"]
    assert followed.columns(history, after, "_t_gho") is None


def test_dropped_database_ends_the_schemas_of_its_tables(followed: Followed) -> None:
    start = followed.run("CREATE TABLE t (id INT)")
    name = followed.database
    created = followed.run("CREATE TABLE u (id INT)")
    followed.run(f"DROP DATABASE `{name}`", f"CREATE DATABASE `{name}`")
    after = followed.run(f"CREATE TABLE `{name}`.u (v INT)")
    history = followed.history(start)
    assert followed.columns(history, created, "u") == ["id"]
    assert followed.columns(history, after, "u") == ["v"]
    assert followed.columns(history, after, "t") is None


def test_create_if_not_exists_without_effect_keeps_columns(followed: Followed) -> None:
    start = followed.here()
    followed.run("CREATE TABLE t (id INT)")
    after = followed.run("CREATE TABLE IF NOT EXISTS t (other INT)")
    history = followed.history(start)
    assert followed.columns(history, after, "t") == ["id"]


def test_schema_history_of_the_binlog_equals_that_of_the_server(followed: Followed) -> None:
    start = followed.here()
    after = followed.run(
        # Otherwise the history of the binlog alone would assume the server's default charset.
        f"ALTER DATABASE `{followed.database}` CHARACTER SET utf8mb4",
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM('a','b'), s VARCHAR(9))",
        "CREATE TABLE u LIKE t",
        "CREATE TABLE gone (id INT)",
        "DROP TABLE gone",
    )
    by_server = followed.history(None)
    by_log = history_of_log(followed.log, start, followed.captures)
    for table in ("t", "u"):
        expected = by_server.at(followed.here(), followed.database, table)
        assert expected is not None
        assert by_log.at(after, followed.database, table) == expected
    assert followed.columns(by_log, after, "gone") is None


def test_constant_ddl_of_uncaptured_tables_does_not_prevent_a_baseline(followed: Followed) -> None:
    """Only DDL of captured tables makes the read of information_schema start over."""
    followed.run("CREATE TABLE t (id INT)", "CREATE TABLE other (id INT)")
    stop = threading.Event()

    def alter() -> None:
        with followed.server.connect(database=followed.database) as connection:
            cursor = connection.cursor()
            while not stop.is_set():
                cursor.execute("ALTER TABLE other COMMENT 'x'")

    altering = threading.Thread(target=alter)
    altering.start()
    try:
        for _ in range(5):
            history, _end = history_of_server(
                followed.client,
                followed.log,
                None,
                lambda database, table: (database, table) == (followed.database, "t"),
                case_sensitive=True,
            )
            assert list(history.tables()) == [(followed.database, "t")]
    finally:
        stop.set()
        altering.join()


def test_ddl_that_changes_no_column_keeps_the_schema_valid(followed: Followed) -> None:
    start = followed.run("CREATE TABLE t (id INT)")
    after = followed.run("ALTER TABLE t COMMENT 'x', ADD INDEX (id)", "CREATE INDEX i ON t (id)")
    history = followed.history(start)
    assert followed.columns(history, start, "t") == ["id"]
    assert followed.columns(history, after, "t") == ["id"]


def test_create_if_not_exists_gives_no_schema_before_a_later_alter(followed: Followed) -> None:
    """The statement may have created nothing, so the columns before the ALTER are unknown."""
    start = followed.run("CREATE TABLE t (id INT)")
    after = followed.run("CREATE TABLE IF NOT EXISTS t (other INT)")
    changed = followed.run("ALTER TABLE t ADD v INT")
    history = followed.history(after)
    assert followed.columns(history, after, "t") is None
    assert followed.columns(history, changed, "t") == ["id", "v"]
    assert followed.columns(followed.history(start), start, "t") is None


def test_baseline_includes_uncaptured_tables_and_database_charset(followed: Followed) -> None:
    """A RENAME can give an uncaptured table of the database a captured name."""
    followed.run("CREATE TABLE t (id INT)", "CREATE TABLE _t_new (id INT, v INT)")
    history, _ = history_of_server(
        followed.client,
        followed.log,
        None,
        lambda database, table: (database, table) == (followed.database, "t"),
        case_sensitive=True,
        uncaptured=True,
    )
    assert followed.columns(history, followed.here(), "_t_new") == ["id", "v"]
    assert history.charset_at(followed.here(), followed.database) is not None


def test_database_charset_is_unknown_before_its_alter_database(followed: Followed) -> None:
    """A table that was created before the ALTER DATABASE is therefore unknown, too."""
    name = followed.database
    start = followed.run(f"ALTER DATABASE `{name}` CHARSET latin1")
    before = followed.run("CREATE TABLE t (s TEXT)", "CREATE TABLE u (id INT)", "DROP TABLE t, u")
    followed.run(f"ALTER DATABASE `{name}` CHARSET utf8", "CREATE TABLE t (s TEXT)")
    after = followed.run("CREATE TABLE u (s TEXT)", "DROP TABLE u")
    history = followed.history(start)
    first = min(position for position, _ in history.versions(name, "t"))
    assert first < before
    assert "character set" in history.unknown_reason(first, name, "t")
    (schema,) = (
        each
        for _, each in history.versions(name, "u")
        if isinstance(each, TableSchema) and each.columns[0].charset
    )
    assert schema.columns[0].charset == "utf8"
    assert history.at(after, name, "t") is not None


def test_labels_beyond_bmp_are_taken_from_the_binlog(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    """information_schema shows ? beyond U+FFFF; labels in the binlog take priority."""
    start = followed.run("SET NAMES utf8mb4")
    create = "CREATE TABLE {} (e ENUM('😀', '?', 'é'), s SET('😀😁', 'a?'), v INT) CHARSET utf8mb4"
    followed.run(create.format("t"), create.format("u"), "ALTER TABLE u ADD w INT, CHANGE e f INT")
    made = followed.run("ALTER TABLE t ADD w INT", "ALTER TABLE t CHANGE s x SET('😀', 'a?')")
    labels = {"e": ("😀", "?", "é"), "x": ("😀", "a?"), "v": (), "w": ()}
    schema = followed.history(start).at(made, followed.database, "t")
    assert isinstance(schema, TableSchema)
    assert {column.name: column.labels for column in schema.columns} == labels
    other = followed.history(start).at(made, followed.database, "u")
    assert isinstance(other, TableSchema)
    assert [column.labels for column in other.columns] == [(), ("😀😁", "a?"), (), ()]
    # Without later DDL, the schema has the server's labels, and a warning reports it.
    shown = followed.history(made).at(made, followed.database, "t")
    assert isinstance(shown, TableSchema)
    assert shown.columns[0].labels == ("?", "?", "é")
    assert "shows a label of column 'e' as '?', and a letter beyond U+FFFF" in caplog.text


def test_database_charset_is_tracked_case_insensitively(request: pytest.FixtureRequest) -> None:
    """The server keeps names in lower case; statements have them as written."""
    request.getfixturevalue(own_kind().name)  # ends the test if it is missing
    with own_kind()(["--lower-case-table-names=1"]) as server:
        server.execute("CREATE DATABASE d CHARSET utf8")
        settings = server.settings()
        with ReplicaClient.connect(settings) as client:
            start = current_position(client)
            server.execute(
                "CREATE TABLE d.T (s TEXT)",
                "DROP TABLE D.t",
                "ALTER DATABASE D CHARSET latin1",
                "CREATE TABLE D.U (s TEXT)",
                "DROP TABLE d.u",
            )
            history, _ = history_of_server(
                client, ServerLog(settings), start, lambda *_: True, case_sensitive=False
            )
        reasons = [history.unknown_reason(at, "d", "t") for at, _ in history.versions("d", "t")]
        assert "character set" in reasons[0]
        (known,) = (each for _, each in history.versions("d", "u") if isinstance(each, TableSchema))
        assert known.columns[0].charset == "latin1"


@pytest.fixture(params=["live_server", "mariadb", "mysql9"])
def held(request: pytest.FixtureRequest) -> Iterator[HeldBySemiSync]:
    """Yield servers with an empty database; DDL can be held after it is in the binlog."""
    server = request.getfixturevalue(request.param)
    if server.version().startswith("5.6"):
        pytest.skip("the MySQL 5.6 of the tests has no semi-synchronous replication")
    with new_database(server, DATABASE), HeldBySemiSync.on(server) as held:
        yield held


class Baseline(Thread):
    """A baseline that is read in its own thread.

    Attributes
    ----------
    tables : the captured tables at the end of the binlog, with their columns.
    """

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self.tables: dict[str, list[str]] | None = None
        self.start()

    def run(self) -> None:
        with ReplicaClient.connect(self._settings) as client:
            history, end = history_of_server(
                client,
                ServerLog(self._settings),
                None,
                lambda database, table: database == DATABASE and table.startswith("t"),
                case_sensitive=True,
                uncaptured=True,
            )
        schemas = (history.at(end, *name) for name in history.tables())
        self.tables = {
            each.table: [column.name for column in each.columns]
            for each in schemas
            if each is not None and each.database == DATABASE and each.table.startswith("t")
        }

    def found(self) -> dict[str, list[str]]:
        self.join(patience(30))
        assert self.tables is not None
        return self.tables


@pytest.mark.parametrize("process", [True, False], ids=["process", "no_process"])
@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("ALTER TABLE {d}.t CHANGE a b INT, CHANGE b a INT", {"t": ["id", "b", "a"]}),
        ("RENAME TABLE {d}.x TO {d}.t2", {"t": ["id", "a", "b"], "t2": ["id"]}),
        ("DROP TABLE {d}.t", {}),
        ("CREATE TABLE {d}.t3 AS SELECT 1 AS c", {"t": ["id", "a", "b"], "t3": ["c"]}),
    ],
    ids=["alter", "rename", "drop", "create_select"],
)
def test_baseline_contains_the_ddl_that_is_logged_and_not_committed(
    held: HeldBySemiSync, ddl: str, expected: dict[str, list[str]], process: bool
) -> None:
    server = held.server
    settings = server.settings(ssl_mode="DISABLED")
    server.execute(
        f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, a INT, b INT)",
        f"CREATE TABLE {DATABASE}.x (id INT PRIMARY KEY)",
    )
    with ExitStack() as stack:
        if not process:
            if server.is_mysql9() and "SELECT" in ddl:
                pytest.skip("only INNODB_TRX, which needs PROCESS, shows it (documented)")
            stack.enter_context(account(server, "SELECT, REPLICATION CLIENT, REPLICATION SLAVE"))
            settings = replace(settings, user=ACCOUNT, password=ACCOUNT)
        with held.committing(ddl.format(d=DATABASE)):
            baseline = Baseline(settings)
            time.sleep(1)
            held.release()
            assert baseline.found() == expected


@contextmanager
def account(server: Server, privileges: str) -> Iterator[None]:
    server.execute(
        f"CREATE USER '{ACCOUNT}'@'%' IDENTIFIED BY '{ACCOUNT}'",
        f"GRANT {privileges} ON *.* TO '{ACCOUNT}'@'%'",
    )
    try:
        yield
    finally:
        server.execute(f"DROP USER '{ACCOUNT}'@'%'")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {d}.t SELECT id + 10 + SLEEP(3) FROM {d}.x",
        "/* app: */ /**/ INSERT/**/INTO {d}.t SELECT id + 10 + SLEEP(3) FROM {d}.x",
        "WITH w AS (SELECT SLEEP(3) s) DELETE FROM {d}.x WHERE id < (SELECT 5 + s FROM w)",
        "ALTER TABLE {d}.t FORCE",
    ],
    ids=["rows", "commented_rows", "with", "alter_waiting_for_rows"],
)
def test_statement_that_has_not_logged_ddl_does_not_delay_a_baseline(
    mysql9: Server, statement: str
) -> None:
    with new_database(mysql9, DATABASE):
        mysql9.execute(
            f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY)",
            f"CREATE TABLE {DATABASE}.x (id INT PRIMARY KEY)",
            f"INSERT INTO {DATABASE}.x VALUES (1), (2)",
        )
        with mysql9.connect(autocommit=False) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {DATABASE}.t VALUES (1)")
            running = Thread(target=mysql9.execute, args=(statement.format(d=DATABASE),))
            running.start()
            time.sleep(0.5)
            baseline = Baseline(mysql9.settings())
            assert baseline.found() == {"t": ["id"]}
            assert running.is_alive()
            connection.rollback()
        running.join()


def test_baselines_during_constant_alter_equal_the_tracked_schemas(followed: Followed) -> None:
    race(followed, BASELINES)


@pytest.mark.slow
def test_many_baselines_during_constant_alter_equal_the_tracked_schemas(followed: Followed) -> None:
    race(followed, 5_000)


BASELINES = 100
# Of one that was tried again several times.
SLOW_SECONDS = 0.5


def race(followed: Followed, baselines: int) -> None:
    """Compare baselines that are read during ALTERs with the schemas that the binlog gives.

    Each ALTER renames the table's only column from cn to cn+1, so the name shows the version.
    """
    followed.run("CREATE TABLE t (c0 INT)", "CREATE TABLE still (id INT)")
    tracker = SchemaTracker(
        followed.history(None), followed.captures, case_sensitive=True, complete=lambda _: True
    )
    # Reading information_schema takes 9 ms on 5.6, 40 ms on 9.7, and many times that on a busy
    # machine: with pauses that did not grow then, no read would be undisturbed.
    pace = 0.05 if followed.server.version().startswith("9.") else 0.01
    start = followed.here()
    stop, altered = threading.Event(), threading.Event()

    def alter() -> None:
        with followed.server.connect(database=followed.database) as connection:
            cursor = connection.cursor()
            number = 0
            while not stop.wait(pace * random.choice((0, 0, 0.1, 1))):
                altered.set()
                cursor.execute(f"ALTER TABLE t CHANGE c{number} c{number + 1} INT")
                number += 1

    altering = threading.Thread(target=alter)
    altering.start()
    found: list[tuple[Position, SchemaHistory]] = []
    missed = 0
    try:
        while len(found) < baselines:
            # So that most reads overlap a running ALTER.
            altered.wait()
            altered.clear()
            before, begin = followed.here(), time.monotonic()
            try:
                history = followed.history(None)
            except SchemaChangedError:
                missed += 1
                pace *= 2
                continue
            if time.monotonic() - begin > SLOW_SECONDS:
                pace *= 1.2
            found.append((before, history))
    finally:
        stop.set()
        altering.join()
    _follow(followed, tracker, start)
    assert missed < baselines
    versions = tracker.history.versions(followed.database, "t")
    assert len(versions) > baselines / 2
    for before, history in found:
        # The baseline and the binlog must have the same schema at the baseline's position.
        ((position, schema),) = history.versions(followed.database, "t")
        assert position >= before
        assert schema == tracker.history.at(position, followed.database, "t")


def _follow(followed: Followed, tracker: SchemaTracker, start: Position) -> None:
    for event in followed.log.events(start):
        if event.type == EventType.QUERY_EVENT:
            logged = LoggedStatement.read(event.body, followed.client.server_version)
            if logged.statement.kind in DDL_KINDS:
                tracker.follow(event, logged, followed.log.position(event.file, event.end))
