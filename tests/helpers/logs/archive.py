"""A local copy of a server's binlog files, which grows as the server writes."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Event, Thread
from typing import Self

from helpers.servers import LocalServer

__all__ = ["Archive"]


class Archive:
    """A folder of binlog files, copied from the server in portions of random size.

    Parameters
    ----------
    since : the first file to copy; by default the one that the server writes now.

    Attributes
    ----------
    folder : contains the copies.
    """

    def __init__(
        self, server: LocalServer, folder: Path, *, since: str | None = None, seed: int = 0
    ) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._server = server
        self._random = random.Random(seed)
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._first = since or server.position()[0]

    def copy(self, *, whole: bool = True) -> None:
        """Copy the missing bytes of each file; without `whole`, a random part of them."""
        names = [name for name, _ in self._server.binlog_files()]
        for name in names[names.index(self._first) :] if self._first in names else names:
            self._copy(name, whole=whole)

    def _copy(self, name: str, *, whole: bool) -> None:
        assert self._server.datadir is not None
        path = self.folder / name
        known = path.stat().st_size if path.exists() else 0
        with (self._server.datadir / name).open("rb") as source:
            source.seek(known)
            more = source.read()
        if not whole:
            more = more[: self._random.randrange(len(more) + 1)]
        with path.open("ab") as file:
            file.write(more)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def __enter__(self) -> Self:
        """Copy in a thread until the end of the block."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.copy()

    def _run(self) -> None:
        while not self._ended.wait(self._random.random() / 5):
            self.copy(whole=False)
