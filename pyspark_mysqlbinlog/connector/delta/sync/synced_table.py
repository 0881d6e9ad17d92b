"""The common base of a mirrored table and a change log: state, stop and checks."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position, unpack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.connector.delta.sync.batch import Batch
from pyspark_mysqlbinlog.connector.delta.sync.constants import STOPPED
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import FingerprintAt
from pyspark_mysqlbinlog.errors import FailoverError, MirrorError
from pyspark_mysqlbinlog.names import Table

__all__ = ["SyncedTable"]


class SyncedTable:
    """A captured table that a query writes to a Delta table, and may stop writing.

    Parameters
    ----------
    fingerprint_at : returns a position's fingerprint in the current binlog.
    state : the Delta table's state after the query's last batch; None if not known.

    Attributes
    ----------
    stopped : why replication of the table stopped; None if it has not.
    state : the Delta table's current state.
    """

    def __init__(
        self,
        table: Table,
        target: DeltaTarget,
        fingerprint_at: FingerprintAt,
        state: AppliedState | None = None,
    ) -> None:
        self.state = state
        self.stopped = target.properties().get(STOPPED) or None
        self._table = table
        self._name = ".".join(table)
        self._target = target
        self._fingerprint_at = fingerprint_at
        # Whether the Delta table was found to continue where a batch begins, and in which binlog.
        self._is_checked = False
        self._checked_in: LogIdentity | None = None

    def _check_again_in(self, log: LogIdentity) -> None:
        """Have the table checked again if a batch is in another binlog than the last one.

        A table that did not exist where the previous binlog ended has not entered this one.
        """
        if self._checked_in != log:
            self._checked_in, self._is_checked = log, False

    def _check_not_in_part(self, applied: int, batch: Batch) -> None:
        """FailoverError if another server repeats a batch of which a part is applied.

        applied : packed position up to which the Delta table is complete.
        """
        if batch.is_replay and pack_position(batch.start) < applied < batch.marker.position:
            number, pos = unpack_position(applied)
            raise FailoverError(
                f"the Delta table has a part of the batch, up to position {pos} of binlog file"
                f" number {number} of the lost server, so no other one can repeat the batch",
                table=self._name,
            )

    def _check_not_ahead(self, applied: int, batch: Batch, what: str, remedy: str) -> None:
        """MirrorError if it has changes after the start of a batch that leads into another binlog.

        applied : packed position up to which it is complete.
        what : a name of the Delta table, as the subject of a sentence.
        """
        if applied > pack_position(batch.start):
            number, pos = unpack_position(applied)
            raise self._error(
                f"{what} is complete up to position {pos} of binlog file number {number}, but the"
                f" query continues in another binlog from before that, at {batch.start}; {remedy}"
            )

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self._name)
