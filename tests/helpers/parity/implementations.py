"""An event decoder of the implementation under test (see the fixture `implementation`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.position import file_number
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events
from pyspark_mysqlbinlog.protocol.events import Event

__all__ = ["DecodesEvents", "blocks_of", "make_decoder"]

_MOST_EVENTS = 100


class DecodesEvents(Protocol):
    """The common interface of both implementations."""

    def decode(self, events: Iterable[Event]) -> Iterator[pa.RecordBatch]:
        """Decode a range; each call starts afresh."""


def make_decoder(*given: Any, **settings: Any) -> DecodesEvents:
    """Return a decoder, with the parameters of `Decoder`; files are numbered by extension."""
    settings.setdefault("file_ordinal", file_number)
    if implementation() == "python":
        return Decoder(*given, **settings)
    return _OfBlocks(*given, **settings)


class _OfBlocks:
    """The compiled decoder, fed with events."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        # Its module can't be imported without the kernel.
        from pyspark_mysqlbinlog.decoder.kernel.decoder import KernelDecoder

        self._decoder = KernelDecoder(Decoder(*given, **settings))

    def decode(self, events: Iterable[Event]) -> Iterator[pa.RecordBatch]:
        return self._decoder.decode(blocks_of(events))


def blocks_of(events: Iterable[Event], most: int = _MOST_EVENTS) -> Iterator[EventBlock]:
    """Yield the events in blocks of at most `most`.

    Events of tests may have any positions; within a block, positions must increase.
    """
    together: list[Event] = []
    for event in events:
        if together and (len(together) == most or event.end <= together[-1].end):
            yield from pack_events(together)
            together = []
        together.append(event)
    yield from pack_events(together)
