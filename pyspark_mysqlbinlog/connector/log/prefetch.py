"""Fetching concurrently with decoding: a thread runs a generator, slightly ahead.

Reading a socket or a file, the scan and the decoder all release the GIL, so two threads use two
processors. The data between them is bounded in bytes. For large items the thread waits until the
current one is processed: a row of many megabytes is held once, not together with the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from threading import Condition, Thread
from typing import Generic, Protocol, TypeVar

__all__ = ["CancelToken", "ReadCancelledError", "prefetched"]

T = TypeVar("T")
# A read of a socket that was shut down returns at once; a file takes no time.
_JOIN_TIMEOUT_SECONDS = 10.0


class _Connection(Protocol):
    def abort(self) -> None: ...


class ReadCancelledError(Exception):
    """The reading was cancelled; ends the thread, and is not seen outside it."""


class CancelToken:
    """Cancels a reading from another thread.

    Attributes
    ----------
    stopped : the reading is cancelled.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._connection: _Connection | None = None

    def check(self) -> None:
        """Raise ReadCancelledError if cancelled; called before connecting."""
        if self.stopped:
            raise ReadCancelledError

    def watch(self, connection: _Connection) -> None:
        """Register the connection that is being read."""
        self._connection = connection
        if self.stopped:
            connection.abort()

    def release(self) -> None:
        """Deregister the connection, which was read to the end and is intact."""
        self._connection = None

    def stop(self) -> None:
        """Cancel; may be called from any thread, repeatedly.

        A reader of the watched connection loses it, with LostConnectionError. A reader that
        connects later is stopped by `check`, or by `watch`.
        """
        self.stopped = True
        connection = self._connection
        if connection is not None:
            connection.abort()


def prefetched(
    make: Callable[[CancelToken], Generator[T]], size: Callable[[T], int], most: int
) -> Generator[T]:
    """Yield what `make` yields, generated in a thread.

    The next item is generated while the waiting items and the current one are smaller than `most`
    in total. Errors are raised here, after the items before them. Closing this generator ends the
    thread, by `CancelToken`.
    """
    interrupt = CancelToken()
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
            # The consumer must hold the only reference to an item.
            taken = [item]
            del item
            yield taken.pop()
    finally:
        queue.close()
        interrupt.stop()
        thread.join(_JOIN_TIMEOUT_SECONDS)


class _Queue(Generic[T]):
    """Passes items from one thread to another."""

    def __init__(self, size: Callable[[T], int], most: int) -> None:
        self._size_of = size
        self._most = most
        self._changed = Condition()
        self._items: deque[T] = deque()
        # The size of the items, and of the last one taken.
        self._size = self._taken = 0
        self._ended = self._closed = False
        self._error: BaseException | None = None

    def has_room(self) -> bool:
        """Wait for capacity; False if the consumer has ended."""
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
        """Wait for the next item; None at the end, or raise the error that ended it."""
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
