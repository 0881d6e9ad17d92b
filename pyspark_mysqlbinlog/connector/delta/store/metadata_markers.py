"""How far a Delta table has come, as Delta for Spark can write it down (see `commit_markers`).

Spark writes one transaction identifier with a commit, and a mark has four numbers. So a commit has
the boundary as the identifier of an application of this table's own, and all numbers in its user
metadata, which is written by the same commit. A table property names the application, and has the
numbers as they were when it was written::

    property  {"application": "mysqlbinlog:spark:5f…", "log": "mysqlbinlog:…:0", "numbers": {…}}
    commit    txn mysqlbinlog:spark:5f… = boundary
              userMetadata {"commit": "7b…", "application": "mysqlbinlog:spark:5f…", "numbers": {…}}

The newest commit of the application tells. Delta forgets commits after `delta.logRetentionDuration`
(a month) and keeps identifiers: then the boundary is known still, and not what tells its log from
another one. An identifier's number only grows: where a load begins the numbers anew, the property
names another application.

`commit` is unique. Delta for Spark moves a commit after those that came in between, so a version
number does not identify the mirror's own commit; this id does.

Both engines read this. delta-rs, which writes any number of identifiers, ends it with an empty
property when it writes such a table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = [
    "IDENTIFIERS",
    "MARKS",
    "MetadataMarkers",
    "has_commit_id",
    "is_application",
    "user_metadata",
]

# A property of a Delta table.
MARKS = "mysqlbinlog.commitMarkers"
# What each identifier of a mark begins with.
IDENTIFIERS = "mysqlbinlog:"
_APPLICATIONS = f"{IDENTIFIERS}spark:"


@dataclass(frozen=True, slots=True)
class MetadataMarkers:
    """What the property says.

    Attributes
    ----------
    application : whose commits tell what came after.
    log : the identifier of the log's boundary.
    numbers : identifier -> number.
    """

    application: str
    log: str
    numbers: Mapping[str, int]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self | None:
        """What a table's properties say; None where they say nothing."""
        text = properties.get(MARKS)
        if not text:
            return None
        kept = json.loads(text)
        return cls(kept["application"], kept["log"], kept["numbers"])

    @classmethod
    def anew(cls, log: str, numbers: Mapping[str, int]) -> Self:
        """Of an application that no table has."""
        return cls(f"{_APPLICATIONS}{uuid.uuid4()}", log, numbers)

    @property
    def text(self) -> str:
        """As the property has it."""
        kept = {"application": self.application, "log": self.log, "numbers": dict(self.numbers)}
        return json.dumps(kept)

    def commit_metadata(self, numbers: Mapping[str, int], commit_id: str | None = None) -> str:
        """The user metadata of a commit."""
        kept = {"application": self.application, "numbers": dict(numbers)}
        return json.dumps(kept if commit_id is None else {"commit": commit_id, **kept})

    def newest(
        self, commits: Iterable[str | None], boundary: int | None, known: Mapping[str, int]
    ) -> Mapping[str, int]:
        """The numbers of the newest of these commits.

        commits : the user metadata of each, the newest first.
        boundary : the application's identifier; None where it has none.
        known : the numbers before these commits.
        """
        found = next(filter(None, map(self._numbers_of, commits)), known)
        if boundary is None or boundary <= found.get(self.log, -1):
            return found
        # The commit is forgotten. What was known of the boundary before it holds no more.
        of_boundary = f"{self.log}:"
        kept = {name: found[name] for name in found if not name.startswith(of_boundary)}
        return kept | {self.log: boundary}

    def _numbers_of(self, metadata: str | None) -> dict[str, int] | None:
        told = _parsed(metadata)
        if told.get("application") != self.application:
            return None
        numbers: dict[str, int] = told["numbers"]
        return numbers


def user_metadata(commit_id: str) -> str:
    """The user metadata of a commit without a mark."""
    return json.dumps({"commit": commit_id})


def has_commit_id(metadata: str | None, commit_id: str) -> bool:
    """Whether a commit with this user metadata has the id."""
    return _parsed(metadata).get("commit") == commit_id


def _parsed(metadata: str | None) -> Mapping[str, Any]:
    try:
        told = json.loads(metadata or "null")
    except ValueError:
        return {}  # written by something else
    return told if isinstance(told, dict) else {}


def is_application(identifier: str) -> bool:
    """Whether it is no identifier of a mark's, but an application of a table's own."""
    return identifier.startswith(_APPLICATIONS)
