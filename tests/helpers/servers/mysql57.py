"""MySQL 5.7 from the installation in $MYSQL57_HOME."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from helpers.servers.initialized import InitializedServer

__all__ = ["MySQL57Server"]

_CACHE = Path(__file__).resolve().parents[3] / ".cache" / "mysql57"


class MySQL57Server(InitializedServer):
    """The user's MySQL 5.7 with a new data folder."""

    name = "mysql57"

    @classmethod
    def missing(cls) -> str | None:
        if not (_home() / "bin" / "mysqld").is_file():
            return "no MySQL 5.7: let MYSQL57_HOME name its installation"
        return None

    def templates(self) -> Path:
        home = str(_home().resolve()).encode()
        return _CACHE / hashlib.sha256(home).hexdigest()[:16]

    def command(self, folder: Path, datadir: Path) -> list[str]:
        home = _home()
        return [
            str(home / "bin" / "mysqld"),
            "--no-defaults",
            f"--basedir={home}",
            "--innodb-log-file-size=4M",
            "--performance-schema=OFF",
            "--explicit-defaults-for-timestamp=ON",
            "--character-set-server=utf8mb4",
            "--secure-file-priv=",
        ]


def _home() -> Path:
    return Path(os.environ.get("MYSQL57_HOME", "/nowhere"))
