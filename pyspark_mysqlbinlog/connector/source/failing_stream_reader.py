"""A stream reader that reports an error where Spark shows it.

Spark's runner of a streaming source stops the reader when it ends. If `streamReader` raises, there
is no reader, and users see only "cannot access local variable 'reader'". An error of the reader's
methods is shown unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from pyspark_mysqlbinlog.errors import MySQLBinlogError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FailingStreamReader"]


class FailingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the error from every method."""

    def __init__(self, error: MySQLBinlogError) -> None:
        self._error = error

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit: Spark calls this before there is anything to limit."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._refuse()

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def latestOffset(self, _start: dict[str, Any], _limit: ReadLimit) -> dict[str, Any]:
        self._refuse()

    def partitions(self, _start: dict[str, Any], _end: dict[str, Any]) -> Sequence[InputPartition]:
        self._refuse()

    def read(self, _partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        # The traceback of the first raise belongs to another call.
        raise self._error.with_traceback(None)
