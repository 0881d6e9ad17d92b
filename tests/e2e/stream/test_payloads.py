"""The payloads struct, json and variant through Spark, of recorded binlogs and a live server.

The expected result is SELECT, compared by replaying the changes. Variants are also read by
Spark's JVM, which must return the same values as pyspark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType, VariantType

from helpers.logs.recorded_logs import CASCADES, DEFAULTS, SCENARIOS, describe, some_batches
from helpers.parity.decoding import CAPTURED
from helpers.parity.payload_faces import as_json_rows
from helpers.replay import Replay, captured_schemas
from helpers.servers import Server
from helpers.streams.spark_session import Reads
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def read_path(spark: SparkSession, scenario: str, **options: str) -> DataFrame:
    """Return the changes of a scenario, with each of its tables named literally."""
    database = describe(scenario)["database"]
    tables = ", ".join(f"`{database}`.`{table}`" for table in describe(scenario)["tables"])
    frame = spark.read.format("mysqlbinlog").options(
        **{"path": str(CAPTURED / f"{scenario}.*.binlog"), "tables": tables} | options
    )
    return frame.load()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Return rows with Arrow's values, because collect() drops the time zone of timestamps.

    Variants are collected, because pyspark's toArrow() fails for a null variant; their bytes
    contain the time zones.
    """
    if frame.schema["after"].dataType != VariantType():
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
        return rows
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        for side in ("before", "after"):
            if row[side] is not None:
                row[side] = {"value": row[side].value, "metadata": row[side].metadata}
    return rows


@pytest.mark.sample(11)
@pytest.mark.parametrize("payload", ["struct", "json", "variant"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_logs_in_every_payload_equal_select(
    scenario: str, payload: str, spark: SparkSession
) -> None:
    schemas = captured_schemas(describe(scenario))
    rows: Any = rows_of(read_path(spark, scenario, payload=payload))
    replay = Replay(schemas, DEFAULTS.get(scenario), CASCADES.get(scenario))
    replay.apply(rows if payload == "json" else as_json_rows(rows, schemas, payload))
    assert replay.count > 0
    for name, table in describe(scenario)["tables"].items():
        replay.assert_equals(describe(scenario)["database"], name, table["rows"])


@pytest.mark.sample(3)
@pytest.mark.parametrize("payload", ["struct", "variant"])
@pytest.mark.parametrize("several", [False, True], ids=["one batch", "several batches"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_streamed_recorded_logs_equal_select(
    scenario: str,
    payload: str,
    *,
    several: bool,
    spark: SparkSession,
    serve_captured: Callable[[str], Server],
    tmp_path: Path,
) -> None:
    """The server has the binlogs but not the tables, so the schema is given."""
    server = serve_captured(scenario)
    schemas = captured_schemas(describe(scenario))
    known = read_path(spark, scenario, payload=payload).schema
    options = {
        "tables": ", ".join(f"`{schema.database}`.`{schema.table}`" for schema in schemas),
        "startingOffset": "earliest",
        "maxBytesPerTrigger": str(some_batches(scenario)) if several else "1g",
        "payload": payload,
    }
    reader = spark.readStream.format("mysqlbinlog").schema(known)
    batches: list[list[dict[str, Any]]] = []
    query = (
        reader.options(**Reads(spark, server).options | options)
        .load()
        .writeStream.foreachBatch(lambda frame, _: batches.append(rows_of(frame)))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert (sum(len(batch) > 0 for batch in batches) > 1) == several
    replay = Replay(schemas, DEFAULTS.get(scenario), CASCADES.get(scenario))
    for batch in batches:
        replay.apply(as_json_rows(batch, schemas, payload))
    assert replay.count > 0
    for schema in schemas:
        rows = describe(scenario)["tables"][schema.table]["rows"]
        replay.assert_equals(schema.database, schema.table, rows)


# --- variants read by Spark


def exact(text: str) -> Any:
    """Return a JSON text as values; numbers are equal regardless of trailing zeros."""
    return json.loads(text, parse_int=Decimal, parse_float=Decimal, strict=False)


@pytest.mark.parametrize("scenario", ["strings", "charsets", "json_docs", "geometry", "wide"])
def test_to_json_of_a_variant_equals_the_json_payload(scenario: str, spark: SparkSession) -> None:
    variant = read_path(spark, scenario, payload="variant")
    texts = variant.select(
        "seq", sf.to_json("before").alias("before"), sf.to_json("after").alias("after")
    )
    found = [row.asDict(recursive=True) for row in texts.collect()]
    expected = read_path(spark, scenario, payload="json").select("seq", "before", "after").collect()
    assert len(found) == len(expected) > 0
    for found_row, expected_row in zip(
        found, (row.asDict(recursive=True) for row in expected), strict=True
    ):
        assert found_row["seq"] == expected_row["seq"]
        for side in ("before", "after"):
            assert (found_row[side] is None) == (expected_row[side] is None)
            if found_row[side] is not None:
                assert exact(found_row[side]) == exact(expected_row[side])


def test_json_document_in_a_variant_keeps_its_types(spark: SparkSession) -> None:
    frame = read_path(spark, "json_docs", payload="variant").where("op = 'c'")
    kinds = frame.select(sf.schema_of_variant(sf.expr("variant_get(after, '$.j')")).alias("kind"))
    found = {row.kind for row in kinds.distinct().collect()}
    assert {"BIGINT", "DOUBLE", "STRING", "BOOLEAN", "VOID"} <= found
    assert any(kind.startswith("ARRAY<") for kind in found)
    assert any(kind.startswith("OBJECT<") for kind in found)


# --- a live table of all types

# column, definition, SELECT expression, literals of three rows
COLUMNS: list[tuple[ColumnSchema, str, str, tuple[str, str, str]]] = [
    (ColumnSchema("id", "int", nullable=False), "INT NOT NULL PRIMARY KEY", "id", ("1", "2", "3")),
    (ColumnSchema("t1", "tinyint", 1), "TINYINT(1)", "t1", ("1", "-128", "NULL")),
    (ColumnSchema("tu", "tinyint", unsigned=True), "TINYINT UNSIGNED", "tu", ("255", "0", "NULL")),
    (ColumnSchema("bu", "bigint", unsigned=True), "BIGINT UNSIGNED", "bu",
     ("18446744073709551615", "9223372036854775808", "NULL")),
    (ColumnSchema("d38", "decimal", 38, 10), "DECIMAL(38,10)", "d38",
     ("9999999999999999999999999999.9999999999", "-0.0000000001", "NULL")),
    (ColumnSchema("d65", "decimal", 65, 30), "DECIMAL(65,30)", "d65",
     ("-12345678901234567890123456789012345.000000000000000000000000000001", "0", "NULL")),
    (ColumnSchema("f", "float"), "FLOAT", "f", ("1.5", "-3.25e10", "NULL")),
    (ColumnSchema("g", "double"), "DOUBLE", "g", ("1.7976931348623157e308", "-0.1", "NULL")),
    (ColumnSchema("b1", "bit", 1), "BIT(1)", "HEX(b1)", ("b'1'", "b'0'", "NULL")),
    (ColumnSchema("b64", "bit", 64), "BIT(64)", "HEX(b64)",
     ("0xFFFFFFFFFFFFFFFF", "5", "NULL")),
    (ColumnSchema("v", "varchar", 20, charset="utf8mb4"), "VARCHAR(20) CHARACTER SET utf8mb4", "v",
     ("'🚀 and \\\\ \"'", "''", "NULL")),
    (ColumnSchema("bin", "binary", 4), "BINARY(4)", "HEX(bin)", ("0x01", "0x00000000", "NULL")),
    (ColumnSchema("bl", "blob"), "BLOB", "HEX(bl)", ("0xFF00FE", "''", "NULL")),
    (ColumnSchema("e", "enum", charset="utf8mb4", labels=("new", "päid")),
     "ENUM('new','päid') CHARACTER SET utf8mb4", "e", ("'päid'", "'new'", "NULL")),
    (ColumnSchema("s", "set", charset="utf8mb4", labels=("a", "b")),
     "SET('a','b') CHARACTER SET utf8mb4", "s", ("'b,a'", "''", "NULL")),
    (ColumnSchema("da", "date"), "DATE", "da", ("'1000-01-01'", "'0000-00-00'", "NULL")),
    (ColumnSchema("dt", "datetime", 3), "DATETIME(3)", "dt",
     ("'9999-12-31 23:59:59.999'", "'2026-11-00 10:00:00.5'", "NULL")),
    (ColumnSchema("ts", "timestamp", 6), "TIMESTAMP(6) NULL", "ts",
     ("'2026-11-20 10:00:00.000001'", "'0000-00-00 00:00:00'", "NULL")),
    (ColumnSchema("ti", "time", 2), "TIME(2)", "ti", ("'-838:59:58.99'", "'00:00:00.01'", "NULL")),
    (ColumnSchema("y", "year"), "YEAR", "y", ("2155", "0000", "NULL")),
    (ColumnSchema("p", "point"), "POINT", "HEX(p)",
     ("ST_GeomFromText('POINT(1 -2)', 4326)", "ST_GeomFromText('POINT(0 0)')", "NULL")),
]  # fmt: skip
STRUCT = (
    "struct<id:int,t1:tinyint,tu:smallint,bu:decimal(20,0),d38:decimal(38,10),d65:string,f:float,"
    "g:double,b1:boolean,b64:decimal(20,0),v:string,bin:binary,bl:binary,e:string,s:string,"
    "da:date,dt:timestamp_ntz,ts:timestamp,ti:string,y:int,p:struct<srid:int,wkb:binary>>"
)
ZEROS = ["da=0000-00-00", "dt=2026-11-00 10:00:00.500", "ts=0000-00-00 00:00:00.000000"]
Live = tuple[Reads, str, dict[str, str]]


@pytest.fixture
def live(spark: SparkSession, live_server: Server, database: str) -> Live:
    """Return reads of the live server, a database, and the options for its table `every`."""
    return Reads(spark, live_server), database, write_every(live_server, database)


def write_every(server: Server, database: str) -> dict[str, str]:
    """Create and change the table `every`; return the options that read only these changes."""
    definitions = ", ".join(f"`{column.name}` {text}" for column, text, _, _ in COLUMNS)
    rows = [", ".join(literals[at] for _, _, _, literals in COLUMNS) for at in range(3)]
    server.execute(f"CREATE TABLE `{database}`.every ({definitions}) ENGINE=InnoDB")
    file, pos = server.position()
    server.execute(
        "SET time_zone = '+00:00', sql_mode = ''",
        *(f"INSERT INTO every VALUES ({row})" for row in rows),
        "UPDATE every SET v = 'changed', t1 = 7 WHERE id = 2",
        "INSERT INTO every (id) VALUES (4)",
        "DELETE FROM every WHERE id = 4",
        database=database,
    )
    return {"tables": f"{database}.every", "startingOffset": f"{file}:{pos}"}


def every(database: str) -> TableSchema:
    return TableSchema(database, "every", tuple(column for column, *_ in COLUMNS), ("id",))


def select(server: Server, database: str) -> list[tuple[str | None, ...]]:
    """Return the rows that SELECT shows, as text."""
    shown = ", ".join(f"CAST({text} AS CHAR)" for _, _, text, _ in COLUMNS)
    return server.execute(
        "SET time_zone = '+00:00', sql_mode = '', NAMES utf8mb4",
        f"SELECT {shown} FROM every",
        database=database,
    )


@pytest.mark.parametrize("payload", ["struct", "json", "variant"])
def test_live_table_of_all_types_equals_select(
    payload: str, live: Live, live_server: Server, tmp_path: Path
) -> None:
    reads, database, options = live
    schema = every(database)
    streamed: list[dict[str, Any]] = []
    query = (
        reads.stream(**options, payload=payload)
        .writeStream.foreachBatch(lambda frame, _: streamed.extend(rows_of(frame)))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batch = rows_of(reads.batch(**options, payload=payload))
    assert batch == streamed
    replay = Replay([schema])
    replay.apply(batch if payload == "json" else as_json_rows(batch, [schema], payload))
    assert replay.count == 6
    replay.assert_equals(database, "every", select(live_server, database))


@pytest.mark.parametrize("metadata", ["NO_LOG", "FULL"])
def test_mariadb_table_of_all_types_equals_select(
    metadata: str, spark: SparkSession, mariadb: Server
) -> None:
    """Column metadata in the binlog (FULL) does not change the types of the columns."""
    database = f"payloads_{metadata.lower()}"
    (before,) = mariadb.execute("SELECT @@GLOBAL.binlog_row_metadata")[0]
    mariadb.execute(f"CREATE DATABASE {database}", f"SET GLOBAL binlog_row_metadata = {metadata}")
    try:
        options = write_every(mariadb, database)
    finally:
        mariadb.execute(f"SET GLOBAL binlog_row_metadata = {before}")
    reads, schema = Reads(spark, mariadb), every(database)
    for payload in ("struct", "variant"):
        rows = rows_of(reads.batch(**options, payload=payload))
        replay = Replay([schema])
        replay.apply(as_json_rows(rows, [schema], payload))
        assert replay.count == 6
        replay.assert_equals(database, "every", select(mariadb, database))
    boolean = reads.batch(**options, payload="struct", tinyInt1IsBoolean="true")
    assert boolean.where("op = 'c' and after.t1").count() == 2
    mariadb.execute(f"DROP DATABASE {database}")


def test_struct_is_the_default_payload_of_one_table(live: Live) -> None:
    reads, _, options = live
    del reads.options["payload"]
    frame = reads.batch(**options)
    assert frame.schema["after"].dataType.simpleString() == STRUCT
    assert frame.schema["before"].dataType == frame.schema["after"].dataType
    found = frame.where("op = 'c' and after.id = 2").select("source.invalid_dates").collect()
    assert [row.invalid_dates for row in found] == [[f"after.{zero}" for zero in ZEROS]]
    update = frame.where("op = 'u'").select("source.invalid_dates", "before.v", "after.v").collect()
    assert [list(row) for row in update] == [
        [[f"{side}.{zero}" for side in ("before", "after") for zero in ZEROS], "", "changed"]
    ]
    assert frame.where("source.invalid_dates is null").count() == 4
    assert frame.where("source.missing is not null").count() == 0
    # Conditions on typed columns need no cast and no parsing.
    assert frame.where("after.bu = 18446744073709551615 and after.b1").count() == 1
    assert frame.where("after.ts = timestamp '2026-11-20 10:00:00.000001 UTC'").count() == 1
    assert frame.where("after.dt = timestamp_ntz '9999-12-31 23:59:59.999'").count() == 1


def test_time_type_and_tiny_int_options_change_the_struct_types(live: Live) -> None:
    reads, _, options = live
    frame = reads.batch(
        **options, payload="struct", timeType="interval", tinyInt1IsBoolean="true"
    ).where("op = 'c' and after.id < 4")
    assert "ti:interval day to second" in frame.schema["after"].dataType.simpleString()
    found = frame.orderBy("after.id").selectExpr("cast(after.ti as string) ti", "after.t1")
    assert [tuple(row) for row in found.collect()] == [
        ("INTERVAL '-34 22:59:58.99' DAY TO SECOND", True),
        ("INTERVAL '0 00:00:00.01' DAY TO SECOND", True),
        (None, None),
    ]
    micros = reads.batch(**options, payload="struct", timeType="micros").where("op = 'c'")
    assert [row.ti for row in micros.orderBy("after.id").select("after.ti").collect()] == [
        -3_020_398_990_000, 10_000, None, None
    ]  # fmt: skip


def test_zero_date_with_zero_dates_fail_is_rejected(live: Live) -> None:
    reads, database, options = live
    with pytest.raises(PySparkException) as caught:
        reads.batch(**options, payload="struct", zeroDates="fail").collect()
    message = (
        "UnrepresentableValueError: column `da` holds the invalid date 0000-00-00, and"
        " zeroDates=fail; correct the value on the server, or set zeroDates=null (at "
    )
    assert message in str(caught.value)
    assert f", table {database}.every)" in str(caught.value)


def test_spark_reads_types_and_values_of_a_variant(live: Live) -> None:
    reads, _, options = live
    frame = reads.batch(**options, payload="variant").where("op = 'c'")
    first = frame.where("variant_get(after, '$.id', 'int') = 1")
    kinds = first.select(sf.schema_of_variant("after")).first()
    assert kinds is not None
    assert kinds[0] == (
        "OBJECT<b1: BOOLEAN, b64: DECIMAL(20,0), bin: BINARY, bl: BINARY, bu: DECIMAL(20,0),"
        " d38: DECIMAL(38,10), d65: STRING, da: DATE, dt: TIMESTAMP_NTZ, e: STRING, f: FLOAT,"
        " g: DOUBLE, id: BIGINT, p: OBJECT<srid: BIGINT, wkb: BINARY>, s: STRING, t1: BIGINT,"
        " ti: STRING, ts: TIMESTAMP, tu: BIGINT, v: STRING, y: BIGINT>"
    )
    got = first.selectExpr(
        "variant_get(after, '$.bu', 'decimal(20,0)')",
        "variant_get(after, '$.d38', 'string')",
        "variant_get(after, '$.v', 'string')",
        "variant_get(after, '$.p.srid', 'int')",
        "hex(variant_get(after, '$.bin', 'binary'))",
        "cast(variant_get(after, '$.ts', 'timestamp') as string)",
        "cast(variant_get(after, '$.dt', 'timestamp_ntz') as string)",
    ).first()
    assert got is not None
    assert list(got) == [
        Decimal(2**64 - 1),
        "9999999999999999999999999999.9999999999",
        '🚀 and \\ "',
        4326,
        "01000000",
        "2026-11-20 10:00:00.000001",
        "9999-12-31 23:59:59.999",
    ]
    zero = frame.where("variant_get(after, '$.id', 'int') = 2").selectExpr("to_json(after)").first()
    assert zero is not None
    assert json.loads(zero[0])["da"] == "0000-00-00"
    assert json.loads(zero[0])["dt"] == "2026-11-00 10:00:00.500"


# --- several tables, excluded columns, given schemas


def test_struct_of_several_tables_is_nested_without_excluded_columns(
    live: Live, live_server: Server, database: str
) -> None:
    reads, _, options = live
    live_server.execute(
        "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20), mail VARCHAR(20), pw BLOB)",
        database=database,
    )
    file, pos = live_server.position()
    live_server.execute(
        "INSERT INTO people VALUES (1, 'Ann', 'a@x', 'secret')",
        "INSERT INTO every (id) VALUES (9)",
        "DELETE FROM people",
        database=database,
    )
    options = {
        "startingOffset": f"{file}:{pos}",
        "tables": f"{database}.every, {database}.people",
        "excludeColumns": f"{database}.people.MAIL, *.people.pw, /.*[.]every[.](?!id$).*/",
    }
    frame = reads.batch(**options, payload="struct")
    assert frame.schema["after"].dataType.simpleString() == (
        f"struct<{database}:struct<every:struct<id:int>,people:struct<id:int,name:string>>>"
    )
    rows = [row.asDict(recursive=True) for row in frame.orderBy("seq").collect()]
    ann = {database: {"every": None, "people": {"id": 1, "name": "Ann"}}}
    assert [(row["before"], row["after"], row["source"]["missing"]) for row in rows] == [
        (None, ann, None),
        (None, {database: {"every": {"id": 9}, "people": None}}, None),
        (ann, None, None),
    ]
    for payload in ("json", "variant"):
        texts = reads.batch(**options, payload=payload).orderBy("seq")
        if payload == "variant":
            texts = texts.withColumn("after", sf.to_json("after"))
        found = [row.after for row in texts.select("after").collect()]
        assert found == ['{"id":1,"name":"Ann"}', '{"id":9}', None]


def test_misspelled_excluded_column_raises_option_error(live: Live) -> None:
    reads, database, options = live
    excluded = f"{database}.every.v, {database}.every.secret"
    with pytest.raises(PySparkException, match="OptionError: option excludeColumns: the table has"):
        reads.batch(**options, payload="json", excludeColumns=excluded).collect()


def test_given_schema_that_lacks_a_column_or_has_wrong_types_is_rejected(live: Live) -> None:
    reads, _, options = live
    strict = {"payload": "struct", "schemaEvolutionMode": "failOnNewColumns"}
    full = reads.batch(**options, **strict).schema
    kind = full["after"].dataType
    assert isinstance(kind, StructType)

    def given(fields: list[Any]) -> DataFrame:
        fields = [
            type(each)(each.name, StructType(fields)) if each.name in ("before", "after") else each
            for each in full
        ]
        reader = reads.spark.read.format("mysqlbinlog").schema(StructType(fields))
        return reader.options(**reads.options | options | strict).load()

    assert given(list(kind)).count() == 6
    subset = given(list(kind)[:-1])
    with pytest.raises(PySparkException, match=r"SchemaChangedError: column `p` .* in the binlog"):
        subset.collect()
    wrong = reads.spark.read.format("mysqlbinlog").schema("op string, after string")
    wrong = wrong.options(**reads.options | options)
    with pytest.raises(PySparkException, match=r"OptionError: the schema is .* remove .schema"):
        wrong.load().collect()


# --- the checkpoint keeps its payload


def test_a_checkpoint_does_not_change_its_payload_by_default(
    live: Live, live_server: Server, database: str, tmp_path: Path
) -> None:
    reads, _, options = live
    del reads.options["payload"]
    wide = options | {"tables": f"{database}.every*"}

    def run(**options: str) -> list[str]:
        """Return the type of `after` in each batch with rows of one AvailableNow run."""
        live_server.execute("DELETE FROM every WHERE id = 3", database=database)
        live_server.execute("INSERT INTO every (id) VALUES (3)", database=database)
        kinds: list[str] = []
        query = (
            reads.stream(**options)
            .writeStream.foreachBatch(
                lambda frame, _: kinds.extend(
                    [frame.schema["after"].dataType.typeName()] * (frame.count() > 0)
                )
            )
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return kinds

    assert run(**wide) == ["string"]
    with pytest.raises(StreamingQueryException) as caught:
        run(**options)
    assert (
        "OptionError: option payload: the checkpoint has payload=json, and this query would"
        " change it to struct by default; set payload=json to keep it, or payload=struct to change"
        " it"
    ) in str(caught.value)
    assert run(**options, payload="json") == ["string"]
    assert run(**options, payload="struct") == ["struct"]
    assert run(**options) == ["struct"]
    with pytest.raises(StreamingQueryException, match="would change it to json by default"):
        run(**wide)
    assert run(**wide, payload="variant") == ["variant"]
