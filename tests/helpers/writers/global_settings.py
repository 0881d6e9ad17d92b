"""Global settings that apply to every new session, and tables whose rows they could change.

Each group of settings is active during the snapshot and while changes are read. The expected rows
come from a session that began before that, with the server's defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from helpers.logs.live_log import new_database, schemas_of, selected_by
from helpers.replay import Replay
from helpers.servers import Server
from helpers.streams.stream_query import Query
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "GROUPS",
    "KEYED",
    "KEYLESS",
    "Tables",
    "Values",
    "assert_snapshot_and_changes",
    "globally",
    "plain_account",
    "tables_of",
    "with_tables",
]

Values = Mapping[str, object]

_READ_ONLY_VARIABLE = 1238

KEYED, KEYLESS = ("keyed", "timed"), ("keyless", "of_myisam")

_SQL_MODE = (
    "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT,REAL_AS_FLOAT,"
    "NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE,IGNORE_SPACE,ONLY_FULL_GROUP_BY"
)

# Lets `globally` invert each flag of `optimizer_switch`.
FLIPPED = "flipped"

# Variables that a server does not have are skipped. Settings that end connections or begin
# transactions are in separate groups: they could hide the effects of other settings.
GROUPS: dict[str, Values] = {
    "autocommit": {"autocommit": 0},
    "release": {"completion_type": "RELEASE"},
    "chain": {"completion_type": "CHAIN"},
    "sql_mode": {"sql_mode": _SQL_MODE},
    "strict": {
        "sql_mode": "TRADITIONAL,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "binlog_rows_query_log_events": 1,
        "binlog_row_image": "minimal",
        "binlog_checksum": "NONE",
        "session_track_schema": 1,
        "session_track_state_change": 1,
        "session_track_gtids": "OWN_GTID",
        "session_track_transaction_info": "CHARACTERISTICS",
        "session_track_system_variables": "*",
    },
    "oracle": {"sql_mode": "ORACLE"},
    "uncommitted": {
        "tx_isolation": "READ-UNCOMMITTED",
        "transaction_isolation": "READ-UNCOMMITTED",
        "time_zone": "+05:30",
        "lc_messages": "de_DE",
        "lc_time_names": "ja_JP",
        "default_week_format": 3,
        "div_precision_increment": 0,
        "group_concat_max_len": 4,
    },
    "serializable": {
        "tx_isolation": "SERIALIZABLE",
        "transaction_isolation": "SERIALIZABLE",
        "tx_read_only": 1,
        "transaction_read_only": 1,
        "read_only": 1,
        "super_read_only": 1,
        "optimizer_switch": FLIPPED,
    },
    "limits": {
        "sql_select_limit": 3,
        "max_join_size": 1,
        "sql_big_selects": 0,
        "max_execution_time": 1,
        "max_statement_time": 0.001,
        "range_optimizer_max_mem_size": 1,
        "sql_safe_updates": 1,
    },
    "timeouts": {
        "wait_timeout": 1,
        "interactive_timeout": 1,
        "net_read_timeout": 1,
        "net_write_timeout": 1,
        "lock_wait_timeout": 1,
        "innodb_lock_wait_timeout": 1,
        "idle_transaction_timeout": 1,
        "idle_readonly_transaction_timeout": 1,
        "idle_write_transaction_timeout": 1,
        "big_tables": 1,
        "tmp_table_size": 1024,
        "max_heap_table_size": 16384,
        "max_sort_length": 4,
        "max_length_for_sort_data": 4,
        "max_allowed_packet": 1024,
        "net_buffer_length": 1024,
        "sql_buffer_result": 1,
    },
    "latin1": {
        "lc_messages": "ja_JP",
        "character_set_server": "latin1",
        "character_set_client": "latin1",
        "character_set_connection": "latin1",
        "character_set_results": "latin1",
        "character_set_database": "latin1",
        "character_set_filesystem": "latin1",
        "collation_connection": "latin1_german2_ci",
    },
    "sjis": {
        "character_set_server": "sjis",
        "character_set_client": "sjis",
        "character_set_connection": "sjis",
        "character_set_results": "sjis",
        "collation_server": "sjis_bin",
        "collation_database": "sjis_bin",
        "foreign_key_checks": 0,
        "unique_checks": 0,
        "sql_quote_show_create": 0,
        "sql_auto_is_null": 1,
        "low_priority_updates": 1,
        "updatable_views_with_limit": "NO",
        "default_storage_engine": "MyISAM",
        "explicit_defaults_for_timestamp": 0,
        "show_compatibility_56": 1,
        "old": 1,
        "old_mode": "",
        "innodb_strict_mode": 0,
        "sql_notes": 0,
        # SELECT then shows the rows of that time.
        "system_versioning_asof": "2001-01-01 00:00:00",
    },
    "mysql8": {
        "binlog_row_value_options": "PARTIAL_JSON",
        "binlog_transaction_compression": 1,
        "default_collation_for_utf8mb4": "utf8mb4_general_ci",
        "internal_tmp_mem_storage_engine": "MEMORY",
        "print_identified_with_as_hex": 1,
        "show_gipk_in_create_table_and_information_schema": 0,
        "sql_generate_invisible_primary_key": 1,
        "terminology_use_previous": "BEFORE_8_0_26",
        "windowing_use_high_precision": 0,
    },
}

_COLUMNS = (
    "a CHAR(5) CHARACTER SET utf8mb4, b VARCHAR(20), c FLOAT, d DOUBLE, e DECIMAL(12,6),"
    r" f TIMESTAMP(3) NULL, g DATETIME(6), h TIME(2), i DATE, k ENUM('it''s', '\"', '\\', 'ñ'),"
    " l SET('a', 'b'), m BIT(12), o BINARY(6), p BIGINT UNSIGNED, q VARCHAR(20) CHARACTER SET sjis"
)
# The TIMESTAMPs include the hour that occurs twice when the clocks change.
_ROWS = (
    r"""'a', 'back\\slash', 1.1, 0.1, 1.1, '2026-10-25 00:30:00.123', '2026-02-31 01:02:03.000004',
     '-838:59:59', '2026-12-31', 1, 1, 1, x'00615c', 18446744073709551615, '表'""",
    r"""'b ', 'it''s "it"', 16777217, 1e0 / 3, -99999.999999, '2026-10-25 01:30:00',
     '0000-00-00 00:00:00', '00:00:00.5', '0000-00-00', 2, 3, 4095, x'', 0, 'ソ'""",
    r"""' c', '  pad  ', 3.4e38, 1e300, 0, '1971-01-01 00:00:00', '9999-12-31 23:59:59.999999',
     '838:59:59', '2026-02-31', 3, 0, 256, x'61', 1, 'a~b'""",
    r"""'', '😀\\', 1e-38, -2.5, 12.5, NULL, '2026-01-31 00:00:00', '-00:00:01.25', '2026-02-29',
     4, 2, 0, x'615c00', 9223372036854775808, '能\\'""",
    r"""'é😀', NULL, NULL, NULL, NULL, '2037-01-19 03:14:07.999', NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL""",
)


@contextmanager
def globally(server: Server, values: Values) -> Iterator[list[str]]:
    """Set global variables for sessions that begin in the block; yield the names of those set.

    Variables that the server does not have, or that can't be changed while it runs, are skipped.
    """
    with server.connect() as connection, connection.cursor() as cursor:
        before: dict[str, Any] = {}
        try:
            for name, value in values.items():
                cursor.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
                if not cursor.fetchall():
                    continue
                cursor.execute(f"SELECT @@GLOBAL.{name}")
                ((held,),) = cursor.fetchall()
                given = _flipped(str(held)) if value is FLIPPED else value
                try:
                    cursor.execute(f"SET GLOBAL {name} = %s", (given,))
                except pymysql.err.MySQLError as error:
                    if error.args[0] != _READ_ONLY_VARIABLE:
                        raise
                    continue
                before[name] = held
            yield list(before)
        finally:
            for name, held in reversed(before.items()):
                # One variable has the keyword DEFAULT as its value, not the text.
                value = "DEFAULT" if held == "DEFAULT" else connection.escape(held)
                cursor.execute(f"SET GLOBAL {name} = {value}")


def _flipped(switches: str) -> str:
    flags = dict(flag.split("=") for flag in switches.split(","))
    # At least one of this flag and another one must be on.
    flags.pop("materialization", None)
    others = {"on": "off", "off": "on"}
    return ",".join(f"{name}={others[value]}" for name, value in flags.items())


@contextmanager
def plain_account(server: Server) -> Iterator[dict[str, str]]:
    """Yield the options of an account without SUPER: `init_connect` and `read_only` apply to it."""
    name, password = "settings_reader", "secret"
    server.execute(
        f"CREATE USER {name}@'%' IDENTIFIED BY '{password}'",
        "GRANT SELECT, LOCK TABLES, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO"
        f" {name}@'%'",
    )
    try:
        yield {"user": name, "password": password}
    finally:
        server.execute(f"DROP USER {name}@'%'")


@dataclass(frozen=True)
class Tables:
    """Filled tables, and a session that began before any settings.

    Attributes
    ----------
    cursor : of that session, which has the server's defaults.
    """

    server: Server
    database: str
    cursor: Cursor
    schemas: list[TableSchema]

    def change(self) -> None:
        """Update, delete and insert some rows of each table."""
        self.cursor.execute("SHOW GLOBAL VARIABLES LIKE 'super_read_only'")
        # With that variable, this session cannot write either.
        is_locked = [str(value) for _, value in self.cursor.fetchall()] == ["ON"]
        if is_locked:
            self.cursor.execute("SET GLOBAL super_read_only = 0")
        for name in (*KEYED, *KEYLESS):
            table = f"`{self.database}`.{name}"
            changed = "b = '😀 \\\\ '' changed', c = c / 3, f = f + INTERVAL 1 HOUR"
            self.cursor.execute(f"UPDATE {table} SET {changed} WHERE p > 1")
            self.cursor.execute(f"DELETE FROM {table} WHERE p = 1")
            self.cursor.execute(
                f"INSERT INTO {table} SELECT * FROM {table} WHERE p IS NULL"
                if name in KEYLESS
                else f"UPDATE {table} SET number = number + 1000 WHERE p = 0"
            )
        if is_locked:
            self.cursor.execute("SET GLOBAL super_read_only = 1")

    def selected(self) -> list[list[tuple[str | None, ...]]]:
        """Return the rows of each table as SELECT shows them."""
        return selected_by(self.cursor, *self.schemas)


def tables_of(server: Server, database: str, cursor: Cursor, rows: int) -> Tables:
    """Create the tables, each with `rows` rows."""
    timed = "at TIMESTAMP NOT NULL DEFAULT '2020-01-01', x FLOAT NOT NULL, number INT NOT NULL"
    for statement in (
        "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'",
        f"USE `{database}`",
        f"CREATE TABLE keyed (id VARCHAR(9), number INT, {_COLUMNS}, PRIMARY KEY (id, number))",
        f"CREATE TABLE timed ({timed}, {_COLUMNS}, UNIQUE (at, x, number))",
        f"CREATE TABLE keyless ({_COLUMNS})",
        f"CREATE TABLE of_myisam ({_COLUMNS}) ENGINE = MyISAM",
    ):
        cursor.execute(statement)
    for number in range(rows):
        row = _ROWS[number % len(_ROWS)]
        letter = ("'k'", "'K '", "'ä'", "'q'''", r"'\\'")[number % 5]
        at = f"'2026-10-25 00:30:00' + INTERVAL {number * 7} MINUTE"
        for table, key in {
            "keyed": f"{letter}, {number}, ",
            "timed": f"{at}, {number / 10}, 1, ",
            "keyless": "",
            "of_myisam": "",
        }.items():
            cursor.execute(f"INSERT INTO {table} VALUES ({key}{row})")
    return Tables(server, database, cursor, schemas_of(server, database))


@contextmanager
def with_tables(server: Server, database: str, rows: int = 25) -> Iterator[Tables]:
    """Yield the tables of a new database, and the session that filled them."""
    with (
        new_database(server, database),
        # Without converters every value is the text that the server sent.
        server.connect(conv={}) as connection,
        connection.cursor() as cursor,
    ):
        yield tables_of(server, database, cursor, rows)


def assert_snapshot_and_changes(
    tables: Tables, account: Mapping[str, str], *, writer: Cursor | None = None, **options: str
) -> None:
    """Check that a stream's rows equal SELECT's after the snapshot and after changes.

    writer : makes one more change.
    """
    texts = {"payload": "json", "startingOffset": "snapshot", "snapshotExactKeyless": "true"}
    # A chunk has half as many rows as maxRowsPerTrigger.
    texts |= {"maxRowsPerTrigger": "30", "sslMode": "DISABLED", **account, **options}
    query = Query(tables.server, f"{tables.database}.*", **texts)
    replay = Replay(tables.schemas)
    try:
        rows = [row for row in query.start().rows() if row["op"] == "r"]
        # `ts` is from the server's clock, whatever settings the session began with.
        now = datetime.now(UTC)
        assert all(abs(now - row["ts"]) < timedelta(days=1) for row in rows)
        # Snapshot rows get a `seq` before all changes.
        place = {"epoch": 0, "file": 0, "row": 0}
        replay.apply(
            {**row, "op": "c", "seq": {**place, "pos": pos}} for pos, row in enumerate(rows)
        )
        _assert_selected(tables, replay)
        tables.change()
        if writer is not None:
            writer.execute(f"UPDATE {tables.database}.keyed SET p = 7 WHERE p = 0")
        replay.apply(query.rows())
        _assert_selected(tables, replay)
    finally:
        query.stop()


def _assert_selected(tables: Tables, replay: Replay) -> None:
    for schema, rows in zip(tables.schemas, tables.selected(), strict=True):
        assert rows
        replay.assert_equals(schema.database, schema.table, rows)
