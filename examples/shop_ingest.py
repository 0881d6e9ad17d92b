"""`pyspark-mysqlbinlog ingest` as a separate process, whose JSON output is read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

__all__ = ["Ingest", "IngestError"]

_TIMEOUT = 300.0

Batch = dict[str, Any]


class IngestError(Exception):
    """The command ended, or did not reach a state in time; the message ends with its output."""


class Ingest:
    """The command, which can be started again after its end.

    Parameters
    ----------
    arguments : of `pyspark-mysqlbinlog ingest`.
    log : file for its stderr.
    tell : called with each line of its output, in another thread.
    """

    def __init__(
        self, arguments: list[str], log: Path, tell: Callable[[Batch], None] = lambda _: None
    ) -> None:
        # The command of this Python environment, which is not necessarily on the PATH.
        program = str(Path(sys.executable).with_name("pyspark-mysqlbinlog"))
        self._command = [program, "ingest", *arguments, "--json"]
        self._log = log
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        self._batches: list[Batch] = []

    def start(self) -> None:
        # Without it, the workers would also import packages from the current folder, and a checkout
        # of this package has no compiled decoder.
        environment = os.environ | {"PYTHONSAFEPATH": "1"}
        with self._log.open("ab") as log:
            # In a process group of its own, which includes its JVM and its workers.
            self._process = subprocess.Popen(
                self._command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        Thread(target=self._listen, args=[self._process], daemon=True).start()

    def wait_for(self, reached: Callable[[list[Batch]], bool], what: str) -> None:
        """Wait until its batches satisfy a condition; raise IngestError after the timeout."""
        deadline = time.monotonic() + _TIMEOUT
        while not (self._batches and reached(list(self._batches))):
            self.assert_running()
            if time.monotonic() > deadline:
                raise IngestError(f"{what}: not within {_TIMEOUT:.0f} s\n{self._last_words()}")
            time.sleep(0.05)

    def assert_running(self) -> None:
        """Raise IngestError if the command has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise IngestError(f"it ended with {self._process.returncode}\n{self._last_words()}")

    def kill(self) -> None:
        """Kill the command and its child processes with kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as Ctrl-C does; a second call does nothing."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, how)
            process.wait(30)
        # Child processes that are left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                # The last line of a killed process may be incomplete.
                with contextlib.suppress(json.JSONDecodeError):
                    batch = json.loads(line)
                    self._batches.append(batch)
                    self._tell(batch)

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-15:])
