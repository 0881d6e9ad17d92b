"""Servers whose gtid_mode is switched while they run, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from helpers.servers import Server

__all__ = ["switch", "switchable_mode"]

MODES = ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]


def switch(server: Server, mode: str) -> None:
    """Switch gtid_mode one step at a time, as the server requires."""
    now = str(server.execute("SELECT @@GLOBAL.gtid_mode")[0][0])
    server.execute("SET GLOBAL enforce_gtid_consistency = ON")
    step = 1 if MODES.index(mode) > MODES.index(now) else -1
    while now != mode:
        now = MODES[MODES.index(now) + step]
        server.execute(f"SET GLOBAL gtid_mode = {now}")


@contextmanager
def switchable_mode(server: Server) -> Iterator[None]:
    """Restore gtid_mode after the block; skip servers that can't switch it (before 5.7.6)."""
    try:
        mode, consistency = server.execute(
            "SELECT @@GLOBAL.gtid_mode, @@GLOBAL.enforce_gtid_consistency"
        )[0]
        server.execute(f"SET GLOBAL gtid_mode = {mode}")
    except pymysql.err.MySQLError as error:
        # unit/protocol/test_server_errors.py tests the errors that servers with these modes send.
        pytest.skip(f"{server.version()} can't switch gtid_mode: {error.args[1]}")
    try:
        yield
    finally:
        switch(server, str(mode))
        server.execute(f"SET GLOBAL enforce_gtid_consistency = {consistency}")
        # The binlog has transactions with and without GTIDs, which no mode can read as a whole.
        for thread in server.dump_threads():
            server.execute(f"KILL {thread}")
        server.rotate()
        server.execute(f"PURGE BINARY LOGS TO '{server.position()[0]}'")
