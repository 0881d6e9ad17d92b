"""What a server says of an account: that it may not log in, or not now.

A wrong password, and an account that REQUIREs TLS or a certificate which the connection has not,
are refused in the same words (1045): only the connection tells which of them it may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, ServerError

__all__ = ["WRONG_PASSWORD", "Login", "account_error", "not_authenticated"]

WRONG_PASSWORD = {1045, 1698}

# By code: what is the matter, and what to do.
_REFUSED = {
    1820: ("the account's password has expired", "ALTER USER … IDENTIFIED BY a new one"),
    1862: ("the account's password has expired", "ALTER USER … IDENTIFIED BY a new one"),
    2059: (
        "the account logs in by a plugin that is not known here",
        "use an account with mysql_native_password or sha256_password",
    ),
    3118: ("the account is locked", "ALTER USER … ACCOUNT UNLOCK"),
    3159: ("the server wants TLS, and sslMode has none of it", "set sslMode=REQUIRED"),
    # MariaDB's own numbers.
    4150: ("the account is blocked after wrong passwords", "FLUSH PRIVILEGES on the server"),
    4151: ("the account is locked", "ALTER USER … ACCOUNT UNLOCK"),
}
# These end by themselves.
_TOO_MANY = {
    1040: ("the server has no connection left", "raise max_connections"),
    1203: ("the account has no connection left", "raise max_user_connections"),
    1226: ("the account has used up what it may", "raise the account's limit"),
}
_NO_KEY = "receive server's public key"
_LIMIT = re.compile(r"'(max_\w+)'")


def account_error(code: int, text: str, address: str, doing: str) -> ServerError | None:
    """Our error for a refusal that is about the account; None where it is about another thing."""
    refused = _REFUSED.get(code)
    if refused is not None:
        problem, cure = refused
        return AccessDeniedError(f"{address} refused {doing}: {problem}: {text}; {cure}", code=code)
    too_many = _TOO_MANY.get(code)
    if too_many is None:
        return None
    problem, cure = too_many
    limit = _LIMIT.search(text) if code == 1226 else None
    if limit is not None:
        cure = f"{cure} {limit[1]} (ALTER USER, before 5.7 GRANT USAGE … WITH)"
    return LostConnectionError(
        f"{address} refused {doing} for now: {problem}: {text}; {cure}, or lower the option"
        " maxConnections",
        code=code,
    )


@dataclass(frozen=True, slots=True)
class Login:
    """What a connection had when it logged in."""

    has_tls: bool
    has_certificate: bool

    def also_refused(self) -> str:
        """Who else than a wrong password is refused in its words over such a connection."""
        if not self.has_tls:
            return (
                "an account or a server that requires TLS refuses in the same words, and this"
                " connection has none (sslMode)"
            )
        which = "another" if self.has_certificate else "a"
        return (
            f"an account that requires {which} certificate refuses in the same words (sslCert,"
            " sslKey)"
        )


def not_authenticated(error: Exception, address: str) -> AccessDeniedError | None:
    """Our error where pymysql can't send a password; None when it is about another thing.

    Without TLS a SHA-256 plugin wants the password encrypted with the server's RSA key, for which
    pymysql needs another package.
    """
    text = str(error)
    if not (isinstance(error, RuntimeError) and "cryptography" in text) and _NO_KEY not in text:
        return None
    return AccessDeniedError(
        f"the password can't be sent to {address}: {text}; over TLS neither is needed: set"
        " sslMode=REQUIRED, or install the package cryptography where the server has an RSA key"
    )
