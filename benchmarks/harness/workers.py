"""Child processes that run what is measured, and stay warm between measurements.

A command is one line of words, separated by tabs, on the child's standard input; the answer is one
line on its standard output, the word `answer` and a JSON object. Other lines come from
libraries and are skipped. `Worker` is the parent's side, `answer_commands` a Python child's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

__all__ = ["Worker", "WorkerError", "answer_commands", "python_worker"]

_ANSWER = "answer "
_PACKAGE = Path(__file__).resolve().parents[1]
_LINKS = _PACKAGE.parent / ".cache" / "bench" / "path"


class WorkerError(RuntimeError):
    """A child could not execute its command."""


class Worker:
    """A child process; started with the first command.

    Parameters
    ----------
    command : the program and its arguments.
    log : a file for its standard error.
    environment : variables that are added to those of this process.
    """

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._log = log
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._started().pid

    def ask(self, *words: object) -> dict[str, Any]:
        """What the child answers; WorkerError when it can't, or has ended."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        line = "\t".join(map(str, words))
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = next(
                (line for line in process.stdout if line.startswith(_ANSWER)),
                None,
            )
        except BrokenPipeError:
            answer = None
        if answer is None:
            raise WorkerError(f"{self._name} ended with {process.wait()} at {line!r}: {self._tail}")
        found: dict[str, Any] = json.loads(answer.removeprefix(_ANSWER))
        if "error" in found:
            raise WorkerError(f"{self._name}: {line!r}: {found['error']}")
        return found

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        # The end of its input is the end of its work.
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env={**os.environ, **self._environment},
                )
        return self._process

    @property
    def _name(self) -> str:
        return Path(self._command[-1]).name

    @property
    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def python_worker(module: str, log: Path, **environment: str) -> Worker:
    """A child that runs a module of this package."""
    return Worker(
        [sys.executable, "-m", f"benchmarks.{module}"], log, {**_module_path(), **environment}
    )


def _module_path() -> dict[str, str]:
    """Variables with which a child, and Spark's workers below it, find this package.

    It is the only one in its folder. In the checkout they would find the package under test, too,
    which has no compiled kernel there.
    """
    _LINKS.mkdir(parents=True, exist_ok=True)
    link = _LINKS / _PACKAGE.name
    if not link.exists():
        link.symlink_to(_PACKAGE, target_is_directory=True)
    given = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(_LINKS), given])),
        "PYTHONSAFEPATH": "1",
    }


def answer_commands(commands: Mapping[str, Callable[..., dict[str, Any]]]) -> None:
    """Do what standard input says until it ends: the first word names a function."""
    # Whatever a library prints goes elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        try:
            found = commands[name](*words)
        except Exception as error:  # noqa: BLE001 (the parent raises it again)
            traceback.print_exc()
            found = {"error": f"{type(error).__name__}: {error}"}
        answers.write(_ANSWER + json.dumps(found) + "\n")
        answers.flush()
