"""TLS on servers with a certificate and accounts that require TLS: MariaDB and MySQL 9."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.servers import Certificates, LocalServer, MySQL9Server, Server, write_certificates
from helpers.servers.available import mariadb_kind
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.log.log_protocol import NO_LIMIT
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.decoder.filtering.event_filter import EventFilter
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    ConnectionFailedError,
    MySQLBinlogError,
    OptionError,
)
from pyspark_mysqlbinlog.protocol.blocks import unpack_events
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=[mariadb_kind(), MySQL9Server], ids=lambda kind: kind.name)
def tls_server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Server]:
    """Yield a server that requires TLS from `tls` and a client certificate from `x509`."""
    kind: type[LocalServer] = request.param
    request.getfixturevalue(kind.name)  # ends the test if it is missing
    with kind(options=certificates.server_options) as server:
        server.execute(
            "CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL",
            "CREATE USER x509@'%' IDENTIFIED BY 'secret' REQUIRE X509",
            "GRANT ALL ON *.* TO tls@'%', x509@'%'",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY)",
            "INSERT INTO shop.t VALUES (1), (2)",
        )
        yield server


def _options(server: Server, **more: str | Path) -> Options:
    given = {"host": server.host, "port": str(server.port), "user": "tls", "password": "secret"}
    return parse_options(given | {name: str(value) for name, value in more.items()})


def _cipher_and_events(options: Options) -> tuple[str, list[Event]]:
    """Return the cipher of a connection, and the events of a whole dump over it."""
    with ReplicaClient.connect(options.server_settings()) as client:
        cipher = str(client.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])
        first = str(client.query("SHOW BINARY LOGS")[0][0])
        return cipher, list(Dump(client, Position.of(first, 4), None, blocking=False))


@pytest.mark.parametrize("mode", ["PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"])
def test_dump_is_read_over_tls_in_every_ssl_mode(
    tls_server: Server, certificates: Certificates, mode: str
) -> None:
    more = {"sslCa": certificates.ca} if mode.startswith("VERIFY") else {}
    cipher, events = _cipher_and_events(_options(tls_server, sslMode=mode, **more))
    assert cipher
    assert len(events) > 10


def test_compiled_scan_over_tls_equals_the_dump(tls_server: Server) -> None:
    """TLS records are not packets: received data can end anywhere in a packet."""
    import helpers.parity.require_kernel  # noqa: F401 (skips without the kernel)
    from pyspark_mysqlbinlog.decoder.kernel.log_scanner import LogScanner

    values = ",".join(f"({n})" for n in range(100_000, 200_000))
    tls_server.execute(f"INSERT INTO shop.t VALUES {values}", "INSERT INTO shop.t VALUES (3)")
    options = _options(tls_server, sslMode="REQUIRED")
    filtering = EventFilter(lambda *_: True)
    expected = [k for event in _cipher_and_events(options)[1] for k in filtering.feed(event)]
    log = ServerLog(options.server_settings())
    filtering = EventFilter(lambda *_: True)
    scanner = LogScanner(filtering)
    found: list[Event] = []
    start = Position.of(expected[0].file, 4)
    for item in log.scan(start, scanner, lambda _: NO_LIMIT):
        if isinstance(item, Event):
            found += filtering.feed(item)
            scanner.learn(item)
        elif (packed := item.pack()) is not None:
            found += unpack_events([packed.block])
    assert found == expected
    assert len(found) > 50


def test_prepared_select_over_tls_returns_whole_rows(tls_server: Server) -> None:
    """The SELECT is prepared and read twice over the same connection."""
    sql = "SELECT n, REPEAT('x', n) FROM (SELECT 1 n UNION ALL SELECT 700000 UNION ALL SELECT 2) t"
    with ReplicaClient.connect(
        _options(tls_server, sslMode="REQUIRED").server_settings()
    ) as client:
        client.begin_raw_rows()
        for _ in range(2):
            result = client.prepared(sql)
            sizes = [len(row) for row in iter(result.next_row, None)]
            # On MySQL 9 these numbers are BIGINTs, so each row has four more bytes.
            more = 4 if tls_server.is_mysql9() else 0
            assert sizes == [8 + more, 700_010 + more, 9 + more]
        assert client.query("SELECT 1") == [(1,)]


def test_account_that_requires_tls_is_rejected_without_tls(tls_server: Server) -> None:
    with pytest.raises(AccessDeniedError, match=r"requires TLS .*this connection does not use TLS"):
        ReplicaClient.connect(_options(tls_server, sslMode="DISABLED").server_settings())


@pytest.mark.parametrize("mode", ["VERIFY_CA", "VERIFY_IDENTITY"])
def test_server_certificate_of_another_authority_is_rejected(
    tls_server: Server, tmp_path: Path, mode: str
) -> None:
    other = write_certificates(tmp_path)
    options = _options(tls_server, sslMode=mode, sslCa=other.ca)
    with pytest.raises(ConnectionFailedError, match=r"TLS with .* failed.*sslCa"):
        ReplicaClient.connect(options.server_settings())


@pytest.fixture(scope="module", params=[mariadb_kind(), MySQL9Server], ids=lambda kind: kind.name)
def moved_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Certificates]]:
    """Yield a server whose certificate is for another address, and its certificates."""
    kind: type[LocalServer] = request.param
    request.getfixturevalue(kind.name)
    made = write_certificates(tmp_path_factory.mktemp("moved"), host="127.0.0.2")
    with kind(options=made.server_options) as server:
        yield server, made


@pytest.mark.parametrize("kind", [mariadb_kind(), MySQL9Server], ids=lambda kind: kind.name)
def test_expired_server_certificate_is_rejected(
    request: pytest.FixtureRequest, tmp_path: Path, kind: type[LocalServer]
) -> None:
    request.getfixturevalue(kind.name)
    made = write_certificates(tmp_path, is_expired=True)
    with kind(options=made.server_options) as server:
        for mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
            options = _options(server, sslMode=mode, sslCa=made.ca)
            with pytest.raises(ConnectionFailedError, match=r"TLS with .* failed.*expired"):
                ReplicaClient.connect(options.server_settings())


def test_server_certificate_unknown_to_system_authorities_is_rejected(tls_server: Server) -> None:
    """VERIFY_IDENTITY without sslCa is an option error, but sslCa may be the system's file."""
    system = ssl.get_default_verify_paths().cafile
    if system is None:
        pytest.skip("this system has no list of authorities")
    options = _options(tls_server, sslMode="VERIFY_IDENTITY", sslCa=system)
    with pytest.raises(ConnectionFailedError, match=r"TLS with .* failed.*sslCa"):
        ReplicaClient.connect(options.server_settings())


def test_server_certificate_for_another_address_fails_verify_identity_only(
    moved_server: tuple[Server, Certificates],
) -> None:
    server, made = moved_server
    given = {"user": server.user, "password": server.password, "sslCa": str(made.ca)}
    cipher, _ = _cipher_and_events(_options(server, sslMode="VERIFY_CA", **given))
    assert cipher
    options = _options(server, sslMode="VERIFY_IDENTITY", **given)
    with pytest.raises(ConnectionFailedError, match=r"TLS with .* failed.*127\.0\.0\.1"):
        ReplicaClient.connect(options.server_settings())


@pytest.mark.parametrize("mode", ["PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"])
def test_account_that_requires_x509_connects_only_with_client_certificate(
    tls_server: Server, certificates: Certificates, mode: str
) -> None:
    more = {"sslCa": certificates.ca} if mode.startswith("VERIFY") else {}
    without = _options(tls_server, user="x509", sslMode=mode, **more)
    with pytest.raises(AccessDeniedError, match=r"requires a certificate .*\(sslCert, sslKey\)"):
        ReplicaClient.connect(without.server_settings())
    more |= {"sslCert": certificates.client_cert, "sslKey": certificates.client_key}
    options = _options(tls_server, user="x509", sslMode=mode, **more)
    cipher, events = _cipher_and_events(options)
    assert cipher
    assert len(events) > 10


def test_client_certificate_of_another_authority_is_rejected(
    tls_server: Server, tmp_path: Path
) -> None:
    """The client's error depends on what it was doing when the server refused it."""
    other = write_certificates(tmp_path)
    options = _options(tls_server, sslCert=other.client_cert, sslKey=other.client_key)
    for _ in range(5):
        with pytest.raises(ConnectionFailedError, match=r"check .*sslCert and sslKey"):
            ReplicaClient.connect(options.server_settings())


def test_server_without_tls_is_rejected_by_required_ssl_mode(mysql56: Server) -> None:
    given = {"host": mysql56.host, "port": str(mysql56.port), "user": mysql56.user}
    options = parse_options(given | {"password": mysql56.password, "sslMode": "REQUIRED"})
    with pytest.raises(MySQLBinlogError, match=r"(?i)ssl") as caught:
        ReplicaClient.connect(options.server_settings())
    assert "\n" not in str(caught.value)


def test_verify_ca_without_ssl_ca_is_rejected(tls_server: Server) -> None:
    with pytest.raises(OptionError, match="sslCa"):
        _options(tls_server, sslMode="VERIFY_CA")
