"""Protocols of Delta tables and engines; all implementations behave the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.columns import DELETED, SEQ
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DeltaTarget",
    "Engine",
    "check_same_deletes",
]


class DeltaTarget(Protocol):
    """One Delta table. Each call that writes makes one Delta commit, or none.

    A `marker` is written by the very commit that changes rows; if no row changes there may be no
    commit, and no commit marker.

    Attributes
    ----------
    uri : of the table, or its name in a catalog.
    soft_deletes : deleted rows stay, with true in the column `DELETED`, which only this class uses.
    preserves_partition_time_zone : all readers read the same instant from a partition value.
    """

    uri: str
    soft_deletes: bool
    preserves_partition_time_zone: bool

    def columns(self) -> pa.Schema | None:
        """Return its columns, with the column of `seq`; None if the table does not exist yet."""

    def properties(self) -> Mapping[str, str]:
        """Return its table properties."""

    def partitioned_by(self) -> Sequence[str]:
        """Return its partition columns."""

    def txn_version(self, identifier: str) -> int | None:
        """Return the last number written under a transaction identifier (see `commit_markers`)."""

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        """Create the empty table; an existing one without rows is replaced."""

    def has_since(self, seq: Mapping[str, int]) -> bool:
        """Return whether a row has this `seq` or a greater one."""

    def reset_seq(self) -> None:
        """Reset the `seq` of every row, so that all rows are older than later ones."""

    def count(self) -> int:
        """Return its row count; 0 if it does not exist."""

    def is_empty(self) -> bool:
        """Return whether it has no rows, or does not exist."""

    def version(self) -> int:
        """Return the Delta version that decisions are based on; the table must exist."""

    def was_restored(self) -> bool:
        """Return whether an older version of its rows was restored."""

    def damage_since(self, version: int) -> str | None:
        """Return why its rows are wrong after others' commits since a version; else None."""

    def forget_state(self) -> None:
        """Forget its state: it may have been replaced or removed."""

    def add_columns(
        self, columns: Sequence[pa.Field[Any]], marker: CommitMarker | None = None
    ) -> None:
        """Add columns that are null in existing rows."""

    def rewrite_columns(
        self, columns: pa.Schema, came_from: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        """Set its columns, converting the values that they have under other names and types.

        came_from : a column's name -> its previous name; other columns are null.
        """

    def set_properties(
        self, properties: Mapping[str, str], marker: CommitMarker | None = None
    ) -> None:
        """Write table properties."""

    def older(self, before: Mapping[str, int], names: Sequence[str]) -> pa.Table:
        """Return these columns of the rows with a smaller `seq`, without soft-deleted ones."""

    def has_duplicates(self, names: Sequence[str]) -> bool:
        """Return whether two rows have the same values in these columns."""

    def delete_older_than(
        self, before: Mapping[str, int], marker: CommitMarker | None = None
    ) -> None:
        """Delete (or soft-delete) all rows with a smaller `seq` than `before`.

        May make no commit if no row matches.
        """

    def remove_deleted(self) -> None:
        """Remove soft-deleted rows."""

    def merge(self, states: pa.Table, key: Sequence[str], marker: CommitMarker) -> None:
        """Apply each key's last state, unless the existing row is newer.

        states : the columns of the table, and the columns `SEQ` and `TOMBSTONE`.
        """

    def count_equal_rows(self, rows: pa.Table) -> list[int]:
        """Return the number of copies of each of these rows, which are distinct, byte by byte.

        rows : the columns of the table without that of `seq`.
        """

    def rewrite_equal_rows(self, distinct: pa.Table, rows: pa.Table, marker: CommitMarker) -> int:
        """Remove all copies of distinct rows, and write others; returns how many were removed.

        distinct, rows : the columns of the table; in `distinct`, that of `seq` is ignored.
        """

    def replace(self, rows: pa.Table, marker: CommitMarker) -> None:
        """Replace all of its rows, and its columns, with these."""

    def append(self, rows: pa.Table, marker: CommitMarker) -> None:
        """Append rows; without rows a commit is still made."""

    def compact(self) -> bool:
        """Rewrite small files as larger ones; False if another writer committed in between.

        Another object may write the same table concurrently.
        """

    def vacuum(self) -> int:
        """Remove files of versions older than the table's retention; returns how many."""


class Engine(Protocol):
    """Opens Delta tables."""

    def begin(self, spark: SparkSession) -> None:
        """Use the session of the batch that begins."""

    def target(self, place: DeltaPlace, partition_by: Sequence[str] = ()) -> DeltaTarget:
        """Return the Delta table of a path, URI or name, which may not exist yet.

        partition_by : partition columns, if it is created.
        """


def check_same_deletes(target: DeltaTarget, names: Collection[str]) -> None:
    """OptionError if the table was created with another setting of soft deletes."""
    if SEQ in names and (DELETED in names) != target.soft_deletes:
        was = "keep" if DELETED in names else "remove"
        raise OptionError(
            f"{target.uri} was created by a mirror that is to {was} deleted rows: keep that"
            " setting, or set another target"
        )
