"""Control of `stream_driver`: start, stop and kill it, and read its checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from helpers.servers import Server
from helpers.streams.sessions import session_members
from helpers.waiting import patience, wait_until

__all__ = ["StreamProcess", "options_of", "wait_for_dumps_to_end"]

_DRIVER = Path(__file__).with_name("stream_driver.py")


def options_of(server: Server, **options: Any) -> dict[str, str]:
    """Return the data source's options for a server."""
    # The server ends the dump of a killed driver at its next write, such as a heartbeat.
    return server.options(**({"payload": "json", "heartbeatInterval": "1s"} | options))


def wait_for_dumps_to_end(server: Server, but: list[int]) -> None:
    """Wait until all dumps `but` these have ended: the server notices at its next write to them."""
    wait_until(lambda: set(server.dump_threads()) <= set(but), "the server ends its dumps", 30)


class StreamProcess:
    """One query with one checkpoint and one output folder, run by any number of processes."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        self.checkpoint = folder / "checkpoint"
        self.output = folder / "output"
        self.output.mkdir(parents=True)
        self._settings = folder / "settings.json"
        self._settings.write_text(
            json.dumps(
                {
                    "options": options,
                    "checkpoint": str(self.checkpoint),
                    "folder": str(self.output),
                }
            )
        )
        self._log = folder / "driver.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    # --- start, stop and kill

    def start(self) -> None:
        """Start a driver, which resumes from the checkpoint if there is one."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_DRIVER), str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # In its own session, Python, the JVM and Python's workers can be killed at once.
                # If the workers are forks (see `forked_python`), they end a moment later.
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ask the driver to stop its query, and wait until it has ended without an error."""
        assert self._process is not None
        flag = self.output / "stop"
        flag.touch()
        code = self._process.wait(patience(180))
        self._process = None
        flag.unlink()
        assert code == 0, self.log()

    def kill(self) -> None:
        """Send SIGKILL to the driver and to every process that it started."""
        assert self._process is not None
        session = self._process.pid
        for pid in session_members(session):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def wait_until(
        self,
        ready: Callable[[], bool],
        what: str,
        timeout: float = 180.0,
        *,
        every: float = 0.02,
    ) -> None:
        """Wait as `waiting.wait_until` does; fail at once if the driver has ended."""

        def ready_or_dead() -> bool:
            if ready():
                return True
            assert self._process is not None
            assert self._process.poll() is None, f"the driver ended: {self.log()}"
            return False

        try:
            wait_until(ready_or_dead, what, timeout, every=every)
        except AssertionError as error:
            stacks = self._stacks()
            raise AssertionError(f"{error}; {self.progress()}\n{self.log()}\n{stacks}") from None

    # --- state of the query

    def hold(self, where: str) -> Path:
        """Let the driver wait at this point when it next reaches it.

        ``before-initial``, ``before-latest`` and ``before-partitions`` are calls of the source;
        ``before-sink`` and ``after-sink`` are in the next batch. Return the path of a file that
        exists when the driver waits; at the sink it contains the batch's number.
        """
        reached = self.output / f"hold-{where}-reached"
        # Before there is a gate: the driver may reach it at once.
        reached.unlink(missing_ok=True)
        (self.output / f"hold-{where}").touch()
        return reached

    def let_go(self, where: str = "") -> None:
        """Let the driver continue, wherever it is held."""
        for gate in self.output.glob(f"hold-{where}*"):
            gate.unlink()

    def offsets(self) -> list[int]:
        """Return the numbers of the batches whose end is durable."""
        return _numbers(self.checkpoint / "offsets")

    def commits(self) -> list[int]:
        """Return the numbers of the batches that are committed."""
        return _numbers(self.checkpoint / "commits")

    def offset(self, batch: int) -> tuple[str, int]:
        """Return (file, pos) where a batch ends."""
        lines = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()
        offset = json.loads(lines[2])
        return str(offset["file"]), int(offset["pos"])

    def reached(self, position: tuple[str, int]) -> bool:
        """Return whether everything before a position of the server is committed."""
        commits = self.commits()
        return bool(commits) and self.offset(commits[-1]) >= position

    def batches(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the number and the rows of every committed batch, in order."""
        for number in self.commits():
            path = self.output / f"batch-{number:06}.jsonl"
            yield number, [json.loads(line) for line in path.read_text().splitlines()]

    def progress(self) -> str:
        return f"offsets up to {self.offsets()[-1:]}, commits up to {self.commits()[-1:]}"

    def _stacks(self) -> str:
        """Return what the threads of a driver that stands still do, in the JVM and in Python."""
        if self._process is None:
            return ""
        before = self._log.stat().st_size
        for pid in session_members(self._process.pid):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == "java\n":
                    os.kill(pid, signal.SIGQUIT)
        time.sleep(2)
        threads = self._log.read_bytes()[before:].decode(errors="replace").split("\n\n")
        names = ("stream execution thread", "Executor task")
        shown = [thread for thread in threads if any(name in thread for name in names)]
        dumped = [path.read_text() for path in sorted(self.output.glob("stacks-*"))]
        return "\n\n".join([*shown, *filter(None, dumped)])

    def log(self) -> str:
        """Return the end of the drivers' output, without Spark's long description of the query."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return text.partition("=== Streaming Query ===")[0][-3000:]


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
