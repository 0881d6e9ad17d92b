"""A random mix of changes, written to a real MySQL by several connections at once.

The operations of each writer depend only on the seed (see `workload_writer`). The server determines
how the writers interleave. The changes that a consumer must receive are counted from the server's
answers (affected rows).
"""

from __future__ import annotations

from threading import Condition, Event, Thread
from time import monotonic
from typing import Self

from helpers.servers import Server
from helpers.waiting import patience
from helpers.writers.workload_writer import TABLES, Writer

__all__ = ["Workload"]


class Workload:
    """Writers that change the tables of one database until a quota of changes is used up.

    Parameters
    ----------
    database : must be empty; the tables are created here.
    writers : connections that write at the same time.
    rate : target of all writers together, in changes per second; None is as fast as possible.

    Attributes
    ----------
    changes : number of committed row changes of captured tables.
    rotations, rollbacks, transactions : numbers of these.
    """

    def __init__(
        self,
        server: Server,
        database: str,
        *,
        seed: int,
        writers: int = 2,
        rate: float | None = None,
    ) -> None:
        self.server = server
        self.database = database
        self.changes = self.transactions = 0
        self._quota = 0
        self._pause = 0.0 if rate is None else writers / rate
        self._changed = Condition()
        self._ended = Event()
        self._error: Exception | None = None
        server.execute(*TABLES, database=database)
        self._writers: list[Writer] = []
        self._threads = [
            Thread(target=self._run, args=(number, seed, writers), daemon=True)
            for number in range(writers)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def allow(self, changes: int) -> None:
        """Let the writers continue until `changes` changes are committed in total."""
        with self._changed:
            self._quota = changes
            self._changed.notify_all()

    @property
    def rotations(self) -> int:
        return sum(writer.rotations for writer in self._writers)

    @property
    def rollbacks(self) -> int:
        return sum(writer.rollbacks for writer in self._writers)

    @property
    def used_up(self) -> bool:
        """Whether the writers have reached the quota. Raises the error of a writer."""
        if self._error is not None:
            raise self._error
        return self.changes >= self._quota

    def finish(self, timeout: float = 300.0) -> None:
        """Wait until the quota is used up and all writers have ended."""
        with self._changed:
            finished = self._changed.wait_for(
                lambda: self._error is not None or self.changes >= self._quota, patience(timeout)
            )
        self._ended.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(patience(60))
        assert self.used_up
        assert finished
        assert not any(thread.is_alive() for thread in self._threads)

    def _run(self, number: int, seed: int, writers: int) -> None:
        try:
            with self.server.connect(database=self.database) as connection:
                writer = Writer(connection, number, seed, writers)
                self._writers.append(writer)
                while True:
                    with self._changed:
                        self._changed.wait_for(
                            lambda: self.changes < self._quota or self._ended.is_set()
                        )
                        if self._ended.is_set():
                            return
                    begun = monotonic()
                    done = writer.operation()
                    with self._changed:
                        self.changes += done
                        self.transactions += 1
                        self._changed.notify_all()
                    self._ended.wait(max(0.0, begun + done * self._pause - monotonic()))
        except Exception as error:  # noqa: BLE001 (raised by `used_up`)
            with self._changed:
                self._error = error
                self._changed.notify_all()
