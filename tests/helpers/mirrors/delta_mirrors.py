"""A DeltaMirror of one database, and the rows on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from helpers.servers import Server
from pyspark_mysqlbinlog import DeltaMirror
from pyspark_mysqlbinlog.connector.delta.store.factory import LazyEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget

__all__ = ["MirroredDatabase", "MirroredDatabases"]


class MirroredDatabase:
    """A database that a mirror follows from now on, in runs up to the end of the binlog.

    options : of the source, in addition to the server's; `tables` is the whole database by default.
    """

    def __init__(
        self, spark: SparkSession, server: Server, database: str, folder: Path, **options: Any
    ) -> None:
        self.spark, self.server, self.database, self.folder = spark, server, database, folder
        start = "{}:{}".format(*server.position())
        self.options = {"tables": f"{database}.*", "startingOffset": start} | options
        # Arguments of DeltaMirror. The session determines whether Delta's jars write.
        self.settings: dict[str, Any] = {"engine": "auto"}

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.database)

    def mirror(
        self, checkpoint: str = "checkpoint", kind: type[DeltaMirror] = DeltaMirror
    ) -> DeltaMirror:
        """Return a mirror as a new process would create it."""
        settings = {"target": f"{self.folder}/lake/{{database}}/{{table}}"} | self.settings
        return kind(
            checkpoint=str(self.folder / checkpoint),
            options=self.server.options(**self.options),
            **settings,
        )

    def target(self, table: str) -> DeltaTarget:
        """Return the table as the mirror's engine opens it, for foreign writes."""
        engine = LazyEngine(self.settings["engine"])
        engine.begin(self.spark)
        return engine.target(str(self.folder / "lake" / self.database / table))

    def run(self, checkpoint: str = "checkpoint") -> None:
        """Apply all changes that are in the binlog."""
        query = self.mirror(checkpoint).start(self.spark, availableNow=True)
        query.awaitTermination()

    def delta(self, table: str) -> DeltaTable:
        return DeltaTable(self.folder / "lake" / self.database / table)

    def rows(self, table: str) -> pa.Table:
        """Return the rows of the Delta table without the column `_seq`."""
        return self.delta(table).to_pyarrow_table().drop(["_seq"])

    def select(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the column names and the sorted rows that SELECT shows."""
        with self.server.connect(database=self.database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM `{table}`")
            names = [column[0] for column in cursor.description]
            return names, sorted(cursor.fetchall(), key=repr)

    def assert_equal(self, *tables: str) -> None:
        """Check that each Delta table has the columns and rows that SELECT shows."""
        for table in tables:
            names, selected = self.select(table)
            found = self.rows(table)
            # Delta has added columns after the others.
            assert sorted(found.column_names) == sorted(names), table
            listed = found.select(names).to_pylist()
            rows = sorted((tuple(row.values()) for row in listed), key=repr)
            assert repr(rows) == repr(selected), f"{table}: {rows}, SELECT shows {selected}"

    def stopped(self, table: str) -> str:
        """Return why the table is stopped; AssertionError if it is not."""
        reason = self.delta(table).metadata().configuration.get("mysqlbinlog.stopped")
        assert reason, f"{table} is not stopped"
        return reason


class MirroredDatabases:
    """One new database per case, and one mirror of them all, as each start takes a second.

    name : prefix of the databases' names.
    """

    def __init__(
        self, spark: SparkSession, server: Server, folder: Path, name: str, count: int
    ) -> None:
        names = [f"{name}_{number}" for number in range(count)]
        server.execute(*(f"CREATE DATABASE {each} CHARACTER SET utf8mb4" for each in names))
        self._all = [
            MirroredDatabase(spark, server, each, folder, tables=f"{name}_*.*") for each in names
        ]

    def __getitem__(self, number: int) -> MirroredDatabase:
        return self._all[number]

    def __iter__(self) -> Iterator[MirroredDatabase]:
        return iter(self._all)

    def execute(self, *statements: str) -> None:
        """Execute the statements in each database."""
        for mirrored in self:
            mirrored.execute(*statements)

    def run(self) -> None:
        """Apply all changes that are in the binlog."""
        self._all[0].run()

    def step_by_step(self, cases: Sequence[Sequence[str]], *, several: bool) -> None:
        """Execute each case's statements in its database, one of each case at a time.

        several : run the mirror after each such step.
        """
        for step in zip_longest(*cases):
            for mirrored, statement in zip(self, step, strict=True):
                if statement is not None:
                    mirrored.execute(statement)
            if several:
                self.run()

    def drop(self) -> None:
        for mirrored in self._all:
            mirrored.server.execute(f"DROP DATABASE {mirrored.database}")
