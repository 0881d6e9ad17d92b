"""The mirror: one streaming query, and a Delta table for each MySQL table, kept in sync.

The query's batches are applied by `batch_runner`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.connector.delta.query.batch_runner import BatchRunner
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.manager import (
    use_filesystem_checkpoint_manager,
)
from pyspark_mysqlbinlog.connector.delta.query.lost_batch import change_lost_batch
from pyspark_mysqlbinlog.connector.delta.query.progress import (
    MirrorProgress,
)
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import Engine
from pyspark_mysqlbinlog.connector.delta.store.maintenance import Maintenance
from pyspark_mysqlbinlog.connector.delta.store.places.templates import MirrorPlaces
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import is_classic
from pyspark_mysqlbinlog.connector.options.checks import check_stream
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.options.values import parse_duration
from pyspark_mysqlbinlog.connector.ranges.handoff import HANDOFF_OPTION, BatchHandoff
from pyspark_mysqlbinlog.connector.source.arrow_ipc import IPC_ROWS, SLIM_IPC_ROWS
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DeltaMirror", "mirror_options"]

_LOG = logging.getLogger(__name__)

# A batch is collected in the driver's memory, where it takes up to 20 times its binlog bytes.
_DEFAULT_MAX_BYTES = "32m"
# Source options that the mirror requires.
_FIXED_OPTIONS = {
    "payload": "json",
    "jsonType": "text",
    "operations": "insert,update,delete,truncate,ddl",
    "snapshotExactKeyless": "true",
}


class DeltaMirror:
    """A streaming query that replicates MySQL tables to Delta tables, change logs, or both.

    Parameters
    ----------
    target
        Path or URI of the Delta tables, with ``{database}`` and ``{table}`` in it; or, with engine
        ``spark``, their name in a catalog: ``main.{database}.{table}``. None for change logs only.
    checkpoint
        Spark's checkpoint directory of this mirror; no other query can use it.
    options
        Options of the source (docs/reference/options.md): server, account, tables. The mirror sets
        `payload`, `jsonType`, `operations` and `snapshotExactKeyless`. `startingOffset` defaults to
        ``snapshot``.
    change_log
        Path or URI of the change logs, with ``{database}`` and ``{table}`` in it: every change is
        appended there.
    engine
        Writer of the Delta tables: ``deltalake`` (delta-rs, in this process), ``spark`` (Delta's
        jars in the Spark session), or ``auto`` (``spark`` if the session has Delta's extension).
    storage_options
        Settings of delta-rs for an object store, such as credentials.
    table_properties
        Properties of new Delta tables, such as ``delta.targetFileSize``.
    partition_by
        ``database.table`` -> partition columns of its Delta table, when it is created.
    soft_delete
        Keep deleted rows, with true in the column `_deleted`.
    maintenance_interval
        How often each table's files are compacted and vacuumed, such as ``1h``; None for never.

    Attributes
    ----------
    query_id
        Identifier of Spark's query, stored in the checkpoint; None before the first start.

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
        target: str | None,
        checkpoint: str,
        options: Mapping[str, Any],
        *,
        change_log: str | None = None,
        engine: str = "deltalake",
        storage_options: Mapping[str, str] | None = None,
        table_properties: Mapping[str, str] | None = None,
        partition_by: Mapping[str, Sequence[str]] | None = None,
        soft_delete: bool = False,
        maintenance_interval: str | None = "1h",
    ) -> None:
        texts = mirror_options(options)
        parsed = self._parsed = parse_options(texts)
        check_stream(parsed)
        places = MirrorPlaces.parse(target, change_log)
        # Appends need no MERGE: delta-rs writes the change logs with either engine.
        change_log_engine = LazyEngine("deltalake", storage_options, table_properties)
        table_engine = LazyEngine(
            engine,
            storage_options,
            table_properties,
            soft_delete=soft_delete,
            catalog=places.catalog,
            has_change_logs=change_log is not None,
        )
        self._options = texts
        self._checkpoint = checkpoint
        self._has_change_logs = change_log is not None
        self.query_id: str | None = None
        self._runner = BatchRunner(
            texts,
            parsed,
            checkpoint,
            places,
            engine=table_engine,
            change_log_engine=change_log_engine,
            partition_by={name: tuple(columns) for name, columns in (partition_by or {}).items()},
            soft_delete=soft_delete,
            maintenance=_maintenance(table_engine, maintenance_interval),
        )

    def start(self, spark: SparkSession, **trigger: Any) -> StreamingQuery:
        """Start the query.

        trigger : arguments of `DataStreamWriter.trigger`: ``availableNow=True``,
            ``processingTime="1 second"``.
        """
        options = dict(self._options)
        if not is_classic(spark):
            _warn_of_shown_secrets(options)
        # For handoff files: Spark removes its temporary folder even if this process is killed.
        temporary = spark.sparkContext._temp_dir if is_classic(spark) else None
        before = self._runner.reading.handoff
        # Handoff files contain events without masks and filters, so transforms rule them out.
        handoff = None if self._parsed.has_transforms else BatchHandoff.new(temporary)
        self._runner.reading.handoff = handoff
        if handoff is not None:
            options[HANDOFF_OPTION] = handoff.folder
        writer = (
            spark.readStream.format("mysqlbinlog")
            # A change log needs the column `source`, and images as texts.
            .schema(IPC_ROWS if self._has_change_logs else SLIM_IPC_ROWS)
            .options(**options)
            .load()
            .writeStream.foreachBatch(self)
            .option("checkpointLocation", self._checkpoint)
        )
        if trigger:
            writer = writer.trigger(**trigger)
        change_lost_batch(spark, self._checkpoint, self._parsed)
        try:
            with use_filesystem_checkpoint_manager(spark, self._checkpoint):
                query = writer.start()
            self.query_id = str(query.id)
            return query
        except Exception:
            # A query that is already running keeps its handoff.
            self._runner.reading.handoff = before
            raise

    @property
    def stopped(self) -> Mapping[str, str]:
        """Stopped tables and the reasons, as far as this process has seen."""
        return self._runner.stopped

    @property
    def progress(self) -> MirrorProgress:
        """Progress per table, up to this process's last batch or sub-batch.

        In Spark Connect, batches run in another process, and this stays empty.
        """
        return self._runner.progress

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Apply one batch; called by foreachBatch."""
        self._runner(batch, number)


def _warn_of_shown_secrets(options: Mapping[str, str]) -> None:
    given = {name.lower() for name in options}
    for name in ("password", "maskSecret"):
        if name.lower() in given:
            _LOG.warning(
                "option %s: Spark Connect shows it in its UI and event log; use %sFile", name, name
            )


def mirror_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a mirror's source, as texts, from those that are given.

    Raises OptionError for an option that a mirror sets, or that it cannot use.
    """
    given = {name.lower() for name in options}
    for name in _FIXED_OPTIONS:
        if name.lower() in given:
            raise OptionError(f"option {name}: a mirror sets it; leave it out")
    texts = {name: str(value) for name, value in options.items()} | _FIXED_OPTIONS
    if "startingoffset" not in given:
        texts["startingOffset"] = "snapshot"
    if "reloadafterddl" not in given:
        texts["reloadAfterDdl"] = "true"
    if "maxbytespertrigger" not in given:
        texts["maxBytesPerTrigger"] = _DEFAULT_MAX_BYTES
    if "path" in given:
        raise OptionError(
            "option path: a mirror needs a server, for the columns and existing rows of its"
            " tables; set host, and use a stream to read files"
        )
    return texts


def _maintenance(engine: Engine, every: str | None) -> Maintenance | None:
    if every is None:
        return None
    try:
        return Maintenance(engine, parse_duration(every))
    except ValueError:
        raise OptionError(
            f"maintenance_interval: expected a duration such as 1h, or None, found {every!r}"
        ) from None
