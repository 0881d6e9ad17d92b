"""A small HTTP server for pages of this process: GET of fixed paths, and nothing else.

It must not disturb the query. So it answers from memory, makes a page at most once a second, holds
a limited number of connections, and closes each after a few seconds, however slow the client is.
A connection serves one request.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from time import monotonic
from typing import Any, Self

__all__ = ["Page", "PageServer"]

_LOG = logging.getLogger(__name__)

_CACHE_SECONDS = 1.0
_CONNECTION_SECONDS = 10.0
_MAX_CONNECTIONS = 32
_POLL_SECONDS = 0.5
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none';"
        " form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Page:
    """A page that is made on request, and cached for a second.

    make : returns its bytes.
    """

    def __init__(self, content_type: str, make: Callable[[], bytes]) -> None:
        self.content_type = content_type
        self._make = make
        self._lock = Lock()
        self._made: tuple[float, bytes] | None = None

    def content(self) -> bytes:
        with self._lock:
            if self._made is None or monotonic() - self._made[0] > _CACHE_SECONDS:
                self._made = monotonic(), self._make()
            return self._made[1]


class PageServer(ThreadingHTTPServer):
    """Serves pages by their paths, from daemon threads, within its `with` block.

    OSError if the address can't be used.
    """

    daemon_threads = True
    # Otherwise the end of the server would wait for slow clients.
    block_on_close = False

    def __init__(self, address: str, port: int, pages: Mapping[str, Page]) -> None:
        self.pages = pages
        self._open: dict[Any, float] = {}
        self._open_lock = Lock()
        family, *_, found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        self.address_family = family
        super().__init__((str(found[0]), port), _Handler)
        self._thread = Thread(
            target=self.serve_forever, args=[_POLL_SECONDS], name="mysqlbinlog-http", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def url(self, path: str) -> str:
        """Return the URL of a page, for this machine."""
        host, port = self.server_address[:2]
        name = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{name}:{port}{path}"

    def server_bind(self) -> None:
        # Unlike HTTPServer's, this does not look up the name of the address.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Accept a connection unless there are too many."""
        del client_address
        with self._open_lock:
            if len(self._open) >= _MAX_CONNECTIONS:
                return False
            self._open[request] = monotonic()
            return True

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that take too long; called after each poll."""
        oldest = monotonic() - _CONNECTION_SECONDS
        with self._open_lock:
            late = [each for each, began in self._open.items() if began < oldest]
        for each in late:
            # Its thread then ends with an error, or at the end of the request.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients: a connection that ends early is not this process's error."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    # Seconds that one operation on the socket may take.
    timeout = _CONNECTION_SECONDS
    server_version = "pyspark-mysqlbinlog"
    sys_version = ""
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        page = self.server.pages.get(path)
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND, "not found")
            return
        try:
            content = page.content()
        except Exception as error:  # noqa: BLE001 (logged, and reported to the client)
            _LOG.warning("the page %s could not be made: %r", path, error)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "the page could not be made")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: stderr has the command's own lines."""
