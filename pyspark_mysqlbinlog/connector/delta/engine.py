"""What a mirror needs of Delta: the two implementations behind it have one meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.marks import Mark

__all__ = ["DeltaTarget", "Engine"]


class DeltaTarget(Protocol):
    """One Delta table. Each call that writes is one commit of Delta's, or none."""

    def columns(self) -> pa.Schema | None:
        """Its columns, with the column of `seq`; None where there is no table yet."""

    def properties(self) -> Mapping[str, str]:
        """Its table properties."""

    def applied(self, app_id: str) -> int | None:
        """The version that was written last under an identifier (see `marks`)."""

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        """Make the table, empty."""

    def add_columns(self, columns: Sequence[pa.Field[Any]]) -> None:
        """Give it columns that are null in the rows that are there."""

    def set_property(self, name: str, value: str) -> None:
        """Write one table property."""

    def empty(self, before: Mapping[str, int]) -> None:
        """Remove the rows with a smaller `seq`."""

    def merge(self, states: pa.Table, key: Sequence[str], mark: Mark) -> None:
        """Bring each key's last state in, where what is there is not newer.

        states : the columns of the table, the column of `seq`, and whether the row is gone.
        """


class Engine(Protocol):
    """Opens Delta tables."""

    def target(self, uri: str) -> DeltaTarget:
        """The Delta table of a URI, which may not be there yet."""
