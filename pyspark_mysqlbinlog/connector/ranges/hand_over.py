"""What a stream's reader carries of a batch, handed over to a mirror in a folder of their machine.

The reader has the events in memory, in a process of its own; the mirror wants their rows. Spark's
way from one to the other takes a task and its process, whose start may take seconds, and packets
through the JVM. A file takes milliseconds. Where the mirror finds none, or one of another batch,
Spark's way is still there: on another machine there is no such folder, and a reader that began
anew, and has the events no longer, writes nothing.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.connector.ranges.cutting import RangePartition

__all__ = ["HAND_OVER", "HandOver", "new_folder"]

# Among a stream's options: the folder. A mirror gives it; it is no option of users.
HAND_OVER = "handOver"

Batch = tuple[Offset, Offset]


def new_folder(owner: object) -> str:
    """A folder that goes with its owner."""
    folder = tempfile.mkdtemp(prefix="mysqlbinlog-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


class HandOver:
    """One batch at a time.

    Parameters
    ----------
    folder : of the mirror's user alone, and of one query.
    """

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "batch"
        self._taken: tuple[Batch, Sequence[RangePartition]] | None = None

    def give(self, first: Offset, last: Offset, ranges: Sequence[RangePartition]) -> None:
        """Hand a batch over, if all of it is carried and the folder is there."""
        if not ranges or any(part.blocks is None for part in ranges):
            return
        written = self._file.with_suffix(".new")
        try:
            written.write_bytes(pickle.dumps(((first, last), tuple(ranges))))
            written.replace(self._file)
        except OSError:
            # Spark's way is left.
            return

    def take(self, first: Offset, last: Offset) -> Sequence[RangePartition] | None:
        """The ranges of the batch between two offsets; None where they were not handed over.

        They can be taken again until another batch is.
        """
        batch = first, last
        if self._taken is None or self._taken[0] != batch:
            self._taken = None
            try:
                if hasattr(os, "getuid") and self._file.stat().st_uid != os.getuid():
                    return None
                self._taken = pickle.loads(self._file.read_bytes())  # noqa: S301 (our user's own)
                self._file.unlink()
            except OSError:
                return None
        assert self._taken is not None
        given, ranges = self._taken
        return ranges if given == batch else None
