"""Servers and interpreters that are unpacked from Debian's packages.

    PYTHONPATH=tests python -m helpers.unpacked mysql9 mariadb11

installs those that are missing.
"""

from __future__ import annotations

from helpers.unpacked.interpreter import UnpackedPython, unpacked_python
from helpers.unpacked.program import UnpackedProgram

__all__ = ["MARIADB", "MYSQL", "PYTHONS", "UnpackedProgram", "UnpackedPython"]

MYSQL = UnpackedProgram("mysql9", "sid", ("mysql-server-core",), "usr/sbin/mysqld", "newer-servers")
MARIADB = UnpackedProgram(
    "mariadb11", "trixie", ("mariadb-server-core",), "usr/sbin/mariadbd", "newer-servers"
)

# CI itself has 3.11, from bookworm; no suite has 3.12.
PYTHONS = {
    version: unpacked_python(version, suite)
    for version, suite in {"3.13": "trixie", "3.14": "sid"}.items()
}
