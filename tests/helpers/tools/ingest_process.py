"""``pyspark-mysqlbinlog ingest`` as a process of its own that can be killed with all it started."""

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
from helpers.waiting import patience, wait_until

__all__ = ["COMMAND", "Ingest"]

COMMAND = [sys.executable, "-P", "-m", "pyspark_mysqlbinlog.connector.cli.main", "ingest"]


class Ingest:
    """The command for one database's tables, into folder/lake.

    more : arguments.

    Attributes
    ----------
    checkpoint : its folder.
    starts : how often it was started.
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
            # A killed worker's task is run again.
            *("--conf", "spark.master=local[2,4]"),
            *more,
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def reload(self, name: str, tables: str) -> None:
        """From the next start on, load tables again, under a name that is new."""
        self._reload = ["--option", f"reload={name}: {tables}"]

    def start(self) -> None:
        """Run until it is killed; nothing where it runs already."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._process = self._popen([*self._command, *self._reload])

    def once(self) -> None:
        """Run until all that is there is in Delta; AssertionError where it fails."""
        process = self._process = self._popen([*self._command, *self._reload, "--available-now"])
        assert process.wait(patience(1200)) == 0, self.log()
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the command and to every process that it started."""
        if self._process is not None:
            # Spark's Python workers have groups of their own; the session is theirs, too.
            for pid in _session_members(self._process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def kill_worker(self) -> None:
        """SIGKILL to one of Spark's Python processes: of its tasks, or the stream's reader."""
        assert self._process is not None
        workers = [pid for pid in _session_members(self._process.pid) if _is_worker(pid)]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(workers), signal.SIGKILL)

    def wait_for_batch(self) -> None:
        """Until one more batch is committed than now; started again where it has ended."""
        before = self._committed()

        def is_there() -> bool:
            self.start()
            return self._committed() > before

        self._wait(is_there, "a batch is committed")

    def log(self) -> str:
        """The end of what it wrote."""
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


def _session_members(session: int) -> list[int]:
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            members.append(int(stat.parent.name))
    return members
