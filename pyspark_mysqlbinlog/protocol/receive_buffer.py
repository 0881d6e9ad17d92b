"""Raw events as they come off a socket or a disk: many at a time, in one buffer that is used again.

The compiled scan takes what it can straight out of the buffer. What it leaves is read event by
event, as if there were no buffer. So memory is the buffer, and the one event that is read.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["EventStream", "ReceiveBuffer"]

# Larger than most transactions, so that few are cut, and small enough for a processor's cache.
_CAPACITY = 1 << 19


class EventStream(Protocol):
    """Raw events of a dump or a file.

    Attributes
    ----------
    packets : they come as a dump's packets, else back to back.
    """

    packets: bool

    def view(self) -> memoryview:
        """The bytes that are there and not consumed."""
        ...

    def consume(self, size: int) -> None:
        """Go on behind the first `size` bytes; they stay in place until `fill`."""
        ...

    def fill(self) -> bool:
        """Wait for more bytes; False when there is no room for them, or none will come."""
        ...

    def next_event(self) -> bytes | None:
        """One raw event, however large; None at the end."""
        ...


class ReceiveBuffer(io.RawIOBase):
    """Bytes that were received and are not consumed.

    Parameters
    ----------
    receive : waits for bytes and puts some into the memory that it is given; 0 at the end.
    """

    def __init__(self, receive: Callable[[memoryview], int], capacity: int = _CAPACITY) -> None:
        super().__init__()
        self._receive = receive
        self._memory = memoryview(bytearray(capacity))
        self._start = 0
        self._end = 0

    def view(self) -> memoryview:
        return self._memory[self._start : self._end]

    def consume(self, size: int) -> None:
        assert size <= self._end - self._start
        self._start += size

    def fill(self) -> bool:
        """Wait for more bytes; False when there is no room for them, or none will come."""
        size = self._end - self._start
        if size == len(self._memory):
            return False
        if self._start:
            self._memory[:size] = self._memory[self._start : self._end]
            self._start, self._end = 0, size
        received = self._receive(self._memory[size:])
        self._end += received
        return received > 0

    def take(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end only."""
        if self._start == self._end and size < len(self._memory):
            self.fill()
        start, behind = self._start, self._start + size
        if behind <= self._end:
            self._start = behind
            return self._memory[start:behind].tobytes()
        # Into memory of its own, without a second copy.
        direct = io.BufferedReader(self, 1)
        try:
            return direct.read(size)
        finally:
            direct.detach()

    def clear(self) -> None:
        """Forget what is there: the reading goes on elsewhere."""
        self._start = self._end = 0

    # --- for `take` of what is not all there

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        memory = memoryview(buffer).cast("B")
        size = min(self._end - self._start, len(memory))
        if not size:
            return self._receive(memory)
        memory[:size] = self._memory[self._start : self._start + size]
        self._start += size
        return size
