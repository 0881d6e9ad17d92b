"""What a stream's reader carries of a batch, handed over to a mirror in a folder of their machine.

The reader has the events in memory, in a process of its own; the mirror wants their rows. Spark's
way from one to the other takes a task and its process, whose start may take seconds, and packets
through the JVM. A file takes milliseconds. Where the mirror finds none, or one of another batch, it
goes the other ways: on another machine there is no such folder, and a reader that began anew no
longer has the events, and writes nothing.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.ranges.handoff_format import (
    HandoffFormatError,
    pack_handoff,
    unpack_handoff,
)
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition

__all__ = ["HANDOFF_OPTION", "BatchHandoff"]

# Among a stream's options: the folder. A mirror gives it; it is no option of users.
HANDOFF_OPTION = "handover"


class BatchHandoff:
    """One batch at a time.

    Parameters
    ----------
    folder : of one query and one user. Row data is in it, so that others must not read it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._has_worked = False
        self._file = Path(folder) / "batch"
        self._taken: tuple[tuple[Offset, Offset], Sequence[RangePartition]] | None = None

    @classmethod
    def new(cls, parent: str | None = None) -> BatchHandoff | None:
        """One in a new folder, or None where no folder can be made.

        parent : where folders are made; such a folder goes with this object. None for the usual
            place of temporary ones, and until this process ends.
        """
        try:
            made = cls(tempfile.mkdtemp(prefix="mysqlbinlog-", dir=parent))
        except OSError:
            return None
        if parent is None:
            # What Spark Connect copied goes on when this object is gone.
            atexit.register(shutil.rmtree, made.folder, ignore_errors=True)
        else:
            weakref.finalize(made, shutil.rmtree, made.folder, ignore_errors=True)
        return made

    def works(self) -> bool:
        """Whether batches come this way."""
        return self._has_worked and self._is_ours()

    def give(self, first: Offset, last: Offset, ranges: Sequence[RangePartition]) -> None:
        """Hand a batch over, if all of it is carried and the folder is there."""
        is_inline = all(part.blocks is not None and part.log is None for part in ranges)
        if not is_inline or not self._is_ours():
            return
        written = self._file.with_suffix(".new")
        try:
            written.write_bytes(pack_handoff(first, last, ranges))
            written.replace(self._file)
        except OSError:
            # The batch comes another way then.
            with suppress(OSError):
                written.unlink()

    def take(self, first: Offset, last: Offset) -> Sequence[RangePartition] | None:
        """The ranges of the batch between two offsets; None where they were not handed over.

        The file is removed, and they are kept until another batch is taken.
        """
        batch = first, last
        if self._taken is None or self._taken[0] != batch:
            self._taken = self._read()
        if self._taken is None or self._taken[0] != batch:
            return None
        self._has_worked = True
        return self._taken[1]

    def _read(self) -> tuple[tuple[Offset, Offset], Sequence[RangePartition]] | None:
        if not self._is_ours():
            return None
        try:
            held = self._file.read_bytes()
            self._file.unlink()
            first, last, ranges = unpack_handoff(held)
        except (OSError, HandoffFormatError):
            return None
        return (first, last), ranges

    def _is_ours(self) -> bool:
        """Whether the folder is there, belongs to this user, and is closed to all others."""
        try:
            found = os.lstat(self.folder)
        except OSError:
            return False
        # Windows has no users by number, and no modes.
        is_private = os.name != "posix" or (
            found.st_uid == os.getuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        )
        return stat.S_ISDIR(found.st_mode) and is_private
