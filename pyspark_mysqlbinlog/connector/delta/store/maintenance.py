"""Compacts and vacuums the Delta tables at intervals, concurrently with the batches.

A mirror commits about every second, and leaves small and old files. A separate thread rewrites
small files as larger ones and removes files of expired versions, table after table, while batches
continue: the second one to commit repeats its work (see `commits`). A table that is written
too often for a compaction to succeed is compacted between two batches.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from threading import Thread

from pyspark_mysqlbinlog.connector.delta.store.interface import Engine
from pyspark_mysqlbinlog.connector.delta.store.places.names import DeltaPlace

__all__ = ["MAINTENANCE_THREAD", "Maintenance"]

MAINTENANCE_THREAD = "delta files"
_LOG = logging.getLogger(__name__)
# After so many failed compactions in a row, one is made between batches.
MAX_LOST_COMPACTIONS = 3


class Maintenance:
    """Maintains the tables that `after_batch` names.

    Parameters
    ----------
    every : seconds between two rounds; the first begins that long after the first batch.
    """

    def __init__(self, engine: Engine, every: float) -> None:
        self._engine = engine
        self._every = every
        self._next: float | None = None
        self._thread: Thread | None = None
        self._lost_races: dict[DeltaPlace, int] = {}

    def after_batch(self, places: Iterable[DeltaPlace]) -> None:
        """Begin a round when it is due; waits only for tables that are never quiet."""
        now = time.monotonic()
        if self._next is None:
            self._next = now + self._every
        if now < self._next or (self._thread is not None and self._thread.is_alive()):
            return
        self._next = now + self._every
        places = sorted(places, key=str)
        busy = [each for each in places if self._lost_races.get(each, 0) >= MAX_LOST_COMPACTIONS]
        for place in busy:
            self._maintain(place)
        rest = [place for place in places if place not in busy]
        self._thread = Thread(
            target=self._round, args=(rest,), daemon=True, name=MAINTENANCE_THREAD
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait for the current round, if any."""
        if self._thread is not None:
            self._thread.join()

    def _round(self, places: Iterable[DeltaPlace]) -> None:
        for place in places:
            self._maintain(place)

    def _maintain(self, place: DeltaPlace) -> None:
        # A new object: those of the batches are for one thread.
        target = self._engine.target(place)
        try:
            if target.columns() is None:
                return
            if target.compact():
                self._lost_races.pop(place, None)
            else:
                self._lost_races[place] = self._lost_races.get(place, 0) + 1
            target.vacuum()
        except Exception as error:  # noqa: BLE001 (the rows are correct without it)
            _LOG.warning("%s: maintenance of its files failed: %s", place, error)
