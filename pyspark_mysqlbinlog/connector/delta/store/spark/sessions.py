"""A Spark session for each thread that writes Delta tables, reused when its thread has ended.

The metadata of a commit is a setting of its session, and must not be used by another commit. A
thread makes one commit at a time, so each thread has a session, and not each table: a session takes
megabytes, and there may be thousands of tables. Each round of maintenance has a new thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock, Thread, current_thread
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["SparkSessions", "active_session", "is_classic"]


def is_classic(spark: SparkSession) -> bool:
    """Return whether a session is on a JVM of this process; Spark Connect sessions are not."""
    return hasattr(spark, "_jsparkSession")


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of the JVM's thread, because Delta reads its settings there."""
    given: Any = spark
    sessions = given._get_j_spark_session_class(given._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(given._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class SparkSessions:
    """Clones of a session, one for each thread that is alive.

    Parameters
    ----------
    settings : of each clone; None unsets one that the session has.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str | None]) -> None:
        self._spark = spark
        self._settings = dict(settings)
        self._held: dict[Thread, SparkSession] = {}
        self._lock = Lock()

    def of_thread(self) -> SparkSession:
        """Return the calling thread's session."""
        thread = current_thread()
        with self._lock:
            held = self._held.get(thread)
            if held is None:
                held = self._free() or self._cloned()
                # Also for a reused session: an interrupted thread may have left its settings.
                self._set(held)
                self._held[thread] = held
            return held

    def _free(self) -> SparkSession | None:
        """Return the session of a thread that has ended, and remove it."""
        ended = next((thread for thread in self._held if not thread.is_alive()), None)
        return None if ended is None else self._held.pop(ended)

    def _cloned(self) -> SparkSession:
        given: Any = self._spark
        return SparkSession(given.sparkContext, given._jsparkSession.cloneSession())

    def _set(self, session: SparkSession) -> None:
        for name, value in self._settings.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)
