"""Rows of a Delta table, at a version that is selected before they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import dataset

from pyspark_mysqlbinlog.checkpoints.position import Position, base_name
from pyspark_mysqlbinlog.connector.delta.rows.columns import DELETED, SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity
from pyspark_mysqlbinlog.connector.delta.sync.constants import (
    SNAPSHOT_IN_PROGRESS,
    SOURCE_LOG,
    STOPPED,
    TRANSFORMS,
)
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import position_of
from pyspark_mysqlbinlog.errors import MirrorError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeTarget

__all__ = ["DeltaRows"]

# Rows are read a few batches ahead.
_BATCH_ROWS = 1 << 15
_BATCHES_AHEAD = 4


class DeltaRows:
    """A Delta table that exists.

    Parameters
    ----------
    name : of its MySQL table, for errors.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str], name: str) -> None:
        self._uri = uri
        self._storage = dict(storage_options)
        self._name = name
        self._target: DeltalakeTarget | None = None
        self.pin()
        # Fail before the server's rows are read, which may take long.
        self._dataset()

    def pin(self) -> None:
        """Select the newest version; MirrorError if there is none, or no mirror wrote it."""
        from deltalake import DeltaTable  # noqa: PLC0415 (slow to import)
        from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415 (slow to import)

        from pyspark_mysqlbinlog.connector.delta.store.deltars.table import (  # noqa: PLC0415 (as above)
            DeltalakeTarget,
        )

        try:
            table = DeltaTable(self._uri, storage_options=self._storage)
        except TableNotFoundError:
            raise self._error(f"there is no Delta table at {self._uri}") from None
        names = {field.name for field in table.schema().fields}
        if SEQ not in names:
            raise self._error(f"no mirror wrote the Delta table at {self._uri}")
        target = DeltalakeTarget(self._uri, self._storage, {}, (), soft_delete=DELETED in names)
        self._target = target
        if target.properties().get(TRANSFORMS):
            raise self._error(
                "its rows are masked or filtered (maskColumns, rowFilter), so they are not to equal"
                " the server's"
            )
        if target.properties().get(SNAPSHOT_IN_PROGRESS):
            raise self._error("its snapshot is in progress; compare it when that is complete")

    @property
    def target(self) -> DeltalakeTarget:
        """The table at the selected version."""
        assert self._target is not None
        return self._target

    @property
    def stopped(self) -> str | None:
        """Why its replication stopped; None if it has not."""
        return self.target.properties().get(STOPPED) or None

    def log(self, server: str, like: Position) -> LogIdentity:
        """Return the binlog of its positions; MirrorError if that is not the server's current one.

        server : the server's identity.
        like : a position in its current binlog.
        """
        known = self.target.properties().get(SOURCE_LOG, "")
        expected = LogIdentity(server, 0, base_name(like.file))
        epoch, _, base = known.removeprefix(expected.of_server).partition(":")
        if not known.startswith(expected.of_server) or base != expected.base:
            raise self._error(
                f"its rows are from another binlog than the server's ({known or 'none is recorded'}"
                f", now {expected.of_server}…:{expected.base}), so no position is common to both"
            )
        return LogIdentity(server, int(epoch), base)

    def applied(self, log: LogIdentity, like: Position) -> Position:
        """Return the position up to which it is complete."""
        place = self.target.txn_version(str(log))
        if place is None:
            raise self._error("no position is recorded up to which it is complete")
        return position_of(place, like)

    def check_columns(self, expected: pa.Schema) -> None:
        """Raise MirrorError unless the table has these columns."""
        columns = self.target.columns()
        held = {} if columns is None else {each.name: each.type for each in columns}
        held.pop(SEQ, None)
        wanted = {each.name: each.type for each in expected}
        if held.keys() != wanted.keys():
            different = ", ".join(sorted(held.keys() ^ wanted.keys()))
            raise self._error(
                f"it has other columns than the MySQL table ({different}): the mirror has not"
                " reached an ALTER TABLE yet, or excludeColumns is not the mirror's"
            )

    def count(self) -> int:
        """Return the number of its rows, soft-deleted ones included."""
        return self.target.count()

    def batches(
        self, expected: pa.Schema, condition: Any = None, *, with_seq: bool = False
    ) -> Iterator[pa.Table]:
        """Yield its rows with these columns, without soft-deleted ones.

        condition : a pyarrow expression that the rows meet.
        with_seq : add the column of `seq`.
        """
        if with_seq:
            expected = expected.append(pa.field(SEQ, SEQ_TYPE))
        if self.target.soft_deletes:
            there = ~dataset.field(DELETED)
            condition = there if condition is None else condition & there
        scanner = self._dataset().scanner(
            columns=expected.names,
            filter=condition,
            batch_size=_BATCH_ROWS,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=1,
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield pa.Table.from_batches([batch]).cast(expected)

    def _dataset(self) -> dataset.Dataset:
        """Return the rows of the selected version; MirrorError if delta-rs cannot read them."""
        from deltalake.exceptions import DeltaProtocolError  # noqa: PLC0415 (slow to import)

        try:
            return self.target.dataset()
        except DeltaProtocolError as error:
            what = (
                f"the Delta table at {self._uri} cannot be read with delta-rs:"
                f" {' '.join(str(error).split())}"
            )
        if "deletionVectors" in what:
            what += (
                "; in Spark, set its property delta.enableDeletionVectors to 'false' and run ALTER"
                f" TABLE delta.`{self._uri}` DROP FEATURE deletionVectors"
            )
        else:
            what += "; remove these features in Spark with ALTER TABLE … DROP FEATURE"
        raise self._error(what)

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)
