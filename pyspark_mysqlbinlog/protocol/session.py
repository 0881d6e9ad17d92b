"""What a session sets for itself, so that no global setting of the server changes an answer.

A session begins with the server's global values, and an administrator may have set them for other
clients: a limit on rows, on time or on joins, another grammar, another language. `DEFAULT` would be
the global value again, so each has its own.

=====================  ============================================================================
sql_select_limit       cuts any result, without an error: tables would be missing
sql_big_selects        off: joins beyond max_join_size are refused
max_execution_time     ends a SELECT after so many milliseconds (MySQL 5.7.8)
max_statement_time     ends any statement after so many seconds (MariaDB 10.1.1)
sql_mode               other quotes in SHOW GRANTS, other spaces in texts, another grammar; without
                       ALLOW_INVALID_DATES a row with 2026-02-31 is not equal to its own date
sql_quote_show_create  off: SHOW GRANTS has names without quotes
lock_wait_timeout      information_schema leaves out what stays locked for longer
wait_timeout           ends a connection that waits while another one reads the log
lc_messages            the language of errors: what is refused in a dump is told apart by its text
time_zone              how a TIMESTAMP is read and compared: in most zones one hour comes twice
=====================  ============================================================================

The character set of answers is set by pymysql, with SET NAMES behind the server's init_connect.
What is asked has no sorting and no long concatenations in it, so the settings of those don't
matter.
"""

from __future__ import annotations

__all__ = ["RAW_ROWS_SETTINGS", "SESSION_SETTINGS"]

_LONGEST = 31_536_000  # seconds: a year, the most that both timeouts take, and the default of one

# A comment with a number is for MySQL of that version and later; MariaDB passes over numbers from
# 50700 on, and has a kind of its own, which is a plain comment for MySQL (the manuals, "Comments").
SESSION_SETTINGS = (
    "SET SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,"
    " SESSION sql_mode = 'ALLOW_INVALID_DATES', SESSION sql_quote_show_create = 1,"
    f" SESSION lock_wait_timeout = {_LONGEST}, SESSION wait_timeout = {_LONGEST},"
    " SESSION lc_messages = 'en_US', SESSION time_zone = '+00:00'"
    " /*!50708 , SESSION max_execution_time = 0 */ /*M!100101 , SESSION max_statement_time = 0 */"
)

# Behind them, for a session that reads rows: texts come in their column's own character set. A
# server waits for a reader as long as Spark lets a batch run.
RAW_ROWS_SETTINGS = (
    "SET SESSION character_set_results = NULL",
    "SET SESSION net_write_timeout = 604800",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
