"""Buffering of raw events from a socket or a disk: many at a time, in one reused buffer.

The compiled scan reads directly from the buffer. Events that it leaves are read one by one, as if
there were no buffer. Memory use is therefore the buffer and one event.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["CAPACITY", "EventStream", "ReceiveBuffer"]

# Larger than most transactions, so that few are split, and small enough for a processor's cache.
CAPACITY = 1 << 19
_MAX_TRUSTED_BYTES = 1 << 26


class EventStream(Protocol):
    """Raw events of a dump or a file.

    Attributes
    ----------
    packets : the events come as a dump's packets; otherwise back to back.
    """

    packets: bool

    def view(self) -> memoryview:
        """Return the bytes that were received and not consumed."""
        ...

    def consume(self, size: int) -> None:
        """Consume the first `size` bytes; they stay valid until `fill`."""
        ...

    def fill(self) -> bool:
        """Wait for more bytes; return False if the buffer is full, or at the end."""
        ...

    def next_event(self) -> bytes | None:
        """Return one raw event of any size; None at the end."""
        ...


class ReceiveBuffer(io.RawIOBase):
    """Bytes that were received and not consumed.

    Parameters
    ----------
    receive : waits for bytes and writes them to the given memory; returns their number, 0 at the
        end.
    """

    def __init__(self, receive: Callable[[memoryview], int], capacity: int = CAPACITY) -> None:
        super().__init__()
        self._receive = receive
        self._memory = memoryview(bytearray(capacity))
        self._start = 0
        self._end = 0

    @classmethod
    def holding(cls, content: memoryview) -> ReceiveBuffer:
        """Return a buffer with content, after which nothing is received."""
        buffer = cls(lambda _: 0, 0)
        buffer._memory, buffer._end = content, len(content)
        return buffer

    def view(self) -> memoryview:
        return self._memory[self._start : self._end]

    def consume(self, size: int) -> None:
        assert size <= self._end - self._start
        self._start += size

    def fill(self) -> bool:
        """Wait for more bytes; return False if the buffer is full, or at the end."""
        size = self._end - self._start
        if size == len(self._memory) or self._memory.readonly:
            return False
        if self._start:
            self._memory[:size] = self._memory[self._start : self._end]
            self._start, self._end = 0, size
        received = self._receive(self._memory[size:])
        self._end += received
        return received > 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        if self._start == self._end and size < len(self._memory):
            self.fill()
        start, stop = self._start, self._start + size
        if stop <= self._end:
            self._start = stop
            return self._memory[start:stop].tobytes()
        # The bytes are read into separate memory, without a second copy.
        direct = io.BufferedReader(self, 1)
        try:
            if size <= _MAX_TRUSTED_BYTES:
                return direct.read(size)
            # The size may be damaged: memory is taken only for bytes that exist.
            content = bytearray()
            while part := direct.read(min(size - len(content), _MAX_TRUSTED_BYTES)):
                content += part
            return bytes(content)
        finally:
            direct.detach()

    def clear(self) -> None:
        """Discard the buffered bytes, because reading continues elsewhere."""
        self._start = self._end = 0

    # --- used by `take` if not all bytes are buffered

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
