"""Login errors: the account is rejected, permanently or temporarily.

A wrong password gives the same error (1045) as an account that REQUIREs TLS or a certificate when
the connection has none. Only the connection's own properties narrow down the cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, ServerError
from pyspark_mysqlbinlog.protocol.server.connection import ReadablePasswordError

__all__ = ["WRONG_PASSWORD", "Login", "account_error", "not_authenticated"]

WRONG_PASSWORD = {1045, 1698}

# Error number -> (problem, remedy).
_REFUSED = {
    1820: ("the account's password has expired", "ALTER USER … IDENTIFIED BY a new one"),
    1862: ("the account's password has expired", "ALTER USER … IDENTIFIED BY a new one"),
    2059: (
        "the account uses an unsupported authentication plugin",
        "use an account with mysql_native_password or sha256_password",
    ),
    3118: ("the account is locked", "ALTER USER … ACCOUNT UNLOCK"),
    3159: ("the server requires TLS, but sslMode disables it", "set sslMode=REQUIRED"),
    # MariaDB's own numbers.
    4150: ("the account is blocked after wrong passwords", "FLUSH PRIVILEGES on the server"),
    4151: ("the account is locked", "ALTER USER … ACCOUNT UNLOCK"),
}
# The same for temporary errors.
_TOO_MANY = {
    1040: ("the server has no free connection", "raise max_connections"),
    1203: ("the account has no free connection", "raise max_user_connections"),
    1226: ("the account has reached a resource limit", "raise the account's limit"),
}
_NO_KEY = "receive server's public key"
_LIMIT = re.compile(r"'(max_\w+)'")


def account_error(code: int, text: str, address: str, doing: str) -> ServerError | None:
    """Return the error for an account that is rejected; None for any other error number."""
    refused = _REFUSED.get(code)
    if refused is not None:
        problem, cure = refused
        return AccessDeniedError(
            f"{address} rejected {doing}: {problem}: {text}; {cure}", code=code
        )
    too_many = _TOO_MANY.get(code)
    if too_many is None:
        return None
    problem, cure = too_many
    limit = _LIMIT.search(text) if code == 1226 else None
    if limit is not None:
        cure = f"{cure} {limit[1]} (ALTER USER, before 5.7 GRANT USAGE … WITH)"
    return LostConnectionError(
        f"{address} rejected {doing} for now: {problem}: {text}; {cure}, or lower the option"
        " maxConnections",
        code=code,
    )


@dataclass(frozen=True, slots=True)
class Login:
    """TLS properties of a connection at login."""

    has_tls: bool
    has_certificate: bool

    def also_refused(self) -> str:
        """Return the other causes that give the wrong-password error over such a connection."""
        if not self.has_tls:
            return (
                "an account or a server that requires TLS gives the same error, and this"
                " connection does not use TLS (sslMode)"
            )
        which = "another" if self.has_certificate else "a"
        return (
            f"an account that requires {which} certificate gives the same error (sslCert, sslKey)"
        )


def not_authenticated(error: Exception, address: str) -> AccessDeniedError | None:
    """Return the error when a password cannot or must not be sent; None for any other error.

    Without TLS, a SHA-256 plugin requires the password encrypted with the server's RSA key. pymysql
    needs another package for that.
    """
    text = str(error)
    if isinstance(error, ReadablePasswordError):
        return AccessDeniedError(
            f"the password is not sent to {address}: {text}; set sslMode=VERIFY_IDENTITY, or use an"
            " account with mysql_native_password or sha256_password"
        )
    if not (isinstance(error, RuntimeError) and "cryptography" in text) and _NO_KEY not in text:
        return None
    return AccessDeniedError(
        f"the password cannot be sent to {address}: {text}; TLS needs neither: set"
        " sslMode=REQUIRED, or install the package cryptography if the server has an RSA key"
    )
