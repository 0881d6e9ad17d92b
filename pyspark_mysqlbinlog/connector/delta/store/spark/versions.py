"""A Delta table through Delta's jars in a Spark session: its last version, markers and commits.

The metadata of a commit is a setting of its session (see `sessions`). Statements contain every
value as text: with Delta's extension, Spark does not fill in parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from pyspark_mysqlbinlog.connector.delta.store.compactions import removed_files
from pyspark_mysqlbinlog.connector.delta.store.metadata_markers import (
    IDENTIFIERS,
    MetadataMarkers,
    is_application,
)
from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace
from pyspark_mysqlbinlog.connector.delta.store.spark.memory import OpenTables, release
from pyspark_mysqlbinlog.connector.delta.store.spark.places import place_of
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import (
    SparkSessions,
    active_session,
)

__all__ = ["APPLICATION", "BOUNDARY", "METADATA", "SETTINGS", "DeltaVersion", "SparkTable"]

_DELTA = "spark.databricks.delta."
# Settings of a commit: the transaction identifier's name and number, and the user metadata.
APPLICATION, BOUNDARY = f"{_DELTA}write.txnAppId", f"{_DELTA}write.txnVersion"
METADATA = f"{_DELTA}commitInfo.userMetadata"
# Settings of the sessions.
SETTINGS: Mapping[str, str | None] = {
    APPLICATION: None,
    BOUNDARY: None,
    METADATA: None,
    "spark.sql.session.timeZone": "UTC",
    # A value that does not fit a column fails.
    "spark.sql.ansi.enabled": "true",
    # `${…}` in a text, and `@v1` at the end of a path, have no special meaning.
    "spark.sql.variable.substitute": "false",
    f"{_DELTA}timeTravel.resolveOnIdentifier.enabled": "false",
    f"{_DELTA}vacuum.logging.enabled": "true",
}
# How many commits are inspected first for the newest one with a marker.
_FIRST_COMMITS = 20


@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """One version of a table.

    Attributes
    ----------
    table_id : identifies the table: a new one with its name or path has another.
    """

    version: int
    table_id: str
    fields: StructType
    properties: Mapping[str, str]
    partitioned_by: Sequence[str]


class SparkTable:
    """The table of a path, a URI or a name, which may not exist yet.

    Attributes
    ----------
    uri : as given.
    name : in SQL.
    """

    def __init__(self, place: DeltaPlace, sessions: SparkSessions, open_tables: OpenTables) -> None:
        self._place = place_of(place)
        self.uri = self._place.uri
        self.name = self._place.sql
        self._sessions = sessions
        self._open_tables = open_tables
        self._last: DeltaVersion | None = None
        # The numbers of an application's commits, as far as known, at a version.
        self._known: tuple[int, str, Mapping[str, int]] = (-1, "", {})

    @property
    def spark(self) -> SparkSession:
        """The session of this thread."""
        return self._sessions.of_thread()

    def sql(self, statement: str) -> list[Row]:
        """Run a statement; returns its rows."""
        with self.query(statement) as found:
            return found.collect()

    @contextmanager
    def query(self, statement: str) -> Iterator[DataFrame]:
        """Yield a statement's result, and release it at the end."""
        with self._held(self.spark.sql(statement)) as found:
            yield found

    @contextmanager
    def _held(self, frame: DataFrame) -> Iterator[DataFrame]:
        try:
            yield frame
        finally:
            release(self.spark, frame._jdf)

    def save(self, frame: DataFrame, mode: str, partition_by: Sequence[str] = ()) -> None:
        """Write rows; an overwrite also sets the table's columns."""
        self._place.save(self.spark, frame, mode, partition_by)

    def create(self, definition: str) -> None:
        """Create the table, which does not exist.

        definition : what follows the name in CREATE TABLE.
        """
        self._place.create(self.spark, definition)

    @contextmanager
    def frame(self, rows: pa.Table, fields: StructType) -> Iterator[DataFrame]:
        """Yield rows as a DataFrame with exactly these fields, and release it at the end.

        Spark 4.3 takes an empty record batch for the end, and silently drops those after it.
        """
        rows = rows.select(fields.names)
        batches = [batch for batch in rows.to_batches() if batch.num_rows]
        # Spark cannot infer the types from a table without batches.
        full = pa.Table.from_batches(batches) if batches else rows.schema.empty_table()
        with self._held(self.spark.createDataFrame(full, fields)) as frame:
            yield frame

    @contextmanager
    def setting(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Use settings in this thread's session."""
        conf = self.spark.conf
        try:
            for name, value in settings.items():
                conf.set(name, value)
            yield
        finally:
            for name in settings:
                conf.unset(name)

    def last(self) -> DeltaVersion | None:
        """Return its last version; None if there is no table."""
        with self._newest() as found:
            if found is None or found.version() < 0:
                return None
            version: int = found.version()
            about = found.metadata()
            table_id: str = about.id()
            if self._last is None or (self._last.version, self._last.table_id) != (
                version,
                table_id,
            ):
                metadata = json.loads(about.json())["metaData"]
                self._last = DeltaVersion(
                    version,
                    table_id,
                    StructType.fromJson(json.loads(metadata["schemaString"])),
                    metadata["configuration"],
                    metadata["partitionColumns"],
                )
        return self._last

    def numbers(self, snapshot: DeltaVersion) -> Mapping[str, int]:
        """Return the identifiers of the last commit marker, and their numbers."""
        markers = MetadataMarkers.of(snapshot.properties)
        if markers is None:
            kept = self._identifiers().items()
            return {name: number for name, number in kept if not is_application(name)}
        version, application, numbers = self._known
        if application != markers.application:
            version, numbers = -1, markers.numbers
        if version != snapshot.version:
            commits = self._metadata(version, snapshot.version, markers.application)
            boundary = self._identifiers().get(markers.application)
            numbers = markers.latest(commits, boundary, numbers)
            self.note(snapshot.version, markers.application, numbers)
        return numbers

    def note(self, version: int, application: str, numbers: Mapping[str, int]) -> None:
        """Record the numbers at a version."""
        self._known = version, application, numbers

    def release(self) -> None:
        """Release what a commit no longer needs, at intervals."""
        self._open_tables.committed()

    def history(self, limit: int) -> list[Row]:
        """Return the last commits, the newest first."""
        return self.sql(f"DESCRIBE HISTORY {self.name} LIMIT {limit}")

    def commits(self, after: int, last: int) -> list[Row]:
        """Return the commits after one version up to another one, the newest first.

        Those that Delta has deleted are missing.
        """
        limit = last - after
        while limit > 0:
            found = self.history(limit)
            newest: int = found[0]["version"]
            if newest - after <= limit:
                return [row for row in found if after < row["version"] <= last]
            # Others have committed since, and the oldest ones are missing in the result.
            limit = newest - after
        return []

    def removed_files(self, version: int) -> AbstractSet[str]:
        """Return the files that the commit of a version removed."""
        jvm: Any = self.spark._jvm
        with self._newest() as found:
            assert found is not None, f"{self.uri} does not exist"
            log = found.deltaLog()
            commit = jvm.org.apache.hadoop.fs.Path(log.logPath(), f"{version:020}.json")
            text = log.store().read(commit, log.newDeltaHadoopConf()).mkString("\n")
        return removed_files(text.splitlines())

    def _metadata(self, after: int, last: int, application: str) -> list[str | None]:
        """Return the user metadata of these commits, the newest first.

        The result reaches back at least to the last commit of the application.
        """
        count = _FIRST_COMMITS
        while True:
            first = max(after, last - count)
            found: list[str | None] = [row["userMetadata"] for row in self.commits(first, last)]
            is_all = first == after or len(found) < last - first
            if is_all or any(application in (f or "") for f in found):
                return found
            count *= 10

    def _identifiers(self) -> dict[str, int]:
        """Return the transaction identifiers of this package."""
        found: dict[str, int] = {}
        with self._newest() as snapshot:
            assert snapshot is not None, f"{self.uri} does not exist"
            transactions = snapshot.transactions()
            names = transactions.keysIterator()
            while names.hasNext():
                name: str = names.next()
                if name.startswith(IDENTIFIERS):
                    found[name] = transactions.apply(name)
        return found

    @contextmanager
    def _newest(self) -> Iterator[Any]:
        """Yield Delta's own object of the newest version; None if there is no table."""
        spark = self.spark
        with active_session(spark):
            found = self._place.newest(spark)
            if found is None:
                yield None
                return
            self._open_tables.use(found.path, spark)
            try:
                yield found.snapshot
            finally:
                release(spark, *found.held)
