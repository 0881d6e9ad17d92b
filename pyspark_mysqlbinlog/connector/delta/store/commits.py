"""Commits on the very version that decisions are based on; the same for both engines.

What is written follows from rows and commit markers that were read. If another writer has committed
since without changing rows, the commit is tried again on its version; else the batch fails.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit, repeated_compaction
from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import (
    RESTORED,
    is_restored,
    repeated_compaction_reason,
)

__all__ = ["CommittingTarget", "commit_conflict_error"]

# How often a commit is attempted if such commits of others precede it each time.
_MAX_COMMIT_ATTEMPTS = 5

T = TypeVar("T")


class CommittingTarget(ABC):
    """The versions of one Delta table, which may not exist yet."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        # The version that decisions are based on: of the first read or the last commit. None if it
        # is not known, after an error, what was written.
        self._expected_version: int | None = None

    @abstractmethod
    def _newest_version(self) -> int:
        """Return the newest version, of any writer; the table exists."""

    @abstractmethod
    def _history(self, count: int) -> Sequence[Commit]:
        """Return the last commits, the newest first."""

    @abstractmethod
    def _commits_after(self, version: int) -> Sequence[Commit]:
        """Return the commits after a version, the newest first, as far as Delta still has them."""

    @abstractmethod
    def _removed_files(self, version: int) -> AbstractSet[str]:
        """Return the files that the commit of a version removed."""

    @abstractmethod
    def _is_conflict(self, error: Exception) -> bool:
        """Return whether a commit failed because another one may have preceded it."""

    @abstractmethod
    def _there(self) -> object:
        """Return the table, which must exist, as one of the engine's objects."""

    def _until_committed(self, attempt: Callable[[int], T]) -> T:
        """Return the result of `attempt`, which commits; calls it again after others' commits.

        attempt : called with the newest version. It checks the commits of others up to the version
            that it writes on (see `foreign_writes`), and makes that the expected one.
        """
        for _ in range(_MAX_COMMIT_ATTEMPTS):
            version = self._newest_version()
            try:
                return attempt(version)
            except Exception as error:
                known, self._expected_version = self._expected_version, None
                version = max(version, version if known is None else known)
                if not self._is_conflict(error) or self._newest_version() == version:
                    raise
                self._expected_version = known
        raise commit_conflict_error(self.uri)

    def version(self) -> int:
        """Return the version that decisions are based on; the table must exist."""
        self._there()
        assert self._expected_version is not None
        return self._expected_version

    def was_restored(self) -> bool:
        """Return whether an older version of its rows was restored."""
        return is_restored(lambda count: [each.operation for each in self._history(count)])

    def damage_since(self, version: int) -> str | None:
        """Return why its rows are wrong after others' commits since a version; else None.

        The history is read once.
        """
        commits = self._commits_after(version)
        if is_restored(lambda count: [each.operation for each in commits[:count]]):
            return RESTORED
        repeated = repeated_compaction(commits, self._removed_files)
        return None if repeated is None else repeated_compaction_reason(repeated)


def commit_conflict_error(uri: str) -> RuntimeError:
    """Return the error for a commit that others' commits have preceded each time."""
    return RuntimeError(
        f"{uri}: another writer committed {_MAX_COMMIT_ATTEMPTS} times while one commit was being"
        " written; compact the table less often"
    )
