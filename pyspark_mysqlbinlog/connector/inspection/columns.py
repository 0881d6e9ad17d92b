"""The columns of the tables in a log: from its metadata, its DDL, or the server.

A column is known by name if the table maps have full metadata (8.0 and later), if the log contains
the CREATE TABLE, or if a server was queried. Otherwise it is `@1`, `@2`, … as in mysqlbinlog. What
the log does not contain is not guessed then: the sign of an integer, the character set of a text
and the labels of an ENUM or SET.

The DDL of a log is followed event by event, so that a log of any size is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, RowPlan
from pyspark_mysqlbinlog.decoder.payloads.positional import positional_plan
from pyspark_mysqlbinlog.decoder.payloads.table_plans import TablePlans
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import Metadata
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaError
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Columns", "ColumnsOfTable"]

_CACHED_TABLES = 1024
_NO_CREATE = (
    "no CREATE TABLE of it comes {} this position, and the binlog has no metadata with names"
    " (binlog_row_metadata=FULL, 8.0 and later)"
)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsOfTable:
    """How the rows of a table map are read.

    Attributes
    ----------
    unknown : why the names are `@1`, `@2`, …; empty if they are known.
    bare : indexes of the columns of which only the type is known: not whether an integer is
        unsigned, which character set a text has, or which labels an ENUM or SET has.
    """

    plan: RowPlan
    unknown: str = ""
    bare: frozenset[int] = frozenset()


class Columns:
    """The columns at each position of a log; feed it each DDL statement of the log.

    Parameters
    ----------
    position : (file, pos) -> position in the order of the log.
    history : known at the start, of a server.
    follows : whether the log's DDL is followed.
    case_sensitive, explicit_timestamps, letter_case : see SchemaTracker.
    """

    def __init__(
        self,
        position: Callable[[str, int], Position],
        history: SchemaHistory | None = None,
        *,
        follows: bool = True,
        case_sensitive: bool = True,
        explicit_timestamps: bool = False,
        letter_case: LetterCaseCheck | None = None,
    ) -> None:
        self._position = position
        self._follows = follows
        self._tracked = partial(
            SchemaTracker,
            captures=lambda *_: True,
            case_sensitive=case_sensitive,
            explicit_timestamps=explicit_timestamps,
            letter_case=letter_case,
        )
        self._no_create = _NO_CREATE.format("before")
        self._begin(history or SchemaHistory())

    def _begin(self, history: SchemaHistory) -> None:
        self._tracker = self._tracked(history)
        self._plans = TablePlans(self)
        self._positional: dict[int, ColumnsOfTable] = {}

    def forget(self) -> None:
        """Forget all tables: the log continues after a gap, in which they may have changed."""
        self._no_create = _NO_CREATE.format("between the last gap in these files and")
        self._begin(SchemaHistory())

    def follow(self, event: Event, logged: LoggedStatement) -> None:
        """Apply a statement of the log, if it is DDL."""
        if self._follows and logged.statement.kind in DDL_KINDS:
            end = self._position(event.file, event.end)
            self._tracker.follow(event, logged, end)
            self._tracker.forget_before(end)

    def of(self, event: Event, table_map: TableMap) -> ColumnsOfTable:
        """Return how the rows of an event are read."""
        try:
            return ColumnsOfTable(self._plans.plan(event, table_map))
        except SchemaError as error:
            known = self._positional.get(table_map.table_id)
            if known is None or known.plan.table_map is not table_map:
                known = _unnamed(event, table_map, self._why_unnamed(event, table_map, error))
                if len(self._positional) >= _CACHED_TABLES:
                    self._positional.clear()
                self._positional[table_map.table_id] = known
            return known

    def _why_unnamed(self, event: Event, table_map: TableMap, error: SchemaError) -> str:
        position = self._position(event.file, event.start)
        name = (table_map.database, table_map.table)
        if self._known.state(position, *name) is None:
            return self._no_create
        return self._known.unknown_reason(position, *name) or error.message

    # --- SchemaLookup

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        return self._known.at(self._position(file, pos), database, table)

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        return self._known.unknown_reason(self._position(file, pos), database, table)

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        return self._known.is_known_later(self._position(file, pos), database, table)

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        return self._known.valid_range(self._position(file, pos), database, table)

    @property
    def _known(self) -> SchemaHistory:
        return self._tracker.history


def _unnamed(event: Event, table_map: TableMap, reason: str) -> ColumnsOfTable:
    """Return the columns under generated names, with what metadata without names contains."""
    plan = positional_plan(table_map)
    columns: list[ColumnPlan] = list(plan.columns)
    bare = set(range(len(columns)))
    if table_map.optional:
        is_mariadb = OPERATIONS[event.type][1] == 1
        names = [column.name for column in columns]
        # If the metadata cannot be read, its columns stay bare.
        with suppress(MySQLBinlogError):
            found = Metadata(table_map, is_mariadb=is_mariadb).unnamed_columns(names)
            for at, schema in enumerate(found):
                if schema is not None:
                    codec = codec_for(table_map.types[at], table_map.metadata[at], schema)
                    key = columns[at].json_key
                    columns[at] = ColumnPlan(schema.name, key, codec.skip, codec, schema)
                    bare.discard(at)
    made = RowPlan(table_map, plan.schema, tuple(columns))
    made.key = None
    return ColumnsOfTable(made, reason, frozenset(bare))
