"""A Delta table beside each MySQL table, kept in step: `foreachBatch` and a MERGE by primary key.

    python examples/delta_mirror.py --host db.example --user spark --password-file pw \\
        --tables shop.customers,shop.orders --into /lake --checkpoint /lake/_checkpoints/shop

Of each key only the batch's last change counts, by `seq`: a batch that Spark runs again ends in the
same rows. Delta is written by delta-rs (`pip install deltalake`): the JVM needs no jars. It runs in
classic sessions and in Spark Connect, and needs `binlog_row_image=FULL` on the server.

Rows that were there before the start are not loaded. `--starting-offset earliest`, the default,
begins where the server's log begins, which is enough only where the log has the tables' CREATE
TABLE and all that came after it. A table that was created before and altered since stops the mirror
with UnknownSchemaError: nobody knows what its rows before the ALTER looked like. Load such a table
by a SELECT, and follow it from a position that was noted before (docs/loading.md).

A column that is added, without a value for the rows that are there, is added to the Delta table
when the mirror is started again. Whatever else the log does not tell row by row stops the mirror
with one line: it does not go on with other rows than the server has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from pyspark_mysqlbinlog import cause_of
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError, UnknownSchemaError

__all__ = ["OPTIONS", "DeltaMirror"]

# What a stream needs for the mirror: typed columns, and word of DDL that changes rows.
OPTIONS = {"payload": "struct", "operations": "insert,update,delete,truncate,ddl"}


class DeltaMirror:
    """A function for `foreachBatch` over a stream of literal tables with `OPTIONS`.

    Raises SchemaError where the Delta table can't be kept equal to the server's.

    Parameters
    ----------
    tables : ``database.table``, as in the stream's option `tables`.
    folder : where ``database/table`` becomes a Delta table.
    """

    def __init__(self, tables: Sequence[str], folder: Path | str) -> None:
        self._tables = [tuple(name.split(".", 1)) for name in tables]
        self._folder = Path(folder)

    def __call__(self, batch: DataFrame, _: int) -> None:
        batch = batch.persist()
        for database, table in self._tables:
            # One literal table has its columns in `after`, several have `after.database.table`.
            image = "{}" if len(self._tables) == 1 else f"{{}}.`{database}`.`{table}`"
            changes = batch.where((F.col("database") == database) & (F.col("table") == table))
            try:
                _apply(changes, image, self._folder / database / table)
            except SchemaError as error:
                raise error.at(table=f"{database}.{table}") from None
        batch.unpersist()


def _apply(changes: DataFrame, image: str, path: Path) -> None:
    """Merge one table's changes of one batch."""
    facts = _facts(changes)
    there = DeltaTable.is_deltatable(str(path))
    _expect_only_rows(facts, there=there)
    if not facts.keys:
        if there and facts.emptied is not None:
            DeltaTable(path).delete()
        return
    columns = _columns(changes, image)
    held = [field.name for field in DeltaTable(path).schema().fields] if there else []
    unheard = _never_there(changes, held)
    columns = pa.schema([field for field in columns if field.name not in unheard])
    target = DeltaTable(path) if there else DeltaTable.create(path, columns)
    _add_new_columns(target, Schema.from_arrow(columns))
    if facts.emptied is not None:
        target.delete()
        changes = changes.where(_behind(facts.emptied))
    key = facts.keys[0]
    target.merge(
        last_changes(changes, image, key).drop(*unheard).toArrow(),
        " AND ".join(f"t.`{name}` = s.`{name}`" for name in key),
        source_alias="s",
        target_alias="t",
    ).when_matched_delete("s.`_gone`").when_matched_update_all(
        except_cols=["_gone"]
    ).when_not_matched_insert_all("NOT s.`_gone`", except_cols=["_gone"]).execute()


def _facts(changes: DataFrame) -> Row:
    """What there is to know of a table's changes before they are merged, in one query."""
    is_row = F.col("op").isin("c", "u", "d")
    statement = F.struct("seq", "source.query")
    of_part = F.col("source.query").rlike(r"(?is)\btruncate\s+partition\b")
    facts = changes.agg(
        # The primary keys of the rows: an ALTER may change them.
        F.collect_set(F.when(is_row, F.col("source.key"))).alias("keys"),
        F.min(F.when(is_row, F.col("seq"))).alias("first"),
        F.max(F.when(F.col("op") == "ddl", statement)).alias("ddl"),
        F.max(F.when((F.col("op") == "t") & of_part, statement)).alias("part"),
        F.max(F.when((F.col("op") == "t") & ~of_part, F.col("seq"))).alias("emptied"),
        F.max("_rescued_data").alias("rescued"),
    ).first()
    assert facts is not None  # an aggregate has a row
    return facts


def _expect_only_rows(facts: Row, *, there: bool) -> None:
    """SchemaError where the log does not tell what became of the rows."""
    for statement in (facts.ddl, facts.part):
        # What was done to an empty table at its beginning does no harm.
        if statement is not None and (
            there or (facts.first is not None and facts.first < statement.seq)
        ):
            raise SchemaError(
                "a statement changed rows without telling the log which:"
                f" {statement.query[:200]!r}; load the table anew"
            )
    if facts.rescued is not None:
        raise SchemaError(
            f"values of columns that the table no longer has: {facts.rescued[:200]}; load the table"
            " anew"
        )
    if len(facts.keys) > 1:
        raise SchemaError(f"the primary key changed: {facts.keys}; load the table anew")
    if facts.keys and not facts.keys[0]:
        raise SchemaError("a table without a primary key can't be merged; leave it out")


def _never_there(changes: DataFrame, held: Sequence[str]) -> set[str]:
    """Columns that no new row of the batch has, since it is from before their ALTER.

    SchemaError where a row lacks a column that an earlier one had: such an image is partial, and
    what the column holds is not in the log.
    """
    lacking = F.filter(
        F.coalesce("source.absent", F.array().cast("array<string>")),
        # Others are of the row before, or dates that are no day.
        lambda name: name.startswith("after.") & ~name.contains("="),
    )
    groups = (
        changes.where(F.col("after").isNotNull())
        .groupBy(lacking.alias("lacking"))
        .agg(F.min("seq").alias("first"), F.max("seq").alias("last"))
        .collect()
    )
    unheard = set()
    for name in {name for group in groups for name in group.lacking}:
        last = max(group.last for group in groups if name in group.lacking)
        having = [group.first for group in groups if name not in group.lacking]
        column = name.removeprefix("after.")
        if column in held or (having and min(having) < last):
            raise SchemaError(
                f"the log has rows without {column}: set binlog_row_image=FULL everywhere, and load"
                " the table anew"
            )
        if not having:
            unheard.add(column)
    return unheard


def _add_new_columns(target: DeltaTable, columns: Schema) -> None:
    """Give the Delta table the columns that the server's table got meanwhile."""
    held = {field.name: field for field in target.schema().fields}
    lost = [name for name in held if name not in {field.name for field in columns.fields}]
    if lost:
        raise SchemaError(f"the server's table no longer has {lost}; load the table anew")
    for field in columns.fields:
        if field.name in held and held[field.name].type != field.type:
            raise SchemaError(
                f"{field.name} is {field.type} on the server and {held[field.name].type} in Delta;"
                " load the table anew"
            )
    added = [field for field in columns.fields if field.name not in held]
    if added:
        target.alter.add_columns(added)


def _behind(seq: Row) -> Column:
    """Changes with a greater `seq`."""
    kinds = {"epoch": "int", "file": "int", "pos": "bigint", "row": "int"}
    return F.col("seq") > F.struct(*(F.lit(seq[name]).cast(kind) for name, kind in kinds.items()))


def last_changes(changes: DataFrame, image: str, key: Sequence[str]) -> DataFrame:
    """Each key's last state: the table's columns, and `_gone` where its row was deleted.

    A row whose key changes is gone under the old one and there under the new one.
    """
    before = changes.where(F.col("before").isNotNull()).select(
        f"{image.format('before')}.*", "seq", F.lit(True).alias("_gone")
    )
    after = changes.where(F.col("after").isNotNull()).select(
        f"{image.format('after')}.*", "seq", F.lit(False).alias("_gone")
    )
    latest = Window.partitionBy(*(f"`{name}`" for name in key)).orderBy(F.desc("seq"), "_gone")
    states = before.unionByName(after).withColumn("_rank", F.row_number().over(latest))
    return states.where("_rank = 1").drop("_rank", "seq")


def _columns(changes: DataFrame, image: str) -> pa.Schema:
    """The table's columns, all nullable."""
    return changes.select(f"{image.format('after')}.*").limit(0).toArrow().schema


def _reason(error: MySQLBinlogError) -> str:
    """What went wrong and what to do, in one line."""
    hint = ""
    if isinstance(error, UnknownSchemaError):
        hint = (
            "; or the table was altered since the log begins: load it by a SELECT, and give"
            " --starting-offset the position from before it"
        )
    return f"{type(error).__name__}: {error}{hint}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep Delta tables in step with MySQL tables.")
    for name in ("host", "user", "password-file", "tables", "into", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", default="3306")
    parser.add_argument(
        "--starting-offset",
        default="earliest",
        help="where a new checkpoint begins; earliest needs a log with each table's CREATE TABLE",
    )
    given = parser.parse_args()
    print(
        f"Changes from {given.starting_offset} on (or from the checkpoint) go into {given.into}."
        " Rows that were there before and do not change are not loaded.",
        flush=True,
    )
    try:
        _run(given)
    except PySparkException as exception:
        error = cause_of(exception)
        if error is None:
            raise
        sys.exit(_reason(error))


def _run(given: Any) -> None:
    spark = SparkSession.builder.appName("delta mirror").getOrCreate()
    changes = (
        spark.readStream.format("mysqlbinlog")
        .options(host=given.host, port=given.port, user=given.user)
        .options(passwordFile=given.password_file, tables=given.tables)
        .options(startingOffset=given.starting_offset, **OPTIONS)
        .load()
    )
    query = (
        changes.writeStream.foreachBatch(DeltaMirror(given.tables.split(","), given.into))
        .option("checkpointLocation", given.checkpoint)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
