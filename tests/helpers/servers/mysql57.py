"""MySQL 5.7 from the installation in $MYSQL57_HOME, for tests that restart their server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from helpers.servers.base import LocalServer

__all__ = ["MySQL57Server"]


class MySQL57Server(LocalServer):
    """The user's MySQL 5.7 with a new data folder."""

    name = "mysql57"

    @classmethod
    def missing(cls) -> str | None:
        if not (_home() / "bin" / "mysqld").is_file():
            return "no MySQL 5.7: let MYSQL57_HOME name its installation"
        return None

    def create_datadir(self, datadir: Path) -> None:
        # The account root@localhost does not match 127.0.0.1 without name resolution.
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
