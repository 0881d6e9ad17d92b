"""Follows DDL: the schema of each table from each position on.

Every DDL of every table is followed, captured or not, except for the server's own tables: a RENAME,
a CREATE TABLE … LIKE or the cut-over of an online schema change turns an uncaptured table into a
captured one. DDL that can't be followed makes the table unknown from there on, with the reason; at
a row of such a table the server is queried, or the stream stops. A statement whose result a later
query of the server has already determined (see `baseline`) is not evaluated again.

Nothing is concluded from a statement that may have had no effect: CREATE … IF NOT EXISTS defines a
table's columns only if the table is known not to have existed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark_mysqlbinlog.charsets import charset_of_collation
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema, Version, is_dropped
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.decoder.sql.alter.apply import apply_alter
from pyspark_mysqlbinlog.decoder.sql.alter.clauses import parse_alter
from pyspark_mysqlbinlog.decoder.sql.classifier import StatementKind
from pyspark_mysqlbinlog.decoder.sql.definitions.create import (
    parse_create_table,
    parse_database_charset,
)
from pyspark_mysqlbinlog.decoder.sql.label_charsets import check_written_labels
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.decoder.sql.statement_text import Author, create_author
from pyspark_mysqlbinlog.errors import MySQLBinlogError, SchemaChangedError, SchemaError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, folding
from pyspark_mysqlbinlog.protocol.events import THREAD_SPECIFIC_FLAG, Event
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["MAX_UNCAPTURED_COLUMNS", "SchemaTracker", "last_change"]

_KIND = StatementKind
# A schema, or the reason why there is none; None if the table never occurred.
State = TableSchema | UnknownSchema | None
# Placeholder for the server's charset, which is not needed if a statement has its own.
_SERVERS = "the server's"
# In these sql_modes the server writes CREATE TABLE without the table's options, or without any
# charset: POSTGRESQL, ORACLE, MSSQL, DB2, MAXDB, NO_TABLE_OPTIONS, MYSQL323, MYSQL40, ANSI
# (sql/sql_show.cc, store_create_info).
_WITHOUT_CHARSETS = 0x100 | 0x200 | 0x400 | 0x800 | 0x1000 | 0x4000 | 0x10000 | 0x20000 | 0x40000
# ER_BAD_TABLE_ERROR: DROP TABLE has dropped those of its tables that existed.
_UNKNOWN_TABLE = 1051
# Maximum columns of all uncaptured tables that are remembered, and stored in offsets.
MAX_UNCAPTURED_COLUMNS = 1500


@dataclass(slots=True)
class _Ddl:
    """One statement, and the resulting states of the tables that it names."""

    logged: LoggedStatement
    begin: Position
    end: Position
    uses_temporary: bool
    states: dict[Table, State] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.logged.statement.head!r}, which ends at {self.end}"

    @property
    def server_charset(self) -> str | None:
        """The charset of the session's collation_server, if the event has it.

        UnknownSchemaError for a collation that is not known here.
        """
        collation = self.logged.query.collation_server
        return None if collation is None else charset_of_collation(collation)


class SchemaTracker:
    """A schema history that grows with the log.

    Parameters
    ----------
    history : known at the start.
    captures : whether (database, table) is captured.
    case_sensitive : otherwise the server stores names in lower case, whatever a statement has.
    complete : database -> whether the history began with a complete reading of the server: a
        captured table that the history does not contain did not exist, nor did a database.
    server_default : assume the charset of the session's collation_server for a database whose
        CREATE is not in the log (see inherited_charsets.py, which verifies it).
    explicit_timestamps : the server's explicit_defaults_for_timestamp.
    letter_case : checks names in statements, if `case_sensitive` is only assumed.
    on_create, on_rename : called for each table that is created, and for each rename, with the
        position after the statement and the new name.

    Attributes
    ----------
    history : after the last statement that was followed.
    index_changes : table with unknown columns -> the position after the last statement that left
        them as they are but may have added a unique key.
    """

    def __init__(
        self,
        history: SchemaHistory,
        captures: Callable[[str, str], bool],
        *,
        case_sensitive: bool,
        complete: Callable[[str], bool] | None = None,
        server_default: bool = False,
        explicit_timestamps: bool = False,
        letter_case: LetterCaseCheck | None = None,
        on_create: Callable[[Position, Table], None] = lambda _position, _table: None,
        on_rename: Callable[[Position, Table], None] = lambda _position, _table: None,
    ) -> None:
        self.history = history
        self.index_changes: dict[Table, Position] = {}
        self._on_create = on_create
        self._on_rename = on_rename
        self._fold = folding(case_sensitive)
        self._captures = captures
        self._complete: Callable[[str], bool] = complete or (lambda _: False)
        self._server_default = server_default
        self._explicit_timestamps = explicit_timestamps
        self._letter_case = letter_case
        # Databases all of whose tables are in this log: it has their CREATE, or their DROP.
        self._whole: set[str] = set()
        # Existing databases whose charset is in the log but not known here.
        self._without_charset: set[str] = set()
        self._pruned = history

    def follow(self, event: Event, logged: LoggedStatement, end: Position) -> None:
        """Apply a DDL statement; its effect is valid from `end` on.

        OptionError if `letter_case` raises it, also for a TRUNCATE or DML, which have no effect.
        """
        statement = logged.statement
        kind = statement.kind
        begin = end._replace(pos=event.start)
        uses_temporary = bool(event.flags & THREAD_SPECIFIC_FLAG)
        if self._letter_case is not None:
            self._letter_case.check_names(self.history, begin, event, logged)
        if kind is _KIND.TRUNCATE or kind is _KIND.DML:
            return
        if self._explicit_timestamps:
            context = replace(logged.context, explicit_defaults_for_timestamp=True)
            logged = replace(logged, context=context)
        ddl = _Ddl(logged, begin, end, uses_temporary)
        if self._letter_case is not None:
            for name in self._letter_case.other_spellings(self.history, begin, event, logged):
                ddl.states[name] = UnknownSchema(
                    f"{ddl.place}, names it in another letter case; set lowerCaseTableNames"
                    " (inspect: --lower-case-table-names)"
                )
        if logged.query.error_code not in (0, _UNKNOWN_TABLE):
            self._failed(ddl)
        elif statement.database is not None:
            self._database(ddl, self._fold(statement.database))
        elif statement.tables is None:
            raise SchemaChangedError(
                f"{statement.head!r} does not contain which table it changes"
            ).with_location(event.file, event.start)
        elif kind is _KIND.CREATE_TABLE or kind is _KIND.CREATE_TABLE_LIKE:
            self._create(ddl)
        elif kind is _KIND.DROP_TABLE:
            for table in statement.tables:
                ddl.states[self._name(table)] = UnknownSchema(
                    f"it was dropped at {end}", is_dropped=True
                )
        elif uses_temporary and (kind is _KIND.ALTER_TABLE or logged.context.mariadb):
            self._maybe_temporary(ddl)
        elif kind is _KIND.RENAME_TABLE:
            self._rename(ddl)
        else:
            self._alter(ddl)
        for name, state in ddl.states.items():
            self._keep(ddl, name, state)

    def forget_before(self, position: Position) -> None:
        """Drop what no row from `position` on can need, and uncaptured tables above the limit.

        Tables without DDL since the last call are dropped first; the server can still be queried
        for one that gets a captured name.
        """
        if self.history is self._pruned:
            return
        history = self.history.from_position(position)
        uncaptured = [name for name in history.tables() if not self._captures(*name)]
        uncaptured.sort(key=lambda name: (last_change(self.history, name), name), reverse=True)
        came = {
            start
            for name in history.tables()
            if self._captures(*name)
            for start, what in history.versions(*name)
            if isinstance(what, TableSchema)
        }
        columns = 0
        kept: dict[Table, tuple[Version, ...]] = {}
        for name in uncaptured:
            versions = history.versions(*name)
            _, state = versions[-1]
            columns += len(state.columns) if isinstance(state, TableSchema) else 0
            # No row needs the versions before the last one, but they show what was renamed.
            renamed = [each for each in versions if is_dropped(each) and each[0] in came]
            is_within = isinstance(state, TableSchema) and columns <= MAX_UNCAPTURED_COLUMNS
            last = () if is_dropped(versions[-1]) else versions[-1:]
            kept[name] = (*renamed, *last) if renamed or is_within else ()
        self.history = self._pruned = history.with_versions(kept)

    # --- names and states

    def _name(self, table: Table) -> Table:
        return self._fold(table[0]), self._fold(table[1])

    def _state(self, ddl: _Ddl, name: Table) -> State:
        if name in ddl.states:
            return ddl.states[name]
        return self.history.state(ddl.begin, *name)

    def _schema(self, ddl: _Ddl, table: Table) -> TableSchema | None:
        return self.history.at(ddl.begin, *self._name(table))

    def _keep(self, ddl: _Ddl, name: Table, state: State) -> None:
        if name[0] in SYSTEM_DATABASES:
            return
        last = last_change(self.history, name)
        if last is not None and last >= ddl.end:
            return  # already determined
        if isinstance(state, TableSchema):
            database, table = name
            self.history = self.history.with_table(
                ddl.end, replace(state, database=database, table=table)
            )
        elif state is not None:
            self.history = self.history.without(
                ddl.end, *name, state.reason, is_dropped=state.is_dropped
            )

    # --- tables

    def _create(self, ddl: _Ddl) -> None:
        statement = ddl.logged.statement
        assert statement.tables is not None
        name = self._name(statement.tables[0])
        if statement.if_not_exists and not self._is_absent(name, self._state(ddl, name)):
            return  # logged although possibly nothing was created
        self._on_create(ddl.end, name)
        try:
            schema = parse_create_table(
                ddl.logged.text,
                ddl.logged.query.database,
                None if self._lacks_charset(ddl) else self._charset_of(ddl, name[0]),
                lambda *other: None if ddl.uses_temporary else self._schema(ddl, other),
                ddl.logged.context,
            )
            if statement.kind is _KIND.CREATE_TABLE:
                check_written_labels(ddl.logged.query, None, schema)
            ddl.states[name] = schema
        except SchemaError as error:
            ddl.states[name] = UnknownSchema(f"{ddl.place}, can't be followed: {error.message}")

    def _lacks_charset(self, ddl: _Ddl) -> bool:
        """Whether the table may have a charset that is not its database's and not in the text.

        The statement that the server writes for a table made LIKE a temporary one lacks that one's
        charset. The flag alone is no proof: MariaDB sets it if CREATE OR REPLACE dropped a table.
        """
        author = create_author(ddl.logged.query)
        if author is Author.CLIENT:
            return False
        if ddl.logged.query.sql_mode & _WITHOUT_CHARSETS:
            return True
        # MariaDB forces ENGINE into what it writes for LIKE (mysql_create_like_table in
        # sql_table.cc), so without options it is CREATE … SELECT.
        return ddl.uses_temporary and not (ddl.logged.context.mariadb and author is Author.SERVER)

    def _is_absent(self, name: Table, state: State) -> bool:
        """Whether the table is known not to exist."""
        if isinstance(state, UnknownSchema):
            return state.is_dropped
        if state is not None:
            return False
        return name[0] in self._whole or (self._captures(*name) and self._complete(name[0]))

    def _alter(self, ddl: _Ddl) -> None:
        statement = ddl.logged.statement
        assert statement.tables is not None
        name = self._name(statement.tables[0])
        before = self._state(ddl, name)
        ddl.states[name] = self._altered(ddl, name, before)
        renamed = [new for _, new in statement.renames]
        for table in statement.tables[1:]:
            # An exchanged partition has the columns of its table.
            if table not in renamed and table not in statement.exchanged:
                ddl.states[self._name(table)] = UnknownSchema(f"{ddl.place}, can't be followed")
        self._rename(ddl)

    def _altered(self, ddl: _Ddl, name: Table, before: State) -> State:
        try:
            if isinstance(before, TableSchema):
                after = apply_alter(
                    ddl.logged.text,
                    before,
                    self._charset_of(ddl, before.database),
                    self._charset_of(ddl, self._fold(ddl.logged.query.database)),
                    ddl.logged.context,
                )
                check_written_labels(ddl.logged.query, before, after)
                return after
            alter = parse_alter(ddl.logged.text, ddl.logged.context)
        except MySQLBinlogError as error:
            if ddl.logged.statement.only_indexes:
                return self._without_unique_keys(ddl, name, before)
            return UnknownSchema(f"{ddl.place}, can't be followed: {error.message}")
        if not alter.touches_schema:
            if alter.unique_keys:
                self.index_changes[name] = ddl.end
            return before
        # The reason differs with each statement: it shows since when the current schema is valid.
        return UnknownSchema(f"{ddl.place}, changed it when its columns were not known")

    def _without_unique_keys(self, ddl: _Ddl, name: Table, state: State) -> State:
        """Return a state without unique keys: the statement may have added or dropped one."""
        if isinstance(state, TableSchema):
            return replace(state, unique_keys=())
        self.index_changes[name] = ddl.end
        return state

    def _failed(self, ddl: _Ddl) -> None:
        """Apply a statement that is logged with its error: it had an effect nevertheless.

        It dropped some of its tables, or the one that it then could not replace.
        """
        for name in map(self._name, ddl.logged.statement.tables or ()):
            if ddl.logged.statement.only_indexes:
                ddl.states[name] = self._without_unique_keys(ddl, name, self._state(ddl, name))
                continue
            ddl.states[name] = UnknownSchema(
                f"{ddl.place}, failed with error {ddl.logged.query.error_code} on the server"
            )

    def _maybe_temporary(self, ddl: _Ddl) -> None:
        """Handle an ALTER or RENAME of tables, or of temporary tables that hide them.

        The two can't be distinguished. (See `unsafe_events.check_flagged_truncate`. Only MariaDB
        renames temporary tables.)
        """
        for name in map(self._name, ddl.logged.statement.tables or ()):
            ddl.states[name] = (
                self._without_unique_keys(ddl, name, self._state(ddl, name))
                if ddl.logged.statement.only_indexes
                else UnknownSchema(f"{ddl.place}, may be of a temporary table")
            )

    def _rename(self, ddl: _Ddl) -> None:
        for pair in ddl.logged.statement.renames:
            old, new = map(self._name, pair)
            state = self._state(ddl, old)
            if not isinstance(state, TableSchema):
                state = UnknownSchema(
                    f"{ddl.place}, renamed {'.'.join(old)} to it, whose columns were not known"
                )
            ddl.states[old] = UnknownSchema(f"it was renamed at {ddl.end}", is_dropped=True)
            ddl.states[new] = state
            self._on_rename(ddl.end, new)

    # --- databases

    def _database(self, ddl: _Ddl, database: str) -> None:
        statement = ddl.logged.statement
        known = self.history.charset_at(ddl.begin, database)
        charset = known
        if statement.drops_database:
            for name in self.history.tables():
                if name[0] == database:
                    reason = f"its database was dropped at {ddl.end}"
                    ddl.states[name] = UnknownSchema(reason, is_dropped=True)
            self._whole.add(database)
            self._without_charset.discard(database)
            charset = None
        if statement.kind is _KIND.CREATE_DATABASE:
            if statement.if_not_exists and (
                known is not None or not self._lacks_database(database)
            ):
                return  # logged although possibly nothing was created
            self._whole.add(database)
            charset = self._given_charset(ddl, database, None)
        elif statement.kind is _KIND.ALTER_DATABASE:
            charset = self._given_charset(ddl, database, known)
        if charset is not None:
            self._without_charset.discard(database)
        last = self.history.charset_change(database)
        if charset != known and (last is None or last < ddl.end):
            self.history = self.history.with_charset(ddl.end, database, charset)

    def _lacks_database(self, database: str) -> bool:
        """Whether a database with unknown charset is known not to exist."""
        if database in self._without_charset:
            return False
        return database in self._whole or self._complete(database)

    def _given_charset(self, ddl: _Ddl, database: str, known: str | None) -> str | None:
        """Return a database's charset after its CREATE or ALTER; None if unknown.

        known : the charset before.

        An unknown charset is no error here: most databases are not captured, and a row of a table
        that inherits it raises one.
        """
        logged = ddl.logged
        try:
            charset = parse_database_charset(logged.text, _SERVERS, logged.context)
            if charset is None and logged.statement.kind is _KIND.ALTER_DATABASE:
                return known
            return (ddl.server_charset or known) if charset in (None, _SERVERS) else charset
        except SchemaError:
            self._without_charset.add(database)
            return None

    def _charset_of(self, ddl: _Ddl, database: str) -> str | None:
        """Return the charset that a CREATE TABLE inherits: its database's."""
        known = self.history.charset_at(ddl.begin, database)
        if known is None and self._server_default and database not in self._without_charset:
            return self._known_charset(ddl.server_charset)
        return known

    def _known_charset(self, charset: str | None) -> str | None:
        """Return the charset to assume for a database of unknown charset, given the session's."""
        return charset


def last_change(history: SchemaHistory, table: Table) -> Position | None:
    """Return where the last version of a table begins; None if there is none."""
    versions = history.versions(*table)
    return versions[-1][0] if versions else None
