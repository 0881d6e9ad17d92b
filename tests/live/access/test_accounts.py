"""Accounts that cannot log in, or cannot log in now: each error states the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pymysql
import pymysql._auth
import pytest

from helpers.servers import Server
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

USER = "reader_login"
ACCOUNT = f"{USER}@'%'"
# Otherwise a recreated account continues with the counts of the last one of its name.
FORGET = "FLUSH USER_RESOURCES"
NewAccount = Callable[..., ServerSettings]


@pytest.fixture
def account(any_server: Server) -> Iterator[NewAccount]:
    """``account(*statements)`` creates a user with these statements and returns its settings."""
    yield from _account_of(any_server)


def _account_of(server: Server) -> Iterator[NewAccount]:
    made: list[str] = []

    def make(*statements: str) -> ServerSettings:
        server.execute(f"CREATE USER {ACCOUNT} IDENTIFIED BY 's3cret'", FORGET)
        made.append(ACCOUNT)
        server.execute(*statements, "DO 0")
        return server.settings(user=USER, password="s3cret", ssl_mode="DISABLED")

    yield make
    for user in made:
        server.execute(f"DROP USER {user}")


def _refusal(settings: ServerSettings) -> MySQLBinlogError:
    with pytest.raises(MySQLBinlogError) as caught, ReplicaClient.connect(settings) as client:
        client.query("SELECT 1")  # MariaDB accepts an expired password, to let it be changed
    assert "s3cret" not in caught.value.message
    return caught.value


def _connect_often(settings: ServerSettings, stack: ExitStack) -> None:
    for _ in range(4):
        stack.enter_context(ReplicaClient.connect(settings))


def test_expired_password_raises_access_denied_error(account: NewAccount) -> None:
    error = _refusal(account(f"ALTER USER {ACCOUNT} PASSWORD EXPIRE"))
    assert type(error) is AccessDeniedError
    assert "the account's password has expired" in error.message
    assert error.message.endswith("ALTER USER … IDENTIFIED BY a new one")


def test_locked_account_raises_access_denied_error(any_server: Server, account: NewAccount) -> None:
    if any_server.version().startswith("5.6"):
        pytest.skip("accounts can be locked from 5.7.6 on")
    error = _refusal(account(f"ALTER USER {ACCOUNT} ACCOUNT LOCK"))
    assert type(error) is AccessDeniedError
    assert "the account is locked" in error.message
    assert error.message.endswith("ALTER USER … ACCOUNT UNLOCK")


def _limited(server: Server) -> str:
    """Return the start of a statement that limits the account: 5.6 has GRANT, 9.x ALTER."""
    return (
        f"GRANT USAGE ON *.* TO {ACCOUNT}" if "5.6" in server.version() else f"ALTER USER {ACCOUNT}"
    )


def test_account_that_requires_tls_raises_access_denied_error_without_tls(
    any_server: Server, account: NewAccount
) -> None:
    error = _refusal(account(f"{_limited(any_server)} REQUIRE SSL"))
    assert type(error) is AccessDeniedError
    assert "an account or a server that requires TLS gives the same error" in error.message


def test_server_that_requires_tls_raises_access_denied_error_without_tls(
    any_server: Server, account: NewAccount
) -> None:
    if not any_server.execute("SHOW GLOBAL VARIABLES LIKE 'require_secure_transport'"):
        pytest.skip("from 5.7.8 on")
    settings = account()
    # From here on, new connections need TLS, if the server supports it.
    with any_server.connect() as administrator, administrator.cursor() as cursor:
        try:
            cursor.execute("SET GLOBAL require_secure_transport = ON")
        except pymysql.MySQLError:
            pytest.skip("it has no TLS at all")
        try:
            error = _refusal(settings)
        finally:
            cursor.execute("SET GLOBAL require_secure_transport = OFF")
    assert type(error) is AccessDeniedError
    assert "TLS" in error.message
    assert "sslMode" in error.message


@pytest.mark.parametrize(
    ("limit", "connections"),
    [("MAX_USER_CONNECTIONS", 1), ("MAX_CONNECTIONS_PER_HOUR", 1), ("MAX_QUERIES_PER_HOUR", 3)],
)
def test_account_over_its_resource_limit_raises_lost_connection_error(
    any_server: Server, account: NewAccount, limit: str, connections: int
) -> None:
    settings = account(f"{_limited(any_server)} WITH {limit} {connections}")
    # An error of this kind is retried.
    with ExitStack() as stack, pytest.raises(LostConnectionError) as caught:
        _connect_often(settings, stack)
    assert caught.value.code == 1226
    assert "the account has reached a resource limit" in caught.value.message
    assert "lower the option maxConnections" in caught.value.message


def test_reached_max_user_connections_raises_lost_connection_error(
    any_server: Server, account: NewAccount
) -> None:
    if any_server.is_mariadb:
        pytest.skip("a limit that it did not have when it started can't be set")
    settings = account()
    with any_server.connect() as administrator, administrator.cursor() as cursor:
        cursor.execute("SET GLOBAL max_user_connections = 1")
        try:
            with ReplicaClient.connect(settings):
                error = _refusal(settings)
        finally:
            cursor.execute("SET GLOBAL max_user_connections = 0")
    assert type(error) is LostConnectionError
    assert "raise max_user_connections" in error.message


def test_sha256_password_without_cryptography_raises_access_denied_error(
    any_server: Server, account: NewAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    if any_server.is_mariadb or any_server.version().startswith("5.6"):
        pytest.skip("MariaDB has no such plugin, and this 5.6 no RSA key")
    settings = account(
        f"ALTER USER {ACCOUNT} IDENTIFIED WITH sha256_password BY 's3cret'",
    )
    with ReplicaClient.connect(settings):
        pass
    monkeypatch.setattr(pymysql._auth, "_have_cryptography", False)
    error = _refusal(settings)
    assert type(error) is AccessDeniedError
    assert "set sslMode=REQUIRED, or install the package cryptography" in error.message


@pytest.fixture
def account_of_9(mysql9: Server) -> Iterator[NewAccount]:
    yield from _account_of(mysql9)


def test_caching_sha2_password_needs_tls_or_cryptography(
    mysql9: Server, account_of_9: NewAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = account_of_9(
        f"ALTER USER {ACCOUNT} IDENTIFIED WITH caching_sha2_password BY 's3cret'"
    )
    with monkeypatch.context() as without:
        without.setattr(pymysql._auth, "_have_cryptography", False)
        error = _refusal(settings)
        assert type(error) is AccessDeniedError
        assert "set sslMode=REQUIRED, or install the package cryptography" in error.message
        # TLS protects the password, so no key of the server is needed.
        with ReplicaClient.connect(replace(settings, ssl_mode="REQUIRED")):
            pass
    # The server caches a verified password and then needs less; FLUSH PRIVILEGES clears the cache.
    mysql9.execute("FLUSH PRIVILEGES")
    with ReplicaClient.connect(settings):
        pass
