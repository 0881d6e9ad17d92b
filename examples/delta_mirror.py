"""A Delta table beside each MySQL table, kept in step: `foreachBatch` and a MERGE by primary key.

    python examples/delta_mirror.py --host db.example --user spark --password-file pw \
        --tables shop.customers,shop.orders --into /lake --checkpoint /lake/_checkpoints/shop

Of each key only the batch's last change counts, by `seq`. A batch that Spark runs again is not
applied twice: each merge commits the batch's number with it, as a Delta application transaction.
Delta is written by delta-rs (`pip install deltalake`): the JVM needs no jars.

Rows that were there before the log begins are not loaded: start at a log that has them all.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

__all__ = ["DeltaMirror"]


class DeltaMirror:
    """A function for `foreachBatch` over a stream of literal tables with the struct payload.

    Parameters
    ----------
    tables : ``database.table``, as in the stream's option `tables`.
    folder : where ``database/table`` becomes a Delta table.
    """

    def __init__(self, tables: Sequence[str], folder: Path | str) -> None:
        self._tables = [tuple(name.split(".", 1)) for name in tables]
        self._folder = Path(folder)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        # A checkpoint's id: batch numbers start again at 0 with a new checkpoint.
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        batch = batch.persist()
        for database, table in self._tables:
            # One literal table has its columns in `after`, several have `after.database.table`.
            image = "{}" if len(self._tables) == 1 else f"{{}}.`{database}`.`{table}`"
            changes = batch.where((F.col("database") == database) & (F.col("table") == table))
            path = self._folder / database / table
            _apply(changes, image, path, Transaction(f"mysqlbinlog-{query}", batch_id))
        batch.unpersist()


def _apply(changes: DataFrame, image: str, path: Path, transaction: Transaction) -> None:
    """Merge one table's changes of one batch."""
    first = changes.select("source.key").first()
    if first is None:
        return
    if not first.key:
        raise ValueError(f"{path}: a table without a primary key can't be merged")
    if DeltaTable.is_deltatable(str(path)):
        target = DeltaTable(path)
        applied = target.transaction_version(transaction.app_id)
        if applied is not None and applied >= transaction.version:
            return  # this batch was committed before, and runs again
    else:
        target = DeltaTable.create(path, _columns(changes, image))

    partition = F.col("source.query").rlike(r"(?is)\btruncate\s+partition\b")
    if changes.where("op = 't'").where(partition).take(1):
        # Which rows were in the partition, the log does not tell.
        raise ValueError(f"{path}: a partition was truncated; load the table anew")
    emptied = changes.where("op = 't'").orderBy(F.desc("seq")).select("seq.*").first()
    if emptied is not None:
        target.delete()
        changes = changes.where(_behind(emptied))

    rows = last_changes(changes, image, first.key).toArrow()
    target.merge(
        rows,
        " AND ".join(f"t.`{name}` = s.`{name}`" for name in first.key),
        source_alias="s",
        target_alias="t",
        commit_properties=CommitProperties(app_transactions=[transaction]),
    ).when_matched_delete("s.`_gone`").when_matched_update_all(
        except_cols=["_gone"]
    ).when_not_matched_insert_all("NOT s.`_gone`", except_cols=["_gone"]).execute()


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep Delta tables in step with MySQL tables.")
    for name in ("host", "user", "password-file", "tables", "into", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", default="3306")
    parser.add_argument("--starting-offset", default="earliest")
    given = parser.parse_args()
    spark = SparkSession.builder.appName("delta mirror").getOrCreate()
    changes = (
        spark.readStream.format("mysqlbinlog")
        .options(host=given.host, port=given.port, user=given.user)
        .options(passwordFile=given.password_file, tables=given.tables, payload="struct")
        .options(startingOffset=given.starting_offset)
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
