"""The state of an initial snapshot, as an offset's `snapshot` stores it.

A snapshot processes its tables in order, and each table by key, in chunks. The state contains which
tables are complete, which are pending and from which key on, and which chunks belong to the batch
that ends here: a replay of the batch reads the same chunks.

As text: JSON, compressed if that is shorter. Then the names of 1,000 tables take some 4 kB.
"""

from __future__ import annotations

import bz2
import json
from base64 import b85decode, b85encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.names import Table

__all__ = ["UNKNOWN_END", "Bound", "Chunk", "SnapshotState", "TableSnapshotState"]

_COMPRESSED = "bz2,"

# A key's values as SQL literals, one for each of its columns: as returned by the server, in a form
# that compares with the column as the value itself does.
Bound = tuple[str, ...]
# A binlog file's number, and the byte offset in it.
Place = tuple[int, int]
# After every place: a high watermark that is not determined yet.
UNKNOWN_END: Place = (1 << 62, 0)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one table, by key.

    Attributes
    ----------
    key : the fingerprint of the key of the bounds (see connector/snapshot/chunks/keys.py); empty if
        the chunk is the whole table.
    after : the bound after which it begins; None for the table's beginning.
    upto : the bound at which it ends, inclusive; None for the table's end.
    """

    table: Table
    key: str = ""
    after: Bound | None = None
    upto: Bound | None = None


@dataclass(frozen=True, slots=True)
class TableSnapshotState:
    """A pending table, or the rest of it.

    Attributes
    ----------
    key : as in `Chunk`; empty before the first chunk.
    after : everything up to here is read, or part of this batch; None before the first chunk.
    last : the greatest key when the snapshot of this table began: rows after it are in the binlog.
    """

    table: Table
    key: str = ""
    after: Bound | None = None
    last: Bound | None = None


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The state of a snapshot.

    Attributes
    ----------
    completed : tables whose rows are snapshotted, or were all written after the start.
    pending : tables to snapshot, in order; the first may be partly done.
    chunks : of the batch that ends here.
    rows : the approximate number of rows that the snapshot has read, including this batch.
    reload : the ID of the last `reload` that was begun; empty if there was none.
    high_watermarks : table -> the position up to which its chunks may include changes of the
        binlog, ordered relative to the offset's file (see connector/log/file_order.py). Only if it
        is after the offset, and the consumer needs it. If another server may continue, also of
        tables that were found to have no more rows; UNKNOWN_END in the batch that ends here.
    invalidated_at : the position after the statement for which a table is snapshotted again, until
        that is done.
    empty : tables without rows to snapshot, as the batch that ends here found. It has no chunk of
        them.
    """

    completed: frozenset[Table] = frozenset()
    pending: tuple[TableSnapshotState, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    rows: int = 0
    reload: str = ""
    high_watermarks: Mapping[Table, Place] = field(default_factory=dict)
    invalidated_at: Mapping[Table, Place] = field(default_factory=dict)
    empty: frozenset[Table] = frozenset()

    @property
    def is_done(self) -> bool:
        """Whether all tables are complete, or will be with this batch."""
        return not self.pending

    def read_ahead_of(self, place: Place) -> frozenset[Table]:
        """Return the tables that were read at a position that may be after the offset's.

        Their rows may include changes that the stream has not delivered yet.

        place : of the offset.
        """
        found = {table for table, until in self.high_watermarks.items() if until > place}
        of_batch = self.empty.union(chunk.table for chunk in self.chunks)
        begun = {load.table for load in self.pending if load.after is not None}
        if any(self.high_watermarks.get(table) != UNKNOWN_END for table in of_batch):
            # A query that cannot fail over planned this batch, and recorded fewer high watermarks.
            begun |= self.completed
        return frozenset(found | of_batch | begun)

    def reading_again(self, tables: Collection[Table]) -> SnapshotState:
        """Return the state with these tables pending from their beginnings, after the others."""
        pending = tuple(load for load in self.pending if load.table not in tables)
        return replace(
            self,
            completed=self.completed.difference(tables),
            pending=(*pending, *map(TableSnapshotState, tables)),
        )

    @property
    def tables(self) -> frozenset[Table]:
        """The tables that are complete or pending."""
        return self.completed.union(load.table for load in self.pending)

    def is_to_begin(self, table: Table) -> bool:
        """Return whether a table is pending, and nothing of it was read."""
        return any(load.table == table and load.after is None for load in self.pending)

    def without_batch(self) -> SnapshotState:
        """Return the state without what belongs to the batch that ends there."""
        return replace(self, chunks=(), empty=frozenset())

    def pack(self) -> str:
        """Return the text; equal states are equal texts."""
        value: dict[str, Any] = {
            "completed": _grouped(self.completed),
            "in_progress": [_listed(load) for load in self.pending if load.key or load.after],
            "pending": _grouped(load.table for load in self.pending),
            "chunks": [_listed(chunk) for chunk in self.chunks],
            "rows": self.rows,
            "reload": self.reload,
        }
        for name, places in (
            ("high_watermarks", self.high_watermarks),
            ("invalidated_at", self.invalidated_at),
        ):
            if places:
                value[name] = _by_place(places)
        if self.empty:
            value["empty"] = _grouped(self.empty)
        text = json.dumps(value, separators=(",", ":"))
        compressed = _COMPRESSED + b85encode(bz2.compress(text.encode())).decode()
        return min(text, compressed, key=len)

    @classmethod
    def unpack(cls, packed: str) -> SnapshotState:
        """Read what `pack` returned; OffsetError for any other text."""
        try:
            text = packed
            if text.startswith(_COMPRESSED):
                text = bz2.decompress(b85decode(text.removeprefix(_COMPRESSED))).decode()
            value = json.loads(text)
            begun = {load.table: load for load in map(_table_load, value["in_progress"])}
            return cls(
                completed=frozenset(_tables(value["completed"])),
                pending=tuple(
                    begun.get(table, TableSnapshotState(table))
                    for table in _tables(value["pending"])
                ),
                chunks=tuple(map(_chunk, value["chunks"])),
                rows=int(value["rows"]),
                reload=str(value["reload"]),
                high_watermarks=_places(value.get("high_watermarks", [])),
                invalidated_at=_places(value.get("invalidated_at", [])),
                empty=frozenset(_tables(value.get("empty", []))),
            )
        except (ValueError, KeyError, TypeError, OSError, AttributeError) as error:
            raise OffsetError(
                f"the offset's 'snapshot' can't be read ({type(error).__name__}); the checkpoint is"
                " damaged"
            ) from None


def _grouped(tables: Iterable[Table]) -> list[list[Any]]:
    """Return ``[database, [table, …]]``, in the tables' order; databases may be repeated."""
    groups: list[list[Any]] = []
    # A set is unordered.
    for database, table in sorted(tables) if isinstance(tables, frozenset) else tables:
        if not groups or groups[-1][0] != database:
            groups.append([database, []])
        groups[-1][1].append(table)
    return groups


def _tables(groups: list[list[Any]]) -> Iterable[Table]:
    for database, names in groups:
        for name in names:
            yield str(database), str(name)


def _by_place(places: Mapping[Table, Place]) -> list[list[Any]]:
    """Return ``[number, pos, tables]`` for each position."""
    tables: dict[Place, list[Table]] = {}
    for table, place in places.items():
        tables.setdefault(place, []).append(table)
    return [[*place, _grouped(frozenset(tables[place]))] for place in sorted(tables)]


def _places(listed: list[list[Any]]) -> dict[Table, Place]:
    return {
        table: (int(number), int(pos))
        for number, pos, groups in listed
        for table in _tables(groups)
    }


def _listed(part: Chunk | TableSnapshotState) -> list[Any]:
    end = part.upto if isinstance(part, Chunk) else part.last
    return [*part.table, part.key, part.after, end]


def _bound(value: list[str] | None) -> Bound | None:
    return None if value is None else tuple(map(str, value))


def _chunk(value: list[Any]) -> Chunk:
    database, table, key, after, upto = value
    return Chunk((str(database), str(table)), str(key), _bound(after), _bound(upto))


def _table_load(value: list[Any]) -> TableSnapshotState:
    database, table, key, after, last = value
    return TableSnapshotState((str(database), str(table)), str(key), _bound(after), _bound(last))
