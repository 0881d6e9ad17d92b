"""Python processes for Spark that start in milliseconds: forks of a process with many imports.

Spark starts a Python process for every streaming source and every plan. Each imports PySpark from a
zip file without compiled modules, which takes 2 to 4 seconds of CPU. A source's process that does
not call back within ten seconds, a constant in Spark, fails its query: on a busy machine, this
fails tests without a fault in the code.

`quick_workers` starts a server that has imported third-party libraries, and yields the path of a
program for Spark's PYSPARK_PYTHON. That program sends its arguments, environment, folder, stdin,
stdout and stderr to the server over a socket. The server forks, and the fork then runs as that
Python would. The program ends with its fork's exit status, and a fork ends with its program::

    JVM -> program (no imports) -> socket -> server -> fork: runs -m pyspark.…

A second server has also imported the package under test. It is used if Python would import the same
package: with the paths of the test run, and not from its working directory.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

__all__ = ["REAL_PYTHON", "quick_workers"]

# Environment for tests that measure or kill the processes that Spark starts.
REAL_PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}

# Third-party modules that the processes of Spark and of the source import. Modules that an older
# PySpark does not have are skipped.
PRELOADED = (
    "encodings.idna",
    "importlib.metadata",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "pydantic",
    "pydantic._internal._generate_schema",
    "pydantic.fields",
    "pydantic.functional_validators",
    "pydantic.json_schema",
    "pydantic.main",
    "pydantic.types",
    "pymysql",
    "pymysql.cursors",
    "pyspark.daemon",
    "pyspark.sql.connect.client",
    "pyspark.sql.connect.session",
    "pyspark.sql.datasource",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "tenacity",
)

# Modules of the package, and a module that the package imports late.
PACKAGE = (
    "pyspark_mysqlbinlog.connector.ranges.reader",
    "pyspark_mysqlbinlog.connector.ranges.typed_reader",
    "pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader",
    "pyspark_mysqlbinlog.connector.source.batch_reader",
    "pyspark_mysqlbinlog.connector.source.datasource",
    "pyspark_mysqlbinlog.connector.source.stream_reader",
    "sqlglot.dialects.mysql",
)
# Python 3.12 and later warn about a fork of a process with threads. The only thread is that of
# pyarrow's allocator, which supports forks.
_FORKING = "ignore:This process:DeprecationWarning"
# Spark's archives are on the path of its processes. Their modules are already imported, and reading
# the archives takes longer than all other work of a source's process.
_ARCHIVES = (".zip", ".jar")

# With -I and -S, Python imports only the modules that the program names.
_PROGRAM = """#!{python} -IS
import array, json, os, socket, sys

given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
# Spark names each of them twice.
paths = list(dict.fromkeys(path for path in given if path and not path.endswith({archives!r})))
is_same = paths == {paths!r} and os.environ.get("PYTHONSAFEPATH")
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r} + (".package" if is_same else ""))
    request = {{
        "argv": sys.argv[1:], "env": dict(os.environ), "folder": os.getcwd(), "paths": paths
    }}
    data = json.dumps(request).encode()
    fds = array.array("i", [0, 1, 2])
    server.sendmsg(
        [len(data).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
    )
    server.sendall(data)
    # A process that waits for the end of these streams then waits for the fork's.
    for fd in (0, 1, 2):
        os.close(fd)
    status = server.recv(1)
os._exit(status[0] if status else 1)
"""


@contextlib.contextmanager
def quick_workers() -> Iterator[str]:
    """Run a server of forks, which Spark uses as Python, and let JVMs start quickly.

    Yield the path of the program. Environments that are copied from this one inherit it.
    """
    # Imported here: the server of forks runs this file as a program, and must not import PySpark
    # through that module.
    from helpers.streams.quick_java import java_environment

    java = java_environment()
    before = {name: os.environ.get(name) for name in (*REAL_PYTHON, *java)}
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        address = f"{folder}/socket"
        program = Path(folder) / "python"
        paths = [*dict.fromkeys(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))]
        values = {"python": sys.executable, "address": address, "paths": paths}
        program.write_text(_PROGRAM.format(**values, archives=_ARCHIVES))
        program.chmod(0o700)
        # The hash seed is Spark's for its workers; a library that starts threads can't be forked.
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        with subprocess.Popen(
            [sys.executable, "-P", "-W", _FORKING, __file__, address, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        ) as server:
            assert server.stdout is not None
            for _ in range(2):
                ready = server.stdout.readline()
                assert ready == b"ready\n", "a server of Python processes has ended at its start"
            os.environ.update({**dict.fromkeys(REAL_PYTHON, str(program)), **java})
            try:
                yield str(program)
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value
                # The server ends its forks and itself when its stdin is closed.


class _ForkRequest(TypedDict):
    """A program's request: the arguments and environment of a Python process."""

    argv: list[str]
    env: dict[str, str]
    folder: str
    # PYTHONPATH without archives.
    paths: list[str]


class _Server:
    """A server that forks on request, and sends each program the exit status of its fork."""

    def __init__(self, address: str) -> None:
        self._programs: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(100)
        # A signal writes a byte to this pipe, which ends the wait.
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        for fd in (sys.stdin.fileno(), self._woken, self._listener.fileno()):
            self._selector.register(fd, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fd == sys.stdin.fileno():
                    self._end_all()
                    return
                if key.fd == self._woken:
                    os.read(self._woken, 100)
                elif key.fd == self._listener.fileno():
                    self._fork()
                else:
                    self._end(key.data)
            self._reap()

    def _fork(self) -> None:
        program, _ = self._listener.accept()
        request, fds = _receive(program)
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            self._listener.close()
            for other in self._programs.values():
                other.close()
            program.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(self._woken)
            os.close(self._waker)
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            _become(request)
        for fd in fds:
            os.close(fd)
        self._programs[pid] = program
        self._selector.register(program, selectors.EVENT_READ, pid)

    def _end(self, pid: int) -> None:
        """End the fork of a program that was killed."""
        if pid in self._programs:
            self._forget(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._programs:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    # As a shell reports a signal: 128 plus its number.
                    self._programs[pid].send(bytes([code if code >= 0 else 128 - code]))
                self._forget(pid)

    def _forget(self, pid: int) -> None:
        program = self._programs.pop(pid)
        self._selector.unregister(program)
        program.close()

    def _end_all(self) -> None:
        for pid in self._programs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _receive(program: socket.socket) -> tuple[_ForkRequest, list[int]]:
    fds = array.array("i")
    size, controls, _, _ = program.recvmsg(4, socket.CMSG_SPACE(3 * fds.itemsize))
    for _, _, data in controls:
        fds.frombytes(data)
    left = int.from_bytes(size, "big")
    parts: list[bytes] = []
    while left:
        part = program.recv(min(left, 1 << 16))
        assert part, "the program was killed during its request"
        parts.append(part)
        left -= len(part)
    request: _ForkRequest = json.loads(b"".join(parts))
    return request, list(fds)


def _become(request: _ForkRequest) -> None:
    """Run the requested module or program, and end the process as Python would."""
    argv, environment, folder = request["argv"], request["env"], request["folder"]
    code = 1
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        own_paths = request["paths"]
        sys.path[:0] = own_paths if environment.get("PYTHONSAFEPATH") else [folder, *own_paths]
        importlib.invalidate_caches()
        # The module runs as a new __main__; it may have been imported before the fork.
        while argv[0] in ("-u", "-B"):
            argv = argv[1:]
        if argv[0] == "-m":
            sys.argv = argv[1:]
            sys.modules.pop(argv[1], None)
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        elif argv[0] == "-c":
            sys.argv = ["-c", *argv[2:]]
            exec(compile(argv[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:  # noqa: BLE001 (as in Python: the error is printed, the code is 1)
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def _import(*modules: str) -> None:
    for module in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def main(address: str, *paths: str) -> None:
    _import(*PRELOADED)
    # Pydantic searches all installed packages for plugins when the first model is created.
    with contextlib.suppress(ImportError):
        importlib.import_module("pydantic").create_model("Preloaded")
    if os.fork() == 0:
        address += ".package"
        sys.path[:0] = paths
        _import(*PACKAGE)
    # A worker collects garbage after each task; frozen objects are not scanned then.
    gc.collect()
    gc.freeze()
    served = _Server(address)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    served.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
