"""Which kinds of server can run here."""

from __future__ import annotations

from helpers.servers.base import Server
from helpers.servers.mariadb import MariaDBServer
from helpers.servers.mysql56 import MySQL56Server
from helpers.servers.remote import DockerMySQL57, ExternalServer

__all__ = ["KINDS", "MISSING", "every_server", "live_kind"]

# In the order in which they are preferred for live writes.
KINDS: tuple[type[Server], ...] = (ExternalServer, DockerMySQL57, MySQL56Server, MariaDBServer)
MISSING: dict[type[Server], str | None] = {kind: kind.missing() for kind in KINDS}


def live_kind() -> type[Server]:
    """The MySQL that live tests write to: the first that is there; 5.6 stands for none."""
    live = (ExternalServer, DockerMySQL57, MySQL56Server)
    return next((kind for kind in live if MISSING[kind] is None), MySQL56Server)


def every_server() -> list[str]:
    """The fixtures of all of them, for what hangs on the server's version."""
    more = [] if live_kind() is MySQL56Server else ["live_server"]
    return ["mysql56", "mariadb", *more]
