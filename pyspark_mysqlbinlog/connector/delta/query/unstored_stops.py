"""Stops that a Delta table cannot store because it cannot be opened or written (damaged Delta log).

The error would fail the batch of all tables, at every start. So such a stop is recorded in the
checkpoint alone (see `applied_states`), provided that the store itself did not fail: the error is
one that a single table may cause (see `table_failures`), and another Delta table of the mirror
could be written after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from pyspark_mysqlbinlog.connector.delta.query.table_failures import may_concern_table
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.constants import STOPPED
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table

__all__ = ["UnstoredStop", "can_write_any"]

# If the store is unreachable, each may take a timeout.
_MAX_TRIED_TARGETS = 3


class UnstoredStop(Exception):  # noqa: N818 (no error yet: see `BatchRunner`)
    """A table is to be stopped, but its Delta table cannot store the stop.

    Attributes
    ----------
    table, is_log : which Delta table: the table's, or its change log.
    reason : why it is to be stopped.
    cause : what to raise for the batch of all tables.
    is_of_table : whether the Delta table's own failure may come from that table.
    """

    def __init__(
        self, table: Table, stop: MirrorError, failure: BaseException, *, is_log: bool
    ) -> None:
        super().__init__(stop.message)
        self.table, self.is_log, self.reason = table, is_log, stop.message
        self.cause: BaseException = stop.__cause__ or failure
        self.is_of_table = may_concern_table(failure)


def can_write_any(targets: Iterable[DeltaTarget]) -> bool:
    """Return whether one of the first of these Delta tables, none of them stopped, is writable."""
    return any(map(_can_write, islice(targets, _MAX_TRIED_TARGETS)))


def _can_write(target: DeltaTarget) -> bool:
    try:
        if target.columns() is None:
            return False
        target.set_properties({STOPPED: ""})
    except Exception:  # noqa: BLE001 (any failure means that it cannot be written)
        return False
    return True
