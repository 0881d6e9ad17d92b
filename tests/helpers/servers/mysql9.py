"""MySQL 9.x, unpacked from Debian's packages (see helpers/unpacked)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from helpers.servers.base import LocalServer
from helpers.unpacked import MYSQL

__all__ = ["MySQL9Server"]


class MySQL9Server(LocalServer):
    """MySQL 9.x with its own defaults: GTIDs on, caching_sha2_password, row metadata MINIMAL."""

    name = "mysql9"

    @classmethod
    def missing(cls) -> str | None:
        return MYSQL.missing()

    def create_datadir(self, datadir: Path) -> None:
        shutil.copytree(self._template(), datadir)
        # Without this file the server generates a UUID; with it all servers would have the same.
        (datadir / "auto.cnf").unlink(missing_ok=True)

    def _template(self) -> Path:
        """Return the folder of initialized data for servers to copy; the first call creates it."""
        # The data dictionary keeps this setting permanently.
        folded = [each for each in self.arguments if each.startswith("--lower-case-table-names")]
        template = MYSQL.home / f"data{folded[-1].partition('=')[2] if folded else ''}"
        if template.is_dir():
            return template
        # If several processes create it at the same time, the first one's is used.
        made = template.with_name(f"data.{os.getpid()}")
        shutil.rmtree(made, ignore_errors=True)
        # The account root@localhost does not match 127.0.0.1 without name resolution.
        init = made.with_name(f"{made.name}.sql")
        init.write_text(
            "CREATE USER 'root'@'127.0.0.1';\n"
            "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        user = ["--user=root"] if os.geteuid() == 0 else []
        subprocess.run(
            [
                *self.command(made.parent, made),
                *folded,
                f"--datadir={made}",
                "--initialize-insecure",
                f"--init-file={init}",
                f"--log-error={made}.log",
                *user,
            ],
            check=True,
            timeout=300,
        )
        try:
            made.rename(template)
        except OSError:
            shutil.rmtree(made)
        return template

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
