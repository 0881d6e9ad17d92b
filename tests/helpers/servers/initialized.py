"""MySQL from 5.7 on, whose server creates its data folder itself (`--initialize-insecure`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import abstractmethod
from pathlib import Path

from helpers.servers.base import LocalServer

__all__ = ["InitializedServer"]


class InitializedServer(LocalServer):
    """A server whose data folder is a copy of one that was initialized once.

    Initializing takes seconds, and copying takes half a second.
    """

    @abstractmethod
    def templates(self) -> Path:
        """Return the folder that has the initialized data folders, for this installation alone."""

    def create_datadir(self, datadir: Path) -> None:
        shutil.copytree(self._template(), datadir)
        # Without this file the server generates a UUID; with it all servers would have the same.
        (datadir / "auto.cnf").unlink(missing_ok=True)

    def _template(self) -> Path:
        """Return the folder of initialized data for servers to copy; the first call creates it."""
        # The data dictionary keeps this setting permanently.
        folded = [each for each in self.arguments if each.startswith("--lower-case-table-names")]
        template = self.templates() / f"data{folded[-1].partition('=')[2] if folded else ''}"
        if template.is_dir():
            return template
        # If several processes create it at the same time, the first one's is used.
        made = template.with_name(f"data.{os.getpid()}")
        shutil.rmtree(made, ignore_errors=True)
        made.parent.mkdir(parents=True, exist_ok=True)
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
