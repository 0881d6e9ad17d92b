"""pymysql's connection, with limits on what a server can make it do.

A server sends the first message of a session and an answer to each command, and pymysql trusts
their sizes and kinds. This connection bounds the bytes of an answer, accepts one result for one
statement, and never sends a password in clear text over a connection that is not encrypted. pymysql
itself rejects a request for a local file, because `local_infile` is off.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import pymysql

__all__ = ["MAX_ANSWER_BYTES", "MAX_HANDSHAKE_BYTES", "Connection", "ReadablePasswordError"]

# A handshake has a few packets of some hundred bytes.
MAX_HANDSHAKE_BYTES = 1 << 20
# Answers are about settings and table definitions. Rows of tables are read as a `ResultSet`.
MAX_ANSWER_BYTES = 1 << 30
# They send the password as it is, or in a form that can be reversed.
_READABLE_PASSWORD_PLUGINS = frozenset({b"mysql_clear_password", b"dialog", b"mysql_old_password"})


class ReadablePasswordError(Exception):
    """The server requests the password in a form that others can read."""


class Connection(pymysql.Connection):
    """A connection that also loads the system's CA list only when it verifies a certificate.

    pymysql loads the list for each connection, which takes about 25 ms.
    """

    # pymysql's stubs omit the private methods and fields that are used here: hence `type: ignore`.

    _bytes_left = MAX_HANDSHAKE_BYTES

    def _create_ssl_ctx(self, sslp: Mapping[str, Any]) -> ssl.SSLContext:
        if sslp.get("ca") is not None or sslp.get("verify_mode") not in {None, False, "none"}:
            verifying: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]
            return verifying
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if "cert" in sslp:
            context.load_cert_chain(sslp["cert"], sslp.get("key"))
        return context

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._bytes_left = MAX_ANSWER_BYTES
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._bytes_left -= num_bytes
        if self._bytes_left < 0:
            self._break_off("an answer that is longer than any of a MySQL server")
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        return data

    def _read_query_result(self, unbuffered: bool = False) -> int:
        rows: int = super()._read_query_result(unbuffered)  # type: ignore[misc]
        if self._result.has_next:  # type: ignore[attr-defined]
            self._break_off("more than one result for one statement")
        return rows

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        if plugin_name in _READABLE_PASSWORD_PLUGINS and not self._secure:  # type: ignore[attr-defined]
            self._force_close()  # type: ignore[attr-defined]
            raise ReadablePasswordError(
                f"the server requests it with {plugin_name.decode()}, and the connection is not"
                " encrypted"
            )
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc]

    def _break_off(self, found: str) -> None:
        self._force_close()  # type: ignore[attr-defined]
        raise pymysql.err.InternalError(found)
