"""The plan of a flashback: the undo statements on disk, and the rows that have changed since.

The binlog is read once, from the start of the window to its current end. Changes in the window
become statements. Of each row that they leave, a digest of its key is kept (of all its columns if
it has no key); a later change of such a row is listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Self

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.flashback.changes import Change, Changes, Image
from pyspark_mysqlbinlog.connector.flashback.spool import Spool
from pyspark_mysqlbinlog.connector.flashback.statements import UndoStatement
from pyspark_mysqlbinlog.connector.flashback.table_facts import TableFacts, read_table_facts
from pyspark_mysqlbinlog.connector.flashback.window import Window, WindowBounds
from pyspark_mysqlbinlog.connector.inspection.columns import ColumnsOfTable
from pyspark_mysqlbinlog.connector.inspection.literals import literal
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts, current_position
from pyspark_mysqlbinlog.errors import UnknownTableError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["ChangedSince", "FlashbackPlan"]

_MAX_LISTED = 1000
_WORDS = {"c": "insert", "u": "update", "d": "delete"}


@dataclass(frozen=True, slots=True)
class ChangedSince:
    """A row that the window changed, and that was changed again after that.

    Attributes
    ----------
    table : database.table.
    row : name and literal of its key's columns, or of all if it has no key.
    operation : of the first later change.
    """

    table: str
    row: str
    operation: str
    file: str
    pos: int
    time: int


@dataclass(slots=True)
class FlashbackPlan:
    """The statements that undo a window; use it in a `with` block.

    Attributes
    ----------
    bounds : the window.
    end : of the binlog, up to which later changes are known.
    counts : table -> operation of a statement -> number of statements.
    changed_since : the first rows with later changes.
    changed_count : number of later changes of such rows.
    unprotected : tables that are not transactional, with their engines.
    tables : those with statements.
    """

    bounds: WindowBounds
    end: Position
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    changed_since: list[ChangedSince] = field(default_factory=list)
    changed_count: int = 0
    unprotected: dict[str, str] = field(default_factory=dict)
    tables: dict[Table, TableFacts] = field(default_factory=dict)
    _spool: Spool = field(default_factory=Spool)
    _left: set[bytes] = field(default_factory=set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.__exit__()

    @property
    def total(self) -> int:
        """Number of statements."""
        return sum(each.total() for each in self.counts.values())

    @classmethod
    def make(cls, options: Options, window: Window) -> Self:
        """Read the binlog of a server, and return the plan.

        Raises
        ------
        UndoError : changes cannot be undone exactly.
        UnknownTableError : a named table does not exist.
        OptionError, PositionError : the window is not in the binlog.
        MySQLBinlogError : what reading a server's binlog raises.
        """
        settings = options.server_settings()
        with ReplicaClient.connect(settings) as client:
            facts = ServerFacts.ask(client)
            table_filter = options.table_filter(facts.case_sensitive)
            tables = read_table_facts(
                client, table_filter.captures, case_sensitive=facts.case_sensitive
            )
            fold = table_folding(facts.case_sensitive)
            folded = {fold(name): each for name, each in tables.items()}
            for name in table_filter.literals:
                if fold(name) not in folded:
                    raise UnknownTableError(
                        "option tables: the server has no such table; check the spelling and the"
                        " account's SELECT grant",
                        table=".".join(name),
                    )
            # Read after the tables, so that DDL in between is noticed.
            end = current_position(client)
            log = ServerLog.seen_from(settings, end)
            bounds = window.bounds(client, log, end)
        plan = cls(bounds, end)
        try:
            plan._collect(
                Changes(log, bounds, end, table_filter.captures, tables=folded, server=facts)
            )
        except BaseException:
            plan.__exit__()
            raise
        return plan

    def statements(self) -> Iterator[UndoStatement]:
        """Yield the statements, that of the newest change first."""
        return map(UndoStatement.unpack, self._spool.newest_first())

    def _collect(self, changes: Changes) -> None:
        for change in changes:
            if change.is_selected:
                self._add(change)
            elif self._concerns(change):
                self.changed_count += 1
                if len(self.changed_since) < _MAX_LISTED:
                    self.changed_since.append(_changed(change))

    def _add(self, change: Change) -> None:
        statement = UndoStatement.of(change)
        if statement is None:
            return
        self._spool.add(statement.packed())
        name = change.facts.schema.full_name
        self.counts.setdefault(name, Counter())[statement.operation] += 1
        self.tables[change.facts.table] = change.facts
        if not change.facts.is_transactional:
            self.unprotected[name] = change.facts.engine
        for image in (change.before, change.after):
            if image is not None and (image is change.after or change.facts.schema.row_key):
                self._left.add(_digest(change, image))

    def _concerns(self, change: Change) -> bool:
        return any(
            image is not None and _digest(change, image) in self._left
            for image in (change.before, change.after)
        )


def _identity(facts: TableFacts, image: Image) -> Image:
    """Return the cells that identify a row."""
    key = facts.schema.row_key
    return tuple(cell for cell in image if cell.column.name in key) if key else image


def _digest(change: Change, image: Image) -> bytes:
    digest = blake2b(change.facts.name.encode(), digest_size=16)
    for cell in _identity(change.facts, image):
        digest.update(len(cell.raw).to_bytes(8, "little"))
        digest.update(cell.raw)
    return digest.digest()


def _changed(change: Change) -> ChangedSince:
    image = change.before or change.after
    assert image is not None
    columns = ColumnsOfTable(change.plan)
    row = ", ".join(
        f"{cell.column.name}={literal(cell, columns)}" for cell in _identity(change.facts, image)
    )
    return ChangedSince(
        change.facts.schema.full_name,
        row,
        _WORDS[change.op],
        change.file,
        change.pos,
        change.time,
    )
