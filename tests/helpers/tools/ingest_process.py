"""``pyspark-mysqlbinlog ingest`` as a process that can be killed with all of its children."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from helpers.servers import Server
from helpers.streams.sessions import session_members
from helpers.waiting import patience, wait_until

__all__ = ["COMMAND", "Ingest"]

COMMAND = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "ingest"]


class Ingest:
    """The command for one database's tables, with the target folder/lake.

    more : further arguments.

    Attributes
    ----------
    checkpoint : its folder.
    starts : number of starts.
    """

    def __init__(
        self, server: Server, database: str, folder: Path, more: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self.checkpoint = folder / "checkpoint"
        self.starts = 0
        self._reload: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        password = folder / "password"
        password.write_text(server.password, encoding="utf-8")
        self._command = [
            *COMMAND,
            *("--host", server.host, "--port", str(server.port), "--user", server.user),
            *("--password-file", str(password), "--tables", f"{database}.*"),
            *("--target", f"{folder}/lake/{{database}}/{{table}}"),
            *("--checkpoint", str(self.checkpoint)),
            # Up to four attempts per task: the task of a killed worker runs again.
            *("--conf", "spark.master=local[2,4]"),
            *more,
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def reload(self, name: str, tables: str) -> None:
        """Reload tables from the next start on, with a new name of the request."""
        self._reload = ["--option", f"reload={name}: {tables}"]

    def start(self) -> None:
        """Start the command, to run until it is killed, unless it already runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._process = self._popen([*self._command, *self._reload])

    def once(self) -> None:
        """Run until all current changes are in Delta; AssertionError if the command fails."""
        process = self._process = self._popen([*self._command, *self._reload, "--available-now"])
        assert process.wait(patience(1200)) == 0, self.log()
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the command and to every process that it started."""
        if self._process is not None:
            # Spark's Python workers have their own process groups, but share the session.
            for pid in session_members(self._process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def kill_worker(self) -> None:
        """Send SIGKILL to one of Spark's Python processes: of its tasks, or the stream reader."""
        assert self._process is not None
        workers = [pid for pid in session_members(self._process.pid) if _is_worker(pid)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)

    def wait_for_batch(self) -> None:
        """Wait until one more batch is committed; start the command again if it has ended."""
        before = self._committed()

        def is_there() -> bool:
            self.start()
            return self._committed() > before

        self._wait(is_there, "a batch is committed")

    def log(self) -> str:
        """Return the end of the command's output."""
        return (self._folder / "log").read_text(errors="replace")[-5000:]

    def _wait(self, what: Callable[[], bool], words: str) -> None:
        wait_until(what, lambda: f"{words}:\n{self.log()}", 300)

    def _committed(self) -> int:
        commits = [path.name for path in (self.checkpoint / "commits").glob("[0-9]*")]
        return max(map(int, commits), default=-1)

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        self.starts += 1
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"pyspark.daemon" in command or b"python_streaming_source_runner" in command
    except OSError:
        return False
