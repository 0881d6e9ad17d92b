"""Servers whose binlog gets another base name at a restart, while the index file stays."""

from __future__ import annotations

from helpers.servers import LocalServer
from helpers.servers.available import own_kind
from helpers.servers.mysql57 import MySQL57Server

__all__ = ["INDEX", "name_log", "own_servers", "restart_with_log_name"]

# Of a server whose binlog is to be renamed: with its own default the index would be another one.
INDEX = "--log-bin-index=binlogs.index"


def name_log(server: LocalServer, base: str) -> None:
    """From the next start on, the server's binlog has this base name."""
    others = [each for each in server.arguments if not each.startswith("--log-bin=")]
    server.arguments = (*others, f"--log-bin={base}")


def restart_with_log_name(server: LocalServer, base: str) -> None:
    """Shut the server down in order, and start it with this base name of its binlog."""
    name_log(server, base)
    server.restart()


def own_servers() -> list[type[LocalServer]]:
    """The kinds of MySQL of which a test can start one, and start it again."""
    kinds = [own_kind()]
    if MySQL57Server.missing() is None:
        kinds.append(MySQL57Server)
    return kinds
