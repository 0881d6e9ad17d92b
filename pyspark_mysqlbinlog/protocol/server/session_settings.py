"""Session variables, set so that no global setting of the server changes an answer.

A session begins with the server's global values and the effects of `init_connect`, which an
administrator may have set for other clients. `DEFAULT` would be the global value again, so each
variable is set to an explicit value. `timestamp` and `system_versioning_asof` are the exceptions:
only DEFAULT disables them.

=======================  ==========================================================================
sql_select_limit         truncates any result, without an error: tables would be missing
sql_big_selects          off: joins beyond max_join_size are rejected
max_execution_time       ends a SELECT after this many milliseconds (MySQL 5.7.8)
max_statement_time       ends any statement after this many seconds (MariaDB 10.1.1)
autocommit               off: the first SELECT begins a transaction that does not end. All later
                         ones see the rows of that moment, and every ALTER TABLE waits for it
isolation level          READ UNCOMMITTED: a snapshot is planned by changes that are rolled back
                         later, and MySQL 8.0 and later shows tables of unfinished DDL.
                         SERIALIZABLE: a SELECT in a transaction locks rows
completion_type          RELEASE: COMMIT ends the connection. CHAIN: it begins a transaction
sql_mode                 other quotes in SHOW GRANTS, other spaces in texts, another grammar;
                         without ALLOW_INVALID_DATES a row with 2026-02-31 does not equal its own
                         date
sql_quote_show_create    off: SHOW GRANTS has names without quotes
sql_buffer_result        on: the server copies a whole result before it sends the first row; with
                         big_tables, MySQL 5.7.41 gives a BIT(12) of MyISAM a wrong value in it
lock_wait_timeout        information_schema omits what stays locked for longer
wait_timeout             ends a connection that waits while another one reads the binlog
idle_…_timeout           three that end a connection inside a transaction (MariaDB 10.3)
net_read_timeout         ends a connection whose statement arrives slowly
net_write_timeout        ends a connection whose reader is slow; Spark may take long for a batch
lc_messages              the language of errors, in the logs of this package
time_zone                how a TIMESTAMP is read and compared: in most zones one hour occurs twice
div_precision_increment  these four change what a condition of `snapshotWhere` means
default_week_format
lc_time_names
sql_auto_is_null
timestamp                what the server's clock shows; MariaDB allows DEFAULT under any
                         secure_timestamp
system_versioning_asof   SELECT shows the rows of a moment in the past (MariaDB 10.3.4)
show_gipk_in_create_…    off: information_schema has no generated invisible primary keys, which
                         are columns of the binlog's rows (MySQL 8.0.30; measured on 9.7.4)
information_schema_      information_schema shows sizes of tables that are up to a day old, by which
stats_expiry             a snapshot is planned (MySQL 8.0.3)
=======================  ==========================================================================

The character set of answers is set by pymysql, with SET NAMES after the server's init_connect.
No statement sorts or concatenates rows, so the settings for these have no effect.

The query cache (up to MySQL 5.7, MariaDB) cannot be disabled by every session: on MySQL that is an
error if it is already off. A SELECT answered by the cache opens no table, so it locks nothing. A
transaction is visible for a moment before the cache drops the entries that it changed. Therefore,
each SELECT on a table begins with UNCACHED_SELECT.
"""

from __future__ import annotations

__all__ = [
    "DEFAULT_DIV_PRECISION_INCREMENT",
    "DEFAULT_LOCALE",
    "LONGEST_TIMEOUT",
    "RAW_ROWS_SETTINGS",
    "SESSION_SETTINGS",
    "UNCACHED_SELECT",
]

LONGEST_TIMEOUT = (
    31_536_000  # seconds: a year, the maximum of some timeouts, and the default of one
)
_READ_SECONDS = 600
# The servers' defaults.
DEFAULT_DIV_PRECISION_INCREMENT, DEFAULT_LOCALE = 4, "en_US"

# autocommit is switched off first: switching it on ends a transaction only if it was off, and
# init_connect may have begun one.
#
# A comment with a number is executed by MySQL of that version and later. MariaDB skips numbers from
# 50700 on, and has its own kind, which is a plain comment for MySQL (the manuals, "Comments").
#
# One SESSION applies to all that follow it, and the statement has to fit into the smallest
# max_allowed_packet: 1024 bytes.
_VARIABLES = (
    "SET SESSION autocommit = 0, autocommit = 1, completion_type = 0,"
    " sql_select_limit = 18446744073709551615, sql_big_selects = 1,"
    " sql_mode = 'ALLOW_INVALID_DATES', sql_quote_show_create = 1, sql_buffer_result = 0,"
    f" lock_wait_timeout = {LONGEST_TIMEOUT}, wait_timeout = {LONGEST_TIMEOUT},"
    f" net_read_timeout = {_READ_SECONDS}, net_write_timeout = {LONGEST_TIMEOUT},"
    f" lc_messages = '{DEFAULT_LOCALE}', time_zone = '+00:00', timestamp = DEFAULT,"
    f" div_precision_increment = {DEFAULT_DIV_PRECISION_INCREMENT}, default_week_format = 0,"
    f" lc_time_names = '{DEFAULT_LOCALE}', sql_auto_is_null = 0"
    " /*!50708 , max_execution_time = 0 */"
    " /*!80003 , information_schema_stats_expiry = 0 */"
    " /*!80030 , show_gipk_in_create_table_and_information_schema = 1 */"
    " /*M!100101 , max_statement_time = 0 */"
    " /*M!100300 , idle_transaction_timeout = 0, idle_readonly_transaction_timeout = 0,"
    " idle_write_transaction_timeout = 0 */"
    " /*M!100304 , system_versioning_asof = DEFAULT */"
)

SESSION_SETTINGS = (
    _VARIABLES,
    # By statement, because the variable's name differs between versions. autocommit is on, so each
    # statement outside a transaction sees all that was committed before it.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)

# Begins each SELECT on a table (see above).
UNCACHED_SELECT = "SELECT SQL_NO_CACHE"

# Set after SESSION_SETTINGS to read rows: texts come in their column's own character set.
RAW_ROWS_SETTINGS = "SET SESSION character_set_results = NULL"
