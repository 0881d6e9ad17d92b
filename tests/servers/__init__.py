"""Real servers for tests: each starts on a free loopback port and leaves nothing behind."""

from __future__ import annotations

from servers.base import LocalServer, Server, ServerStartError
from servers.captured import captured_files, serve_binlogs
from servers.certificates import Certificates, write_certificates
from servers.mariadb import MariaDBServer
from servers.mysql56 import MySQL56Server
from servers.remote import DockerMySQL57, ExternalServer

__all__ = [
    "Certificates",
    "DockerMySQL57",
    "ExternalServer",
    "LocalServer",
    "MariaDBServer",
    "MySQL56Server",
    "Server",
    "ServerStartError",
    "captured_files",
    "serve_binlogs",
    "write_certificates",
]
