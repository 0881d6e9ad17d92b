"""Servers whose binlog gets a new base name at a restart and keeps its index file."""

from __future__ import annotations

from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.servers.mysql57 import MySQL57Server

__all__ = ["INDEX", "name_log", "own_servers", "restart_with_log_name"]

# Argument of a server whose binlog will be renamed: the default name of the index file depends on
# the base name.
INDEX = "--log-bin-index=binlogs.index"


def name_log(server: LocalServer, base: str) -> None:
    """Set the base name of the server's binlog from the next start on."""
    others = [each for each in server.arguments if not each.startswith("--log-bin=")]
    server.arguments = (*others, f"--log-bin={base}")


def restart_with_log_name(server: LocalServer, base: str) -> None:
    """Shut the server down cleanly, and start it with this base name of its binlog."""
    name_log(server, base)
    server.restart()


def own_servers() -> list[type[LocalServer]]:
    """Return the kinds of MySQL that a test can start and restart."""
    kinds = [own_kind()]
    if MySQL57Server.missing() is None and MySQL57Server not in kinds:
        kinds.append(MySQL57Server)
    return kinds
