"""Real servers for tests: each starts on a free loopback port and removes all its files."""

from __future__ import annotations

from helpers.servers.base import LocalServer, Server, ServerStartError
from helpers.servers.certificates import Certificates, write_certificates
from helpers.servers.mariadb import MariaDB11Server, MariaDBServer
from helpers.servers.mysql9 import MySQL9Server
from helpers.servers.mysql56 import MySQL56Server
from helpers.servers.recorded import captured_files, serve_binlogs
from helpers.servers.remote import DockerMySQL57, ExternalServer

__all__ = [
    "Certificates",
    "DockerMySQL57",
    "ExternalServer",
    "LocalServer",
    "MariaDB11Server",
    "MariaDBServer",
    "MySQL9Server",
    "MySQL56Server",
    "Server",
    "ServerStartError",
    "captured_files",
    "serve_binlogs",
    "write_certificates",
]
