"""The interface of all test servers, and the base of servers that run as a child process.

A local server owns one temporary folder (data, socket, error log) and one child process. It is
ready when it answers a query, not when its port is open. It is stopped by its own process object,
never by name.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from helpers.memory_folder import folder_in_memory
from helpers.waiting import patience
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings

__all__ = [
    "LocalServer",
    "Server",
    "ServerStartError",
    "port_of",
    "reserve_port",
    "wait_until_ready",
]

START_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0
_NO_SUCH_THREAD = 1094


class ServerStartError(RuntimeError):
    """A server did not start; the message ends with the server's last output."""


def reserve_port() -> socket.socket:
    """Return a socket that keeps a loopback port until it is closed, without listening.

    A server can listen on it, now or again later. No other process gets the port
    meanwhile: neither by binding to port 0, nor by connecting to another address.
    """
    keeper = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the server that listens has to have it, too.
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    return keeper


def port_of(keeper: socket.socket) -> int:
    port: int = keeper.getsockname()[1]
    return port


class Server:
    """A server under test, with an account that has all privileges.

    Attributes
    ----------
    name : for messages and parametrised test ids.
    datadir : None if the server's files are not accessible.
    """

    name: ClassVar[str] = "server"
    is_mariadb: ClassVar[bool] = False

    host: str = "127.0.0.1"
    port: int = 0
    user: str = "root"
    password: str = ""
    datadir: Path | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Return why this kind of server can't run here and what installs it; None if it can."""
        return None

    def start(self) -> Self:
        return self

    def stop(self) -> None:
        """Stop the server and remove its files; a second call does nothing."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self, **settings: Any) -> Connection[Cursor]:
        """Return a new pymysql connection as the administrator, by default in autocommit.

        `settings` are pymysql.connect's keywords and override the defaults.
        """
        defaults = {"charset": "utf8mb4", "autocommit": True, "connect_timeout": 10}
        return pymysql.connect(**(self._administrator() | defaults | settings))

    def settings(self, **more: Any) -> ServerSettings:
        """Return the settings of `ReplicaClient` for the administrator; `more` overrides them."""
        return ServerSettings(**(self._administrator() | more))

    def options(self, **more: Any) -> dict[str, str]:
        """Return the data source's options for this server as texts; `more` overrides them."""
        return {name: str(value) for name, value in (self._administrator() | more).items()}

    def _administrator(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
        }

    def execute(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements in order on one new connection; return the rows of the last one."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def version(self) -> str:
        return str(self.execute("SELECT VERSION()")[0][0])

    def is_mysql9(self) -> bool:
        """Return whether this is MySQL 9, for features that only MySQL 9 has or lacks."""
        return not self.is_mariadb and self.version().startswith("9.")

    def rotate(self) -> None:
        """Close the current binlog file and begin the next."""
        self.execute("FLUSH BINARY LOGS")

    def reset_binlog(self) -> None:
        """Remove all binlog files, and begin the first one again."""
        self.execute("RESET BINARY LOGS AND GTIDS" if self.is_mysql9() else "RESET MASTER")

    def binlog_files(self) -> list[tuple[str, int]]:
        """Return (file name, size in bytes) of each file, in the order of the index."""
        return [(str(row[0]), int(row[1])) for row in self.execute("SHOW BINARY LOGS")]

    def position(self) -> tuple[str, int]:
        """Return (file, byte offset) where the next event will be written."""
        try:
            row = self.execute("SHOW MASTER STATUS")[0]
        except pymysql.err.ProgrammingError:
            row = self.execute("SHOW BINARY LOG STATUS")[0]  # 8.4 and later
        return str(row[0]), int(row[1])

    def kill_dumps(self) -> list[int]:
        """Kill the connections of all replicas; return the IDs of those that had not ended."""
        killed = []
        with self.connect() as connection, connection.cursor() as cursor:
            for thread in self.dump_threads():
                try:
                    cursor.execute(f"KILL {thread}")
                except pymysql.err.MySQLError as error:
                    if error.args[0] != _NO_SUCH_THREAD:
                        raise
                else:
                    killed.append(thread)
        return killed

    def dump_threads(self) -> list[int]:
        """Return the connection IDs of the replicas to which the server sends its binlog."""
        rows = self.execute("SHOW PROCESSLIST")
        return [int(row[0]) for row in rows if str(row[4]).startswith("Binlog Dump")]


def wait_until_ready(server: Server, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until the server answers a query; ServerStartError if it ends or is too slow."""
    began = time.monotonic()
    while True:
        if process is not None and process.poll() is not None:
            raise ServerStartError(f"{server.name} ended at once with {process.returncode}")
        try:
            server.execute("SELECT 1")
            return
        except pymysql.err.MySQLError as error:
            waited = time.monotonic() - began
            if waited > patience(START_TIMEOUT):
                raise ServerStartError(
                    f"{server.name} did not answer on {server.host}:{server.port} within"
                    f" {waited:.0f} s: {error}"
                ) from None
        time.sleep(0.05)


class LocalServer(Server, ABC):
    """A server that runs as a child process on its own data folder.

    Parameters
    ----------
    options : further arguments of mysqld, such as ``--gtid-mode=ON``; they override the defaults.
    """

    def __init__(self, options: Sequence[str] = ()) -> None:
        self.arguments = tuple(options)
        self.folder: Path | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._keeper: socket.socket | None = None

    def connect(self, **settings: Any) -> Connection[Cursor]:
        # Without TLS by default: loading the system's certificates takes longer than a query.
        tells = any(name.startswith("ssl") for name in settings)
        return super().connect(**({} if tells else {"ssl_disabled": True}), **settings)

    # Implemented by each kind.

    @abstractmethod
    def create_datadir(self, datadir: Path) -> None:
        """Create `datadir` with the server's system tables."""

    @abstractmethod
    def command(self, folder: Path, datadir: Path) -> list[str]:
        """Return the program and its arguments, without the shared ones and `arguments`."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def prepare(self) -> None:
        """Create the data folder, once; it can then be changed before `start`."""
        if self.folder is not None:
            return
        # Short because the path of a Unix socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="binlog-", dir=folder_in_memory()))
        atexit.register(self.stop)
        (self.folder / "tmp").mkdir()
        self.datadir = self.folder / "data"
        self.create_datadir(self.datadir)

    def start(self) -> Self:
        """Start, or start again after `halt` or `kill`, on the same data and the same port."""
        if self.process is not None:
            return self
        self.prepare()
        if self._keeper is None:
            self._keeper = reserve_port()
            self.port = port_of(self._keeper)
        try:
            self._launch()
        except ServerStartError as error:
            lines = self.error_log().splitlines()
            causes = [line for line in lines if "[ERROR]" in line] or lines
            tail = "\n".join(causes[-15:])
            self.stop()
            raise ServerStartError(f"{error}\n{tail}") from None
        return self

    def _launch(self) -> None:
        assert self.folder is not None and self.datadir is not None
        arguments = [
            *self.command(self.folder, self.datadir),
            f"--datadir={self.datadir}",
            f"--tmpdir={self.folder / 'tmp'}",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
            "--skip-name-resolve",
            "--server-id=1",
            "--log-bin=mysql-bin",
            "--binlog-format=ROW",
            "--binlog-checksum=CRC32",
            # Small and unsafe, for a fast start: the data is not kept.
            "--innodb-buffer-pool-size=32M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-use-native-aio=0",
            "--sync-binlog=0",
            *self.arguments,
        ]
        if os.geteuid() == 0:
            arguments.append("--user=root")
        with (self.folder / "error.log").open("ab") as log:
            self.process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                # Ctrl-C must only reach pytest, whose fixture then stops the server.
                start_new_session=True,
            )
        wait_until_ready(self, self.process)

    def halt(self) -> None:
        """Shut down cleanly and keep the data; `start` starts the server again."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(patience(STOP_TIMEOUT))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def kill(self) -> None:
        """End the server with SIGKILL, as in a crash, and keep the data."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process = None

    def restart(self) -> None:
        self.halt()
        self.start()

    def stop(self) -> None:
        # The data is removed, so a clean shutdown is not needed.
        self.kill()
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = self.datadir = None
            atexit.unregister(self.stop)

    def error_log(self) -> str:
        """Return everything that the server has written to its error log."""
        if self.folder is None or not (self.folder / "error.log").exists():
            return ""
        return (self.folder / "error.log").read_text(errors="replace")
