"""Reads the end offset of a batch, with its schemas, from Spark's checkpoint.

Spark writes ``offsets/NUMBER`` before it runs a batch: a line with the format's version, one with
metadata, and one for each source of the query. A mirror's query has one source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.delta.query.checkpoint.files import (
    read_lines,
    replace_text,
)
from pyspark_mysqlbinlog.errors import OffsetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["BatchOffsets"]

_LINES = 3


@dataclass(frozen=True, slots=True)
class BatchOffsets:
    """The offsets of one checkpoint.

    Attributes
    ----------
    checkpoint : the query's checkpointLocation.
    """

    checkpoint: str

    def query_id(self, spark: SparkSession) -> str:
        """Return the query's id, which Spark generates once per checkpoint."""
        location = f"{self.checkpoint.rstrip('/')}/metadata"
        lines = read_lines(spark, location)
        try:
            return str(json.loads("".join(lines))["id"])
        except (ValueError, KeyError, TypeError):
            raise OffsetError(f"{location}: expected JSON with the query's id") from None

    def end(self, spark: SparkSession, batch: int) -> Offset:
        """Return the end offset of a batch; OffsetError if it is missing or of another source."""
        *_, last = self._lines(spark, batch)
        try:
            value = json.loads(last)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise OffsetError(
                f"{self._location(batch)}: the last line is not an offset of mysqlbinlog"
            )
        return Offset.from_dict(value)

    def replace_end(self, spark: SparkSession, batch: int, end: Offset) -> None:
        """Replace the end offset of a batch that is not complete."""
        *head, _ = self._lines(spark, batch)
        # As PySpark writes it.
        lines = [*head, json.dumps(end.to_dict())]
        replace_text(spark, self._location(batch), "\n".join(lines))

    def _location(self, batch: int) -> str:
        return f"{self.checkpoint.rstrip('/')}/offsets/{batch}"

    def _lines(self, spark: SparkSession, batch: int) -> list[str]:
        location = self._location(batch)
        lines = read_lines(spark, location)
        if len(lines) != _LINES or lines[0] != "v1":
            raise OffsetError(
                f"{location}: expected v1 and {_LINES} lines, found {len(lines)} lines that begin"
                f" with {lines[:1]!r}: is it the checkpoint of a query with one source?"
            )
        return lines
