"""The text of a statement in the log, in the character set that it was written in.

A server logs a client's bytes as they came, in the client's character set; what it writes itself (a
CREATE TABLE for CREATE … SELECT, DROP TABLE with its comment) is in UTF-8, whatever the client's.
Names, labels and comments in a statement are only right when it is read in its own character set,
and in gbk, sjis and big5 the second byte of a character may be a backslash or a quote.

No event says who wrote it. The server's CREATE TABLE for a SELECT looks as SHOW CREATE TABLE shows
it, but for the options at its end; with those it may as well be a client's, who copied one (and
whose bytes may be UTF-8 over a connection that says latin1). Then its text is not known.
"""

from __future__ import annotations

import re
from enum import Enum

from pyspark_mysqlbinlog.charsets import charset_of_collation
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.decoder.values.charsets import text_decoder
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.protocol.messages import Query, is_server_made

__all__ = ["Author", "create_author", "statement_text"]

_UTF8 = frozenset({"utf8", "utf8mb4"})
# A letter that is read as a backslash, and escapes nothing.
_SJIS_BACKSLASH = b"\x81\x5f"
# How the server's own texts begin and end (sql/sql_show.cc, store_create_info; sql_table.cc).
_SERVER_CREATES = ("CREATE TABLE ", "CREATE OR REPLACE TABLE ", "CREATE TABLE IF NOT EXISTS ")
_WITH_OPTIONS = re.compile(r"\n\) ENGINE=[^\n]*\Z")


class Author(Enum):
    """Who wrote a statement's text."""

    CLIENT = "client"
    SERVER = "server"
    EITHER = "either"


def statement_text(query: Query) -> str:
    """The statement's text; bytes that its character set does not have are surrogate escapes."""
    sql = query.sql
    if sql.isascii() or query.collation_client is None:
        return sql
    is_utf8 = _is_utf8(sql)
    if is_utf8 and is_server_made(sql):
        return sql
    try:
        charset = charset_of_collation(query.collation_client)
        if charset in _UTF8:
            return sql
        raw = sql.encode("utf-8", "surrogateescape")
        if charset == "sjis" and _SJIS_BACKSLASH in raw:
            return raw.decode("ascii", "surrogateescape")
        read = text_decoder("a statement", charset)(raw)
    except MySQLBinlogError:
        return sql
    author = create_author(query) if is_utf8 else Author.CLIENT
    if author is Author.EITHER:
        return sql.encode().decode("ascii", "surrogateescape")
    return read if author is Author.CLIENT else sql


def create_author(query: Query) -> Author:
    """Who wrote a CREATE TABLE, as far as its text tells."""
    sql = query.sql
    quote = '"' if SqlContext.of(query.sql_mode, "").ansi_quotes else "`"
    begins = tuple(begin + quote for begin in _SERVER_CREATES)
    if not sql.startswith(begins) or f"{quote} (\n  {quote}" not in sql:
        return Author.CLIENT
    return Author.EITHER if _WITH_OPTIONS.search(sql) else Author.SERVER


def _is_utf8(sql: str) -> bool:
    try:
        sql.encode()
    except UnicodeEncodeError:
        return False
    return True
