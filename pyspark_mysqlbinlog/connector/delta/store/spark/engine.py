"""Delta tables with Delta's jars in the Spark session (`delta-spark`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace
from pyspark_mysqlbinlog.connector.delta.store.spark.memory import OpenTables
from pyspark_mysqlbinlog.connector.delta.store.spark.places import check_catalog
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import SparkSessions, is_classic
from pyspark_mysqlbinlog.connector.delta.store.spark.source_tables import SourceTable
from pyspark_mysqlbinlog.connector.delta.store.spark.table import SparkTarget
from pyspark_mysqlbinlog.connector.delta.store.spark.versions import SETTINGS, SparkTable
from pyspark_mysqlbinlog.errors import OptionError

__all__ = ["SparkEngine", "has_delta"]

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def has_delta(spark: SparkSession) -> bool:
    """Return whether it is a classic session with Delta's extension."""
    return is_classic(spark) and _EXTENSION in (spark.conf.get("spark.sql.extensions", "") or "")


class SparkEngine:
    """Tables on any storage that Spark reaches.

    properties : of created tables.
    soft_delete : keep deleted rows, with true in a column of their own.
    catalog : of the tables' names; None if they have paths.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        soft_delete: bool = False,
        catalog: str | None = None,
    ) -> None:
        self._properties = dict(properties or {})
        self._catalog = catalog
        self._soft_delete = soft_delete
        self._spark: Any = None
        self._sessions: SparkSessions | None = None
        self._open_tables: OpenTables | None = None

    def begin(self, spark: SparkSession) -> None:
        """Use the session of the batch that begins."""
        if not is_classic(spark):
            raise OptionError(
                "engine: 'spark' needs a classic session, found Spark Connect; use 'deltalake'"
            )
        catalog = spark.conf.get("spark.sql.catalog.spark_catalog", "") or ""
        # Unity Catalog's class can replace Delta's own.
        is_delta = catalog.endswith((".DeltaCatalog", ".UCSingleCatalog"))
        if not has_delta(spark) or not is_delta:
            raise OptionError(
                "engine: 'spark' needs a session with Delta's jars: set spark.jars.packages to"
                f" io.delta:delta-spark of your Spark, spark.sql.extensions to {_EXTENSION} and"
                f" spark.sql.catalog.spark_catalog to {_CATALOG}, or use 'deltalake'"
            )
        given: Any = spark
        if self._sessions is None or self._spark != given._jsparkSession:
            self._spark = given._jsparkSession
            self._sessions = SparkSessions(spark, SETTINGS)
            self._open_tables = OpenTables(spark)
            if self._catalog is not None:
                check_catalog(spark, self._catalog)

    def target(self, place: DeltaPlace, partition_by: Sequence[str] = ()) -> SparkTarget:
        """Return the Delta table of a path, URI or name, which may not exist yet."""
        assert self._sessions is not None, "no batch has begun"
        assert self._open_tables is not None
        return SparkTarget(
            SparkTable(place, self._sessions, self._open_tables),
            self._properties,
            partition_by,
            soft_delete=self._soft_delete,
            source=SourceTable.of(place),
        )
