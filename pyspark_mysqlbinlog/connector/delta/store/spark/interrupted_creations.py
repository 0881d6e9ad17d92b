"""Removes what a CREATE TABLE leaves at a managed table's location if its process is killed.

Delta writes the first version of the table before the catalog gets its entry. Then the catalog has
no table, and Delta rejects the location at the next start because it has files. Such a location
contains only a Delta log, at most with that first version, which names its MySQL table. It is
removed. Everything else stays: it may have rows.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession

from pyspark_mysqlbinlog.connector.delta.store.places.names import SOURCE_TABLE
from pyspark_mysqlbinlog.connector.delta.store.spark.memory import release
from pyspark_mysqlbinlog.connector.delta.store.spark.sessions import active_session
from pyspark_mysqlbinlog.names import Table

__all__ = ["remove_interrupted_creation"]

_DELTA_LOG = "_delta_log"


def remove_interrupted_creation(spark: SparkSession, location: str, source: Table) -> bool:
    """Remove what an interrupted creation left; False if the location has anything else.

    location : URI of the table's folder.
    source : the MySQL table of the table that is to be created there.
    """
    session: Any = spark
    jvm = session._jvm
    folder = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(location))
    files = folder.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    if any(status.getPath().getName() != _DELTA_LOG for status in files.listStatus(folder)):
        return False
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog
    with active_session(spark):
        delta_log.invalidateCache(session._jsparkSession, folder)
        found = delta_log.forTableWithSnapshot(session._jsparkSession, folder)
        snapshot = found._2()
        try:
            version: int = snapshot.version()
            is_left = version < 0 or (version == 0 and _source_of(snapshot) == ".".join(source))
        finally:
            release(spark, snapshot, found)
        if is_left:
            files.delete(folder, True)
            delta_log.invalidateCache(session._jsparkSession, folder)
    return is_left


def _source_of(snapshot: Any) -> str | None:
    """Return the MySQL table of a version of a Delta table, as far as it is recorded."""
    properties: dict[str, str] = json.loads(snapshot.metadata().json())["metaData"]["configuration"]
    return properties.get(SOURCE_TABLE)
