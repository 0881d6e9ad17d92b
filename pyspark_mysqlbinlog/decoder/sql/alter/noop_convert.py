"""Whether CONVERT TO CHARACTER SET changes a table's default if it changes no column.

A column added later inherits that default, and a 5.7 binlog does not contain it: with a wrong
default, the column's text is decoded in another character set without an error. Servers differ by
version, so each rule was verified on the version that it is for. For other versions the default is
unknown after such a statement; a reader that needs it asks the server, or stops.

====================  ===========  ================================================================
server                the default  evidence
====================  ===========  ================================================================
MySQL 5.6.16-5.6.27   may stay     5.6.24, 38 forms of the statement; MySQL bug 77554 reports the
                                   same of 5.6.16 and 5.6.27
MySQL 5.7.12-5.7.x    changes      5.7.41, the same forms; bug 77554 was closed between 5.7.10 and
                                   5.7.12, and the servers' own tests have its case since then
MySQL from 9.7        changes      9.7.4, the same forms, and random ALTERs
MariaDB from 10.3.7   changes      10.11.19, the same forms; MDEV-6390 was fixed in February 2017,
                                   before the first stable 10.3, and has its case in the tests
all others            not known    among them 8.x, 5.7 before 5.7.12 (5.7.8 had bug 77554)
                                   and 5.6 from 5.6.28 on, which may have the fix as well
====================  ===========  ================================================================

Where it may stay, it does so if the server finds nothing to do. That depends on the collations of
the columns, which are unknown here. With character columns the default is therefore also unknown
(5.6: sql_table.cc, mysql_alter_table, "No-op ALTER").
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from pyspark_mysqlbinlog.decoder.sql.alter.clauses import AlterTable
from pyspark_mysqlbinlog.decoder.sql.tokens import UNKNOWN_VERSION, SqlContext
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["with_default_after"]


class _Default(Enum):
    CHANGES = "changes"
    MAY_STAY = "may stay"
    NOT_KNOWN = "not known"


def _rule(context: SqlContext) -> _Default:
    version = context.server_version
    if version == UNKNOWN_VERSION:
        return _Default.NOT_KNOWN
    if context.mariadb:
        return _Default.CHANGES if version >= 100307 else _Default.NOT_KNOWN
    if 50712 <= version < 50800 or version >= 90700:
        return _Default.CHANGES
    return _Default.MAY_STAY if 50616 <= version <= 50627 else _Default.NOT_KNOWN


def with_default_after(
    alter: AlterTable, before: TableSchema, after: TableSchema, context: SqlContext
) -> TableSchema:
    """Return `after` with the default character set that the server gave it; None: unknown.

    after : the table as if its default had changed with its columns.
    context : of the server that wrote the statement to its binlog.
    """
    idle = alter.convert_to is not None and after.columns == before.columns
    if not idle or after.charset == before.charset or _rule(context) is _Default.CHANGES:
        return after
    if alter.clauses:
        # With any other clause the server executes all of them, except if indexes are dropped
        # and added unchanged: then nothing is left to do.
        return replace(after, charset=None) if alter.drops_index else after
    has_text = any(column.charset not in (None, "binary") for column in before.columns)
    if _rule(context) is _Default.MAY_STAY and not has_text:
        return replace(after, charset=before.charset)
    return replace(after, charset=None)
