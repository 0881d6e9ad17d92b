"""Both engines of DeltaMirror: each reads what the other wrote, and continues from it."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import Row, SparkSession

from helpers.logs.recorded_logs import describe
from helpers.mirrors.before_commits import before_commit
from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.replay import captured_schemas
from helpers.servers import Server
from helpers.streams.spark_session import DELTA_JARS, with_delta
from helpers.waiting import wait_until
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.connector.delta.query.parallel import map_in_threads
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget, Engine
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance
from pyspark_mysqlbinlog.connector.delta.store.spark.engine import SparkEngine
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import SparkSessions
from pyspark_mysqlbinlog.connector.delta.store.spark.table import SparkTarget
from pyspark_mysqlbinlog.connector.delta.store.spark.versions import SparkTable
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import delta_schema
from pyspark_mysqlbinlog.errors import MirrorError, OptionError, cause_of

_LOG, _OTHER = LogIdentity("server", 0, "mysql-bin"), LogIdentity("server", 1, "mysql-bin")
_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.int32()),
    pa.field("v", pa.string()),
    pa.field(SEQ, SEQ_TYPE),
]
_COLUMNS = pa.schema(_FIELDS)
_STATES = _COLUMNS.append(pa.field(TOMBSTONE, pa.bool_()))


@pytest.fixture(scope="module")
def delta(spark: SparkSession) -> SparkSession:
    """Return a session with Delta's jars."""
    if not DELTA_JARS:
        pytest.skip("MYSQLBINLOG_DELTA_JARS names no jars of Delta's (delta-spark, delta-storage)")
    return with_delta(spark)


def test_tables_and_rounds_of_maintenance_share_sessions(
    delta: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine()
    engine.begin(delta)
    made: list[SparkSession] = []
    with pytest.MonkeyPatch.context() as patch:
        cloned = SparkSessions._cloned

        def count(sessions: SparkSessions) -> SparkSession:
            made.append(cloned(sessions))
            return made[-1]

        patch.setattr(SparkSessions, "_cloned", count)
        uris = [str(tmp_path / f"t{number}") for number in range(6)]

        def write(uri: str) -> None:
            target = engine.target(uri)
            target.create(_COLUMNS, {})
            _merge(target, _mark(1), 1, 2)
            _merge(target, _mark(2), 2, 3)

        assert len([*map_in_threads(write, uris, delta)]) == 6
        for _ in range(3):
            maintenance = Maintenance(engine, 0)
            maintenance.after_batch(uris)
            maintenance.wait()
    assert 0 < len(made) <= 4
    for uri in uris:
        assert _rows(Path(uri)).keys() == {1, 2, 3}
        _assert_marks(engine.target(uri), _mark(2))


@pytest.fixture(scope="module")
def engines(delta: SparkSession) -> dict[str, Engine]:
    spark = SparkEngine()
    spark.begin(delta)
    return {"deltalake": DeltalakeEngine(), "spark": spark}


def _mark(place: int, batch: int | None = None, log: LogIdentity = _LOG) -> CommitMarker:
    fingerprint = PositionFingerprint(1000 + place, 1, 10 + place, 100 + place)
    return CommitMarker(
        log, place, fingerprint, None if batch is None else ("mysqlbinlog:query:q", batch)
    )


def _seq(pos: int, row: int) -> dict[str, int]:
    return {"epoch": 0, "file": 1, "pos": pos, "row": row}


def _merge(target: DeltaTarget, mark: CommitMarker, *ids: int) -> None:
    rows = [
        {
            "id": number,
            "v": str(mark.position),
            SEQ: _seq(mark.position, number),
            TOMBSTONE: False,
        }
        for number in ids
    ]
    target.merge(pa.Table.from_pylist(rows, _STATES), ["id"], mark)


def _rows(path: Path) -> dict[int, str]:
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def _assert_marks(target: DeltaTarget, mark: CommitMarker) -> None:
    found = {name: target.txn_version(name) for name, _ in mark.app_transactions}
    assert found == dict(mark.app_transactions)


def test_commit_marker_of_either_engine_is_read_by_both(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    engines["deltalake"].target(str(path)).create(_COLUMNS, {"mysqlbinlog.sourceLog": "x"})
    for place, writes in enumerate(["deltalake", "spark", "spark", "deltalake", "spark"], 1):
        mark = _mark(place, batch=place)
        _merge(engines[writes].target(str(path)), mark, 0, place)
        for reads in engines.values():
            _assert_marks(reads.target(str(path)), mark)
    assert _rows(path) == {0: "5", 1: "1", 2: "2", 3: "3", 4: "4", 5: "5"}


def test_every_kind_of_commit_writes_its_commit_marker(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    target = engines["spark"].target(str(path))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), 1)
    added: Any = pa.field("w", pa.int64())
    target.add_columns([added], _mark(2, batch=2))
    _assert_marks(engines["spark"].target(str(path)), _mark(2, batch=2))
    wider = pa.schema({"k": pa.int64(), "w": pa.int64(), SEQ: SEQ_TYPE})
    target.rewrite_columns(wider, {"k": "id", SEQ: SEQ}, _mark(3, batch=3))
    _assert_marks(engines["spark"].target(str(path)), _mark(3, batch=3))
    # A commit that does not change the position.
    target.set_properties({"p": "q"}, _mark(3, batch=4))
    for engine in engines.values():
        _assert_marks(engine.target(str(path)), _mark(3, batch=4))
    assert DeltaTable(path).to_pyarrow_table().select(["k", "w"]).to_pylist() == [
        {"k": 1, "w": None}
    ]


def test_replaced_appended_and_rewritten_rows_are_equal_on_both_engines(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    """An append without rows makes a commit too, also at a position that is already marked."""
    found: dict[str, list[object]] = {}
    for name, engine in engines.items():
        path = tmp_path / name
        target = engine.target(str(path))
        target.create(_COLUMNS, {})
        _merge(target, _mark(1), 1, 2)
        rows = pa.table({"w": [0.0, -0.0, 0.0], SEQ: pa.nulls(3, SEQ_TYPE)})
        target.replace(rows, _mark(2))
        _assert_marks(engine.target(str(path)), _mark(2))
        target.append(rows.slice(1, 1), _mark(3, batch=3))
        for number in (4, 5):
            target.append(rows.slice(0, 0), _mark(3, batch=number))
            _assert_marks(engine.target(str(path)), _mark(3, batch=number))
        assert target.count() == 4
        wanted = rows.slice(0, 2)
        counts = target.count_equal_rows(wanted.select(["w"]))
        removed = target.rewrite_equal_rows(wanted.slice(1, 1), rows.slice(0, 1), _mark(4, batch=6))
        _assert_marks(engine.target(str(path)), _mark(4, batch=6))
        left = DeltaTable(path).to_pyarrow_table().column("w").to_pylist()
        found[name] = [counts, removed, sorted(map(str, left))]
    assert found["spark"] == found["deltalake"] == [[2, 2], 2, ["0.0", "0.0", "0.0"]]


def test_rows_in_chunks_with_empty_ones_are_all_written_by_both_engines(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    def states(*numbers: list[int]) -> pa.Table:
        tables = [
            pa.Table.from_pylist(
                [{"id": n, "v": str(n), SEQ: _seq(n, n), TOMBSTONE: False} for n in some], _STATES
            )
            for some in numbers
        ]
        return pa.concat_tables(tables)

    for name, engine in engines.items():
        path = tmp_path / name
        target = engine.target(str(path))
        target.create(_COLUMNS, {})
        target.merge(states([1], [], [2, 3], [], [4]), ["id"], _mark(1))
        assert _rows(path).keys() == {1, 2, 3, 4}
        target.append(states([5], [], [6]).drop([TOMBSTONE]), _mark(2))
        assert _rows(path).keys() == {1, 2, 3, 4, 5, 6}
        assert target.count_equal_rows(states([1], [], [6]).drop([TOMBSTONE])) == [1, 1]
        target.replace(states([7], [], [8], []).drop([TOMBSTONE]), _mark(3))
        assert _rows(path).keys() == {7, 8}
        target.replace(states([], []).drop([TOMBSTONE]), _mark(4))
        assert target.is_empty()


def test_rows_at_an_already_marked_position_are_written(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    """Snapshot rows have no new position, and Delta skips a transaction version that it has."""
    path = tmp_path / "t"
    target = engines["spark"].target(str(path))
    target.create(_COLUMNS, {})
    _merge(target, _mark(5, batch=1), 1)
    _merge(target, _mark(5, batch=2), 2)
    _assert_marks(target, _mark(5, batch=2))
    # A snapshot that starts before the table's position, and one of another binlog.
    for mark in (_mark(3), _mark(1, log=_OTHER)):
        target.set_properties({"mysqlbinlog.snapshotInProgress": "{}"}, mark)
        for engine in engines.values():
            _assert_marks(engine.target(str(path)), mark)
    _merge(target, _mark(2, batch=3, log=_OTHER), 3)
    _assert_marks(engines["deltalake"].target(str(path)), _mark(2, batch=3, log=_OTHER))
    assert _rows(path).keys() == {1, 2, 3}


def test_merge_after_a_concurrent_merge_of_another_mirror_fails(
    delta: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    mirrors = SparkEngine(), SparkEngine()
    for engine in mirrors:
        engine.begin(delta)
    target, other = (engine.target(str(path)) for engine in mirrors)
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), 1)
    assert isinstance(target, SparkTarget)
    table = target._table
    setting = table.setting

    @contextmanager
    def between(settings: dict[str, str]) -> Iterator[None]:
        _merge(other, _mark(2), 2)
        with setting(settings):
            yield

    monkeypatch.setattr(table, "setting", between)
    with pytest.raises(RuntimeError, match="another mirror"):
        _merge(target, _mark(2), 3)
    assert _rows(path).keys() == {1, 2}


@pytest.mark.parametrize("name", ["deltalake", "spark"])
def test_foreign_delete_during_a_merge_without_new_rows_raises_mirror_error(
    engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    target = engines[name].target(str(tmp_path / "t"))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), 1, 2)

    def write_nothing_and_more() -> None:
        # The table already has these rows, with the same `seq`.
        with before_commit(monkeypatch, target, lambda _: DeltaTable(target.uri).delete("id = 1")):
            _merge(target, _mark(1), 1, 2)
        _merge(target, _mark(2), 3)

    with pytest.raises(MirrorError, match=r"\(DELETE\)"):
        write_nothing_and_more()


def test_foreign_delete_is_detected_despite_a_commit_during_the_history_check(
    delta: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SparkEngine()
    engine.begin(delta)
    target = engine.target(str(tmp_path / "t"))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), 1, 2)
    DeltaTable(tmp_path / "t").delete("id = 1")
    other = engine.target(target.uri)
    history, writes = SparkTable.history, iter([lambda: other.set_properties({"p": "q"})])

    def interrupted(table: SparkTable, limit: int) -> list[Row]:
        next(writes, lambda: None)()
        return history(table, limit)

    monkeypatch.setattr(SparkTable, "history", interrupted)
    with pytest.raises(MirrorError, match=r"\(DELETE\)"):
        _merge(target, _mark(2), 3)


def test_open_tables_stay_within_the_limit_and_old_versions_are_freed(
    delta: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine()
    engine.begin(delta)
    assert engine._open_tables is not None
    engine._open_tables.max_tables = 3
    jvm: Any = delta
    delta_log = jvm._jvm.org.apache.spark.sql.delta.DeltaLog
    gc.collect()
    # Old versions must be freed even if Python's garbage collector does not run.
    gc.disable()
    try:
        delta_log.clearCache()
        targets = [engine.target(str(tmp_path / f"t{number}")) for number in range(5)]
        for target in targets:
            target.create(_COLUMNS, {})
        for number in (1, 2):
            for target in targets:
                _merge(target, _mark(number), number)
        assert delta_log.cacheSize() <= 3
        wait_until(lambda: _live_snapshots(delta) <= 6, "old versions are freed", 120, every=1)
        _merge(targets[0], _mark(3), 3)
    finally:
        gc.enable()
    assert _rows(tmp_path / "t0").keys() == {1, 2, 3}


def _live_snapshots(spark: SparkSession) -> int:
    """Return how many versions of Delta tables are in the JVM after its garbage collection."""
    session: Any = spark
    jvm, gateway = session._jvm, session.sparkContext._gateway
    given = gateway.new_array(jvm.java.lang.Object, 1)
    given[0] = gateway.new_array(jvm.java.lang.String, 0)
    kinds = gateway.new_array(jvm.java.lang.String, 1)
    kinds[0] = "[Ljava.lang.String;"
    beans = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    name = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    histogram = beans.invoke(name, "gcClassHistogram", given, kinds)
    found = re.search(r"\s(\d+)\s+\d+\s+org\.apache\.spark\.sql\.delta\.Snapshot\s", histogram)
    return int(found[1]) if found else 0


def test_commit_markers_are_read_after_old_commits_were_removed(
    engines: dict[str, Engine], tmp_path: Path
) -> None:
    path = tmp_path / "t"
    target = engines["spark"].target(str(path))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1, batch=1), 1)
    _merge(target, _mark(2, batch=2), 2)
    DeltaTable(path).create_checkpoint()
    target.set_properties({"p": "q"})
    for commit in sorted((path / "_delta_log").glob("*.json"))[:-1]:
        for file in (path / "_delta_log").glob(f"*{commit.name}*"):
            file.unlink()
        commit.with_suffix(".crc").unlink(missing_ok=True)
    for engine in engines.values():
        reads = engine.target(str(path))
        assert reads.txn_version(str(_LOG)) == 2
        assert reads.txn_version(_LOG.event) is None


def test_deletion_vectors_are_written_if_the_table_property_enables_them(
    delta: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine({"delta.enableDeletionVectors": "true"})
    engine.begin(delta)
    target = engine.target(str(tmp_path / "t"))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), *range(9))
    _merge(target, _mark(2), 1)
    assert list((tmp_path / "t").glob("**/deletion_vector_*"))
    rows = delta.sql(f"SELECT id, v FROM delta.`{tmp_path}/t`").collect()
    assert {row["id"]: row["v"] for row in rows} == {**dict.fromkeys(range(9), "1"), 1: "2"}
    assert len(rows) == 9


def test_compaction_and_vacuum_leave_one_file_with_all_rows(
    delta: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    engine.begin(delta)
    target = engine.target(str(tmp_path / "t"))
    target.create(_COLUMNS, {})
    _merge(target, _mark(1), 1, 2)
    _merge(target, _mark(2), 3, 4)
    assert target.compact()
    assert target.vacuum() >= 2
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1
    assert _rows(tmp_path / "t").keys() == {1, 2, 3, 4}
    _assert_marks(target, _mark(2))


@pytest.mark.parametrize("name", ["plain", "t@v1", "a`b", "ñ 漢"])
def test_special_characters_in_properties_and_paths_are_kept(
    engines: dict[str, Engine], tmp_path: Path, name: str
) -> None:
    text = "a 'quoted' \\ \"text\" \\n\n${spark.app.name} ; -- ñ漢"
    held = {"mysqlbinlog.sourceLog": text, "mysqlbinlog.stopped": text}
    for maker, engine in engines.items():
        path = tmp_path / maker / name
        target = engine.target(str(path))
        target.create(_COLUMNS, {"mysqlbinlog.sourceLog": text})
        target.set_properties({"mysqlbinlog.stopped": text})
        assert (path / "_delta_log").is_dir()
        for reader in engines.values():
            assert dict(reader.target(str(path)).properties()) == held


@pytest.mark.parametrize("scenario", ["numbers", "temporals", "strings", "json_docs", "geometry"])
def test_both_engines_create_the_same_columns(
    engines: dict[str, Engine], tmp_path: Path, scenario: str
) -> None:
    for schema in captured_schemas(describe(scenario)):
        shape, made = delta_schema(schema), {}
        for name, engine in engines.items():
            path = tmp_path / schema.table / name
            target = engine.target(str(path))
            target.create(shape, {})
            made[name] = json.loads(DeltaTable(path).schema().to_json())
        assert made["spark"] == made["deltalake"]
        for name, engine in engines.items():
            for writer in engines:
                found = engine.target(str(tmp_path / schema.table / writer)).columns()
                assert found == shape, (name, writer)


def test_mirror_that_changes_its_engine_equals_select_and_applies_nothing_twice(
    delta: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(delta, live_server, database, tmp_path)
    begin = mirrored.options["startingOffset"]
    mirrored.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)"
    )
    for round_, engine in enumerate(["deltalake", "spark", "deltalake"], 1):
        mirrored.settings["engine"] = engine
        mirrored.execute(
            f"UPDATE t SET v = {round_}, id = id + {10 * round_} WHERE id < 3",
            f"INSERT INTO t VALUES ({-round_}, 9)",
        )
        mirrored.run()
        mirrored.assert_equal("t")
    version = mirrored.delta("t").version()
    # The binlog is read again from the start; all of its changes are applied already.
    mirrored.options["startingOffset"] = begin
    for engine in ("spark", "deltalake"):
        mirrored.settings["engine"] = engine
        mirrored.run(f"another checkpoint of {engine}")
        assert mirrored.delta("t").version() == version
    mirrored.assert_equal("t")


def test_spark_engine_without_delta_jars_raises_option_error(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(spark, live_server, database, tmp_path)
    mirrored.settings["engine"] = "spark"
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with pytest.raises(Exception, match="needs a session with Delta's jars") as raised:
        mirrored.run()
    assert isinstance(cause_of(raised.value), OptionError)


def test_change_logs_with_engine_spark_are_written_by_delta_rs(
    delta: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> None:
    mirrored = MirroredDatabase(delta, live_server, database, tmp_path)
    mirrored.settings |= {"engine": "spark", "change_log": f"{tmp_path}/changes/{{table}}"}
    mirrored.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    mirrored.run()
    mirrored.execute("DELETE FROM t WHERE id = 1")
    mirrored.run()
    mirrored.assert_equal("t")
    changes = DeltaTable(tmp_path / "changes" / "t")
    assert changes.to_pyarrow_table().column("op").to_pylist().count("d") == 1
    assert {str(each["engineInfo"])[:8] for each in changes.history()} == {"delta-rs"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "delta"}, "expected one of deltalake, spark, auto, found 'delta'"),
        ({"engine": "spark", "storage_options": {"a": "b"}}, "only delta-rs uses them"),
    ],
)
def test_unknown_engine_or_storage_options_with_spark_raises_option_error(
    settings: dict[str, Any], said: str
) -> None:
    options = {"host": "h", "user": "u", "tables": "a.b"}
    with pytest.raises(OptionError, match=said):
        DeltaMirror("/lake/{table}", "/checkpoint", options, **settings)
