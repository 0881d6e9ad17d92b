"""A proxy that cuts connections after a number of bytes from the server."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CuttingProxy", "cutting_proxy"]


class CuttingProxy:
    """A TCP proxy to a server.

    Attributes
    ----------
    port : on which it listens.
    target : the server of new connections.
    allowed : byte limits of what the server sends on the next connections, in order; unlimited
        after the last one.
    cuts : number of connections that were cut.
    """

    def __init__(self, host: str, port: int, allowed: Iterator[int | None]) -> None:
        self.target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.allowed = allowed
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A shutdown wakes up the thread in `accept`.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            most = next(self.allowed, None)
            threading.Thread(target=self._forward, args=(client, most), daemon=True).start()

    def _forward(self, client: socket.socket, most: int | None) -> None:
        """Forward in both directions until a side closes or the limit is reached."""
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(self.target) as server,
            selectors.DefaultSelector() as ready,
        ):
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(1 << 16)
                    if key.fileobj is server and most is not None:
                        data = data[:most]
                        most -= len(data)
                    key.data.sendall(data)
                    if most == 0:
                        self.cuts += 1
                    if not data or most == 0:
                        return


@contextmanager
def cutting_proxy(host: str, port: int, allowed: Iterator[int | None]) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(host, port, allowed)
    try:
        yield proxy
    finally:
        proxy.close()
