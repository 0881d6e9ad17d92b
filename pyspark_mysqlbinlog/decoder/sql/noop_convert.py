"""CONVERT TO CHARACTER SET where no column becomes another: whether the table's default does.

A column that is added later inherits that default, and nothing in a 5.7 log shows it: taken wrong,
its text is read in another character set without an error. Servers differ by version, so each rule
here is one that was seen on the version that it is for; elsewhere the default is not known behind
such a statement, and whoever needs it asks the server, or stops.

====================  ===========  ================================================================
server                the default  what that rests on
====================  ===========  ================================================================
MySQL 5.6.16-5.6.27   may stay     5.6.24, 38 forms of the statement; MySQL bug 77554 reports the
                                   same of 5.6.16 and 5.6.27
MySQL 5.7.12-5.7.x    changes      5.7.41, the same forms; bug 77554 was closed between 5.7.10 and
                                   5.7.12, and the servers' own tests have its case since then
MariaDB from 10.3.7   changes      10.11.19, the same forms; MDEV-6390 was mended in February 2017,
                                   before the first stable 10.3, and has its case in the tests
all others            not known    among them 8.0, 5.7 before 5.7.12 (bug 77554 was there in 5.7.8)
                                   and 5.6 from 5.6.28 on, which may have the mend as well
====================  ===========  ================================================================

Where it may stay, it does so when the server finds nothing to do, and whether it does hangs on the
columns' collations, which are not known here: with columns that have a character set it is not
known either (5.6: sql_table.cc, mysql_alter_table, "No-op ALTER").
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from pyspark_mysqlbinlog.decoder.sql.alter_clauses import AlterTable
from pyspark_mysqlbinlog.decoder.sql.tokens import UNTOLD_VERSION, SqlContext
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["with_default_behind"]


class _Default(Enum):
    CHANGES = "changes"
    MAY_STAY = "may stay"
    NOT_KNOWN = "not known"


def _rule(context: SqlContext) -> _Default:
    version = context.server_version
    if version == UNTOLD_VERSION:
        return _Default.NOT_KNOWN
    if context.mariadb:
        return _Default.CHANGES if version >= 100307 else _Default.NOT_KNOWN
    if 50712 <= version < 50800:
        return _Default.CHANGES
    return _Default.MAY_STAY if 50616 <= version <= 50627 else _Default.NOT_KNOWN


def with_default_behind(
    alter: AlterTable, before: TableSchema, after: TableSchema, context: SqlContext
) -> TableSchema:
    """`after`, with the default character set that the server gave it, or None for not known.

    after : the table as if its default had changed with its columns.
    context : of the server that wrote the statement into its log.
    """
    idle = alter.convert_to is not None and after.columns == before.columns
    if not idle or after.charset == before.charset or _rule(context) is _Default.CHANGES:
        return after
    if alter.clauses:
        # Anything else to do makes the server do all of it, but for indexes that come again as
        # they were: nothing is left to do then.
        return replace(after, charset=None) if alter.drops_index else after
    has_text = any(column.charset not in (None, "binary") for column in before.columns)
    if _rule(context) is _Default.MAY_STAY and not has_text:
        return replace(after, charset=before.charset)
    return replace(after, charset=None)
