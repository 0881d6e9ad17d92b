"""A stream of the files in a folder, driven as by Spark's source runner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.types import StringType

from helpers.streams.source_runner import Offset, Spark
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader

__all__ = ["FileStream", "values"]


class FileStream:
    """A query on a folder, whose checkpoint is kept across its runs.

    Attributes
    ----------
    batches : start offset, end offset and rows of each batch of the runs.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = {"payload": "json"} | texts
        self.checkpoint: Offset | None = None
        self.batches: list[tuple[Offset, Offset, list[dict[str, Any]]]] = []
        self.spark: Spark | None = None

    @classmethod
    def of(cls, folder: Path | str, **options: str) -> FileStream:
        return cls({"path": str(folder), "tables": "d.t"} | options)

    def start(self) -> FileStream:
        reader = MySQLBinlogStreamReader(parse_options(self.texts), output_schema(StringType()))
        self.spark = Spark(reader)
        return self

    def begin(self) -> FileStream:
        """Start, and run batch 0 if there is no checkpoint."""
        self.start()
        assert self.spark is not None
        if self.checkpoint is None:
            self.checkpoint = self.spark.initial()
            assert self.spark.latest(self.checkpoint) == self.checkpoint
        return self

    def stop(self) -> None:
        if self.spark is not None:
            self.spark.reader.stop()
            self.spark = None

    def restart(self, **options: str) -> FileStream:
        self.stop()
        self.texts |= options
        return self.begin()

    def step(self) -> bool:
        """Run a batch if there are new events; return whether there were any."""
        assert self.spark is not None
        assert self.checkpoint is not None
        end = self.spark.latest(self.checkpoint)
        if end == self.checkpoint:
            return False
        rows = self.spark.rows(self.checkpoint, end)
        self.batches.append((self.checkpoint, end, rows))
        self.checkpoint = end
        return True

    def available(self) -> list[int]:
        """Return the new values up to the end of the files, as in a run with AvailableNow."""
        assert self.spark is not None
        known = len(self.batches)
        self.spark.reader.prepareForTriggerAvailableNow()
        while self.step():
            pass
        return [value for _, _, rows in self.batches[known:] for value in values(rows)]

    @property
    def found(self) -> list[int]:
        """The values of all batches."""
        return [value for _, _, rows in self.batches for value in values(rows)]

    def wait_for(self, expected: list[int]) -> None:
        """Run until the values equal `expected`; any other value is an error."""

        def ready() -> bool:
            while self.step():
                pass
            assert self.found == expected[: len(self.found)], self.found
            return self.found == expected

        wait_until(ready, f"{expected} are read, found {self.found}")

    def wait_until(self, ready: Callable[[], bool], what: str) -> None:
        wait_until(lambda: (self.step(), ready())[1], what)

    def replay(self) -> None:
        """Check that a new reader returns the same rows for every batch."""
        for start, end, rows in self.batches:
            reader = MySQLBinlogStreamReader(parse_options(self.texts), output_schema(StringType()))
            assert Spark(reader).rows(start, end) == rows


def values(rows: list[dict[str, Any]]) -> list[int]:
    """Return the values of the rows' only column."""
    return [json.loads(row["after"])["a"] for row in rows]
