"""The tables of the recorded 5.7 binlogs, restored on a live server.

They are restored by the statements that created them. Some scenarios' files contain long statements
only in part. For those the binlog is applied: its DDL as statements and its rows events as BINLOG
statements, as mysqlbinlog would print them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pymysql

from helpers.logs.recorded_logs import describe
from helpers.parity.decoding import CAPTURED, raws_in
from helpers.servers import Server
from pyspark_mysqlbinlog.protocol.events import (
    HEADER_LENGTH,
    ROWS_EVENT_TYPES,
    EventHeader,
    EventType,
)
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["ALL_SCENARIOS", "restore"]

_BY_LOG = frozenset({"strings", "wide", "json_docs"})
ALL_SCENARIOS = tuple(sorted(path.stem for path in CAPTURED.glob("*.json")))
_STMT_END_FLAG = 0x01


def restore(server: Server, scenario: str) -> tuple[dict[str, Any], list[str]]:
    """Create the scenario's database with the tables that the server supports.

    Return its description, and the statements that the server rejected: an older server or MariaDB
    then lacks some tables, or has them in another form.
    """
    refused: list[str] = []
    described = describe(scenario)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"DROP DATABASE IF EXISTS {described['database']}")
        if scenario in _BY_LOG:
            database = described["database"]
            statements = [f"CREATE DATABASE {database} CHARACTER SET utf8mb4", f"USE {database}"]
            for file in described["files"]:
                statements += _applied(raws_in(CAPTURED / file))
        else:
            statements = [each["sql"] for each in described["statements"] if "error" not in each]
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.err.MySQLError:
                if not statement.startswith("drop database"):
                    refused.append(statement)
    return described, refused


def _applied(raws: list[bytes]) -> Iterator[str]:
    """Yield the statements by which a server applies a log of one database."""
    format_description = raws[0]
    table_maps: list[bytes] = []
    for raw in raws:
        header = EventHeader.parse(raw)
        if header.type == EventType.FORMAT_DESCRIPTION_EVENT:
            format_description = raw
        elif header.type == EventType.TABLE_MAP_EVENT:
            table_maps.append(raw)
        elif header.type in ROWS_EVENT_TYPES:
            table_maps.append(raw)
            flags = int.from_bytes(raw[HEADER_LENGTH + 6 : HEADER_LENGTH + 8], "little")
            if flags & _STMT_END_FLAG:
                yield f"BINLOG '{b64encode(format_description).decode()}'"
                yield f"BINLOG '{b64encode(b''.join(table_maps)).decode()}'"
                table_maps = []
        elif header.type == EventType.QUERY_EVENT:
            sql = Query.parse(raw[HEADER_LENGTH:-4]).sql
            if sql.lower().startswith(("create table", "alter table")):
                yield sql
