"""The kinds of server that can run here."""

from __future__ import annotations

import os

from helpers.servers.base import LocalServer, Server
from helpers.servers.mariadb import MariaDB11Server, MariaDBServer
from helpers.servers.mysql9 import MySQL9Server
from helpers.servers.mysql56 import MySQL56Server
from helpers.servers.mysql57 import MySQL57Server
from helpers.servers.remote import DockerMySQL57, ExternalServer

__all__ = [
    "KINDS",
    "LOCAL_KINDS",
    "MISSING",
    "ONE_MARIADB_KINDS",
    "every_server",
    "live_kind",
    "mariadb_kind",
    "own_kind",
    "own_kinds",
]

# In the order in which they are preferred for live writes.
KINDS: tuple[type[Server], ...] = (
    ExternalServer,
    DockerMySQL57,
    MySQL56Server,
    MySQL9Server,
    MariaDBServer,
    MariaDB11Server,
)
# Kinds that a test can start itself, by name.
LOCAL_KINDS: dict[str, type[LocalServer]] = {
    kind.name: kind
    for kind in (MySQL56Server, MySQL57Server, MySQL9Server, MariaDBServer, MariaDB11Server)
}
# Of MariaDB, one version is enough for tests that take minutes.
ONE_MARIADB_KINDS = {name: kind for name, kind in LOCAL_KINDS.items() if kind != MariaDB11Server}
MISSING: dict[type[Server], str | None] = {kind: kind.missing() for kind in KINDS}


def live_kind() -> type[Server]:
    """Return the MySQL that live tests write to.

    MYSQLBINLOG_TEST_SERVER names it (`mysql9`, or `mysql57` from MYSQL57_HOME). By default it is
    the first available kind, or 5.6 if none is available.
    """
    named = os.environ.get("MYSQLBINLOG_TEST_SERVER")
    if named:
        return _named(named)
    live = (ExternalServer, DockerMySQL57, MySQL56Server)
    return next((kind for kind in live if MISSING[kind] is None), MySQL56Server)


def mariadb_kind() -> type[LocalServer]:
    """Return the MariaDB of most tests.

    MYSQLBINLOG_TEST_MARIADB names it (`mariadb11`). By default it is the system's.
    """
    named = _named(os.environ.get("MYSQLBINLOG_TEST_MARIADB", MariaDBServer.name))
    assert issubclass(named, LocalServer), f"{named.name} can't be started"
    return named


def own_kind() -> type[LocalServer]:
    """Return the MySQL that tests start themselves.

    It is the kind of live writes if a test can start that one, otherwise 5.6.
    """
    kind = live_kind()
    return kind if issubclass(kind, LocalServer) else MySQL56Server


def own_kinds() -> dict[str, type[LocalServer]]:
    """Return that MySQL and the MariaDB of most tests, by the fixtures of the shared servers."""
    return {kind.name: kind for kind in (own_kind(), mariadb_kind())}


def _named(name: str) -> type[Server]:
    kinds: tuple[type[Server], ...] = (*KINDS, MySQL57Server)
    return next(kind for kind in kinds if kind.name == name)


def every_server() -> list[str]:
    """Return the fixtures of all servers, for tests that depend on the server's version."""
    more = [] if live_kind() is MySQL56Server else ["live_server"]
    return ["mysql56", "mariadb", *more]
