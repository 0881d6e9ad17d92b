"""Servers whose commits can be held between the log and the engine.

There a transaction is in the log, and SELECT does not show it. Semi-synchronous replication does it
where it is there (AFTER_SYNC: 5.7, MariaDB): a commit waits for a replica that never comes. The 5.6
of the tests has no plugin: there the sync of the log's file waits, by a library that is loaded in
front of the system's.
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

# fsync and fdatasync of a binlog file wait while the file of $HOLD_SYNC is there.
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
    """A server, and how its commits are held.

    Attributes
    ----------
    server : that runs.
    """

    server: Server

    @abstractmethod
    def hold(self) -> None:
        """From now on commits stay behind the log."""

    @abstractmethod
    def release(self) -> None:
        """Let them go on, those that wait as well."""

    @contextmanager
    def committing(self, statement: str) -> Iterator[None]:
        """A statement that is in the log, and whose commit is held until `release`."""
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
    """MariaDB's own, or MySQL's plugin; the server is left without it."""

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
    """How the plugin calls the server: 9.x has only the newer word."""
    return "source" if server.version().startswith("9.") else "master"


class SlowSyncServer(MySQL56Server):
    """A 5.6 whose syncs of the log wait while a file is there."""

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
    """A server that was started with the library."""

    def __init__(self, server: SlowSyncServer) -> None:
        self.server = server
        self._file = server.file

    def hold(self) -> None:
        # With 1 it would be synced under a lock that SHOW MASTER STATUS waits for. So the log is
        # synced with every second commit, and the next one is such.
        self.server.execute(
            "SET GLOBAL sync_binlog = 1",
            "DROP DATABASE IF EXISTS of_nobody",
            "SET GLOBAL sync_binlog = 2",
            "DROP DATABASE IF EXISTS of_nobody",
        )
        self._file.touch()

    def release(self) -> None:
        self._file.unlink(missing_ok=True)
