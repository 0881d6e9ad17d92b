"""Handoff of a batch's inline ranges from a stream's reader to a mirror, by a file.

The reader has the events in memory, in its own process; the mirror needs their rows. Spark's path
between them needs a task and its process, whose start may take seconds, and IPC messages through
the JVM. A file takes milliseconds. If the mirror finds no file, or one of another batch, it reads
the batch otherwise: on another machine there is no such folder, and a restarted reader no longer
has the events and writes no file.
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

# The folder, passed among a stream's options, whose names Spark passes in lower case. Set by a
# mirror; not an option for users.
HANDOFF_OPTION = "__handoffdirectory"


class BatchHandoff:
    """Writes and reads one batch at a time.

    Parameters
    ----------
    folder : of one query and one user. It contains row data, so other users must not read it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._has_worked = False
        self._file = Path(folder) / "batch"
        self._taken: tuple[tuple[Offset, Offset], Sequence[RangePartition]] | None = None

    @classmethod
    def new(cls, parent: str | None = None) -> BatchHandoff | None:
        """Create one in a new folder; None if no folder can be created.

        parent : where to create the folder, which is removed with this object. None for the usual
            directory for temporary files; then it is removed when the process ends.
        """
        try:
            made = cls(tempfile.mkdtemp(prefix="mysqlbinlog-", dir=parent))
        except OSError:
            return None
        if parent is None:
            # Copies that Spark Connect makes remain in use when this object is removed.
            atexit.register(shutil.rmtree, made.folder, ignore_errors=True)
        else:
            weakref.finalize(made, shutil.rmtree, made.folder, ignore_errors=True)
        return made

    def is_active(self) -> bool:
        """Whether batches can be handed off this way."""
        return self._has_worked and self._is_ours()

    def write(self, first: Offset, last: Offset, ranges: Sequence[RangePartition]) -> None:
        """Write a batch, if all its ranges are inline and the folder exists."""
        is_inline = all(part.blocks is not None and part.log is None for part in ranges)
        if not is_inline or not self._is_ours():
            return
        written = self._file.with_suffix(".new")
        try:
            written.write_bytes(pack_handoff(first, last, ranges))
            written.replace(self._file)
        except OSError:
            # The batch is then read otherwise.
            with suppress(OSError):
                written.unlink()

    def read(self, first: Offset, last: Offset) -> Sequence[RangePartition] | None:
        """Return the ranges of the batch between two offsets; None if there is no file of it.

        Removes the file, and keeps the ranges until another batch is read.
        """
        batch = first, last
        if self._taken is None or self._taken[0] != batch:
            self._taken = self._read_file()
        if self._taken is None or self._taken[0] != batch:
            return None
        self._has_worked = True
        return self._taken[1]

    def _read_file(self) -> tuple[tuple[Offset, Offset], Sequence[RangePartition]] | None:
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
        """Whether the folder exists, belongs to this user, and is closed to all others."""
        try:
            found = os.lstat(self.folder)
        except OSError:
            return False
        # Windows has no numeric users and no modes.
        is_private = os.name != "posix" or (
            found.st_uid == os.getuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        )
        return stat.S_ISDIR(found.st_mode) and is_private
