"""MariaDB from Debian's package mariadb-server-core: only the server, no client tools.

Two versions: the system's own (10.11 on Debian 12), and 11.8 unpacked (see helpers/unpacked).

The package's installer needs the client packages, so the data folder is created as the installer
does it: the server in bootstrap mode reads the SQL of the system tables from the package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from helpers.servers.base import LocalServer, ServerStartError
from helpers.unpacked import MARIADB

__all__ = ["MariaDB11Server", "MariaDBServer"]

# /usr/share/mysql up to Debian 12, /usr/share/mariadb in later packages.
SHARE_FOLDERS = ("/usr/share/mysql", "/usr/share/mariadb")
PERFORMANCE_TABLES = ("mysql_performance_tables.sql", "mariadb_performance_tables.sql")
SYSTEM_TABLES = ("mysql_system_tables.sql", "mariadb_system_tables.sql")
SYSTEM_DATA = ("mysql_system_tables_data.sql", "mariadb_system_tables_data.sql")

# The installer's own preamble: root without a password, no anonymous account.
PREAMBLE = (
    "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n"
)


def _program() -> str | None:
    return shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/libexec")


def _share() -> Path | None:
    for folder in map(Path, SHARE_FOLDERS):
        if any((folder / name).is_file() for name in SYSTEM_TABLES):
            return folder
    return None


class MariaDBServer(LocalServer):
    """Debian's MariaDB: rows events v1, MariaDB's own events, TLS if options give certificates."""

    name = "mariadb"
    is_mariadb = True

    @classmethod
    def missing(cls) -> str | None:
        if _program() is None or _share() is None:
            return "MariaDB is not installed: run `apt-get install mariadb-server-core`"
        return None

    def _tools(self) -> tuple[list[str], Path]:
        """Return the program, after a loader if needed, and its folder of messages and SQL."""
        program, share = _program(), _share()
        if program is None or share is None:
            raise FileNotFoundError(self.missing())
        return [program], share

    def create_datadir(self, datadir: Path) -> None:
        _, share = self._tools()
        datadir.mkdir()
        sql = [PREAMBLE]
        for names in (SYSTEM_TABLES, PERFORMANCE_TABLES, SYSTEM_DATA):
            found = [share / name for name in names if (share / name).is_file()]
            if not found:
                raise ServerStartError(f"MariaDB's {names[0]} was expected in {share}")
            sql.append(found[0].read_text())
        user = ["--user=root"] if os.geteuid() == 0 else []
        done = subprocess.run(
            [*self.command(datadir.parent, datadir), "--bootstrap", f"--datadir={datadir}", *user],
            input="\n".join(sql).encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise ServerStartError(f"MariaDB's bootstrap failed: {done.stderr.decode()[-2000:]}")

    def command(self, folder: Path, datadir: Path) -> list[str]:
        program, share = self._tools()
        return [
            *program,
            "--no-defaults",
            f"--lc-messages-dir={share}",
            f"--tmpdir={folder / 'tmp'}",
            "--innodb-log-file-size=8M",
            "--character-set-server=utf8mb4",
            # TLS only with certificates from the options; 11.4 and later would create their own.
            "--loose-skip-ssl" if not self._has_tls() else "--ssl",
        ]

    def _has_tls(self) -> bool:
        return any(argument.startswith("--ssl-cert=") for argument in self.arguments)


class MariaDB11Server(MariaDBServer):
    """MariaDB 11.8 with its own defaults: events inside a transaction have no end position."""

    name = "mariadb11"

    @classmethod
    def missing(cls) -> str | None:
        return MARIADB.missing()

    def _tools(self) -> tuple[list[str], Path]:
        return MARIADB.command(), MARIADB.root / "usr" / "share" / "mariadb"
