"""Commits by other writers: which keep the rows as they are, and which do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from pyspark_mysqlbinlog.connector.delta.store.compactions import Commit, repeated_compaction
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["check_no_foreign_writes", "is_restored", "repeated_compaction_reason"]

# What others may do to a table that a mirror writes, as Delta names it: the rows stay as they are.
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
# As many are looked at, at most, to find one that changed rows: each batch has one.
_LAST_COMMITS = 20


def check_no_foreign_writes(
    uri: str, commits: Sequence[Commit], count: int, removed: Callable[[int], AbstractSet[str]]
) -> None:
    """MirrorError where others have changed a table's rows since the mirror's last commit, or may.

    What it is about to write was decided by the rows and marks of before.

    commits : since then, as far as Delta still has them.
    count : how many commits there were.
    removed : gives the files that the commit of a version removed.
    """
    others = sorted({str(each.operation) for each in commits} - _ROW_PRESERVING_OPERATIONS)
    if others or len(commits) != count:
        raise MirrorError(
            f"something else has written {uri} since the mirror's last commit"
            f" ({', '.join(others) or 'what it was is not told any more'}): let one mirror alone"
            " write it, and load the table anew"
        )
    if (repeated := repeated_compaction(commits, removed)) is not None:
        raise MirrorError(f"{uri}: {repeated_compaction_reason(repeated)}, and load the table anew")


def repeated_compaction_reason(commit: Commit) -> str:
    """Why a table that was compacted so has wrong rows, and what to do about the cause."""
    return (
        f"rows are in the table twice: version {commit.version} compacted files that another"
        f" compaction had replaced after version {commit.read_version}, as delta-rs 1.6.6 does;"
        " let one program alone compact the table"
    )


def is_restored(last: Callable[[int], Sequence[str | None]], most: int = _LAST_COMMITS) -> bool:
    """Whether the last commit that changed rows put back those of an older version.

    Transaction identifiers stay, so the table seems to have everything.

    last : gives the operations of so many of the last commits, the newest first.
    most : how many of them count.
    """
    # Mostly it is the very last: a commit is a file to read.
    for count in (1, _LAST_COMMITS):
        if most < 1:
            return False
        changes = [
            each for each in last(min(count, most)) if each not in _ROW_PRESERVING_OPERATIONS
        ]
        if changes:
            return changes[0] == "RESTORE"
    return False
