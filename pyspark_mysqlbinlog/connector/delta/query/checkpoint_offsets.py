"""The offset at which a batch ends, from Spark's checkpoint: it has the schemas of the batch.

Spark writes ``offsets/NUMBER`` before it runs a batch: a line with the format's version, one with
metadata, and one for each source of the query. A mirror's query has one source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.delta.query.checkpoint_io import read_lines
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
        """The identifier of the query, which Spark makes up once for each checkpoint."""
        location = f"{self.checkpoint.rstrip('/')}/metadata"
        lines = read_lines(spark, location)
        try:
            return str(json.loads("".join(lines))["id"])
        except (ValueError, KeyError, TypeError):
            raise OffsetError(f"{location} does not tell the query's id") from None

    def end(self, spark: SparkSession, batch: int) -> Offset:
        """The offset at which a batch ends; OffsetError where it is not there, or not ours."""
        location = f"{self.checkpoint.rstrip('/')}/offsets/{batch}"
        lines = read_lines(spark, location)
        if len(lines) != _LINES or lines[0] != "v1":
            raise OffsetError(
                f"{location} has {len(lines)} lines and begins with {lines[:1]!r}, expected v1 and"
                f" {_LINES} lines: is it the checkpoint of a query with one source?"
            )
        try:
            value = json.loads(lines[-1])
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise OffsetError(f"{location}: its last line is no offset of mysqlbinlog")
        return Offset.from_dict(value)
