"""The mirror: one streaming query, and a Delta table for each MySQL table, kept in step.

Each batch is collected as Arrow, and goes through these steps, table by table::

    changes --> in order --> states, by schema version --> last state per key --> merge

What a table looks like comes from the offset at which the batch ends (see `batch_offsets`), how
far its Delta table has come from Delta (see `marks`). A table that can't be kept equal to the
server's is stopped, with a word on what to do, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.batch_offsets import BatchOffsets
from pyspark_mysqlbinlog.connector.delta.deltalake_engine import DeltalakeEngine
from pyspark_mysqlbinlog.connector.delta.engine import Engine
from pyspark_mysqlbinlog.connector.delta.marks import Mark
from pyspark_mysqlbinlog.connector.delta.mirrored_table import BatchEnd, MirroredTable
from pyspark_mysqlbinlog.connector.delta.targets import Targets
from pyspark_mysqlbinlog.connector.options.log_lines import show_log_lines
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.errors import MirrorError, OptionError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DeltaMirror"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

_LOG = logging.getLogger(__name__)
# What the mirror's stream must be.
_SETTLED = {
    "payload": "json",
    "jsonType": "text",
    "operations": "insert,update,delete,truncate,ddl",
}


class DeltaMirror:
    """A Delta table for each MySQL table, kept equal to it.

    Parameters
    ----------
    target
        A path or URI with ``{database}`` and ``{table}`` in it.
    checkpoint
        Where Spark keeps how far the query has come; a folder of this mirror alone.
    options
        The options of the source (docs/options.md): server, account, tables, where to begin.
        `payload` and `operations` are the mirror's.
    storage_options
        What delta-rs needs to know of an object store.

    Examples
    --------
    >>> mirror = DeltaMirror(
    ...     target="/lake/{database}/{table}",
    ...     checkpoint="/lake/_checkpoints/shop",
    ...     options={"host": "db.example", "user": "spark", "passwordFile": "pw",
    ...              "tables": "shop.*"},
    ... )
    >>> mirror.start(spark).awaitTermination()  # doctest: +SKIP
    """

    def __init__(
        self,
        target: str,
        checkpoint: str,
        options: Mapping[str, Any],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        given = {name.lower() for name in options}
        for name in _SETTLED:
            if name in given:
                raise OptionError(f"option {name}: a mirror sets it; leave it out")
        texts = {name: str(value) for name, value in options.items()} | _SETTLED
        parsed = parse_options(texts)
        self._options = texts
        self._checkpoint = checkpoint
        self._wants = parsed.table_filter().wants
        self._excluded = parsed.column_filter()
        self._targets = Targets.parse(target)
        self._engine: Engine = DeltalakeEngine(storage_options)
        self._offsets = BatchOffsets(checkpoint)
        self._tables: dict[Table, MirroredTable] = {}
        self._history: tuple[str, SchemaHistory] = ("", SchemaHistory())

    def start(self, spark: SparkSession, **trigger: Any) -> StreamingQuery:
        """Start the query.

        trigger : as `DataStreamWriter.trigger` takes it: ``availableNow=True``,
            ``processingTime="1 second"``.
        """
        writer = (
            spark.readStream.format("mysqlbinlog")
            .options(**self._options)
            .load()
            .writeStream.foreachBatch(self)
            .option("checkpointLocation", self._checkpoint)
        )
        if trigger:
            writer = writer.trigger(**trigger)
        return writer.start()

    def __getstate__(self) -> dict[str, Any]:
        # Spark Connect runs batches in another process; what was opened stays in this one.
        return self.__dict__ | {"_tables": {}}

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Bring one batch in; what foreachBatch calls."""
        show_log_lines()
        end = self._offsets.end(batch.sparkSession, number)
        history = self._history_of(end)
        by_table = _by_table(_collected(batch))
        errors = []
        for name in sorted({*by_table, *filter(lambda each: self._wants(*each), history.tables())}):
            try:
                self._bring_in(name, by_table.get(name), self._end_of(name, end, history))
            except Exception as error:  # noqa: BLE001 (raised when the other tables are done)
                errors.append(error)
        if errors:
            raise errors[0]
        stopped = [table for table in self._tables.values() if table.stopped is not None]
        if stopped and len(stopped) == len(self._tables):
            raise MirrorError(f"every table is stopped; the first: {stopped[0].stopped}")

    def _bring_in(self, name: Table, changes: pa.Table | None, end: BatchEnd) -> None:
        """One table's part of a batch; a table that can't be kept equal is stopped."""
        table = self._tables.get(name)
        if table is None:
            target = self._engine.target(self._targets.of(name))
            table = self._tables[name] = MirroredTable(".".join(name), target)
            if table.stopped is not None:
                _LOG.error("%s.%s is stopped since earlier: %s", *name, table.stopped)
        if table.stopped is not None:
            return
        try:
            if changes is not None:
                table.apply(changes, end)
            else:
                table.shape(end)
        except MirrorError as error:
            _LOG.error("%s.%s is kept in step no more: %s", *name, error.message)
            table.stop(error)

    def _history_of(self, end: Offset) -> SchemaHistory:
        if self._history[0] != end.schemas:
            self._history = end.schemas, SchemaHistory.unpack(end.schemas)
        return self._history[1]

    def _end_of(self, name: Table, end: Offset, history: SchemaHistory) -> BatchEnd:
        versions = tuple(self._without_excluded(each) for each in history.versions(*name))
        return BatchEnd(versions, end.position, Mark.of(end))

    def _without_excluded(self, version: Version) -> Version:
        start, what = version
        if not isinstance(what, TableSchema):
            return version
        kept = tuple(
            column
            for column in what.columns
            if not self._excluded.excludes(what.database, what.table, column.name)
        )
        return start, replace(what, columns=kept)


def _collected(batch: DataFrame) -> pa.Table:
    """What is needed of a batch's changes."""
    return batch.selectExpr(
        "op",
        "database",
        "table",
        "before",
        "after",
        "seq",
        "source.query AS query",
        "source.absent AS absent",
    ).toArrow()


def _by_table(changes: pa.Table) -> dict[Table, pa.Table]:
    """Each table's changes."""
    names = changes.select(["database", "table"]).group_by(["database", "table"]).aggregate([])
    parts = {}
    for row in names.to_pylist():
        is_its = pc.and_(
            pc.equal(changes.column("database"), row["database"]),
            pc.equal(changes.column("table"), row["table"]),
        )
        parts[row["database"], row["table"]] = changes.filter(is_its)
    return parts
