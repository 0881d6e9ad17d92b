"""MySQL 9.x, unpacked from Debian's packages (see helpers/unpacked)."""

from __future__ import annotations

from pathlib import Path

from helpers.servers.initialized import InitializedServer
from helpers.unpacked import MYSQL

__all__ = ["MySQL9Server"]


class MySQL9Server(InitializedServer):
    """MySQL 9.x with its own defaults: GTIDs on, caching_sha2_password, row metadata MINIMAL."""

    name = "mysql9"

    @classmethod
    def missing(cls) -> str | None:
        return MYSQL.missing()

    def templates(self) -> Path:
        return MYSQL.home

    def command(self, folder: Path, datadir: Path) -> list[str]:
        share = MYSQL.root / "usr" / "share" / "mysql"
        return [
            *MYSQL.command(),
            "--no-defaults",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={MYSQL.root / 'usr' / 'lib' / 'mysql' / 'plugin'}",
            "--secure-file-priv=",
            "--mysqlx=OFF",
            "--innodb-redo-log-capacity=16M",
            "--performance-schema=OFF",
            "--character-set-server=utf8mb4",
        ]
