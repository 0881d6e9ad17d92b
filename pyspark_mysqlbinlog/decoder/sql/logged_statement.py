"""A completely parsed QUERY event: its text in the right charset, and its classification."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.decoder.sql.classifier import Statement, StatementKind, classify
from pyspark_mysqlbinlog.decoder.sql.statement_text import Author, create_author, statement_text
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["LoggedStatement"]


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """One statement of the binlog.

    Attributes
    ----------
    query : the event.
    context : for parsing the text, as its author wrote it.
    text : of the statement, in the client's character set.
    statement : the classified statement.
    """

    query: Query
    context: SqlContext
    text: str
    statement: Statement

    @classmethod
    def read(cls, body: bytes, server_version: str, *, loads_data: bool = False) -> LoggedStatement:
        """Parse the body of a QUERY event, or with `loads_data` of an EXECUTE_LOAD_QUERY.

        server_version : of the server that wrote it, as ``5.7.41-log``.
        """
        query = Query.parse(body, loads_data=loads_data)
        context = SqlContext.of(query.sql_mode, server_version)
        if context.no_backslash_escapes and create_author(query) is Author.SERVER:
            # The server's own strings have escapes in every mode of the session.
            context = replace(context, no_backslash_escapes=False)
        text = statement_text(query)
        if not query.is_applied:
            return cls(query, context, text, Statement(StatementKind.OTHER))
        return cls(query, context, text, classify(text, query.database, context))
