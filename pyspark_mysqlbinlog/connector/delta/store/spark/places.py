"""Where Spark finds a Delta table: at a path or URI, or by its name in a catalog.

A named table is always opened through its catalog, never by its path: the catalog may issue the
credentials of its files, and knows best which table has the name. There is no SQL for a table's
version and its transaction identifiers, so both kinds return Delta's own object of the newest
version.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_mysqlbinlog.connector.delta.store.places.names import CatalogName, DeltaPlace
from pyspark_mysqlbinlog.connector.delta.store.spark.interrupted_creations import (
    remove_interrupted_creation,
)
from pyspark_mysqlbinlog.connector.delta.store.spark.memory import release
from pyspark_mysqlbinlog.connector.delta.store.spark.sql import quoted
from pyspark_mysqlbinlog.errors import OptionError, StoreError

__all__ = ["OpenedTable", "SparkPlace", "check_catalog", "place_of"]

_LOG = logging.getLogger(__name__)
_SESSION_CATALOG = "spark_catalog"
# A setting of the session catalog.
_IMPLEMENTATION = "spark.sql.catalogImplementation"
_DELTA_CATALOG = ".delta.catalog.DeltaCatalog"
_DELTA_TABLE = ".DeltaTableV2"
_NOT_FOUND = re.compile(
    r"\[(?:TABLE_OR_VIEW|SCHEMA)_NOT_FOUND\b|NoSuch(?:Table|Namespace|Database)"
)
_NO_SCHEMA = re.compile(r"\[SCHEMA_NOT_FOUND\b|NoSuch(?:Namespace|Database)")
_USED_LOCATION = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_WRITE = "org.apache.spark.sql.delta.commands.WriteIntoDelta"
# Number of its arguments that are given; later ones, which differ between versions, have defaults.
_FIXED_ARGUMENTS = 7


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table's newest version.

    Attributes
    ----------
    path : of the table.
    snapshot : Delta's object of the version.
    held : all objects in the JVM, to be released.
    """

    path: str
    snapshot: Any
    held: tuple[Any, ...]


class SparkPlace(Protocol):
    """The place of one Delta table, which may not exist yet.

    Attributes
    ----------
    uri : for messages: the path or URI as given, or the name.
    sql : the table's name in SQL.
    """

    uri: str
    sql: str

    def newest(self, spark: SparkSession) -> OpenedTable | None:
        """Return the newest version; None if there is no table.

        spark : must be the thread's active session.
        """

    def save(
        self, spark: SparkSession, frame: DataFrame, mode: str, partition_by: Sequence[str]
    ) -> None:
        """Write rows; an overwrite also sets the table's columns."""

    def create(self, spark: SparkSession, definition: str) -> None:
        """Create the table, which does not exist.

        definition : what follows the name in CREATE TABLE.
        """


def place_of(place: DeltaPlace) -> SparkPlace:
    """Return the place of a path, URI or name."""
    return _NamedPlace(place) if isinstance(place, CatalogName) else _PathPlace(place)


def check_catalog(spark: SparkSession, name: str) -> None:
    """OptionError if Spark's configuration has no such catalog."""
    try:
        _catalog(spark, name)
    except (Py4JJavaError, PySparkException) as error:
        raise OptionError(
            f"target: Spark cannot load the catalog {name!r}: set spark.sql.catalog.{name} to its"
            f" class, and its other properties ({_first_line(error)})"
        ) from None
    if name == _SESSION_CATALOG and _is_in_memory(spark):
        _LOG.warning(
            "target: Spark's catalog %s is in memory, and its entries are lost when Spark ends."
            " The next start fails until each table is registered again, with CREATE TABLE …"
            " LOCATION; set %s=hive and the Hive metastore's properties",
            name,
            _IMPLEMENTATION,
        )


def _is_in_memory(spark: SparkSession) -> bool:
    """Return whether the session catalog is Spark's own, which Delta's class wraps, in memory."""
    kind = spark.conf.get(f"spark.sql.catalog.{_SESSION_CATALOG}", "") or ""
    entries = _session(spark).sharedState().externalCatalog().unwrapped()
    in_memory = str(entries.getClass().getName()).endswith(".InMemoryCatalog")
    return in_memory and kind.endswith(_DELTA_CATALOG)


class _PathPlace:
    """A path or URI; a relative path is made absolute, because Delta requires it."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        is_uri = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", uri)
        self._path = uri if is_uri else str(Path(uri).absolute())
        self.sql = f"delta.{quoted(self._path)}"

    def newest(self, spark: SparkSession) -> OpenedTable | None:
        jvm: Any = spark
        delta_log = jvm._jvm.org.apache.spark.sql.delta.DeltaLog
        found = delta_log.forTableWithSnapshot(jvm._jsparkSession, self._path)
        snapshot = found._2()
        return OpenedTable(self._path, snapshot, (found, snapshot))

    def save(
        self, spark: SparkSession, frame: DataFrame, mode: str, partition_by: Sequence[str]
    ) -> None:
        writer: Any = frame.write.format("delta").mode(mode)
        try:
            if mode == "overwrite":
                writer.option("overwriteSchema", "true").partitionBy(*partition_by)
            writer.save(self._path)
        finally:
            release(spark, writer._jwrite)

    def create(self, spark: SparkSession, definition: str) -> None:
        _run(spark, f"CREATE TABLE {self.sql} {definition}")


class _NamedPlace:
    """A name in a catalog."""

    def __init__(self, name: CatalogName) -> None:
        self._name = name
        self.uri = str(name)
        self.sql = name.sql

    def newest(self, spark: SparkSession) -> OpenedTable | None:
        table = self._loaded(spark)
        if table is None:
            return None
        jvm: Any = spark
        log = table.deltaLog()
        snapshot = log.update(False, jvm._jvm.scala.Option.empty(), table.catalogTable())
        path = str(table.path().toString())
        if snapshot.version() < 0:
            raise OptionError(
                f"target: the catalog has the table {self.uri}, but there is no Delta table at its"
                f" location {path}: restore its files, or remove the entry with"
                f" DROP TABLE {self.sql}"
            )
        return OpenedTable(path, snapshot, (snapshot, log, table))

    def _loaded(self, spark: SparkSession) -> Any:
        """Return Delta's object of the table; None if there is none."""
        jvm: Any = spark
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        namespace = gateway.new_array(jvm._jvm.java.lang.String, 1)
        namespace[0] = self._name.schema
        identifiers = jvm._jvm.org.apache.spark.sql.connector.catalog.Identifier
        identifier = identifiers.of(namespace, self._name.table)
        try:
            table = _catalog(spark, self._name.catalog).loadTable(identifier)
        except Exception as error:
            if _NOT_FOUND.search(str(error)):
                return None
            # It may be unreachable, or deny access: the next attempt may succeed.
            raise StoreError(
                f"{self.uri}: the catalog failed: {_first_line(error)}; check it and the account's"
                " permissions in it"
            ) from error
        if not str(table.getClass().getName()).endswith(_DELTA_TABLE):
            raise OptionError(
                f"target: {self.uri} is not a Delta table, but a view or a table of another format:"
                " remove or rename it, or set another target"
            )
        return table

    def save(
        self, spark: SparkSession, frame: DataFrame, mode: str, partition_by: Sequence[str]
    ) -> None:
        if mode == "overwrite":
            self._overwrite(spark, frame, partition_by)
            return
        writer: Any = frame.write.format("delta").mode(mode)
        try:
            writer.saveAsTable(self.sql)
        finally:
            release(spark, writer._jwrite)

    def _overwrite(
        self, spark: SparkSession, frame: DataFrame, partition_by: Sequence[str]
    ) -> None:
        """Write all rows and columns with Delta's own command.

        Neither of Spark's writers can: with Delta 4.4, `saveAsTable` fails for a partitioned table
        after its commit, and `writeTo(…).overwrite` removes the partitioning.
        """
        table = self._loaded(spark)
        assert table is not None, f"{self.uri} does not exist"
        jvm: Any = spark._jvm
        session = _session(spark)
        converted = jvm.PythonUtils
        delta = jvm.org.apache.spark.sql.delta
        options = delta.DeltaOptions(
            converted.toScalaMap({"overwriteSchema": "true"}), session.sessionState().conf()
        )
        command = delta.commands.WriteIntoDelta
        write = command(
            table.deltaLog(),
            jvm.org.apache.spark.sql.SaveMode.Overwrite,
            options,
            converted.toSeq(list(partition_by)).toList(),
            converted.toScalaMap({}),
            frame._jdf,
            table.catalogTable(),
            *(
                getattr(command, f"apply$default${number}")()
                for number in range(_FIXED_ARGUMENTS + 1, _argument_count(jvm) + 1)
            ),
        )
        # Run as a query of Spark, so that its UI and metrics include the write.
        done = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, write)
        release(spark, done, write, table)

    def create(self, spark: SparkSession, definition: str) -> None:
        statement = f"CREATE TABLE {self.sql} {definition}"
        try:
            _run(spark, statement)
            return
        except Exception as error:
            text = str(error)
            if _USED_LOCATION in text:
                self._free_location(spark, error)
                _run(spark, statement)
                return
            if not _NO_SCHEMA.search(text):
                raise
        create_schema = f"CREATE SCHEMA {self._name.sql_schema}"
        if not self._name.may_create_schema:
            raise OptionError(
                f"target: the schema of {self.uri} does not exist: correct the target, or run"
                f" {create_schema}"
            )
        _run(spark, create_schema.replace("SCHEMA", "SCHEMA IF NOT EXISTS", 1))
        _run(spark, statement)

    def _free_location(self, spark: SparkSession, error: Exception) -> None:
        """Remove what an interrupted creation left; OptionError if the location has more.

        error : Delta's, which names the location.
        """
        location = None
        if isinstance(error, PySparkException):
            location = (error.getMessageParameters() or {}).get("tableLocation")
        if location is None or not remove_interrupted_creation(spark, location, self._name.source):
            raise OptionError(
                f"target: {self.uri} cannot be created, because its location has files already (the"
                " table was dropped without its files, or the catalog has lost its entry): remove"
                f" the folder, or register its Delta table with CREATE TABLE {self.sql} USING delta"
                f" LOCATION '{location}' ({_first_line(error)})"
            ) from None
        _LOG.info("%s: removed what an interrupted creation left at %s", self.uri, location)


def _catalog(spark: SparkSession, name: str) -> Any:
    return _session(spark).sessionState().catalogManager().catalog(name)


def _session(spark: SparkSession) -> Any:
    given: Any = spark
    return given._jsparkSession


def _argument_count(jvm: Any) -> int:
    """Return how many arguments Delta's command has: the given ones, and those with defaults."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kind = jvm.java.lang.Class.forName(_WRITE, True, loader)
    return int(kind.getConstructors()[0].getParameterCount())


def _run(spark: SparkSession, statement: str) -> None:
    release(spark, spark.sql(statement)._jdf)


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    lines = [line for line in text.splitlines() if not line.startswith("An error occurred")]
    return " ".join((lines or [text])[0].lstrip(": ").split())
