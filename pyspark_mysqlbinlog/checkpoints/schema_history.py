"""The schema of each table from each position on.

A table's versions are a tuple of (start, schema or reason), ascending; a lookup is a bisection. The
history is a value: a change returns a new one that shares all other tables' tuples, so the offset
of one batch is not affected by the binlog of the next. A version may be a reason instead of a
schema: from there on the columns are not known, and the reason explains why.

`pack` and `unpack` convert it to and from the text in an offset: see schema_packing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, END_OF_SEQUENCE, Position
from pyspark_mysqlbinlog.checkpoints.schema_packing import pack_versions, unpack_versions
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, Version, is_dropped, valid_from
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["SchemaHistory"]

_NO_DEFINITION = (
    "the binlog had no CREATE TABLE of it up to here (one with IF NOT EXISTS may have created"
    " nothing), and no baseline contains its columns"
)
# A database's default charset is stored as that of a table without name and columns.
_DATABASE = ""


class SchemaHistory:
    """The versions of every followed table; immutable.

    >>> SchemaHistory().at(Position.of("bin.000001", 4), "shop", "orders") is None
    True
    """

    def __init__(self, versions: Mapping[Table, tuple[Version, ...]] | None = None) -> None:
        self._versions: dict[Table, tuple[Version, ...]] = dict(versions or {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SchemaHistory):
            return NotImplemented
        return self._versions == other._versions

    def __hash__(self) -> int:
        return hash(frozenset(self._versions.items()))

    def __len__(self) -> int:
        """Return the number of tables and databases in it."""
        return len(self._versions)

    def __repr__(self) -> str:
        return f"SchemaHistory({len(self._versions)} tables)"

    def tables(self) -> Iterator[Table]:
        """Yield the (database, table) names in it, sorted."""
        return (name for name in sorted(self._versions) if name[1] != _DATABASE)

    def databases(self) -> Iterator[str]:
        """Yield the databases whose default charset is, or was, known; sorted."""
        return (name for name, table in sorted(self._versions) if table == _DATABASE)

    def state(
        self, position: Position, database: str, table: str
    ) -> TableSchema | UnknownSchema | None:
        """Return the version of a table at this position; None if there is none."""
        version = self._version(position, database, table)
        return version[1] if version else None

    def exists(self, position: Position, database: str, table: str) -> bool | None:
        """Whether a table exists at this position; None if there is no version of it."""
        version = self._version(position, database, table)
        return None if version is None else not is_dropped(version)

    def charset_at(self, position: Position, database: str) -> str | None:
        """Return a database's default charset, which a CREATE TABLE inherits; None if unknown."""
        schema = self.at(position, database, _DATABASE)
        return schema.charset if schema else None

    def charset_change(self, database: str) -> Position | None:
        """Return the start of a database's last charset; None if it is unknown."""
        versions = self.versions(database, _DATABASE)
        return versions[-1][0] if versions else None

    def with_charset(self, position: Position, database: str, charset: str | None) -> SchemaHistory:
        """Set a database's default charset from `position` on; None if it is dropped."""
        if charset is None:
            return self.without(position, database, _DATABASE, "", is_dropped=True)
        return self.with_table(position, TableSchema(database, _DATABASE, (), charset=charset))

    def versions(self, database: str, table: str) -> tuple[Version, ...]:
        """Return all versions of a table, ascending; empty if there are none."""
        return self._versions.get((database, table), ())

    def _version(self, position: Position, database: str, table: str) -> Version | None:
        versions = self.versions(database, table)
        index = bisect_right(versions, position, key=valid_from)
        return versions[index - 1] if index else None

    def at(self, position: Position, database: str, table: str) -> TableSchema | None:
        """Return the schema of rows at this position; None if unknown (see `unknown_reason`).

        A DDL statement's schema is valid from the position after its event on.
        """
        version = self._version(position, database, table)
        return version[1] if version and isinstance(version[1], TableSchema) else None

    def valid_range(self, position: Position, database: str, table: str) -> tuple[int, int | None]:
        """Return the byte range of this position's file in which the version is the same.

        The second value is exclusive; None is the end of the file.
        """
        versions = self.versions(database, table)
        index = bisect_right(versions, position, key=valid_from)
        first, end = 0, None
        if index and versions[index - 1][0].number == position.number:
            first = versions[index - 1][0].pos
        if index < len(versions) and versions[index][0].number == position.number:
            end = versions[index][0].pos
        return first, end

    def unknown_reason(self, position: Position, database: str, table: str) -> str:
        """Return why `at` returns None there; empty if it does not."""
        version = self._version(position, database, table)
        if version is None:
            return _NO_DEFINITION
        return version[1].reason if isinstance(version[1], UnknownSchema) else ""

    def is_known_later(self, position: Position, database: str, table: str) -> bool:
        """Whether the table's columns become known after `position`, or the table is dropped."""
        return any(
            start > position and (isinstance(what, TableSchema) or what.is_dropped)
            for start, what in self.versions(database, table)
        )

    def with_table(self, position: Position, schema: TableSchema) -> SchemaHistory:
        """Set a table's schema from `position` on, up to its next version.

        A version that starts there is replaced. A schema that is already valid there adds no
        version: a CREATE TABLE IF NOT EXISTS may have created nothing.
        """
        return self._with((schema.database, schema.table), (position, schema))

    def without(
        self,
        position: Position,
        database: str,
        table: str,
        reason: str,
        *,
        is_dropped: bool = False,
    ) -> SchemaHistory:
        """Make the table's columns unknown from `position` on.

        Parameters
        ----------
        reason : why, as part of a sentence: ``it was altered by a statement that …``.
        is_dropped : it does not exist from there on; `from_position` may drop it. Otherwise the
            reason is kept, for the error when a row occurs.
        """
        return self._with((database, table), (position, UnknownSchema(reason, is_dropped)))

    def _with(self, table: Table, version: Version) -> SchemaHistory:
        versions = self._versions.get(table, ())
        index = bisect_right(versions, version[0], key=valid_from)
        if index and versions[index - 1][1] == version[1]:
            return self
        keep = index - 1 if index and versions[index - 1][0] == version[0] else index
        return SchemaHistory(
            {**self._versions, table: (*versions[:keep], version, *versions[index:])}
        )

    def merged(self, other: SchemaHistory) -> SchemaHistory:
        """Add all versions of another history's tables, which replace those of the same tables."""
        history = self
        for table in other.tables():
            for version in other.versions(*table):
                history = history._with(table, version)
        return history

    def from_position(self, position: Position) -> SchemaHistory:
        """Drop the versions that are not valid at `position` or later.

        The version at `position` is then valid from the beginning. Therefore, the text for a
        boundary does not depend on earlier versions.
        """
        needed: dict[Table, tuple[Version, ...]] = {}
        for table, versions in self._versions.items():
            index = bisect_right(versions, position, key=valid_from)
            kept = versions[max(index - 1, 0) :]
            first = kept[0]
            if first[0] <= position and is_dropped(first):
                kept = kept[1:]
            elif first[0] <= position:
                kept = ((BEGINNING, first[1]), *kept[1:])
            if kept:
                needed[table] = kept
        return self if needed == self._versions else SchemaHistory(needed)

    def in_sequence(self, begin: Position, sequences: int) -> SchemaHistory:
        """Convert to the positions of a later sequence of files, `sequences` after the current one.

        begin : where it begins, in the history's order; positions after it are its own.
        """
        moved = {
            table: tuple((_moved(start, -sequences), what) for start, what in versions)
            for table, versions in self.from_position(begin)._versions.items()
        }
        return SchemaHistory(moved).until(END_OF_SEQUENCE)

    def until(self, position: Position) -> SchemaHistory:
        """Drop the versions that begin after `position`."""
        kept = {
            table: versions[: bisect_right(versions, position, key=valid_from)]
            for table, versions in self._versions.items()
        }
        return self.with_versions(kept)

    def with_versions(self, tables: Mapping[Table, tuple[Version, ...]]) -> SchemaHistory:
        """Replace the versions of these tables; drops tables without versions."""
        changed = {
            table: versions
            for table, versions in (self._versions | dict(tables)).items()
            if versions
        }
        return self if changed == self._versions else SchemaHistory(changed)

    def select(self, predicate: Callable[[str, str], bool]) -> SchemaHistory:
        """Keep only the tables for which ``predicate(database, table)`` is true, and databases."""
        chosen = {
            table: each
            for table, each in self._versions.items()
            if table[1] == _DATABASE or predicate(*table)
        }
        return self if len(chosen) == len(self._versions) else SchemaHistory(chosen)

    def pack(self) -> str:
        """Return the text for an offset: ASCII without quotes and backslashes.

        Equal histories give equal texts. Computed once per history.
        """
        return self._packed

    @cached_property
    def _packed(self) -> str:
        return pack_versions(self._versions)

    @classmethod
    def unpack(cls, text: str) -> SchemaHistory:
        """Read what `pack` wrote; OffsetError for other text. Empty text is an empty history."""
        return cls(unpack_versions(text)) if text else cls()


def _moved(start: Position, sequences: int) -> Position:
    return start if start == BEGINNING else start.in_later_sequence(sequences)
