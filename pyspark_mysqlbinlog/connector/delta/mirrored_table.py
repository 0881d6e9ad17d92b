"""One table of a mirror, batch after batch: what is new in each is brought into its Delta table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.apply import SEQ, SEQ_TYPE, in_order
from pyspark_mysqlbinlog.connector.delta.engine import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.marks import Mark, place_of
from pyspark_mysqlbinlog.connector.delta.timeline import not_applied, sections
from pyspark_mysqlbinlog.connector.delta.walk import LOAD_ANEW, Walk
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["LOG", "STOPPED", "MirroredTable", "TableVersions"]

# Properties of a Delta table. Why it is kept in step no more; and the log in which its `seq` lie.
STOPPED = "mysqlbinlog.stopped"
LOG = "mysqlbinlog.log"


@dataclass(frozen=True, slots=True)
class TableVersions:
    """What a table looks like in a batch.

    Attributes
    ----------
    versions : those that hold anywhere in the batch, ascending; columns that nobody wants left out.
    came_by_rename : places at which another table took this one's name.
    """

    versions: tuple[Version, ...]
    came_by_rename: frozenset[int] = frozenset()


class MirroredTable:
    """One table. `apply` raises MirrorError where the Delta table can't be kept equal.

    Attributes
    ----------
    stopped : why it is kept in step no more.
    """

    def __init__(self, name: str, target: DeltaTarget) -> None:
        self._name = name
        self._target = target
        self._last: tuple[Version, ...] = ()
        self.stopped = target.properties().get(STOPPED) or None

    def stop(self, error: MirrorError) -> None:
        """Keep the table in step no more, in this query or a later one."""
        self.stopped = error.message
        if self._target.columns() is None:
            self._target.create(pa.schema([pa.field(SEQ, SEQ_TYPE)]), {})
        self._target.set_properties({STOPPED: error.message})

    def apply(self, changes: pa.Table, end: TableVersions, mark: Mark) -> int:
        """Bring one batch's changes in; returns how many of them were new."""
        if not changes.num_rows and end.versions == self._last:
            return 0
        assert mark.batch is not None
        if (self._target.applied(mark.batch[0]) or -1) >= mark.batch[1]:
            return 0
        self._expect_log(mark)
        applied = self._target.applied(str(mark.log)) or 0
        changes = not_applied(in_order(changes), applied)
        versions = _from(end.versions, applied)
        if changes.num_rows or applied < mark.version:
            walk = Walk(self._name, self._target, mark, applied, end.came_by_rename)
            for section in sections(changes, versions):
                walk.take(section)
            walk.finish()
        if len(end.versions) == 1:
            self._last = end.versions
        return changes.num_rows

    def _expect_log(self, mark: Mark) -> None:
        """Positions compare within one log only."""
        if self._target.columns() is None:
            return
        known = self._target.properties().get(LOG)
        if known is None:
            self._target.set_properties({LOG: str(mark.log)})
        elif known != str(mark.log):
            raise MirrorError(
                f"its rows are from another server's log ({known}, now {mark.log}); {LOAD_ANEW}",
                table=self._name,
            )


def _from(versions: tuple[Version, ...], applied: int) -> tuple[Version, ...]:
    """The versions from the one on that the Delta table has the shape of."""
    first = 0
    for at, (start, _) in enumerate(versions):
        if place_of(start) <= applied:
            first = at
    return versions[first:]
