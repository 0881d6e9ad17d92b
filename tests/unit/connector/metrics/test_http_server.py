"""The page server with slow, hostile or many clients."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from helpers.servers.base import port_of, reserve_port
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.connector.metrics import http_server
from pyspark_mysqlbinlog.connector.metrics.http_server import Page, PageServer


@pytest.fixture(autouse=True)
def _no_client_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply no timeout unless a test sets one: the clients of other tests may stand still."""
    monkeypatch.setattr(http_server, "_CONNECTION_SECONDS", 3600.0)
    monkeypatch.setattr(http_server._Handler, "timeout", 3600.0)


@pytest.fixture
def server() -> Iterator[PageServer]:
    pages = {
        "/": Page("text/html; charset=utf-8", lambda: b"<p>ok</p>"),
        "/fails": Page("text/plain", lambda: bytes([1 // 0])),
    }
    with PageServer("127.0.0.1", 0, pages) as running:
        yield running


def port(server: PageServer) -> int:
    return int(server.server_address[1])


def request(server: PageServer, method: str, path: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port(server), timeout=patience(60))
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def raw(server: PageServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port(server)), timeout=patience(60))


def received(client: socket.socket) -> bytes:
    """Return the bytes that are received before the connection is closed."""
    try:
        return client.recv(65536)
    except ConnectionError:
        return b""


def test_page_has_its_content_type_and_security_headers(server: PageServer) -> None:
    for path in ("/", "/?anything=1"):
        status, body, headers = request(server, "GET", path)
        assert (status, body) == (200, b"<p>ok</p>")
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert server.url("/metrics") == f"http://127.0.0.1:{port(server)}/metrics"
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path",
    [
        "/other",
        "/../../etc/passwd",
        "//etc/passwd",
        "/%2e%2e/etc/passwd",
        "/<script>",
        "*",
        "/fails/",
    ],
)
def test_unknown_paths_return_404(server: PageServer, path: str) -> None:
    status, body, _ = request(server, "GET", path)
    assert (status, body) == (404, b"404 not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_methods_other_than_get_return_501(server: PageServer, method: str) -> None:
    status, body, _ = request(server, method, "/")
    assert status == 501
    assert b"<" not in body


def test_failing_page_returns_500_and_is_logged(
    server: PageServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert request(server, "GET", "/fails")[:2] == (500, b"500 the page could not be made\n")
    assert "the page /fails could not be made: ZeroDivisionError(" in caplog.text
    assert request(server, "GET", "/")[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n",
        b"\x00" * 100,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_malformed_request_leaves_the_server_running(
    server: PageServer, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with raw(server) as client:
        try:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        except OSError:
            pass  # the server closes the connection before everything is sent
    assert request(server, "GET", "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_slow_clients_are_closed_and_excess_connections_rejected(
    monkeypatch: pytest.MonkeyPatch, server: PageServer
) -> None:
    monkeypatch.setattr(http_server, "_MAX_CONNECTIONS", 3)
    with ExitStack() as stack:
        slow = [stack.enter_context(raw(server)) for _ in range(3)]
        for client in slow:
            client.sendall(b"GET / HT")
        wait_until(lambda: len(server._open) == 3, "three requests have begun")
        with raw(server) as fourth:
            assert received(fourth) == b""
        monkeypatch.setattr(http_server, "_CONNECTION_SECONDS", 0.0)
        for client in slow:
            assert received(client) == b""
        wait_until(lambda: not server._open, "their places are free")
        monkeypatch.setattr(http_server, "_CONNECTION_SECONDS", 3600.0)
    assert request(server, "GET", "/")[0] == 200


def test_page_content_is_reused_between_quick_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    times = iter((100.0, 100.9, 101.1, 101.1))
    monkeypatch.setattr(http_server, "monotonic", lambda: next(times))

    def make() -> bytes:
        made.append(1)
        return b""

    page = Page("text/plain", make)
    page.content()
    page.content()
    assert len(made) == 1
    page.content()
    assert len(made) == 2


def test_port_is_free_after_server_shutdown_with_open_connections() -> None:
    with reserve_port() as keeper:
        with PageServer("127.0.0.1", port_of(keeper), {}) as server:
            client = raw(server)
            wait_until(lambda: bool(server._open), "the connection is open")
        client.close()
        with PageServer("127.0.0.1", port_of(keeper), {}):
            pass


def test_page_server_on_a_port_in_use_raises_os_error() -> None:
    with PageServer("127.0.0.1", 0, {}) as server, pytest.raises(OSError, match="in use"):
        PageServer("127.0.0.1", port(server), {})


def test_path_of_a_file_on_disk_returns_404(server: PageServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    assert request(server, "GET", str(secret))[0] == 404
