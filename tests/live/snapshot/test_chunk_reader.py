"""Chunk reads by executors: their rows, and tables that change during a read."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.logs.live_log import log_rows, new_database, schemas_of
from helpers.servers import Server
from helpers.servers.available import LOCAL_KINDS, every_server, own_kinds
from helpers.snapshots.chunk_readings import (
    Reading,
    place,
    planned,
    with_table,
)
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken
from pyspark_mysqlbinlog.connector.server.dictionary import pin_definition
from pyspark_mysqlbinlog.connector.server.warn_once import forget_warnings
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits, ChunkPlanner
from pyspark_mysqlbinlog.connector.snapshot.reading import chunk_reader
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import VisibilityChecker
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    SchemaMismatchError,
    ServerError,
)

pytestmark = pytest.mark.one_server

DATABASE = "chunks"
T = (DATABASE, "t")


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server in turn, with a table of 100 rows."""
    with with_table(request.getfixturevalue(request.param), DATABASE) as found:
        yield found


def once(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Call `act` before the reader's first call of its function `name`."""
    function = getattr(chunk_reader, name)
    left = [act]

    def acting(*arguments: Any) -> Any:
        if left:
            left.pop()()
        return function(*arguments)

    monkeypatch.setattr(chunk_reader, name, acting)


@pytest.fixture
def after_visibility_check(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[], object]], None]:
    """Return a function that runs its argument after the first visibility check."""

    def install(act: Callable[[], object]) -> None:
        prove = VisibilityChecker.wait_until_visible
        left = [act]

        def acting(self: VisibilityChecker, *arguments: Any) -> Watermark:
            found = prove(self, *arguments)
            if left:
                left.pop()()
            return found

        monkeypatch.setattr(VisibilityChecker, "wait_until_visible", acting)

    return install


# Rows.


def test_chunk_rows_equal_the_table_at_the_watermark_position(server: Server) -> None:
    chunks = planned(server, T, 33)
    assert len(chunks) == 4
    rows = Reading(server, *chunks).rows()
    assert [json.loads(row["after"]) for row in rows] == [
        {"id": n, "v": n * 10} for n in range(1, 101)
    ]
    row = rows[0]
    assert (row["op"], row["database"], row["table"]) == ("r", *T)
    assert row["before"] is None
    assert place(row) == server.position()
    assert row["seq"] | {"file": 0} == {
        "epoch": 3, "file": 0, "pos": row["source"]["pos"], "row": -1,
    }  # fmt: skip
    assert int(row["source"]["file"].partition(".")[2]) == row["seq"]["file"]
    source = row["source"]
    assert source["row"] == -1
    assert source["key"] == ["id"]
    assert source["server_id"] == server.execute("SELECT @@server_id")[0][0]
    not_logged = ("gtid", "tx_pos", "thread_id", "query", "missing", "invalid_dates")
    assert {source[name] for name in not_logged} == {None}
    now = server.execute("SELECT UNIX_TIMESTAMP()")[0][0]
    assert now - 60 <= row["ts"].timestamp() <= now


@pytest.mark.parametrize("payload", ["json", "struct", "variant"])
def test_chunk_rows_have_the_requested_payload_type(server: Server, payload: str) -> None:
    reading = Reading(server, Chunk(T), payload=payload, tables=f"{DATABASE}.t")
    rows = reading.rows()
    assert len(rows) == 100
    if payload == "struct":
        assert [row["after"] for row in rows][:2] == [{"id": 1, "v": 10}, {"id": 2, "v": 20}]
    elif payload == "variant":
        assert set(rows[0]["after"]) == {"value", "metadata"}


def test_snapshot_task_reuses_its_connection_for_all_chunks(server: Server) -> None:
    server.execute(f"CREATE TABLE {DATABASE}.u LIKE {DATABASE}.t")
    chunks = [*planned(server, T, 10), Chunk((DATABASE, "u"))]

    def connections() -> int:
        return int(server.execute("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])

    reading = Reading(server, *chunks, snapshotVisibilityCheck="lock")
    # On MySQL 8.0 and later, definitions are read over a second connection.
    own_connections = 2 if server.is_mysql9() else 1
    before = connections()
    assert len(reading.rows()) == 100
    # The task's connections, one for each visibility check, and the one that counts.
    assert connections() - before == own_connections + len(chunks) + 1


def test_excluded_columns_are_left_out_of_snapshot_rows(server: Server) -> None:
    reading = Reading(server, Chunk(T), excludeColumns="*.*.v")
    assert reading.images() == [{"id": n} for n in range(1, 101)]
    reading = Reading(server, *planned(server, T, 40), excludeColumns="*.*.id")
    assert reading.images() == [{"v": n * 10} for n in range(1, 101)]


@pytest.mark.parametrize(
    "condition", ["v > 500", "v = 1 OR v > 500", "v > 500 -- large ones", "v > 500 # OR TRUE"]
)
def test_snapshot_where_condition_limits_chunk_rows(server: Server, condition: str) -> None:
    reading = Reading(server, *planned(server, T, 30), where_t=condition)
    assert [image["id"] for image in reading.images()] == list(range(51, 101))


def test_condition_on_missing_table_raises_server_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing captured table yields no rows; a table missing in its condition is an error."""
    monkeypatch.setattr(chunk_reader, "_RETRY_SECONDS", 0.0)
    condition = f"id IN (SELECT id FROM {DATABASE}.nowhere)"
    with pytest.raises(ServerError, match="nowhere") as caught:
        Reading(server, Chunk(T), where_t=condition).rows()
    assert caught.value.code == 1146


def test_non_ascii_names_and_texts_are_read_unchanged(server: Server) -> None:
    server.execute(
        f"CREATE TABLE {DATABASE}.`tä``b` (`schlüssel` VARCHAR(20) CHARACTER SET latin1 PRIMARY"
        " KEY, `e` ENUM('ä', 'ß')) DEFAULT CHARSET utf8mb4",
        f"INSERT INTO {DATABASE}.`tä``b` VALUES ('ä', 'ß'), ('o', NULL), ('ü', 'ä')",
    )
    table = (DATABASE, "tä`b")
    rows = Reading(server, *planned(server, table, 2)).rows()
    found = {json.loads(row["after"])["schlüssel"]: json.loads(row["after"])["e"] for row in rows}
    assert found == {"ä": "ß", "o": None, "ü": "ä"}
    assert {row["table"] for row in rows} == {"tä`b"}


def test_partitioned_myisam_memory_and_keyless_tables_equal_select(server: Server) -> None:
    server.execute(
        f"CREATE TABLE {DATABASE}.parts (id INT, v INT, PRIMARY KEY (id, v)) PARTITION BY HASH (v)"
        " PARTITIONS 4",
        f"INSERT INTO {DATABASE}.parts SELECT * FROM {DATABASE}.t",
        f"CREATE TABLE {DATABASE}.myisam (id INT PRIMARY KEY, v INT) ENGINE = MyISAM",
        f"INSERT INTO {DATABASE}.myisam SELECT * FROM {DATABASE}.t",
        f"CREATE TABLE {DATABASE}.memory (id INT PRIMARY KEY, v INT) ENGINE = MEMORY",
        f"INSERT INTO {DATABASE}.memory SELECT * FROM {DATABASE}.t",
        f"CREATE TABLE {DATABASE}.bag (id INT, v INT)",
        f"INSERT INTO {DATABASE}.bag SELECT * FROM {DATABASE}.t UNION ALL SELECT 7, 70",
    )
    expected = Counter(server.execute(f"SELECT * FROM {DATABASE}.t"))
    for name in ("parts", "myisam"):
        images = Reading(server, *planned(server, (DATABASE, name), 30)).images()
        assert Counter((image["id"], image["v"]) for image in images) == expected, name
    for name in ("memory", "bag"):
        images = Reading(server, Chunk((DATABASE, name))).images()
        more = {(7, 70): 1} if name == "bag" else {}
        found = Counter((image["id"], image["v"]) for image in images)
        assert found == expected + Counter(more), name


def test_generated_columns_in_snapshot_equal_logged_ones(server: Server) -> None:
    if server.version().startswith("5.6"):
        pytest.skip("from 5.7 on")
    stored = "PERSISTENT" if "Maria" in server.version() else "STORED"
    server.execute(
        f"CREATE TABLE {DATABASE}.g (id INT PRIMARY KEY, s INT AS (id + 1) {stored}, w INT AS"
        " (id * 2) VIRTUAL)"
    )
    start = server.position()
    server.execute(f"INSERT INTO {DATABASE}.g (id) VALUES (1), (2)")
    images = Reading(server, Chunk((DATABASE, "g"))).images()
    logged = log_rows(server, start, DATABASE, schemas_of(server, DATABASE))
    assert images == [json.loads(row["after"]) for row in logged]
    assert [(image["id"], image["s"], image["w"]) for image in images] == [(1, 2, 2), (2, 3, 4)]


# MySQL 5.6 has no generated columns.
@pytest.mark.parametrize("kind", sorted({*own_kinds(), "mysql9"} - {"mysql56"}))
@pytest.mark.parametrize(
    ("column", "options", "warns"),
    [
        ("v DATE AS (CAST(s AS DATE)) VIRTUAL", [], False),
        ("v DATE AS (CAST(s AS DATE)) VIRTUAL", ["--sql-mode="], False),
        ("v INT AS (HOUR(FROM_UNIXTIME(id))) VIRTUAL", ["--default-time-zone=+05:00"], False),
        ("t TIMESTAMP NULL, ADD v INT AS (id) VIRTUAL", ["--default-time-zone=+05:00"], True),
        ("v INT AS (id) VIRTUAL", ["--lc-time-names=de_DE"], True),
    ],
    ids=["default", "lax", "zone", "zone_of_timestamp", "locale"],
)
def test_virtual_column_in_snapshot_equals_select_under_global_settings(
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    *,
    kind: str,
    column: str,
    options: list[str],
    warns: bool,
) -> None:
    request.getfixturevalue(kind)  # ends the test if it is missing
    forget_warnings()
    with LOCAL_KINDS[kind](options) as server, new_database(server, DATABASE):
        server.execute(
            f"CREATE TABLE {DATABASE}.g (id INT PRIMARY KEY, s VARCHAR(20), d DATE)",
            f"INSERT INTO {DATABASE}.g VALUES (1, '2026-02-31', '2026-02-28'), (2, 'x', NULL)",
            f"ALTER TABLE {DATABASE}.g ADD {column}",
        )
        chunks = planned(server, (DATABASE, "g"), 10)
        images = Reading(server, *chunks).images()
        expected = server.execute(f"SELECT id, v FROM {DATABASE}.g")
        shown = [(each, None if v is None else str(v)) for each, v in expected]
        found = [(row["id"], None if row["v"] is None else str(row["v"])) for row in images]
        assert found == shown
    assert ("VIRTUAL" in caplog.text) == warns


# Tables that change during the snapshot.


def test_alter_after_watermark_moves_the_watermark(
    server: Server, after_visibility_check: Callable[[Callable[[], object]], None]
) -> None:
    after_visibility_check(lambda: server.execute(f"ALTER TABLE {DATABASE}.t ADD w INT DEFAULT 5"))
    rows = Reading(server, *planned(server, T, 60)).rows()
    assert [json.loads(row["after"]) for row in rows] == [
        {"id": n, "v": n * 10, "w": 5} for n in range(1, 101)
    ]
    # Not the position before the ALTER, where no row has the new column.
    assert {place(row) for row in rows} == {server.position()}


def test_engine_change_after_watermark_moves_the_watermark(
    server: Server, after_visibility_check: Callable[[Callable[[], object]], None]
) -> None:
    """The visibility check made for InnoDB is not valid for MyISAM."""
    start = server.position()
    after_visibility_check(lambda: server.execute(f"ALTER TABLE {DATABASE}.t ENGINE = MyISAM"))
    rows = Reading(server, Chunk(T)).rows()
    assert len(rows) == 100
    assert {place(row) for row in rows} == {server.position()} != {start}


def test_rebuild_after_snapshot_start_moves_the_watermark(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Server error 1412: the transaction's snapshot is older than the rebuilt table."""
    start = server.position()
    sql = f"ALTER TABLE {DATABASE}.t ENGINE = InnoDB"
    once(monkeypatch, "pin_definition", lambda: server.execute(sql))
    rows = Reading(server, *planned(server, T, 60)).rows()
    assert Counter(json.loads(row["after"])["id"] for row in rows) == dict.fromkeys(
        range(1, 101), 1
    )
    assert {place(row) for row in rows} == {server.position()} != {start}


def test_table_truncated_after_snapshot_start_yields_no_rows(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"TRUNCATE TABLE {DATABASE}.t"
    once(monkeypatch, "pin_definition", lambda: server.execute(sql))
    assert Reading(server, *planned(server, T, 60)).rows() == []


@pytest.mark.parametrize(
    ("engine", "key", "exact"),
    [
        pytest.param("InnoDB", "PRIMARY KEY", "false", id="InnoDB"),
        pytest.param("MyISAM", "PRIMARY KEY", "false", id="MyISAM"),
        pytest.param("InnoDB", "", "true", id="exact"),
    ],
)
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE {t} CHANGE v w INT", {"id": 1, "w": 10, "x": 0}),
        ("ALTER TABLE {t} DROP v", {"id": 1, "x": 0}),
        ("ALTER TABLE {t} CHANGE v x INT, CHANGE x v INT", {"id": 1, "x": 10, "v": 0}),
        ("RENAME TABLE {t} TO {t}_old, {t}_new TO {t}", {"id": 1, "x": 5}),
    ],
)
# pytest passes fixtures by name.
def test_column_change_after_snapshot_start_yields_the_new_columns(  # noqa: PLR0917
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    key: str,
    exact: str,
    statement: str,
    expected: dict[str, int],
) -> None:
    """The dictionary as of the snapshot can differ from the names and rows that SELECT returns."""
    server.execute(
        f"CREATE TABLE {DATABASE}.u (id INT {key}, v INT, x INT) ENGINE = {engine}",
        f"CREATE TABLE {DATABASE}.u_new (id INT {key}, x INT) ENGINE = {engine}",
        f"INSERT INTO {DATABASE}.u VALUES (1, 10, 0)",
        f"INSERT INTO {DATABASE}.u_new VALUES (1, 5)",
    )
    sql = statement.format(t=f"{DATABASE}.u")
    once(monkeypatch, "pin_definition", lambda: server.execute(sql))
    rows = Reading(server, Chunk((DATABASE, "u")), snapshotExactKeyless=exact).rows()
    images = [json.loads(row["after"]) for row in rows if row["after"] is not None]
    assert images == [expected]
    assert {place(row) for row in rows} == {server.position()}


def test_table_altered_at_each_attempt_raises_schema_mismatch_error(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_reader, "_RETRY_SECONDS", 0.0)
    hold = pin_definition
    names = iter(range(100))

    def holding(*arguments: Any) -> None:
        server.execute(f"ALTER TABLE {DATABASE}.t ADD c{next(names)} INT")
        hold(*arguments)

    monkeypatch.setattr(chunk_reader, "pin_definition", holding)
    with pytest.raises(SchemaMismatchError, match="altered repeatedly") as caught:
        Reading(server, Chunk(T)).rows()
    assert caught.value.table == "chunks.t"
    assert next(names) == 5


def test_alter_succeeds_as_soon_as_all_rows_are_fetched(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction that blocks the ALTER ends when the last row is fetched."""
    batches = Reading(server, Chunk(T)).batches()
    altered = threading.Event()

    def alter() -> None:
        server.execute(f"ALTER TABLE {DATABASE}.t ADD w INT")
        altered.set()

    thread = threading.Thread(target=alter, daemon=True)
    release = CancelToken.release

    def releasing(self: CancelToken) -> None:
        release(self)
        thread.start()

    monkeypatch.setattr(CancelToken, "release", releasing)
    # All rows are fetched, but the sink has taken only the first batch.
    assert next(batches).num_rows
    assert altered.wait(patience(30))
    assert list(batches) == []


def test_waiting_alter_does_not_block_the_snapshot(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second lock request would be queued after the ALTER, which waits for this snapshot."""
    pin = pin_definition

    def alter() -> None:
        server.execute(f"ALTER TABLE {DATABASE}.t ADD w INT")

    def waits() -> bool:
        connections = server.execute("SHOW PROCESSLIST")
        return any(row[6] == "Waiting for table metadata lock" for row in connections)

    thread = threading.Thread(target=alter, daemon=True)

    def pinning(*arguments: Any) -> None:
        pin(*arguments)
        thread.start()
        wait_until(waits, "the ALTER waits", 30)

    monkeypatch.setattr(chunk_reader, "pin_definition", pinning)
    assert len(Reading(server, Chunk(T)).rows()) == 100
    thread.join(patience(30))
    assert not thread.is_alive()


@pytest.mark.parametrize("when", ["before", "after the watermark", "after the snapshot"])
@pytest.mark.parametrize("what", ["DROP TABLE {t}", "RENAME TABLE {t} TO {t}_old"])
# pytest passes fixtures by name.
def test_dropped_or_renamed_table_is_skipped_and_logged(  # noqa: PLR0917
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    after_visibility_check: Callable[[Callable[[], object]], None],
    caplog: pytest.LogCaptureFixture,
    when: str,
    what: str,
) -> None:
    server.execute(
        f"CREATE TABLE {DATABASE}.u (id INT PRIMARY KEY)", f"INSERT INTO {DATABASE}.u VALUES (1)"
    )
    sql = what.format(t=f"{DATABASE}.t")
    reading = Reading(server, *planned(server, T, 60), Chunk((DATABASE, "u")))
    if when == "before":
        server.execute(sql)
    elif when == "after the watermark":
        after_visibility_check(lambda: server.execute(sql))
    else:
        once(monkeypatch, "pin_definition", lambda: server.execute(sql))
    assert reading.images() == [{"id": 1}]
    assert "chunks.t no longer exists: its snapshot is skipped" in caplog.text


def test_snapshot_of_dropped_database_yields_no_rows(server: Server) -> None:
    reading = Reading(server, *planned(server, T, 60))
    server.execute(f"DROP DATABASE {DATABASE}")
    assert reading.rows() == []


def test_snapshot_of_table_replaced_by_view_yields_no_rows(server: Server) -> None:
    reading = Reading(server, *planned(server, T, 60))
    server.execute(
        f"RENAME TABLE {DATABASE}.t TO {DATABASE}.u",
        f"CREATE VIEW {DATABASE}.t AS SELECT * FROM {DATABASE}.u",
    )
    assert reading.rows() == []


def test_snapshot_without_select_grant_raises_access_denied_error(server: Server) -> None:
    """information_schema does not show the table, but it must not be taken for dropped."""
    chunks = planned(server, T, 60)
    name = "'chunk_reader'@'%'"
    server.execute(f"CREATE USER {name} IDENTIFIED BY 's3cret'", f"GRANT PROCESS ON *.* TO {name}")
    try:
        reading = Reading(server, *chunks, user="chunk_reader", password="s3cret")
        with pytest.raises(AccessDeniedError):
            reading.rows()
        account = {"user": "chunk_reader", "password": "s3cret", "ssl_mode": "DISABLED"}
        planner = ChunkPlanner(
            server.settings(**account),
            begin_checks=lambda: lambda *_: None,
            case_sensitive=True,
            chunk_bytes=1 << 20,
            retry_timeout=1,
        )
        with pytest.raises(AccessDeniedError):
            planner.next_batch(
                SnapshotState(pending=(TableSnapshotState(T),)), BatchLimits(), patience=60
            )
        planner.close()
    finally:
        server.execute(f"DROP USER {name}")


def test_chunk_with_bounds_of_a_replaced_key_reads_the_whole_table(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Bounds of a replaced key are not applied to the new key."""
    chunk = planned(server, T, 60)[1]
    server.execute(f"ALTER TABLE {DATABASE}.t DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    found = Counter(image["id"] for image in Reading(server, chunk).images())
    assert found == dict.fromkeys(range(1, 101), 1)
    assert "the key of chunks.t changed since this chunk was planned" in caplog.text


def test_chunk_with_bounds_of_a_dropped_key_reads_the_whole_table(server: Server) -> None:
    chunk = planned(server, T, 60)[1]
    server.execute(f"ALTER TABLE {DATABASE}.t DROP PRIMARY KEY")
    assert len(Reading(server, chunk).rows()) == 100
