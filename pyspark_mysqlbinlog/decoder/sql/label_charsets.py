"""Whether ENUM and SET labels reached the server as the statement has them.

A literal is read in the client's character set and converted to that of its connection, and only
then to the column's: `SET NAMES utf8` makes `????` of an emoji, `character_set_connection=latin1` a
`?` of all that is not Western, whatever the column could hold. Names don't go that way. With
`SET NAMES binary` nothing is converted: the bytes are the column's, in whatever set that is.
(MySQL: sql/sql_yacc.yy, TEXT_STRING_literal, of which `text_string` is made.)

A backslash is one where the session's mode is NO_BACKSLASH_ESCAPES, but the server doubles those in
its own texts all the same: where either may have written it, nobody knows how many there are.
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


def check_written_labels(query: Query, before: TableSchema | None, after: TableSchema) -> None:
    """SchemaError for a label that the server did not get as the statement has it.

    before : columns that it has as well were not written by this statement.
    """
    known = set(before.columns) if before is not None else set()
    written = [column for column in after.columns if column.labels and column not in known]
    labels = [label for column in written for label in column.labels]
    if all(label.isascii() and "\\" not in label and "?" not in label for label in labels):
        return
    author = create_author(query)
    if author is Author.SERVER:
        _check_no_lost_letters(written)
        return  # what the server has, in its own words
    if author is Author.EITHER and SqlContext.of(query.sql_mode, "").no_backslash_escapes:
        for label in labels:
            if "\\" in label:
                raise SchemaError(f"label {label!r} may have backslashes of the server's own")
    collations = (query.collation_client, query.collation_connection)
    for charset in {charset_of_collation(each) for each in collations if each is not None}:
        for column in written:
            _check(column, charset)


def _check_no_lost_letters(written: list[ColumnSchema]) -> None:
    for column in written:
        label = label_of_lost_letters(column)
        if label is not None:
            raise SchemaError(
                f"label {label!r} of column {column.name!r} may have letters beyond U+FFFF, for"
                " which the server writes ? in its own statements"
            )


def label_of_lost_letters(column: ColumnSchema) -> str | None:
    """A label that may be another one; None where there is none.

    The server writes its texts in utf8, and ``?`` for each letter beyond U+FFFF.
    """
    if not can_hold(column.charset or "", "😀"):
        return None
    return next((label for label in column.labels if "?" in label), None)


def with_letters(shown: TableSchema, told: TableSchema) -> TableSchema:
    """A table as the server shows it, with the letters that its statements had in labels.

    told : the same table, as its own statements tell.
    """
    known = {column.name: column for column in told.columns if column.labels}
    columns = [
        replace(column, labels=known[column.name].labels)
        if column.name in known and _shown(known[column.name]) == column.labels
        else column
        for column in shown.columns
    ]
    return replace(shown, columns=tuple(columns))


def _shown(column: ColumnSchema) -> tuple[str, ...]:
    """Its labels as the server's own texts have them."""
    return tuple(_BEYOND.sub("?", label) for label in column.labels)


def _check(column: ColumnSchema, charset: str) -> None:
    # The statement was read as UTF-8 then: only there its bytes are the column's.
    if charset == "binary":
        charset = column.charset or ""
        if charset not in ("utf8", "utf8mb4"):
            charset = "ascii"
    for label in column.labels:
        if not can_hold(charset, label):
            raise SchemaError(
                f"label {label!r} of column {column.name!r} is not in {charset}, the character set"
                " of the client's connection: the server has another"
            )
