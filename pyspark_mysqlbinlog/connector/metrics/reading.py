"""A source's part of a query's progress, and the lag that follows from it at any moment.

Spark queries the source when it plans a batch, and publishes the answer when the batch is done: an
idle query publishes it every few seconds, a long batch at its end. So the lag at a moment is
derived from the last answer, and from whether a batch runs now:

* Changes that are not applied grow older: by the time since the answer.
* Everything may have been applied since: if nothing was missing, or if the batch reached the end
  that the server's binlog had. Then nothing is missing while the query is idle. If a batch runs, it
  has changes, which were made after the answer: they are at most that old.
* If an idle query has not answered for a minute, the lag is unknown.

The result is an upper bound of the age of the oldest change that is not applied. During a backlog
it is too large by at most the time that the last batch covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark_mysqlbinlog.connector.metrics.model import SnapshotMetrics, SourceMetrics

__all__ = ["STALE_AFTER_SECONDS", "Reading", "readings"]

STALE_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reading:
    """A source's part of one progress.

    Attributes
    ----------
    number : of the batch.
    at : when it was planned, in seconds since 1970 UTC.
    seconds_behind : age of the oldest change that was not applied then; None if unknown.
    reached_at : when the end of the server's binlog was observed, if the batch reached that end;
        otherwise None.
    rows : of the batch.
    batch_seconds : how long the batch took; None if there was none.
    """

    number: int
    at: float
    seconds_behind: int | None
    reached_at: float | None
    rows: int
    batch_seconds: float | None
    source: SourceMetrics

    def lag_at(self, now: float, *, is_running: bool) -> float | None:
        """Return the age of the oldest change that is not applied at a moment; None if unknown.

        is_running : whether a batch runs.
        """
        if self.seconds_behind is None:
            return None
        age = max(0.0, now - self.at)
        if self.seconds_behind and self.reached_at is None:
            return self.seconds_behind + age
        if is_running:
            # What the server logged after its end was observed may be missing as well.
            since = self.reached_at if self.seconds_behind else None
            return age if since is None else max(age, now - since)
        return 0.0 if age <= STALE_AFTER_SECONDS else None


def readings(progress: Mapping[str, Any]) -> Iterator[Reading]:
    """Yield the readings of this package's sources in a query's progress."""
    durations = progress.get("durationMs") or {}
    # Spark plans without a batch if there is nothing new.
    seconds = durations.get("triggerExecution", 0) / 1000 if "addBatch" in durations else None
    for each in progress.get("sources") or ():
        latest = each.get("latestOffset")
        if isinstance(latest, Mapping) and "bytes_behind" in latest:
            end = each.get("endOffset") or {}
            yield Reading(
                number=progress["batchId"],
                at=_seconds(progress["timestamp"]),
                seconds_behind=latest["seconds_behind"],
                reached_at=_reached_at(end, latest["server"]),
                rows=each.get("numInputRows") or 0,
                batch_seconds=seconds,
                source=_source(end, latest),
            )


def _reached_at(end: Mapping[str, Any], server: Mapping[str, Any] | None) -> float | None:
    if server is None or end.get("file") != server["file"] or end["pos"] < server["pos"]:
        return None
    return _seconds(server["observed_at"])


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _source(end: Mapping[str, Any], latest: Mapping[str, Any]) -> SourceMetrics:
    snapshot = latest.get("snapshot")
    return SourceMetrics(
        lag_bytes=latest["bytes_behind"],
        lag_files=latest.get("files_behind"),
        seconds_until_purge=latest.get("seconds_until_purge"),
        retention_left=latest.get("retention_left"),
        reconnects=latest.get("reconnects", 0),
        failovers=latest.get("failovers", 0),
        snapshot=(
            SnapshotMetrics(
                snapshot["tables_completed"],
                snapshot["tables_remaining"],
                snapshot["rows_read"],
                snapshot["estimated_seconds_left"],
            )
            # Without a snapshot this is the offset's field, an empty text.
            if isinstance(snapshot, Mapping)
            else None
        ),
        file=end.get("file", ""),
        pos=end.get("pos", 0),
    )
