"""Detects compactions after which a Delta table has rows twice.

Two compactions that begin at the same version remove the same files, and each adds a file with
their rows. Delta for Spark rejects the second of them. delta-rs 1.6.6 commits it after the first
one (measured: each of 150 pairs; 1.6.3 rejected it), so every row of those files is in the table
twice, and no commit shows changed rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Commit", "removed_files", "repeated_compaction"]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a Delta log.

    Attributes
    ----------
    version : the table's version after it.
    operation : as Delta names it; None if the writer did not record it.
    read_version : the version that the writer read; None if the writer did not record it.
    """

    version: int
    operation: str | None
    read_version: int | None = None

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Self:
        """Return a commit from the `commitInfo` of a table's history."""
        read = info.get("readVersion")
        return cls(int(info["version"]), info.get("operation"), None if read is None else int(read))


def repeated_compaction(
    commits: Iterable[Commit], removed: Callable[[int], AbstractSet[str]]
) -> Commit | None:
    """Return the first commit that compacted files which another commit had removed; else None.

    removed : returns the files that the commit of a version removed.
    """
    for commit in sorted(commits, key=lambda each: each.version):
        if commit.operation != "OPTIMIZE" or commit.read_version is None:
            continue
        # Usually the version that it read is the previous one: then no file is read.
        between = range(commit.read_version + 1, commit.version)
        if any(not removed(commit.version).isdisjoint(removed(each)) for each in between):
            return commit
    return None


def removed_files(lines: Iterable[str]) -> frozenset[str]:
    """Return the files that a commit removed.

    lines : of its file in the Delta log.
    """
    actions = (json.loads(line) for line in lines if line.strip())
    return frozenset(action["remove"]["path"] for action in actions if "remove" in action)
