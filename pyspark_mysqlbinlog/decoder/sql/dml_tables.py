"""Find the tables that INSERT, UPDATE and DELETE write, from their tokens.

Only used to name the tables of a statement-format change. An UPDATE of several tables writes only
those that its SET names. Here all of its tables are returned, because a bare column name does not
identify its table. Unsupported syntax (a table in parentheses) gives None: unknown.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.sql.tokens import TokenKind, TokenStream
from pyspark_mysqlbinlog.names import Table, fold

__all__ = ["delete_tables", "insert_tables", "update_tables"]

_PRIORITIES = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE")
# Words that end the list of tables.
_REFERENCES_END = frozenset({"SET", "WHERE", "ORDER", "LIMIT", "RETURNING", ";"})
# Words that may follow a table's name and are not an alias.
_NO_ALIAS = frozenset(
    {
        "CROSS",
        "FOR",
        "FORCE",
        "IGNORE",
        "INNER",
        "JOIN",
        "LEFT",
        "NATURAL",
        "ON",
        "PARTITION",
        "RIGHT",
        "STRAIGHT_JOIN",
        "USE",
        "USING",
    }
)


def _skip_priorities(stream: TokenStream) -> None:
    # A table may be named `quick`, but then no other name and no `.` can follow the word.
    while stream.peek().word in _PRIORITIES and stream.peek(1).kind in (
        TokenKind.WORD,
        TokenKind.NAME,
    ):
        stream.next()


def insert_tables(stream: TokenStream, database: str) -> tuple[Table, ...] | None:
    """INSERT or REPLACE, after its first word."""
    _skip_priorities(stream)
    stream.accept("INTO")
    return (stream.qualified_name(database),)


def update_tables(stream: TokenStream, database: str) -> tuple[Table, ...] | None:
    """UPDATE, after its first word."""
    _skip_priorities(stream)
    references = _references(stream, database)
    if references is None or not stream.at("SET"):
        return None
    return tuple(table for table, _ in references)


def delete_tables(stream: TokenStream, database: str) -> tuple[tuple[Table, ...] | None, bool]:
    """DELETE, after its first word: the tables, and whether it deletes all rows of its table."""
    _skip_priorities(stream)
    if stream.accept("FROM"):
        targets = _targets(stream, database)
        if stream.accept("USING"):
            return _resolved(targets, _references(stream, database)), False
        # One table; 8.0 and MariaDB allow an alias and partitions.
        if len(targets) > 1:
            return None, False
        whole = stream.at_end() or stream.at(";")
        return tuple(table for table, _ in targets), whole
    targets = _targets(stream, database)
    stream.expect("FROM")
    return _resolved(targets, _references(stream, database)), False


def _targets(stream: TokenStream, database: str) -> list[tuple[Table, bool]]:
    """Parse names as ``t``, ``db.t``, ``t.*``, ``db.t.*``; with whether a database is given."""
    targets = []
    while True:
        first = stream.name("a table name")
        target = (database, first)
        explicit = False
        if stream.accept(".") and not stream.accept("*"):
            target = (first, stream.name("a table name"))
            explicit = True
            if stream.accept("."):
                stream.expect("*")
        targets.append((target, explicit))
        if not stream.accept(","):
            return targets


def _resolved(
    targets: list[tuple[Table, bool]], references: list[tuple[Table, str]] | None
) -> tuple[Table, ...] | None:
    if references is None:
        return None
    tables = []
    for target, explicit in targets:
        # `DELETE a FROM t AS a`: the target is an alias. Aliases are compared without case here;
        # if the server is stricter, the wider match only returns one more table.
        matches = [
            table
            for table, alias in references
            if fold(alias) == fold(target[1]) and (not explicit or table[0] == target[0])
        ]
        if not matches:
            return None
        tables.extend(matches)
    return tuple(tables)


def _references(stream: TokenStream, database: str) -> list[tuple[Table, str]] | None:
    """Parse tables with aliases up to SET, WHERE or the end; None for unsupported syntax.

    A derived table cannot be written to, so ``( SELECT … )`` is skipped.
    """
    references: list[tuple[Table, str]] = []
    expects_table = True
    while not stream.at_end() and stream.peek().word not in _REFERENCES_END:
        if stream.at("("):
            if expects_table and not stream.at("(", "SELECT"):
                return None
            stream.skip_parentheses()
            expects_table = False
            continue
        if expects_table:
            if stream.peek().kind not in (TokenKind.WORD, TokenKind.NAME):
                return None
            table = stream.qualified_name(database)
            if stream.at("PARTITION", "("):
                stream.next()
                stream.skip_parentheses()
            stream.accept("AS")
            alias = table[1]
            token = stream.peek()
            if token.kind is TokenKind.NAME or (
                token.kind is TokenKind.WORD
                and token.word not in _NO_ALIAS
                and token.word not in _REFERENCES_END
            ):
                alias = stream.next().text
            references.append((table, alias))
            expects_table = False
            continue
        word = stream.next().word
        if word == "LATERAL":
            return None
        expects_table = word in (",", "JOIN", "STRAIGHT_JOIN")
    return references or None
