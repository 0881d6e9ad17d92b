"""A mirrored database whose Delta tables have names in Spark's session catalog."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from helpers.mirrors.delta_mirrors import MirroredDatabase

__all__ = ["NamedTables"]

_OWN_COLUMNS = ["_seq", "_deleted"]


class NamedTables(MirroredDatabase):
    """A mirrored database whose Delta tables have names, in a schema named as the database."""

    catalog = "spark_catalog"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.settings = {"engine": "spark", "target": f"{self.catalog}.{{database}}.{{table}}"}

    def name(self, table: str) -> str:
        return f"{self.catalog}.`{self.database}`.`{table}`"

    def rows(self, table: str) -> pa.Table:
        found = self.spark.table(self.name(table))
        if "_deleted" in found.columns:
            found = found.where("NOT _deleted")
        return found.drop(*_OWN_COLUMNS).toArrow()

    def detail(self, table: str) -> Row:
        """Return Delta's details of a table: location, properties, partitionColumns."""
        (row,) = self.spark.sql(f"DESCRIBE DETAIL {self.name(table)}").collect()
        return row

    def properties(self, table: str) -> dict[str, str]:
        return dict(self.detail(table)["properties"])

    def lose(self, table: str) -> Path:
        """Remove a managed table from the catalog without its files; return their folder."""
        location = Path(str(self.detail(table)["location"]).removeprefix("file:"))
        shutil.copytree(location, self.folder / "kept")
        self.spark.sql(f"DROP TABLE {self.name(table)}")
        shutil.move(self.folder / "kept", location)
        return location

    def stopped(self, table: str) -> str:
        reason = self.properties(table).get("mysqlbinlog.stopped")
        assert reason, f"{table} is not stopped"
        return reason
