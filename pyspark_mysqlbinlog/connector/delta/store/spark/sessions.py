"""A Spark session for each thread that writes Delta tables, used again when its thread has ended.

What a commit writes down beside its rows is a setting of the session, and must be no other
commit's. A thread makes one commit after the other; so threads have sessions of their own, and
tables do not: a session takes megabytes, there may be thousands of tables, and each round of
maintenance has a new thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock, Thread, current_thread
from typing import Any

from pyspark.sql import SparkSession

__all__ = ["SparkSessions", "is_classic"]


def is_classic(spark: SparkSession) -> bool:
    """Whether a session has a JVM within reach; those of Spark Connect have none."""
    return hasattr(spark, "_jsparkSession")


class SparkSessions:
    """Clones of a session, one for each thread that is alive.

    Parameters
    ----------
    settings : of each clone; None takes back one that the session has.
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str | None]) -> None:
        self._spark = spark
        self._settings = dict(settings)
        self._held: dict[Thread, SparkSession] = {}
        self._lock = Lock()

    def of_thread(self) -> SparkSession:
        """That of the thread which asks."""
        thread = current_thread()
        with self._lock:
            held = self._held.get(thread)
            if held is None:
                held = self._free() or self._cloned()
                # Also of one that was used: who is interrupted may leave its settings behind.
                self._set(held)
                self._held[thread] = held
            return held

    def _free(self) -> SparkSession | None:
        """That of a thread which has ended, which holds it no longer."""
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
