"""Servers whose commits can be delayed between the binlog and the engine.

A delayed transaction is in the binlog, and SELECT does not show it yet. Servers with
semi-synchronous replication and AFTER_SYNC (MySQL from 5.7 on, MariaDB) delay a commit by waiting
for a replica that never connects. The MySQL 5.6 of the tests has no such plugin: there a library in
LD_PRELOAD makes the sync of the binlog file wait.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from helpers.servers import MySQL56Server, Server
from helpers.waiting import patience, wait_until

__all__ = ["Held", "HeldBySemiSync", "HeldBySync", "SlowSyncServer"]

_LONGEST = 120

# fsync and fdatasync of a binlog file wait while the file $HOLD_SYNC exists.
_LIBRARY = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for(int file) {
  char link[64], path[4096];
  const char *hold = getenv("HOLD_SYNC");
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (hold == NULL || length < 0) return;
  path[length] = 0;
  if (strstr(path, "/mysql-bin.0") == NULL) return;
  while (access(hold, F_OK) == 0) usleep(2000);
}

int fsync(int file) { wait_for(file); return syscall(SYS_fsync, file); }
int fdatasync(int file) { wait_for(file); return syscall(SYS_fdatasync, file); }
"""


class Held(ABC):
    """A server whose commits can be delayed.

    Attributes
    ----------
    server : the running server.
    """

    server: Server

    @abstractmethod
    def hold(self) -> None:
        """Delay commits after they are written to the binlog."""

    @abstractmethod
    def release(self) -> None:
        """Stop delaying commits, and complete those that wait."""

    @contextmanager
    def committing(self, statement: str) -> Iterator[None]:
        """Write a statement to the binlog, and delay its commit until the end of the block."""
        self.hold()
        before = self.server.position()
        writer = Thread(target=self.server.execute, args=(statement,), daemon=True)
        writer.start()
        try:
            wait_until(lambda: self.server.position() != before, "the log has it", 30)
            yield
        finally:
            self.release()
            writer.join(patience(30))


class HeldBySemiSync(Held):
    """A server whose commits wait in semi-synchronous replication.

    It is built into MariaDB and a plugin of MySQL. `on` uninstalls the plugin if it installed it.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._kind = _kind(server)
        self.release()

    @classmethod
    @contextmanager
    def on(cls, server: Server) -> Iterator[HeldBySemiSync]:
        kind = _kind(server)
        has_it = "mariadb" in server.version().lower() or server.execute(
            f"SELECT 1 FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'rpl_semi_sync_{kind}'"
        )
        if not has_it:
            server.execute(f"INSTALL PLUGIN rpl_semi_sync_{kind} SONAME 'semisync_{kind}.so'")
        try:
            yield cls(server)
        finally:
            server.execute(f"SET GLOBAL rpl_semi_sync_{kind}_enabled = 0")
            if not has_it:
                server.execute(f"UNINSTALL PLUGIN rpl_semi_sync_{kind}")

    def hold(self) -> None:
        replica = "replica" if self._kind == "source" else "slave"
        self.server.execute(
            f"SET GLOBAL rpl_semi_sync_{self._kind}_wait_point = 'AFTER_SYNC'",
            f"SET GLOBAL rpl_semi_sync_{self._kind}_wait_no_{replica} = 1",
            f"SET GLOBAL rpl_semi_sync_{self._kind}_timeout = {_LONGEST}000",
            f"SET GLOBAL rpl_semi_sync_{self._kind}_enabled = 1",
        )

    def release(self) -> None:
        self.server.execute(f"SET GLOBAL rpl_semi_sync_{self._kind}_enabled = 0")


def _kind(server: Server) -> str:
    """Return the server's role in the plugin's names: 9.x has only the newer word."""
    return "source" if server.version().startswith("9.") else "master"


class SlowSyncServer(MySQL56Server):
    """A MySQL 5.6 whose binlog syncs wait while a file exists."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.file = folder / "hold"
        source, self._library = folder / "hold.c", folder / "hold.so"
        source.write_text(_LIBRARY)
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler: apt-get install gcc libc6-dev")
        subprocess.run(
            [compiler, "-O", "-shared", "-fPIC", "-o", self._library, source], check=True
        )

    def environment(self) -> dict[str, str]:
        preload = [os.environ.get("LD_PRELOAD", ""), str(self._library)]
        return {
            **super().environment(),
            "LD_PRELOAD": ":".join(filter(None, preload)),
            "HOLD_SYNC": str(self.file),
        }


class HeldBySync(Held):
    """A `SlowSyncServer` whose commits wait in the sync of the binlog."""

    def __init__(self, server: SlowSyncServer) -> None:
        self.server = server
        self._file = server.file

    def hold(self) -> None:
        # With sync_binlog=1, the sync holds a lock that SHOW MASTER STATUS waits for. So the
        # binlog is synced at every second commit, and the next commit is such a one.
        self.server.execute(
            "SET GLOBAL sync_binlog = 1",
            "DROP DATABASE IF EXISTS of_nobody",
            "SET GLOBAL sync_binlog = 2",
            "DROP DATABASE IF EXISTS of_nobody",
        )
        self._file.touch()

    def release(self) -> None:
        self._file.unlink(missing_ok=True)
