"""`pyspark-mysqlbinlog ingest` as a process of its own, and what it tells in lines of JSON."""

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
    """The command ended, or did not come as far as it should; the message has its last words."""


class Ingest:
    """The command, which can be started again after its end.

    Parameters
    ----------
    arguments : of `pyspark-mysqlbinlog ingest`.
    log : a file for what it writes to stderr.
    tell : is called with each line of its output, from another thread.
    """

    def __init__(
        self, arguments: list[str], log: Path, tell: Callable[[Batch], None] = lambda _: None
    ) -> None:
        # The command of the Python that runs this, which need not be on the PATH.
        program = str(Path(sys.executable).with_name("pyspark-mysqlbinlog"))
        self._command = [program, "ingest", *arguments, "--json"]
        self._log = log
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        self._batches: list[Batch] = []

    def start(self) -> None:
        # Its workers would look for packages in the folder that this is started in, too, and a
        # checkout of this package has no compiled decoder.
        environment = os.environ | {"PYTHONSAFEPATH": "1"}
        with self._log.open("ab") as log:
            # With a process group of its own: its JVM and its workers are in it.
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
        """Wait until the batches that it has told of are enough; IngestError when it takes long."""
        deadline = time.monotonic() + _TIMEOUT
        while not (self._batches and reached(list(self._batches))):
            self.assert_running()
            if time.monotonic() > deadline:
                raise IngestError(f"{what}: not within {_TIMEOUT:.0f} s\n{self._last_words()}")
            time.sleep(0.05)

    def assert_running(self) -> None:
        """IngestError when it has ended by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise IngestError(f"it ended with {self._process.returncode}\n{self._last_words()}")

    def kill(self) -> None:
        """kill -9, and of all that belongs to it."""
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
        # What it may have left.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                # A killed process may leave half a line.
                with contextlib.suppress(json.JSONDecodeError):
                    batch = json.loads(line)
                    self._batches.append(batch)
                    self._tell(batch)

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-15:])
