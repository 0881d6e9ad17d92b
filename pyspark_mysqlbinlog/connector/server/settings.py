"""Queries of the server's settings, positions and identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.server.information_schema import read_database_charsets
from pyspark_mysqlbinlog.connector.server.statements import BINLOG_STATUS
from pyspark_mysqlbinlog.errors import BinlogSettingsError, ServerError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = [
    "ServerFacts",
    "binlog_files",
    "check_binlog_is_on",
    "check_identity",
    "check_row_format",
    "check_row_image",
    "check_settings",
    "current_position",
    "database_charsets",
    "explicit_timestamps",
    "master_status",
    "server_time",
]


def check_settings(client: ReplicaClient) -> None:
    """Raise BinlogSettingsError unless the server logs rows."""
    check_binlog_is_on(client)
    check_row_format(client)


def check_binlog_is_on(client: ReplicaClient) -> None:
    """Raise BinlogSettingsError if the server writes no binlog."""
    if client.variable("log_bin") != "ON":
        raise BinlogSettingsError(
            "the server writes no binlog (log_bin is OFF); start it with --log-bin,"
            " --binlog-format=ROW and a --server-id"
        )


def check_row_format(client: ReplicaClient) -> None:
    """Raise BinlogSettingsError if the server logs statements."""
    binlog_format = client.variable("binlog_format")
    # Deprecated since 8.0, ROW will be the only one. DML that is logged as a statement stops the
    # stream anyway.
    if binlog_format not in ("ROW", None):
        raise BinlogSettingsError(
            f"the server logs statements (binlog_format is {binlog_format}), expected ROW; SET"
            " GLOBAL binlog_format = 'ROW' and reconnect its clients"
        )


def check_row_image(client: ReplicaClient) -> None:
    """Raise BinlogSettingsError if rows in the binlog lack columns that a mirror needs."""
    image = client.variable("binlog_row_image")
    # Before 5.6 there is no such variable, and rows are complete.
    if image not in ("FULL", None):
        raise BinlogSettingsError(
            f"the server logs rows without some of their columns (binlog_row_image is {image}),"
            " expected FULL; SET GLOBAL binlog_row_image = 'FULL' and reconnect its clients"
        )


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts about a server that reading its binlog depends on, and that the binlog lacks.

    Attributes
    ----------
    case_sensitive : whether database and table names differ by case; if not, they are stored in
        lower case.
    version : from its handshake.
    """

    case_sensitive: bool
    version: str

    @classmethod
    def ask(cls, client: ReplicaClient) -> ServerFacts:
        """Query the server once; raises what `ReplicaClient.query` raises."""
        case = client.variable("lower_case_table_names")
        return cls(case in (None, "0"), client.server_version)


def check_identity(client: ReplicaClient, expected: str) -> None:
    """Raise ServerError if this is not the server that the offset belongs to."""
    found = client.server_uuid()
    if expected and found and found != expected:
        raise ServerError(
            f"the checkpoint belongs to the server {expected}, found {found}: file names and"
            " positions of one server are meaningless on another; connect to the first, let host"
            " name both if they replicate one another with GTIDs, or start again with a new"
            " checkpoint"
        )


def current_position(client: ReplicaClient) -> Position:
    """Return the current end of the binlog. Needs REPLICATION CLIENT.

    Raises
    ------
    BinlogSettingsError : the server writes no binlog.
    ServerError : what `ReplicaClient.query` raises.
    """
    status = master_status(client)
    return Position.of(str(status[0]), int(status[1]))


def master_status(client: ReplicaClient) -> tuple[Any, ...]:
    """Return the file, its end, binlog_do_db and binlog_ignore_db; as `current_position`."""
    rows = BINLOG_STATUS.run(client.query)
    if not rows:
        raise BinlogSettingsError(
            "the server writes no binlog; start it with --log-bin, --binlog-format=ROW and a"
            " --server-id"
        )
    return rows[0]


def binlog_files(client: ReplicaClient) -> dict[str, int]:
    """Return the files that the server still has, oldest first, with their sizes in bytes.

    BinlogSettingsError if two have one name: then no name identifies a file.
    """
    rows = [(str(row[0]), int(row[1])) for row in client.query("SHOW BINARY LOGS")]
    files = dict(rows)
    if len(files) != len(rows):
        names = [name for name, _ in rows]
        twice = next(name for name in names if names.count(name) > 1)
        raise BinlogSettingsError(
            f"SHOW BINARY LOGS has {twice} twice, expected each file once: log_bin was moved to"
            " another folder under the same name; PURGE BINARY LOGS up to the files of the new"
            " folder, and start again"
        )
    return files


def server_time(client: ReplicaClient) -> int:
    """Return the time of the server's clock, in seconds since 1970, as in events."""
    return int(client.query("SELECT UNIX_TIMESTAMP()")[0][0])


def explicit_timestamps(client: ReplicaClient) -> bool:
    """Return whether a TIMESTAMP may be NULL by default."""
    return client.variable("explicit_defaults_for_timestamp") in ("ON", "1")


def database_charsets(client: ReplicaClient) -> dict[str, str]:
    """Return the default charset of every database."""
    return read_database_charsets(client)
