"""The versions of each captured table's schema in a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import Version, is_dropped, valid_from
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.decoder.sql.column_changes import FollowRenames, renamed
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["TableVersions", "table_versions"]


@dataclass(frozen=True, slots=True)
class TableVersions:
    """Versions of a table's schema in a batch.

    Attributes
    ----------
    versions : all that are valid anywhere in the batch, in order, without excluded columns.
    logged : the same with the columns of the binlog, all and unmasked; empty if they are the same.
    follow : the new names of columns from one logged version to the next one.
    came_by_rename : packed positions at which another table was renamed to this name.
    """

    versions: tuple[Version, ...]
    came_by_rename: frozenset[int] = frozenset()
    logged: tuple[Version, ...] = ()
    follow: FollowRenames = renamed

    @property
    def only(self) -> TableSchema | None:
        """The only version; None if there are several, or the columns are unknown."""
        what = self.versions[0][1] if len(self.versions) == 1 else None
        return what if isinstance(what, TableSchema) else None

    def since(self, applied: int) -> tuple[Version, ...]:
        """Return the versions from the one that is valid at a packed position."""
        first = 0
        for at, (start, _) in enumerate(self.versions):
            if pack_position(start) <= applied:
                first = at
        return self.versions[first:]

    def renamed(
        self, before: Position, after: Position, statement: str | None
    ) -> Mapping[str, str]:
        """Return the new name of each delivered column that remains; see `DeliveredColumns`.

        before, after : where the versions before and after a statement begin.
        statement : the statement, if the stream has a row for it.

        Raises CannotFollowError if the rows are unknown.
        """
        return self.follow(self.logged_from(before), self.logged_from(after), statement)

    def logged_from(self, start: Position) -> TableSchema:
        """Return the table as it is logged from the beginning of a version on."""
        what = next(what for at, what in self.logged or self.versions if at == start)
        assert isinstance(what, TableSchema)
        return what

    def is_absent_at(self, start: Position) -> bool:
        """Return whether the table is known not to exist at a batch's start."""
        if not self.versions:
            return False
        first = self.versions[0]
        return is_dropped(first) or valid_from(first) > start


def table_versions(
    history: SchemaHistory,
    names: Iterable[Table],
    as_delivered: Callable[[Version], Version],
    follow: FollowRenames,
) -> dict[Table, TableVersions]:
    """Return the versions of tables in a history.

    as_delivered : returns a version without excluded columns, and with masked columns as texts.
    follow : as in `TableVersions`.
    """
    dropped = _dropped(history)
    return {
        name: TableVersions(
            tuple(map(as_delivered, history.versions(*name))),
            _came_by_rename(name, history, dropped),
            tuple(history.versions(*name)),
            follow,
        )
        for name in names
    }


def _dropped(history: SchemaHistory) -> dict[int, set[Table]]:
    """Return packed position -> the tables that were dropped there."""
    dropped: dict[int, set[Table]] = {}
    for name in history.tables():
        for version in filter(is_dropped, history.versions(*name)):
            dropped.setdefault(pack_position(valid_from(version)), set()).add(name)
    return dropped


def _came_by_rename(
    name: Table, history: SchemaHistory, dropped: Mapping[int, set[Table]]
) -> frozenset[int]:
    """Return packed positions at which a table appears and another is dropped: it was renamed."""
    return frozenset(
        pack_position(start)
        for start, what in history.versions(*name)
        if isinstance(what, TableSchema) and dropped.get(pack_position(start), set()) - {name}
    )
