"""Streams that start with the existing rows of their tables: `startingOffset=snapshot`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql.types import StringType

from helpers.servers import Server
from helpers.snapshots.load_rows import applied, loaded, select_json
from helpers.streams.stream_query import Query, Rows
from helpers.waiting import wait_until
from helpers.writers.global_settings import globally
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.errors import OptionError, UnknownSchemaError

pytestmark = pytest.mark.one_server

COLUMNS = ("id", "a", "b")


@pytest.fixture
def database(any_server: Server, table: str) -> str:
    """Return a database with three tables: `t` with 3,000 rows, `u` with 10, and `empty`."""
    name = table.partition(".")[0]
    any_server.execute(
        f"CREATE TABLE {name}.u (id INT PRIMARY KEY, a INT, b INT)",
        f"CREATE TABLE {name}.`empty` (id INT PRIMARY KEY, a INT, b INT)",
    )
    fill(any_server, table, 1, 3000)
    fill(any_server, f"{name}.u", 1, 10)
    return name


def fill(server: Server, table: str, first: int, last: int) -> None:
    values = ", ".join(f"({n}, {n % 7}, {-n})" for n in range(first, last + 1))
    server.execute(f"INSERT INTO {table} VALUES {values}")


def new_query(
    server: Server, database: str, queries: list[Query], tables: str = "*", **options: str
) -> Query:
    names = ", ".join(f"{database}.{name.strip()}" for name in tables.split(","))
    texts = {"payload": "json", "startingOffset": "snapshot", **options}
    query = Query(server, names, **texts)
    queries.append(query)
    return query


def load_of(query: Query) -> SnapshotState:
    assert query.checkpoint is not None
    return SnapshotState.unpack(query.checkpoint["snapshot"])


def assert_in_sync(server: Server, rows: Rows, *tables: str) -> None:
    for table in tables:
        assert applied(rows, table) == select_json(server, table, *COLUMNS), table


def test_existing_rows_are_delivered_before_changes(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries).start()
    tables = [f"{database}.{name}" for name in ("t", "u", "empty")]
    rows = query.rows()
    assert {row["op"] for row in rows} == {"r"}
    assert len(rows) == 3010
    assert_in_sync(any_server, rows, *tables)
    assert load_of(query).is_done
    any_server.execute(
        f"UPDATE {database}.t SET a = -1 WHERE id < 10",
        f"DELETE FROM {database}.u WHERE id = 3",
        f"INSERT INTO {database}.empty VALUES (1, 2, 3)",
        f"UPDATE {database}.u SET id = 100 WHERE id = 4",
    )
    more = query.rows()
    assert Counter(row["op"] for row in more) == {"u": 10, "d": 1, "c": 1}
    assert_in_sync(any_server, rows + more, *tables)


def test_snapshot_row_has_key_and_position_but_no_transaction(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries, "u").start()
    first = query.rows()[0]
    file, pos = any_server.position()
    assert first["before"] is None
    assert json.loads(first["after"]) == {"id": 1, "a": 1, "b": -1}
    assert list(json.loads(first["after"])) == ["id", "a", "b"]
    assert first["seq"]["row"] == first["source"]["row"] == -1
    assert (first["source"]["file"], first["seq"]["pos"]) == (file, pos)
    assert first["source"]["key"] == ["id"]
    assert first["source"]["missing"] is None
    assert first["source"]["invalid_dates"] is None
    assert first["source"]["tx_pos"] is first["source"]["gtid"] is first["source"]["query"] is None


def test_snapshot_with_concurrent_changes_equals_select(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    """Changes are committed before and after each snapshot batch."""
    query = new_query(any_server, database, queries, maxRowsPerTrigger="200").start()
    spark, rows = query.spark, []
    assert spark is not None and query.checkpoint is not None
    step = 0
    while not load_of(query).is_done:
        end = spark.next_batch(query.checkpoint)
        batch = spark.rows(query.checkpoint, end)
        assert sum(row["op"] == "r" for row in batch) <= 200
        rows += batch
        query.checkpoint = end
        step += 1
        any_server.execute(
            f"UPDATE {database}.t SET a = {-step} WHERE id % 50 = {step % 50}",
            f"DELETE FROM {database}.t WHERE id = {3000 - step} OR id = {step}",
            f"INSERT INTO {database}.t VALUES ({3000 + step}, 0, 0), ({-step}, 0, 0)",
            f"UPDATE {database}.t SET id = id + 10000 WHERE id = {1000 + step}",
        )
    assert step > 15
    assert max(Counter(each["id"] for each in loaded(rows, f"{database}.t")).values()) == 1
    rows += query.rows()
    assert_in_sync(any_server, rows, f"{database}.t", f"{database}.u")


def test_snapshot_with_restarts_reads_each_row_once(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries, maxRowsPerTrigger="500").start()
    rows: list[dict[str, Any]] = []
    restarts = 0
    while not load_of(query).is_done:
        assert query.spark is not None and query.checkpoint is not None
        end = query.spark.next_batch(query.checkpoint)
        # The batch is planned and stored in the offset log, but only the restarted query reads it.
        query.stop()
        query.start()
        rows += query.spark.rows(query.checkpoint, end)
        query.checkpoint = end
        restarts += 1
    assert restarts > 5
    found = Counter(each["id"] for each in loaded(rows, f"{database}.t"))
    assert found == dict.fromkeys(range(1, 3001), 1)
    rows += query.rows()
    assert_in_sync(any_server, rows, f"{database}.t", f"{database}.u", f"{database}.empty")


def test_table_captured_later_is_snapshotted_once(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries, "u").start()
    rows = query.rows()
    assert len(rows) == 10
    query.stop()
    any_server.execute(f"INSERT INTO {database}.u VALUES (11, 0, 0)")
    query.texts["tables"] = f"{database}.*"
    more = query.start().rows()
    assert len(loaded(more, f"{database}.t")) == 3000
    assert loaded(more, f"{database}.u") == []
    assert_in_sync(any_server, rows + more, f"{database}.t", f"{database}.u")
    query.stop()
    assert query.start().rows() == []


def test_created_table_is_not_snapshotted_but_renamed_one_is(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    """gh-ost and pt-online-schema-change swap in a copy that was not captured before."""
    query = new_query(any_server, database, queries, "u, lat*, ?").start()
    rows = query.rows()
    any_server.execute(f"CREATE TABLE {database}.late (id INT PRIMARY KEY, a INT, b INT)")
    fill(any_server, f"{database}.late", 1, 5)
    more = query.rows()
    assert Counter(row["op"] for row in more) == {"c": 5}
    rows += more
    any_server.execute(
        f"CREATE TABLE {database}._u_gho LIKE {database}.u",
        f"INSERT INTO {database}._u_gho SELECT id, 70, b FROM {database}.u",
        f"RENAME TABLE {database}.u TO {database}._u_del, {database}._u_gho TO {database}.u",
    )
    more = query.rows()
    assert Counter(row["op"] for row in more) == {"r": 10}
    assert_in_sync(any_server, rows + more, f"{database}.u", f"{database}.late", f"{database}.t")


@pytest.fixture(params=["MINIMAL", "FULL"])
def row_metadata(request: pytest.FixtureRequest, any_server: Server) -> Iterator[None]:
    """Set binlog_row_metadata; with FULL, the binlog shows the columns of hidden tables."""
    with globally(any_server, {"binlog_row_metadata": request.param}) as found:
        if request.param == "FULL" and not found:
            pytest.skip("the server has no binlog_row_metadata")
        yield


@pytest.mark.usefixtures("row_metadata")
@pytest.mark.parametrize(
    "change", ["INSERT INTO {t} (id) VALUES (9001)", "ALTER TABLE {t} ADD c INT"]
)
@pytest.mark.parametrize("restarts", [False, True])
def test_table_that_becomes_visible_later_is_snapshotted(
    any_server: Server, database: str, queries: list[Query], change: str, restarts: bool
) -> None:
    """Its rows from before are not in the binlog that the stream reads."""
    user, table = "reader_later", f"{database}.t"
    any_server.execute(
        f"CREATE USER {user}@'%' IDENTIFIED BY 'secret'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO {user}@'%'",
        f"GRANT SELECT ON {database}.u TO {user}@'%'",
    )
    try:
        query = new_query(any_server, database, queries, user=user, password="secret").start()
        assert len(query.rows()) == 10
        if restarts:
            any_server.execute(change.format(t=table), f"DELETE FROM {table} WHERE id = 1")
            with pytest.raises(UnknownSchemaError, match="GRANT SELECT"):
                query.rows()
            query.stop()
        any_server.execute(f"GRANT SELECT ON {table} TO {user}@'%'")
        if restarts:
            query.start()
        else:
            any_server.execute(change.format(t=table))
        rows = query.rows()
        any_server.execute(f"UPDATE {table} SET a = -1 WHERE id < 10")
        rows += query.rows()
    finally:
        query.stop()
        any_server.execute(f"DROP USER {user}@'%'")
    columns = COLUMNS if "INSERT" in change else (*COLUMNS, "c")
    assert len(loaded(rows, table)) >= 2999
    assert applied(rows, table) == select_json(any_server, table, *columns)
    assert not [row for row in rows if row["table"] == "u"]


def test_each_reload_id_runs_once(any_server: Server, database: str, queries: list[Query]) -> None:
    query = new_query(any_server, database, queries).start()
    rows = query.rows()
    query.stop()
    query.texts["reload"] = f"fix-1: {database}.u"
    more = query.start().rows()
    assert Counter(row["table"] for row in more) == {"u": 10}
    query.stop()
    assert query.start().rows() == []
    query.stop()
    query.texts["reload"] = f"fix-2: {database}.u"
    more += query.start().rows()
    assert Counter(row["op"] for row in more) == {"r": 20}
    assert_in_sync(any_server, rows + more, f"{database}.u")


def test_reload_that_matches_no_table_is_rejected(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries).start()
    query.rows()
    query.stop()
    query.texts["reload"] = f"fix: {database}.typo"
    with pytest.raises(OptionError, match="option reload: expected captured tables"):
        query.start().rows()


def test_changes_are_delivered_while_visibility_check_waits(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = new_query(any_server, database, queries, "u", snapshotVisibilityCheck="innodb_trx")
    with any_server.connect() as busy, busy.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("SELECT CONNECTION_ID()")
        ((number,),) = cursor.fetchall()
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {database}.t VALUES (-1, 0, 0)")
        sleeping = pool.submit(cursor.execute, "SELECT SLEEP(500)")
        shown = f"SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = {number}"
        try:
            wait_until(
                lambda: any_server.execute(shown) == [("SELECT SLEEP(500)",)],
                "the transaction's session is busy",
            )
            # The first chunk is planned as soon as the query begins.
            query.start()
            assert query.spark is not None and query.checkpoint is not None
            any_server.execute(f"INSERT INTO {database}.u VALUES (50, 1, 1)")
            end = query.spark.next_batch(query.checkpoint)
            rows = query.spark.rows(query.checkpoint, end)
            assert not sleeping.done()
        finally:
            any_server.execute(f"KILL QUERY {number}")
        sleeping.exception()  # MariaDB reports the interruption as an error
        cursor.execute("ROLLBACK")
    query.checkpoint = end
    assert [row["op"] for row in rows] == ["c"]
    assert not load_of(query).is_done
    rows += query.rows()
    assert_in_sync(any_server, rows, f"{database}.u")


def test_query_with_unusable_visibility_check_is_rejected(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    any_server.execute(
        f"CREATE TABLE {database}.old (id INT PRIMARY KEY, a INT, b INT) ENGINE=MyISAM"
    )
    query = new_query(any_server, database, queries, snapshotVisibilityCheck="innodb_trx")
    with pytest.raises(OptionError, match="engine is MyISAM") as caught:
        query.start()
    assert caught.value.table == f"{database}.old"


def test_reload_works_on_stream_started_without_snapshot(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    query = Query(any_server, f"{database}.*", payload="json").start()
    queries.append(query)
    assert query.rows() == []
    query.stop()
    query.texts["reload"] = f"first: {database}.u"
    assert len(loaded(query.start().rows())) == 10


def test_snapshot_where_limits_the_snapshot_rows(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    where = json.dumps({f"{database}.t": "a = 3 OR a = 4"})
    query = new_query(any_server, database, queries, snapshotWhere=where).start()
    rows = query.rows()
    expected = any_server.execute(f"SELECT id FROM {database}.t WHERE a IN (3, 4)")
    assert {each["id"] for each in loaded(rows, f"{database}.t")} == {row[0] for row in expected}
    assert len(loaded(rows, f"{database}.u")) == 10


def test_snapshot_where_accepts_table_that_the_binlog_creates_later(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    """It is created after the start position of a new query, or after a checkpoint's position."""
    query = new_query(any_server, database, queries).start()
    query.rows()
    query.stop()
    place = "{}:{}".format(*any_server.position())
    any_server.execute(f"CREATE TABLE {database}.late (id INT PRIMARY KEY, a INT, b INT)")
    fill(any_server, f"{database}.late", 1, 9)
    where = json.dumps({f"{database}.late": "a = 3"})
    new = {"startingOffset": place, "snapshotWhere": where}
    assert len(new_query(any_server, database, queries, **new).start().rows()) == 9
    query.texts |= {"reload": f"again: {database}.*", "snapshotWhere": where}
    rows = query.start().rows()
    assert_in_sync(any_server, [row for row in rows if row["table"] == "late"], f"{database}.late")
    query.stop()
    query.texts |= {"reload": f"more: {database}.*", "snapshotWhere": where.replace("late", "typo")}
    with pytest.raises(OptionError, match=r"table .*typo does not exist"):
        query.start().rows()


def test_snapshot_of_keyless_table_keeps_equal_rows(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    any_server.execute(f"CREATE TABLE {database}.bag (id INT, a INT, b INT)")
    fill(any_server, f"{database}.bag", 1, 50)
    any_server.execute(f"INSERT INTO {database}.bag VALUES (NULL, NULL, 1), (NULL, NULL, 1)")
    rows = new_query(any_server, database, queries, "bag").start().rows()
    found = Counter(json.dumps(each) for each in loaded(rows))
    assert sum(found.values()) == 52
    assert found['{"id": null, "a": null, "b": 1}'] == 2


def test_batch_read_of_snapshot_equals_select(any_server: Server, database: str) -> None:
    texts = any_server.options(
        tables=f"{database}.t, {database}.u", payload="json", startingOffset="snapshot"
    )
    any_server.execute(f"DELETE FROM {database}.t WHERE id % 2 = 0")
    schema = output_schema(StringType())
    reader = MySQLBinlogReader(parse_options(texts), schema)
    parts = reader.partitions()
    assert len(parts) <= 4
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert {row["op"] for row in rows} == {"r"}
    assert_in_sync(any_server, rows, f"{database}.t", f"{database}.u")


def chunk_sizes(query: Query) -> list[list[int]]:
    """Return the number of rows of each chunk of each batch, up to the snapshot's end."""
    spark, sizes = query.spark, []
    assert spark is not None and query.checkpoint is not None
    while not load_of(query).is_done:
        end = spark.next_batch(query.checkpoint)
        parts = spark.reader.partitions(query.checkpoint, end)
        chunks = [part for part in parts if isinstance(part, ChunkPartition)]
        sizes.append([sum(batch.num_rows for batch in spark.reader.read(each)) for each in chunks])
        query.checkpoint = end
    return sizes


def fill_to(server: Server, table: str, there: int, rows: int) -> None:
    while there < rows:
        more = min(there, rows - there)
        server.execute(f"INSERT INTO {table} SELECT id + {there}, a, b FROM {table} LIMIT {more}")
        there += more
    # A server does this automatically, some time after a table has grown.
    server.execute(f"ANALYZE TABLE {table}")


def test_first_snapshot_batch_is_smaller_than_the_next(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    fill_to(any_server, f"{database}.t", 3000, 90_000)
    query = new_query(any_server, database, queries, "t", maxConnections="2").start()
    assert chunk_sizes(query) == [[5000], [40_000, 40_000], [5000]]


def test_snapshot_batches_stay_within_max_rows_per_trigger(
    any_server: Server, database: str, queries: list[Query]
) -> None:
    fill_to(any_server, f"{database}.t", 3000, 30_000)
    query = new_query(any_server, database, queries, "t", maxRowsPerTrigger="8000").start()
    sizes = chunk_sizes(query)
    assert sum(map(sum, sizes)) == 30_000
    assert max(map(sum, sizes)) == 4000


def test_first_snapshot_batch_has_one_of_many_small_tables(
    any_server: Server, database: str, queries: list[Query], caplog: pytest.LogCaptureFixture
) -> None:
    """One visibility check covers all tables whose chunks are planned together."""
    caplog.set_level("INFO")
    for number in range(20):
        any_server.execute(f"CREATE TABLE {database}.s{number} LIKE {database}.u")
        fill(any_server, f"{database}.s{number}", 1, 3)
    query = new_query(
        any_server, database, queries, "s*", snapshotVisibilityCheck="innodb_trx"
    ).start()
    first, *others = chunk_sizes(query)
    assert first == [3]
    assert sum(map(sum, others)) == 57
    proofs = sum("visibility check" in each.message for each in caplog.records)
    assert proofs <= 1 + len(others)


def test_lock_visibility_check_runs_once_per_table(
    any_server: Server, database: str, queries: list[Query], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    query = new_query(any_server, database, queries, snapshotVisibilityCheck="lock").start()
    query.rows()
    proofs = [each.message for each in caplog.records if "visibility check" in each.message]
    assert len(proofs) == 3


def test_snapshot_planning_starts_before_first_rows_are_requested(
    any_server: Server, database: str, queries: list[Query], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    new_query(any_server, database, queries, "t").start()
    wait_until(lambda: "visibility check" in caplog.text, "a chunk is planned")


@pytest.mark.parametrize("held", [0, 10])
def test_table_swapped_after_first_snapshot_plan_equals_select(
    any_server: Server,
    database: str,
    queries: list[Query],
    caplog: pytest.LogCaptureFixture,
    held: int,
) -> None:
    """The planned bounds, and whether there are any, are those of the table swapped out."""
    caplog.set_level("INFO")
    swapped = f"{database}.swapped"
    any_server.execute(f"CREATE TABLE {swapped} (id INT PRIMARY KEY, a INT, b INT)")
    if held:
        fill(any_server, swapped, 1, held)
    query = new_query(any_server, database, queries, "swapped").start()
    wait_until(lambda: "visibility check" in caplog.text, "a chunk is planned")
    any_server.execute(f"CREATE TABLE {database}._new LIKE {swapped}")
    fill(any_server, f"{database}._new", 1, 500)
    any_server.execute(f"RENAME TABLE {swapped} TO {database}._old, {database}._new TO {swapped}")
    # A captured change brings the RENAME into the first batch with chunks.
    fill(any_server, swapped, 501, 501)
    assert query.spark is not None
    tail, end = query.spark.reader.tail, Position.of(*any_server.position())
    assert tail is not None
    wait_until(lambda: tail.scanned >= end, "the batch of the first chunk has the statement")
    assert_in_sync(any_server, query.rows(), swapped)
