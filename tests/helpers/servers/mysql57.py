"""MySQL 5.7, from an installation that $MYSQL57_HOME names: for tests that restart their server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from helpers.servers.base import LocalServer

__all__ = ["MySQL57Server"]


class MySQL57Server(LocalServer):
    """MySQL 5.7 of the user's own, with data of the test's own."""

    name = "mysql57"

    @classmethod
    def missing(cls) -> str | None:
        if not (_home() / "bin" / "mysqld").is_file():
            return "no MySQL 5.7: let MYSQL57_HOME name its installation"
        return None

    def create_datadir(self, datadir: Path) -> None:
        # Its root is of localhost, which is no address.
        init = datadir.parent / "init.sql"
        init.write_text(
            "CREATE USER 'root'@'127.0.0.1';\n"
            "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        subprocess.run(
            [
                *self.command(datadir.parent, datadir),
                f"--datadir={datadir}",
                "--user=root",
                "--initialize-insecure",
                f"--init-file={init}",
                f"--log-error={datadir.parent / 'initialize.log'}",
            ],
            check=True,
            timeout=300,
        )

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
