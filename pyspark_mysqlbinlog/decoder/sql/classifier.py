"""Classify the statement of a QUERY event, and find its tables.

Most QUERY events are BEGIN and COMMIT, which never reach the tokenizer. Others are classified by
their first tokens. Nothing is guessed: a text that does not begin like a known statement, or whose
beginning cannot be parsed, is UNKNOWN, and the caller stops if it could concern a captured table.
Statements that change neither rows nor columns of a real table are OTHER.
The grammar is that of MySQL 5.5 to 8.0 and MariaDB (sql/sql_yacc.yy).
"""

from __future__ import annotations

from dataclasses import replace

from pyspark_mysqlbinlog.decoder.events.statements import Statement, StatementKind
from pyspark_mysqlbinlog.decoder.sql.dml_tables import delete_tables, insert_tables, update_tables
from pyspark_mysqlbinlog.decoder.sql.redaction import without_literals
from pyspark_mysqlbinlog.decoder.sql.tokens import (
    DEFAULT_CONTEXT,
    SqlContext,
    TokenKind,
    TokenStream,
)
from pyspark_mysqlbinlog.errors import SchemaError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.messages import is_server_made, xid_text

__all__ = ["Statement", "StatementKind", "classify"]


_HEAD_LENGTH = 100
_BEGIN = Statement(StatementKind.BEGIN, head="BEGIN")
_COMMIT = Statement(StatementKind.COMMIT, head="COMMIT")

# First words of statements that do not change rows and columns of real tables.
_OTHER = frozenset({
    "BACKUP", "BINLOG", "CACHE", "CHANGE", "CHECK", "CHECKSUM", "DEALLOCATE",
    "DESCRIBE", "DESC", "EXPLAIN", "FLUSH", "GRANT", "HELP", "INSTALL", "KILL", "LOCK",
    "OPTIMIZE", "PURGE", "REPAIR", "RESET", "REVOKE", "SET", "SHOW", "SHUTDOWN", "SIGNAL",
    "START", "STOP", "UNINSTALL", "UNLOCK", "USE",
})  # fmt: skip
# Objects of CREATE, ALTER and DROP other than tables and databases.
_OTHER_OBJECTS = frozenset({
    "AGGREGATE", "EVENT", "FULLTEXT", "FUNCTION", "INDEX", "INSTANCE", "LIBRARY", "LOGFILE",
    "PACKAGE", "PREPARE", "PROCEDURE", "RESOURCE", "ROLE", "SEQUENCE", "SERVER", "SPATIAL", "SQL",
    "TABLESPACE", "TEMPORARY", "TRIGGER", "UNDO", "UNIQUE", "USER", "VIEW",
})  # fmt: skip
# How the server empties a MEMORY table after a restart, if a session with ANSI_QUOTES is the first
# to open it: the event's sql_mode lacks ANSI_QUOTES (measured on 5.7.41). No client's statement
# begins like this without ANSI_QUOTES.
_EMPTYING_IN_ANSI = ('TRUNCATE TABLE "', 'DELETE FROM "')
# Statements that may run writing functions or blocks: their text does not name the tables.
_MAY_WRITE_ANYTHING = frozenset({"CALL", "DO", "EXECUTE", "HANDLER", "SELECT", "VALUES", "WITH"})


def classify(sql: str, default_database: str, context: SqlContext = DEFAULT_CONTEXT) -> Statement:
    """Classify a statement by its first tokens; never raises for bad SQL.

    Parameters
    ----------
    default_database : the QUERY event's, for names without one.
    context : the session's sql_mode and the server's version.
    """
    if sql == "BEGIN":
        return _BEGIN
    if sql == "COMMIT":
        return _COMMIT
    # Shown in errors and logs, therefore without literals, which may be values of rows.
    head = " ".join(without_literals(sql[: 2 * _HEAD_LENGTH], context).split())[:_HEAD_LENGTH]
    server_made = is_server_made(sql)
    if server_made and sql.startswith(_EMPTYING_IN_ANSI):
        context = replace(context, ansi_quotes=True)
    try:
        statement = _Classifier(TokenStream(sql, context), default_database).statement()
    except SchemaError:
        return Statement(StatementKind.UNKNOWN, None, head=head)
    tables = statement.tables and tuple(dict.fromkeys(statement.tables))
    return replace(statement, tables=tables, head=head, server_made=server_made)


class _Classifier:
    """One statement's tokens, and the database of names without one."""

    __slots__ = ("database", "stream")

    def __init__(self, stream: TokenStream, database: str) -> None:
        self.stream = stream
        self.database = database

    def table(self) -> Table:
        return self.stream.qualified_name(self.database)

    def table_list(self) -> tuple[Table, ...]:
        names = [self.table()]
        while self.stream.accept(","):
            names.append(self.table())
        return tuple(names)

    def statement(self) -> Statement:
        stream = self.stream
        while stream.accept(";"):
            pass
        stream.skip_set_statement()
        if stream.at_end():
            return Statement(StatementKind.OTHER)  # a comment: MariaDB's dummy events
        first = stream.next().word
        match first:
            case "BEGIN":
                return Statement(StatementKind.BEGIN)
            case "START" if stream.accept("TRANSACTION"):
                return Statement(StatementKind.BEGIN)
            case "COMMIT":
                return Statement(StatementKind.COMMIT)
            case "ROLLBACK":
                return self.rollback()
            case "SAVEPOINT":
                return Statement(StatementKind.SAVEPOINT, savepoint=stream.name())
            case "RELEASE":
                stream.expect("SAVEPOINT")
                return Statement(StatementKind.RELEASE_SAVEPOINT, savepoint=stream.name())
            case "XA":
                return self.xa()
            case "CREATE":
                return self.create()
            case "DROP":
                return self.drop()
            case "ALTER":
                return self.alter()
            case "RENAME":
                return self.rename()
            case "TRUNCATE":
                stream.accept("TABLE")
                return Statement(StatementKind.TRUNCATE, (self.table(),))
            case "INSERT" | "REPLACE":
                return Statement(StatementKind.DML, insert_tables(stream, self.database))
            case "UPDATE":
                return Statement(StatementKind.DML, update_tables(stream, self.database))
            case "DELETE":
                tables, whole = delete_tables(stream, self.database)
                return Statement(StatementKind.DML, tables, whole_table=whole)
            case "LOAD":
                return self.load()
            case "ANALYZE":
                return self.analyze()
        if first in _MAY_WRITE_ANYTHING or first == "(":
            return Statement(StatementKind.DML, None)
        if first in _OTHER:
            return Statement(StatementKind.OTHER)
        raise SchemaError("unknown kind of statement")

    def rollback(self) -> Statement:
        stream = self.stream
        stream.accept("WORK")
        if stream.accept("TO"):
            # `ROLLBACK TO savepoint` refers to a savepoint named savepoint.
            if stream.peek(1).kind is not TokenKind.END:
                stream.accept("SAVEPOINT")
            return Statement(StatementKind.ROLLBACK_TO, savepoint=stream.name())
        return Statement(StatementKind.ROLLBACK)

    def xa(self) -> Statement:
        stream = self.stream
        verb = stream.next().word
        if verb == "RECOVER":
            return Statement(StatementKind.OTHER)
        kinds = {
            "START": StatementKind.XA_START,
            "BEGIN": StatementKind.XA_START,
            "END": StatementKind.XA_END,
            "PREPARE": StatementKind.XA_PREPARE,
            "COMMIT": StatementKind.XA_COMMIT,
            "ROLLBACK": StatementKind.XA_ROLLBACK,
        }
        if verb not in kinds:
            raise SchemaError("unknown kind of XA statement")
        gtrid = self.xid_part()
        bqual = self.xid_part() if stream.accept(",") else b""
        format_id = 1
        if stream.accept(","):
            # An unsigned 32-bit number; 5.7 itself writes the decimal one.
            hexadecimal = stream.peek().kind is TokenKind.HEX
            format_id = int(stream.next().text, 16) if hexadecimal else stream.integer()
        return Statement(
            kinds[verb],
            xid=xid_text(gtrid, bqual, format_id),
            one_phase=stream.accept("ONE", "PHASE"),
        )

    def xid_part(self) -> bytes:
        token = self.stream.next()
        if token.kind is TokenKind.STRING:
            return token.text.encode()
        if token.kind is TokenKind.HEX and len(token.text) % 2 == 0:
            return bytes.fromhex(token.text)
        raise SchemaError("expected an xid")

    def create(self) -> Statement:
        stream = self.stream
        or_replace = stream.accept("OR", "REPLACE")
        if stream.accept("TABLE"):
            if_not_exists = stream.accept("IF", "NOT", "EXISTS")
            table = self.table()
            if stream.accept("LIKE") or stream.accept("(", "LIKE"):
                return Statement(
                    StatementKind.CREATE_TABLE_LIKE,
                    (table,),
                    if_not_exists=if_not_exists,
                    or_replace=or_replace,
                    like=self.table(),
                )
            return Statement(
                StatementKind.CREATE_TABLE,
                (table,),
                if_not_exists=if_not_exists,
                or_replace=or_replace,
                selects=self.holds_query(),
            )
        if stream.accept_any("DATABASE", "SCHEMA"):
            if_not_exists = stream.accept("IF", "NOT", "EXISTS")
            return Statement(
                StatementKind.CREATE_DATABASE,
                None,
                database=stream.name("a database name"),
                if_not_exists=if_not_exists,
                or_replace=or_replace,
            )
        if or_replace or stream.at("UNIQUE") or stream.peek(1).word == "UNIQUE":
            return self.create_index()
        return self.other_object()

    def create_index(self) -> Statement:
        """CREATE INDEX, unique or replacing another one: the table's keys change."""
        stream = self.stream
        ahead = [stream.peek(distance).word for distance in range(3)]
        if "INDEX" not in ahead:
            return self.other_object()
        while stream.next().word != "INDEX":
            pass
        while not stream.accept("ON"):
            if stream.at_end():
                raise stream.unexpected("ON")
            stream.next()
        return Statement(StatementKind.ALTER_TABLE, (self.table(),), only_indexes=True)

    def holds_query(self) -> bool:
        """Whether CREATE TABLE contains a query, after or in place of its columns."""
        stream = self.stream
        while not (stream.at_end() or stream.at_query()):
            if stream.at("("):
                stream.skip_parentheses()
            else:
                stream.next()
        return not stream.at_end()

    def other_object(self) -> Statement:
        # ALGORITHM = … and DEFINER = … occur only before VIEW, TRIGGER and the like.
        if self.stream.accept_any("ALGORITHM", "DEFINER", "ONLINE", "OFFLINE", *_OTHER_OBJECTS):
            return Statement(StatementKind.OTHER)
        raise self.stream.unexpected("a kind of object to create, alter or drop")

    def drop(self) -> Statement:
        stream = self.stream
        if stream.accept_any("TABLE", "TABLES"):
            stream.accept("IF", "EXISTS")
            return Statement(StatementKind.DROP_TABLE, self.table_list())
        if stream.accept_any("DATABASE", "SCHEMA"):
            stream.accept("IF", "EXISTS")
            name = stream.name("a database name")
            return Statement(StatementKind.DROP_DATABASE, None, database=name)
        if stream.at("INDEX") or stream.at("ONLINE", "INDEX") or stream.at("OFFLINE", "INDEX"):
            return self.drop_index()
        return self.other_object()

    def drop_index(self) -> Statement:
        """DROP INDEX: the primary key has an index name, and dropping it changes the schema."""
        stream = self.stream
        stream.accept_any("ONLINE", "OFFLINE")
        stream.expect("INDEX")
        stream.accept("IF", "EXISTS")
        is_primary = stream.name("an index").upper() == "PRIMARY"
        stream.expect("ON")
        table = self.table()
        return Statement(StatementKind.ALTER_TABLE, (table,), only_indexes=not is_primary)

    def alter(self) -> Statement:
        stream = self.stream
        is_prefixed = False
        while stream.accept_any("ONLINE", "OFFLINE", "IGNORE"):
            is_prefixed = True
        if is_prefixed and not stream.at("TABLE"):
            return self.other_object()
        if stream.accept("TABLE"):
            stream.accept("IF", "EXISTS")
            return self.alter_table(self.table())
        if stream.accept_any("DATABASE", "SCHEMA"):
            name = self.database
            if not _database_option_next(stream):
                name = stream.name("a database name")
            return Statement(StatementKind.ALTER_DATABASE, None, database=name)
        return self.other_object()

    def alter_table(self, table: Table) -> Statement:
        """ALTER TABLE: other tables that it affects follow RENAME and EXCHANGE PARTITION."""
        stream = self.stream
        stream.skip_wait()
        new_name: Table | None = None
        exchanged: list[Table] = []
        others: list[Table] = []
        truncated: list[str] = []
        clause_start = True
        while not stream.at_end():
            if stream.at("("):
                stream.skip_parentheses()
                clause_start = False
                continue
            if clause_start and stream.accept("RENAME"):
                if not stream.accept_any("INDEX", "KEY", "COLUMN"):
                    stream.accept_any("TO", "AS", "=")
                    new_name = self.table()
            elif clause_start and stream.accept("EXCHANGE", "PARTITION"):
                stream.name("a partition")
                stream.expect("WITH", "TABLE")
                exchanged.append(self.table())
            elif clause_start and stream.accept("TRUNCATE", "PARTITION"):
                truncated.append(stream.name("a partition"))
                while stream.accept(","):
                    truncated.append(stream.name("a partition"))
            elif clause_start and stream.accept("CONVERT", "PARTITION"):
                # MariaDB: a partition becomes a table, or (below) a table a partition.
                stream.name("a partition")
                stream.expect("TO", "TABLE")
                others.append(self.table())
            elif clause_start and stream.accept("CONVERT", "TABLE"):
                others.append(self.table())
            else:
                clause_start = stream.next().word == ","
                continue
            clause_start = False
        return Statement(
            StatementKind.ALTER_TABLE,
            (table, *exchanged, *others, *([new_name] if new_name else [])),
            renames=((table, new_name),) if new_name else (),
            exchanged=tuple(exchanged),
            truncated_partitions=tuple(
                name.upper() if name.upper() == "ALL" else name for name in truncated
            ),
        )

    def rename(self) -> Statement:
        stream = self.stream
        if stream.accept("USER"):
            return Statement(StatementKind.OTHER)
        if not stream.accept_any("TABLE", "TABLES"):
            raise stream.unexpected("TABLE")
        stream.accept("IF", "EXISTS")
        pairs: list[tuple[Table, Table]] = []
        while True:
            old = self.table()
            stream.accept("IF", "EXISTS")
            stream.skip_wait()
            stream.expect("TO")
            pairs.append((old, self.table()))
            if not stream.accept(","):
                break
        if not stream.at_end() and not stream.at(";"):
            raise stream.unexpected("the end")
        names = tuple(name for pair in pairs for name in pair)
        return Statement(StatementKind.RENAME_TABLE, names, renames=tuple(pairs))

    def load(self) -> Statement:
        stream = self.stream
        if stream.accept("INDEX"):
            return Statement(StatementKind.OTHER)  # LOAD INDEX INTO CACHE
        while not stream.accept("INTO", "TABLE"):
            if stream.at_end():
                raise stream.unexpected("INTO TABLE")
            stream.next()
        return Statement(StatementKind.DML, (self.table(),))

    def analyze(self) -> Statement:
        """ANALYZE TABLE; or MariaDB's ANALYZE [FORMAT = name] of a statement, which it runs."""
        stream = self.stream
        stream.accept_any("LOCAL", "NO_WRITE_TO_BINLOG", "PERSISTENT")
        if stream.accept_any("TABLE", "TABLES"):
            return Statement(StatementKind.OTHER)
        if stream.accept("FORMAT", "="):
            stream.next()
        return self.statement()


_DATABASE_OPTIONS = frozenset({"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT"})


def _database_option_next(stream: TokenStream) -> bool:
    # ALTER DATABASE without a name; `CHARSET utf8` would be a database of that name and an option.
    token = stream.peek()
    if token.kind is not TokenKind.WORD or token.word not in _DATABASE_OPTIONS:
        return False
    if token.word in ("DEFAULT", "CHARACTER", "COLLATE"):
        return True  # reserved words
    return stream.peek(1).word not in _DATABASE_OPTIONS or stream.peek(1).word == "DEFAULT"
