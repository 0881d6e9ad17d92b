"""Fetching beside decoding: what a generator makes is made in a thread, a little ahead.

Reading a socket or a file, the scan and the decode all let other threads run, so two of them keep
two processors busy. What lies between them is bounded by bytes, and with what is large the thread
waits until it is worked off: a row of many megabytes is held once, not beside the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from threading import Condition, Thread
from typing import Generic, Protocol, TypeVar

__all__ = ["Interrupt", "ReadCancelledError", "prefetched"]

T = TypeVar("T")
# Whoever reads a socket that was shut down comes back at once; a file takes no time.
_PATIENCE = 10.0


class _Connection(Protocol):
    def abort(self) -> None: ...


class ReadCancelledError(Exception):
    """Nobody wants what was to be read: the thread ends by it, and no one sees it."""


class Interrupt:
    """How another thread ends a reading.

    Attributes
    ----------
    stopped : nobody wants any more of it.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._connection: _Connection | None = None

    def check(self) -> None:
        """ReadCancelledError when nobody wants any more, for whoever is about to connect."""
        if self.stopped:
            raise ReadCancelledError

    def watch(self, connection: _Connection) -> None:
        """The connection that is being read now."""
        self._connection = connection
        if self.stopped:
            connection.abort()

    def release(self) -> None:
        """The connection has been read to the end, and is whole."""
        self._connection = None

    def stop(self) -> None:
        """Nobody wants any more; may be called from any thread, and again.

        Who reads the watched connection loses it, as LostConnectionError. Who connects later is
        stopped by `check`, or by `watch`.
        """
        self.stopped = True
        connection = self._connection
        if connection is not None:
            connection.abort()


def prefetched(
    make: Callable[[Interrupt], Generator[T]], size: Callable[[T], int], most: int
) -> Generator[T]:
    """What `make` gives, made in a thread.

    The next item is made while those that wait, and the one that is worked on, are less than `most`
    in size. Errors are raised here, behind the items that came before. Closing this generator ends
    the thread, by `Interrupt`.
    """
    interrupt = Interrupt()
    queue = _Queue[T](size, most)

    def fetch() -> None:
        error: BaseException | None = None
        try:
            items = make(interrupt)
            try:
                while queue.has_room() and (item := next(items, None)) is not None:
                    queue.put(item)
                    del item  # may be large
            finally:
                items.close()
        except BaseException as raised:  # noqa: BLE001 (raised again where it is waited for)
            error = raised
        queue.end(error)

    thread = Thread(target=fetch, name="mysqlbinlog-fetch", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            # Whoever takes one must be the only one that holds it.
            taken = [item]
            del item
            yield taken.pop()
    finally:
        queue.close()
        interrupt.stop()
        thread.join(_PATIENCE)


class _Queue(Generic[T]):
    """Items from one thread to another."""

    def __init__(self, size: Callable[[T], int], most: int) -> None:
        self._size_of = size
        self._most = most
        self._changed = Condition()
        self._items: deque[T] = deque()
        # Of the items, and of the one that was taken last.
        self._size = self._taken = 0
        self._ended = self._closed = False
        self._error: BaseException | None = None

    def has_room(self) -> bool:
        """Wait for it; False when nobody takes any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._size < self._most or self._closed)
            return not self._closed

    def put(self, item: T) -> None:
        with self._changed:
            self._items.append(item)
            self._size += self._size_of(item)
            self._changed.notify_all()

    def end(self, error: BaseException | None) -> None:
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def get(self) -> T | None:
        """Wait for the next; None at the end, or the error that ended it."""
        with self._changed:
            self._size -= self._taken
            self._taken = 0
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._items or self._ended)
            if self._items:
                item = self._items.popleft()
                self._taken = self._size_of(item)
                return item
            if self._error is not None:
                raise self._error
            return None

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
