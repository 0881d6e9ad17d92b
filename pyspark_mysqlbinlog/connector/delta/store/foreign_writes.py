"""Checks commits by other writers: whether they leave the rows unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit, repeated_compaction
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["RESTORED", "check_no_foreign_writes", "is_restored", "repeated_compaction_reason"]

RESTORED = "an older version of its rows was restored"

# Operations, as Delta names them, that other writers may commit: they leave the rows unchanged.
_ROW_PRESERVING_OPERATIONS = frozenset(
    {
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "ADD FEATURE",
        "UPGRADE PROTOCOL",
    }
)
# Limit of the commits inspected to find one that changed rows: each batch has one.
_MAX_INSPECTED_COMMITS = 20


def check_no_foreign_writes(
    uri: str, commits: Sequence[Commit], count: int, removed: Callable[[int], AbstractSet[str]]
) -> None:
    """MirrorError if others changed a table's rows since the mirror's last commit, or may have.

    The next write is based on the earlier rows and commit markers.

    commits : since then, as far as Delta still has them.
    count : how many there were.
    removed : returns the files that the commit of a version removed.
    """
    others = sorted({str(each.operation) for each in commits} - _ROW_PRESERVING_OPERATIONS)
    if others or len(commits) != count:
        raise MirrorError(
            f"another writer has changed {uri} since the mirror's last commit"
            f" ({', '.join(others) or 'its commit is no longer in the Delta log'}): let only one"
            " mirror write it, and reload the table"
        )
    if (repeated := repeated_compaction(commits, removed)) is not None:
        raise MirrorError(f"{uri}: {repeated_compaction_reason(repeated)}, and reload the table")


def repeated_compaction_reason(commit: Commit) -> str:
    """Return why a table with such a compaction has wrong rows, and how to prevent it."""
    return (
        f"rows are in the table twice: version {commit.version} compacted files that another"
        f" compaction had replaced after version {commit.read_version}, as delta-rs 1.6.6 does;"
        " let only one program compact the table"
    )


def is_restored(last: Callable[[int], Sequence[str | None]]) -> bool:
    """Return whether the last commit that changed rows restored those of an older version.

    Transaction identifiers stay, so the table appears to be complete.

    last : returns the operations of so many of the last commits, the newest first.
    """
    # Usually it is the very last one; each commit is a file to read.
    for count in (1, _MAX_INSPECTED_COMMITS):
        changes = [each for each in last(count) if each not in _ROW_PRESERVING_OPERATIONS]
        if changes:
            return changes[0] == "RESTORE"
    return False
