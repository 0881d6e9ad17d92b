"""A DeltaMirror of one database, and both sides' rows: by content, and by type."""

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
    """Tables of a database that a mirror follows from here on, and runs of it up to the log's end.

    options : of the source, beside the server's; `tables` are all of the database by default.
    """

    def __init__(
        self, spark: SparkSession, server: Server, database: str, folder: Path, **options: Any
    ) -> None:
        self.spark, self.server, self.database, self.folder = spark, server, database, folder
        start = "{}:{}".format(*server.position())
        self.options = {"tables": f"{database}.*", "startingOffset": start} | options
        # Of DeltaMirror itself. Whether Delta's jars write is told by the session.
        self.settings: dict[str, Any] = {"engine": "auto"}

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.database)

    def mirror(
        self, checkpoint: str = "checkpoint", kind: type[DeltaMirror] = DeltaMirror
    ) -> DeltaMirror:
        """A mirror as a new process would make it."""
        settings = {"target": f"{self.folder}/lake/{{database}}/{{table}}"} | self.settings
        return kind(
            checkpoint=str(self.folder / checkpoint),
            options=self.server.options(**self.options),
            **settings,
        )

    def target(self, table: str) -> DeltaTarget:
        """A table as the mirror's engine has it, for whoever writes beside the mirror."""
        engine = LazyEngine(self.settings["engine"])
        engine.begin(self.spark)
        return engine.target(str(self.folder / "lake" / self.database / table))

    def run(self, checkpoint: str = "checkpoint") -> None:
        """Bring in all that is in the log."""
        query = self.mirror(checkpoint).start(self.spark, availableNow=True)
        query.awaitTermination()

    def delta(self, table: str) -> DeltaTable:
        return DeltaTable(self.folder / "lake" / self.database / table)

    def rows(self, table: str) -> pa.Table:
        """The rows that Delta has, without the mirror's own column."""
        return self.delta(table).to_pyarrow_table().drop(["_seq"])

    def select(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """What SELECT shows: the columns' names, and the rows, sorted."""
        with self.server.connect(database=self.database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT * FROM `{table}`")
            names = [column[0] for column in cursor.description]
            return names, sorted(cursor.fetchall(), key=repr)

    def assert_equal(self, *tables: str) -> None:
        """Each Delta table has the columns and rows that SELECT shows."""
        for table in tables:
            names, selected = self.select(table)
            found = self.rows(table)
            # A column that was added stands behind the others.
            assert sorted(found.column_names) == sorted(names), table
            listed = found.select(names).to_pylist()
            rows = sorted((tuple(row.values()) for row in listed), key=repr)
            assert repr(rows) == repr(selected), f"{table}: {rows}, SELECT shows {selected}"

    def stopped(self, table: str) -> str:
        """Why a table is kept in step no more; AssertionError where it is not stopped."""
        reason = self.delta(table).metadata().configuration.get("mysqlbinlog.stopped")
        assert reason, f"{table} is not stopped"
        return reason


class MirroredDatabases:
    """New databases for as many cases, and one mirror of them all: to start it takes a second.

    name : what the databases' names begin with.
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
        """Execute the same in each database."""
        for mirrored in self:
            mirrored.execute(*statements)

    def run(self) -> None:
        """Bring in all that is in the log."""
        self._all[0].run()

    def step_by_step(self, cases: Sequence[Sequence[str]], *, several: bool) -> None:
        """Execute each case's statements in its database.

        several : run behind each step of all, too.
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
