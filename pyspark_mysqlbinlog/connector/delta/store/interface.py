"""What a mirror needs of Delta: the implementations behind it have one meaning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.columns import DELETED, SEQ
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import Mark
from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit
from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "MAX_COMMIT_ATTEMPTS",
    "DeltaTarget",
    "Engine",
    "check_same_deletes",
    "commit_conflict_error",
]

# How often a commit is made anew behind such ones.
MAX_COMMIT_ATTEMPTS = 5


class DeltaTarget(Protocol):
    """One Delta table. Each call that writes is one commit of Delta's, or none.

    A `mark` is written by the very commit that changes rows; where no row changes there may be no
    commit, and no mark.

    Attributes
    ----------
    uri : where it is.
    soft_deletes : deleted rows stay, with true in the column `DELETED`, that only this knows of.
    preserves_partition_time_zone : all readers read the same instant from a partition value.
    """

    uri: str
    soft_deletes: bool
    preserves_partition_time_zone: bool

    def columns(self) -> pa.Schema | None:
        """Its columns, with the column of `seq`; None where there is no table yet."""

    def properties(self) -> Mapping[str, str]:
        """Its table properties."""

    def partitioned_by(self) -> Sequence[str]:
        """The columns by which it is partitioned."""

    def applied(self, identifier: str) -> int | None:
        """The last number written under a transaction identifier (see `commit_markers`)."""

    def create(self, columns: pa.Schema, properties: Mapping[str, str]) -> None:
        """Make the table, empty; one that is there, without rows, is replaced."""

    def has_since(self, seq: Mapping[str, int]) -> bool:
        """Whether a row has this `seq` or a greater one."""

    def reset_seq(self) -> None:
        """Make every row older than all that comes."""

    def count(self) -> int:
        """How many rows it has; 0 where it is not there."""

    def is_empty(self) -> bool:
        """Whether it has no rows, or is not there."""

    def version(self) -> int:
        """Delta's number of the version by which all is decided; the table must be there."""

    def was_restored(self, since: int = -1) -> bool:
        """Whether its rows are those of an older version, put back after the version `since`."""

    def repeated_compaction(self, since: int) -> Commit | None:
        """A compaction after the version `since` by which it has rows twice; else None."""

    def look_again(self) -> None:
        """Forget what is known of it: another table, or none, may be in its place."""

    def add_columns(self, columns: Sequence[pa.Field[Any]], mark: Mark | None = None) -> None:
        """Give it columns that are null in the rows that are there."""

    def rewrite_columns(
        self, columns: pa.Schema, came_from: Mapping[str, str], mark: Mark | None = None
    ) -> None:
        """Give it these columns, with the values that they have under other names and types.

        came_from : a column's name -> its name until now; others are null.
        """

    def set_properties(self, properties: Mapping[str, str], mark: Mark | None = None) -> None:
        """Write table properties."""

    def older(self, before: Mapping[str, int], names: Sequence[str]) -> pa.Table:
        """These columns of the rows with a smaller `seq`, without deleted rows that are kept."""

    def has_duplicates(self, names: Sequence[str]) -> bool:
        """Whether two rows have the same values in these columns of the table."""

    def empty(self, before: Mapping[str, int], mark: Mark | None = None) -> None:
        """Remove the rows with a smaller `seq`, or none."""

    def remove_deleted(self) -> None:
        """Remove the deleted rows that are kept."""

    def merge(self, states: pa.Table, key: Sequence[str], mark: Mark) -> None:
        """Bring each key's last state in, where what is there is not newer.

        states : the columns of the table, the column of `seq`, and whether the row is gone.
        """

    def copies(self, rows: pa.Table) -> list[int]:
        """How many rows there are of each of these, which differ, byte by byte.

        rows : the columns of the table but that of `seq`.
        """

    def rewrite_equal_rows(self, gone: pa.Table, rows: pa.Table, mark: Mark) -> int:
        """Remove all copies of some rows, which differ, and write others; returns how many went.

        gone, rows : the columns of the table; in `gone`, that of `seq` does not count.
        """

    def replace(self, rows: pa.Table, mark: Mark) -> None:
        """Make these all the rows that it has, and their columns its columns."""

    def append(self, rows: pa.Table, mark: Mark) -> None:
        """Add rows to those that are there; without rows it is a commit all the same."""

    def compact(self) -> bool:
        """Write small files into larger ones; False where others wrote in between.

        May be called while another object writes the same table.
        """

    def vacuum(self) -> int:
        """Remove files that no version within the table's retention has; returns how many."""


class Engine(Protocol):
    """Opens Delta tables."""

    def begin(self, spark: SparkSession) -> None:
        """Take the session of the batch that begins."""

    def target(self, uri: str, partition_by: Sequence[str] = ()) -> DeltaTarget:
        """The Delta table of a URI, which may not be there yet.

        partition_by : columns, where it is made.
        """


def check_same_deletes(target: DeltaTarget, names: Collection[str]) -> None:
    """OptionError where a table with these columns was made to treat deleted rows otherwise."""
    if SEQ in names and (DELETED in names) != target.soft_deletes:
        was = "keep" if DELETED in names else "remove"
        raise OptionError(
            f"{target.uri} was made by a mirror that is to {was} deleted rows: go on so, or give"
            " another target"
        )


def commit_conflict_error(uri: str) -> RuntimeError:
    """The error where others committed each time that a commit was being written."""
    return RuntimeError(
        f"{uri}: something else committed {MAX_COMMIT_ATTEMPTS} times while one commit was being"
        " written; compact the table less often"
    )
