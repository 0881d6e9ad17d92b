"""Purges of binlog files."""

from __future__ import annotations

from helpers.servers import Server
from helpers.waiting import wait_until

__all__ = ["purge"]


def purge(server: Server) -> str:
    """Purge all files but a new one, and return its name."""
    server.rotate()
    file = server.position()[0]

    def is_gone() -> bool:
        # The server does not purge a file that a dump is reading.
        server.execute(f"PURGE BINARY LOGS TO '{file}'")
        return bool(server.binlog_files()[0][0] == file)

    wait_until(is_gone, "the files are purged", every=0.1)
    return file
