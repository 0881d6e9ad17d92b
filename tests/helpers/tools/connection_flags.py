"""The flags of a command that name a server and its account."""

from __future__ import annotations

from pathlib import Path

from helpers.servers import Server

__all__ = ["connection_flags"]


def connection_flags(server: Server, folder: Path, port: int | None = None) -> list[str]:
    """Return the flags; the password is written to a file in the folder.

    port : of a proxy; by default the server's.
    """
    password = folder / "password"
    password.write_text(server.password)
    return [
        *("--host", server.host, "--port", str(port or server.port)),
        *("--user", server.user, "--password-file", str(password)),
    ]
