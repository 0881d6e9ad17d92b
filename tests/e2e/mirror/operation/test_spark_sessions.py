"""Sessions, threads and frames of the Spark engine; they need none of Delta's jars."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Barrier, Thread

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from helpers.waiting import patience
from pyspark_mysqlbinlog.connector.delta.query.parallel import map_in_threads
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.store.spark.memory import OpenTables
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import SparkSessions
from pyspark_mysqlbinlog.connector.delta.store.spark.versions import METADATA, SETTINGS, SparkTable


def test_arrow_table_with_empty_chunks_keeps_all_its_rows_in_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"id": pa.chunked_array([[1, 2], [], [3], [], [], [4]], pa.int32())})
    sessions = SparkSessions(spark, SETTINGS)
    table = SparkTable(str(tmp_path / "t"), sessions, OpenTables(spark))
    fields = from_arrow_schema(rows.schema)
    with table.frame(rows, fields) as frame:
        assert Counter(frame.toArrow().column("id").to_pylist()) == Counter([1, 2, 3, 4])
    nested = pa.table({SEQ: pa.nulls(2, SEQ_TYPE)}).slice(0, 0)
    with table.frame(nested, from_arrow_schema(nested.schema)) as frame:
        assert frame.count() == 0


def test_threads_reuse_sessions_without_the_settings_of_ended_threads(spark: SparkSession) -> None:
    sessions = SparkSessions(spark, SETTINGS)
    seen: list[SparkSession] = []

    def commit() -> None:
        session = sessions.of_thread()
        assert session is sessions.of_thread()
        assert session.conf.get(METADATA, None) is None
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        session.conf.set(METADATA, "left behind")
        seen.append(session)
        together.wait(patience(300))

    for count in (3, 1, 2, 3):
        together = Barrier(count)
        threads = [Thread(target=commit) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({*map(id, seen[-count:])}) == count
    assert len(seen) == 9
    assert len({*map(id, seen)}) == 3
    assert spark.conf.get(METADATA, None) is None


def test_threads_inherit_properties_and_do_not_share_them(spark: SparkSession) -> None:
    """Spark stores the ID of the query that runs in a thread as such a property."""
    context = spark.sparkContext
    together = Barrier(4)

    def write(number: int) -> tuple[str | None, str | None]:
        inherited = context.getLocalProperty("p")
        together.wait(patience(300))
        context.setLocalProperty("p", str(number))
        together.wait(patience(300))
        return inherited, context.getLocalProperty("p")

    context.setLocalProperty("p", "the caller's")
    try:
        found = [*map_in_threads(write, range(4), spark)]
        assert context.getLocalProperty("p") == "the caller's"
    finally:
        # None removes the property, which PySpark's annotation does not allow.
        context.setLocalProperty("p", None)  # type: ignore[arg-type]
    assert found == [("the caller's", str(number)) for number in range(4)]
