"""Servers that are not child processes: MySQL 5.7 in Docker, and any server by its URL."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from helpers.servers.base import Server, ServerStartError, free_port, wait_until_ready

__all__ = ["DockerMySQL57", "ExternalServer"]

COMPOSE_FILE = Path(__file__).resolve().parents[3] / "docker-compose.yml"
URL_VARIABLE = "MYSQLBINLOG_TEST_URL"


def _docker(*arguments: str, timeout: float, **environment: str) -> tuple[bool, str]:
    """Run one docker command; return whether it succeeded, and its output."""
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            env={**os.environ, **environment},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {timeout:.0f} s"
    return done.returncode == 0, done.stdout.decode(errors="replace").strip()


class DockerMySQL57(Server):
    """mysql:5.7 from the project's docker-compose.yml, in its own compose project."""

    name = "docker57"

    def __init__(self) -> None:
        self._project = ""

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("docker") is None:
            return "Docker is not installed: see https://docs.docker.com/engine/install/"
        answered, text = _docker("compose", "version", timeout=20)
        if not answered:
            return "Docker has no compose plugin: install the package docker-compose-plugin"
        answered, text = _docker("info", "--format", "{{.ServerVersion}}", timeout=20)
        if not answered:
            reason = text.splitlines()[-1] if text else "no reason given"
            return f"no Docker engine answers: {reason}"
        return None

    def _compose(self, *arguments: str, timeout: float) -> tuple[bool, str]:
        return _docker(
            "compose",
            "--file",
            str(COMPOSE_FILE),
            "--project-name",
            self._project,
            *arguments,
            timeout=timeout,
            MYSQL_PORT=str(self.port),
            MYSQL_ROOT_PASSWORD=self.password,
        )

    def start(self) -> Self:
        if self._project:
            return self
        self.port = free_port()
        self.password = "root"
        self._project = f"mysqlbinlog-test-{os.getpid()}-{self.port}"
        started, text = self._compose("up", "--detach", "--wait", timeout=600)
        if not started:
            self.stop()
            raise ServerStartError(f"docker compose up failed: {text[-2000:]}")
        wait_until_ready(self)
        return self

    def stop(self) -> None:
        if self._project:
            self._compose("down", "--volumes", "--timeout", "5", timeout=120)
            self._project = ""


class ExternalServer(Server):
    """The server that MYSQLBINLOG_TEST_URL names: ``mysql://user:password@host:port``.

    Its account must be allowed to create databases and accounts and to replicate.
    """

    name = "external"

    def __init__(self, url: str | None = None) -> None:
        given = url if url is not None else os.environ.get(URL_VARIABLE, "")
        parts = urlsplit(given)
        if parts.scheme != "mysql" or not parts.hostname or not parts.username:
            # The URL contains a password, so the message does not repeat it.
            raise ValueError(f"{URL_VARIABLE} must look like mysql://user:password@host:port")
        self.host = parts.hostname
        self.port = parts.port or 3306
        self.user = unquote(parts.username)
        self.password = unquote(parts.password or "")

    @classmethod
    def missing(cls) -> str | None:
        return None if os.environ.get(URL_VARIABLE) else f"{URL_VARIABLE} is not set"

    def start(self) -> Self:
        wait_until_ready(self)
        return self
