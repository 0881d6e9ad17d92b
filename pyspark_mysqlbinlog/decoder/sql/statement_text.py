"""The text of a logged statement, in the character set in which it was written.

A server logs a client's bytes unchanged, in the client's character set. Its own texts (a CREATE
TABLE for CREATE … SELECT, DROP TABLE with its comment) are in UTF-8, regardless of the client.
Names, labels and comments are correct only if a statement is read in its own character set. In gbk,
sjis and big5 the second byte of a character may be a backslash or a quote.

No event contains the author. The server's CREATE TABLE for a SELECT looks like SHOW CREATE TABLE,
without the options at its end. With these options a client may also have written it, as a copy (in
UTF-8, possibly over a connection declared as latin1). The text is then unknown.
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
# A letter that decodes to a backslash, but escapes nothing.
_SJIS_BACKSLASH = b"\x81\x5f"
# Beginnings and endings of the server's own texts (sql/sql_show.cc, store_create_info;
# sql_table.cc).
_SERVER_CREATES = ("CREATE TABLE ", "CREATE OR REPLACE TABLE ", "CREATE TABLE IF NOT EXISTS ")
_WITH_OPTIONS = re.compile(r"\n\) ENGINE=[^\n]*\Z")


class Author(Enum):
    """The author of a statement's text."""

    CLIENT = "client"
    SERVER = "server"
    EITHER = "either"


def statement_text(query: Query) -> str:
    """Return the statement's text; bytes invalid in its character set are surrogate escapes."""
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
    """Determine the author of a CREATE TABLE from its text."""
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
