"""Commit markers in the form that Delta for Spark can write (see `commit_markers`).

Spark writes one transaction identifier per commit, and a marker has four numbers. So a commit has
the boundary as the identifier of an application of this table, and all numbers in its user
metadata, which the same commit writes. A table property names the application, and has the numbers
at the time when it was written::

    property  {"application": "mysqlbinlog:spark:5f…", "log": "mysqlbinlog:…:0", "numbers": {…}}
    commit    txn mysqlbinlog:spark:5f… = boundary
              userMetadata {"commit": "7b…", "application": "mysqlbinlog:spark:5f…", "numbers": {…}}

The application's newest commit counts. Delta deletes commits after `delta.logRetentionDuration` (a
month) but keeps identifiers: then the boundary is still known, but not the fingerprint of its
binlog. An identifier's number only grows: if a snapshot restarts the numbers, the property names
another application.

`commit` is unique. Delta for Spark moves a commit after those of other writers, so a version number
does not identify the mirror's own commit; this id does.

Both engines read this. delta-rs, which can write any number of identifiers, sets the property to
empty when it writes such a table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = [
    "COMMIT_MARKERS",
    "IDENTIFIERS",
    "MetadataMarkers",
    "has_commit_id",
    "is_application",
    "user_metadata",
]

# A property of a Delta table.
COMMIT_MARKERS = "mysqlbinlog.commitMarkers"
# The prefix of a marker's identifiers.
IDENTIFIERS = "mysqlbinlog:"
_APPLICATIONS = f"{IDENTIFIERS}spark:"


@dataclass(frozen=True, slots=True)
class MetadataMarkers:
    """The contents of the property.

    Attributes
    ----------
    application : the application of later commits.
    log : identifier of the binlog's boundary.
    numbers : identifier -> number.
    """

    application: str
    log: str
    numbers: Mapping[str, int]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """Parse a table's properties; None without the property."""
        text = properties.get(COMMIT_MARKERS)
        if not text:
            return None
        kept = json.loads(text)
        return cls(kept["application"], kept["log"], kept["numbers"])

    @classmethod
    def new(cls, log: str, numbers: Mapping[str, int]) -> Self:
        """Create markers with an application that no table has."""
        return cls(f"{_APPLICATIONS}{uuid.uuid4()}", log, numbers)

    @property
    def text(self) -> str:
        """The property's value."""
        kept = {"application": self.application, "log": self.log, "numbers": dict(self.numbers)}
        return json.dumps(kept)

    def commit_metadata(self, numbers: Mapping[str, int], commit_id: str | None = None) -> str:
        """Return the user metadata of a commit."""
        kept = {"application": self.application, "numbers": dict(numbers)}
        return json.dumps(kept if commit_id is None else {"commit": commit_id, **kept})

    def latest(
        self, commits: Iterable[str | None], boundary: int | None, known: Mapping[str, int]
    ) -> Mapping[str, int]:
        """Return the numbers of the newest of these commits.

        commits : the user metadata of each, the newest first.
        boundary : number of the application's identifier; None if it has none.
        known : the numbers before these commits.
        """
        found = next(filter(None, map(self._numbers_of, commits)), known)
        if boundary is None or boundary <= found.get(self.log, -1):
            return found
        # The commit was deleted. Numbers that describe an earlier boundary are no longer valid.
        of_boundary = f"{self.log}:"
        kept = {name: found[name] for name in found if not name.startswith(of_boundary)}
        return kept | {self.log: boundary}

    def _numbers_of(self, metadata: str | None) -> dict[str, int] | None:
        parsed = _parsed(metadata)
        if parsed.get("application") != self.application:
            return None
        numbers: dict[str, int] = parsed["numbers"]
        return numbers


def user_metadata(commit_id: str) -> str:
    """Return the user metadata of a commit without a marker."""
    return json.dumps({"commit": commit_id})


def has_commit_id(metadata: str | None, commit_id: str) -> bool:
    """Return whether a commit with this user metadata has the id."""
    return _parsed(metadata).get("commit") == commit_id


def _parsed(metadata: str | None) -> Mapping[str, Any]:
    try:
        parsed = json.loads(metadata or "null")
    except ValueError:
        return {}  # written by something else
    return parsed if isinstance(parsed, dict) else {}


def is_application(identifier: str) -> bool:
    """Return whether an identifier is a table's application, not an identifier of a marker."""
    return identifier.startswith(_APPLICATIONS)
