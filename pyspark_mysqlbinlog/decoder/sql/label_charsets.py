"""Check that ENUM and SET labels reached the server as the statement has them.

A literal is read in the client's character set, converted to that of its connection, and only then
to the column's: `SET NAMES utf8` turns an emoji into `????`, and `character_set_connection=latin1`
turns all characters outside latin1 into `?`, even if the column could hold them. Names are not
converted this way. With `SET NAMES binary` nothing is converted: the bytes are in the column's
character set. (MySQL: sql/sql_yacc.yy, TEXT_STRING_literal, the source of `text_string`.)

With NO_BACKSLASH_ESCAPES in the session, a backslash is literal, but the server still doubles
backslashes in its own texts. If either may be the author, their number is unknown.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark_mysqlbinlog.charsets import charset_of_collation
from pyspark_mysqlbinlog.decoder.sql.statement_text import Author, create_author
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.decoder.values.charsets import can_hold
from pyspark_mysqlbinlog.errors import SchemaError
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["check_written_labels", "label_of_lost_letters", "with_letters"]

_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_UTF8 = frozenset({"utf8", "utf8mb4"})
# Collations of swe7, and the characters in whose places it has letters.
_SWE7 = frozenset({10, 82})
_OTHER_IN_SWE7 = frozenset("@[\\]^`{|}~")


def check_written_labels(query: Query, before: TableSchema | None, after: TableSchema) -> None:
    """Raise SchemaError for a label that the server did not receive as the statement has it.

    before : the table before the statement. Columns that are the same in it are not checked,
        because this statement did not write their labels.
    """
    known = set(before.columns) if before is not None else set()
    written = [column for column in after.columns if column.labels and column not in known]
    labels = [label for column in written for label in column.labels]
    if {query.collation_client, query.collation_connection} & _SWE7:
        for label in labels:
            if not _OTHER_IN_SWE7.isdisjoint(label):
                raise SchemaError(
                    f"label {label!r} has characters that swe7, a character set of the client's"
                    " connection, lacks: it has letters in their places"
                )
    if all(label.isascii() and "\\" not in label and "?" not in label for label in labels):
        return
    author = create_author(query)
    if author is Author.SERVER:
        _check_no_lost_letters(written)
        return  # the stored labels, in the server's own text
    if author is Author.EITHER and SqlContext.of(query.sql_mode, "").no_backslash_escapes:
        for label in labels:
            if "\\" in label:
                raise SchemaError(f"label {label!r} may have backslashes added by the server")
    connection = query.collation_connection
    if connection is None or charset_of_collation(connection) not in _UTF8:
        for column in written:
            # The labels of binary columns are the bytes of the connection's character set.
            if column.charset == "binary":
                _check(column, "ascii")
    collations = (query.collation_client, query.collation_connection)
    for charset in {charset_of_collation(each) for each in collations if each is not None}:
        for column in written:
            _check(column, charset)


def _check_no_lost_letters(written: list[ColumnSchema]) -> None:
    for column in written:
        label = label_of_lost_letters(column)
        if label is not None:
            raise SchemaError(
                f"label {label!r} of column {column.name!r} may have letters beyond U+FFFF, which"
                " the server writes as ? in its own statements"
            )


def label_of_lost_letters(column: ColumnSchema) -> str | None:
    """Return a label that may have lost letters; None if there is none.

    The server writes its texts in utf8, with ``?`` for each letter beyond U+FFFF.
    """
    if not can_hold(column.charset or "", "😀"):
        return None
    return next((label for label in column.labels if "?" in label), None)


def with_letters(shown: TableSchema, declared: TableSchema) -> TableSchema:
    """Return a table from the server, with labels as its statements wrote them.

    The server shows letters beyond U+FFFF as ``?``.

    declared : the same table, from its own statements.
    """
    known = {column.name: column for column in declared.columns if column.labels}
    columns = [
        replace(column, labels=known[column.name].labels)
        if column.name in known and _shown(known[column.name]) == column.labels
        else column
        for column in shown.columns
    ]
    return replace(shown, columns=tuple(columns))


def _shown(column: ColumnSchema) -> tuple[str, ...]:
    """Return a column's labels as the server shows them in its own texts."""
    return tuple(_BEYOND.sub("?", label) for label in column.labels)


def _check(column: ColumnSchema, charset: str) -> None:
    # The server stores the bytes unchanged, but the statement was read as UTF-8. Therefore, labels
    # beyond ASCII are correct only if the column's charset is UTF-8.
    if charset == "binary":
        charset = column.charset or ""
        if charset not in _UTF8:
            charset = "ascii"
    for label in column.labels:
        if not can_hold(charset, label):
            raise SchemaError(
                f"label {label!r} of column {column.name!r} is not in {charset}, the character set"
                " of the client's connection: the server has stored another label"
            )
