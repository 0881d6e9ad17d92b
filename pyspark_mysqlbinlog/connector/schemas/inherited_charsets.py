"""Tables that inherit the charset of a database that no file contains.

A CREATE TABLE without a charset takes its database's default. Files that begin after the CREATE
DATABASE do not contain it. A QUERY event has the session's collation_server, which a CREATE
DATABASE takes at its own time. It has collation_database only if a session had set it, which then
is not the database's (Q_CHARSET_DATABASE_CODE; tried on 5.7.41, where CREATE TABLE ignores it). So
the session's collation_server is a guess, and a wrong guess gives wrong text without an error:
latin1, 5.7's own default, decodes any bytes.

A table map contains the byte lengths of CHAR and VARCHAR columns, and so the bytes per character. A
guess is kept if one such column in the database fits it, and no other set of that width would fit:
utf8 and utf8mb4, because text in ujis, eucjpms or gb18030 is not well-formed in them, and utf16 and
utf32 are not used as a database's default. A guess that does not fit, that has nothing to be
compared with, or that any bytes would fit, makes the tables that depend on it unknown. The reason
includes the remedy: CREATE DATABASE in schemaDdl.

The columns that depend on a guess are found by making another one: they are those that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.log_protocol import ScannedLog
from pyspark_mysqlbinlog.connector.schemas.baseline import advance
from pyspark_mysqlbinlog.connector.schemas.letter_case import LetterCaseCheck
from pyspark_mysqlbinlog.connector.schemas.table_maps import table_maps
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.decoder.events.field_types import describe_field
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import described_schema
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["history_without_server"]

Captures = Callable[[str, str], bool]

_WITH_LENGTH = ("char", "varchar")
# Charsets that text and width together identify (see above).
_TELL_THEMSELVES = ("utf8", "utf8mb3", "utf8mb4")


class _OtherwiseTracker(SchemaTracker):
    """Assumes another charset wherever the session's is assumed for the database."""

    def _known_charset(self, charset: str | None) -> str | None:
        if charset is None:
            return None
        return "ascii" if charset in _TELL_THEMSELVES else "utf8mb4"


def history_without_server(
    seeded: ScannedLog,
    log: ScannedLog,
    start: Position,
    captures: Captures,
    *,
    case_sensitive: bool = True,
    letter_case: LetterCaseCheck | None = None,
    for_stream: bool = False,
) -> SchemaHistory:
    """Return the schema history from a log's DDL alone, from `start` to its end.

    Parameters
    ----------
    seeded : the log preceded by the statements of schemaDdl; the log itself without.
    case_sensitive, letter_case : see SchemaTracker.
    for_stream : rows that are not in the log yet follow, also of tables that are renamed then: all
        tables are returned, and a guess counts only if it is proven.

    A table that depends on a database's charset that is neither known nor proven is unknown.
    """
    guessed, otherwise = (
        tracker(
            SchemaHistory(),
            captures,
            case_sensitive=case_sensitive,
            letter_case=letter_case,
            server_default=True,
        )
        for tracker in (SchemaTracker, _OtherwiseTracker)
    )
    advance(seeded, start, guessed, otherwise)
    doubts = _Doubts(guessed.history, otherwise.history)
    if any(
        doubts.rests_on_guess(*name)
        for name in guessed.history.tables()
        if for_stream or captures(*name)
    ):
        for event in table_maps(log, start, doubts.databases):
            doubts.look_at(log.position(event.file, event.start), event.body)
    if for_stream:
        doubts.doubt_all()
        return doubts.settled()
    return doubts.settled().select(captures)


@dataclass(slots=True)
class _Doubts:
    """Two histories that differ by a guess, and the evidence of table maps.

    Attributes
    ----------
    proven : (database, charset) of columns that fit the guess and no other charset.
    contradicted : database -> the column that does not fit, with expected and found values.
    met : tables with rows, by the beginning of their versions.
    """

    guessed: SchemaHistory
    otherwise: SchemaHistory
    proven: set[tuple[str, str]] = field(default_factory=set)
    contradicted: dict[str, str] = field(default_factory=dict)
    met: set[tuple[Table, Position]] = field(default_factory=set)

    def rests_on_guess(self, database: str, table: str) -> bool:
        return self.guessed.versions(database, table) != self.otherwise.versions(database, table)

    @property
    def databases(self) -> set[str]:
        return {name[0] for name in self.guessed.tables() if self.rests_on_guess(*name)}

    def look_at(self, position: Position, body: bytes) -> None:
        try:
            table_map = TableMap.parse(body)
            if described_schema(table_map) is not None:
                return  # it contains its charsets
        except MySQLBinlogError:
            return  # the decoder reports it, if its rows are read
        name = (table_map.database, table_map.table)
        schema = self.guessed.at(position, *name)
        if schema is None or not self.rests_on_guess(*name):
            return
        start = self._start(position, name)
        self.met.add((name, start))
        columns = _resting(schema, self.otherwise.at(position, *name))
        if table_map.column_count != len(schema.columns):
            return  # of another version; the decoder reports it
        for index, column in columns:
            found = (table_map.types[index], table_map.metadata[index])
            fits = found in tuple(expected_fields(column))
            if not fits:
                self.contradicted.setdefault(
                    name[0],
                    f"`{column.name}` of {schema.full_name} would be"
                    f" {' or '.join(describe_field(*each) for each in expected_fields(column))} in"
                    f" {column.charset}, and is {describe_field(*found)} in the table map",
                )
            elif column.type in _WITH_LENGTH and column.charset in _TELL_THEMSELVES:
                self.proven.add((name[0], column.charset))

    def _start(self, position: Position, name: Table) -> Position:
        versions = self.guessed.versions(*name)
        return max(start for start, _ in versions if start <= position)

    def doubt_all(self) -> None:
        """Treat all tables as if they had rows."""
        for name in self.guessed.tables():
            if self.rests_on_guess(*name):
                for start, schema in self.guessed.versions(*name):
                    if isinstance(schema, TableSchema):
                        self.met.add((name, start))

    def settled(self) -> SchemaHistory:
        """Return the guessed history with unproven tables unknown; tables without rows stay."""
        history = self.guessed
        for name, start in self.met:
            schema = self.guessed.at(start, *name)
            assert schema is not None
            columns = _resting(schema, self.otherwise.at(start, *name))
            wrong = self.contradicted.get(name[0])
            doubted = [
                column
                for _, column in columns
                if wrong is not None or (name[0], column.charset) not in self.proven
            ]
            if doubted:
                history = history.without(start, *name, _reason(name[0], doubted[0], wrong))
        return history


def _resting(schema: TableSchema, otherwise: TableSchema | None) -> list[tuple[int, ColumnSchema]]:
    """Return the columns that differ with another guess, with their indexes."""
    if otherwise is None or len(otherwise.columns) != len(schema.columns):
        return [(n, each) for n, each in enumerate(schema.columns) if each.charset is not None]
    pairs = zip(schema.columns, otherwise.columns, strict=True)
    return [(n, mine) for n, (mine, other) in enumerate(pairs) if mine != other]


def _reason(database: str, column: ColumnSchema, wrong: str | None) -> str:
    guess = f"{column.charset}, as its session's collation_server, is not certain"
    if wrong is not None:
        guess = f"it is not that of its session's collation_server: {wrong}"
    return (
        f"column `{column.name}` inherits the default character set of the database {database},"
        f" which is not known here ({guess}); write CREATE DATABASE `{database}` CHARACTER SET …,"
        " as SHOW CREATE DATABASE has it, into a file of schemaDdl, or begin with the file that has"
        " it"
    )
