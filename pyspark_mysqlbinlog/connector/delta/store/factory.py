"""Selects the engine that writes a mirror's Delta tables, when the session is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget, Engine
from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace
from pyspark_mysqlbinlog.connector.delta.store.spark.engine import SparkEngine, has_delta
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ENGINES", "LazyEngine"]

ENGINES = ("deltalake", "spark", "auto")


class LazyEngine:
    """The engine with a name; `begin` raises OptionError if the session does not support it.

    name : ``deltalake``, ``spark``, or ``auto``: Spark if the session has Delta's extension.
    storage_options : of delta-rs.
    properties : of created tables.
    soft_delete : keep deleted rows, with true in a column of their own.
    catalog : of the tables' names, which only Spark resolves; None if they have paths.
    has_change_logs : there are change logs. delta-rs writes them with `storage_options`, even if
        Spark writes the tables.
    """

    def __init__(
        self,
        name: str,
        storage_options: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        soft_delete: bool = False,
        catalog: str | None = None,
        has_change_logs: bool = False,
    ) -> None:
        if name not in ENGINES:
            raise OptionError(f"engine: expected one of {', '.join(ENGINES)}, found {name!r}")
        self._name = name
        self._storage = dict(storage_options or {})
        self._properties = dict(properties or {})
        self._soft_delete = soft_delete
        self._engine: Engine | None = None
        self._catalog = catalog
        self._has_change_logs = has_change_logs
        if name == "spark":
            self._check_no_storage_options()
        if name == "deltalake" and catalog is not None:
            raise _needs_spark("'deltalake'")

    def begin(self, spark: SparkSession) -> None:
        """Use the session of the batch that begins."""
        if self._engine is None:
            self._engine = self._made(spark)
        self._engine.begin(spark)

    def target(self, place: DeltaPlace, partition_by: Sequence[str] = ()) -> DeltaTarget:
        """Return the Delta table of a path, URI or name, which may not exist yet."""
        assert self._engine is not None, "no batch has begun"
        return self._engine.target(place, partition_by)

    def _made(self, spark: SparkSession) -> Engine:
        if self._name == "deltalake" or (self._name == "auto" and not has_delta(spark)):
            if self._catalog is not None:
                raise _needs_spark("'auto' in a session without Delta's jars")
            # With Delta's jars, deltalake need not be installed.
            from pyspark_mysqlbinlog.connector.delta.store.deltars.table import (  # noqa: PLC0415 (see above)
                DeltalakeEngine,
            )

            return DeltalakeEngine(self._storage, self._properties, soft_delete=self._soft_delete)
        self._check_no_storage_options()
        return SparkEngine(self._properties, soft_delete=self._soft_delete, catalog=self._catalog)

    def _check_no_storage_options(self) -> None:
        if self._storage and not self._has_change_logs:
            raise OptionError(
                "storage_options: only delta-rs uses them; for the engine 'spark' set Spark's"
                " properties, such as spark.hadoop.fs.s3a.access.key"
            )


def _needs_spark(found: str) -> OptionError:
    return OptionError(
        f"engine: a target of catalog names needs 'spark' and Delta's jars in the session, found"
        f" {found}: set engine to 'spark', or set a path as target"
    )
