"""Names of the Delta table properties, and texts that several errors share."""

from __future__ import annotations

__all__ = [
    "CHANGE_LOG_SOURCE",
    "FULL_IMAGES_HINT",
    "KEYED_SNAPSHOT_OF_KEYLESS_TABLE",
    "LAST_SNAPSHOT",
    "MERGE_KEY",
    "RELOAD_HINT",
    "SNAPSHOT_IN_PROGRESS",
    "SNAPSHOT_POSITION",
    "SOURCE_LOG",
    "STOPPED",
    "TRANSFORMS",
]

# Why the table is stopped.
STOPPED = "mysqlbinlog.stopped"
# A hash of the masks and the row filter, if the table's rows have any.
TRANSFORMS = "mysqlbinlog.transforms"
# The binlog of a mirror's `seq`.
SOURCE_LOG = "mysqlbinlog.sourceLog"
# The binlog that a change log's changes come from.
CHANGE_LOG_SOURCE = "mysqlbinlog.changeLogSource"
# Snapshot records (see `snapshot_record`): of the one in progress, and of the last complete one.
SNAPSHOT_IN_PROGRESS = "mysqlbinlog.snapshotInProgress"
LAST_SNAPSHOT = "mysqlbinlog.lastSnapshot"
# The position of a complete keyless snapshot, and its columns.
SNAPSHOT_POSITION = "mysqlbinlog.snapshotPosition"
# The names of the columns of the key that soft-deleted rows were kept by, sorted, as JSON.
MERGE_KEY = "mysqlbinlog.mergeKey"

RELOAD_HINT = "reload the table"
# Measured on MariaDB 11.8.9; 10.11 logs all columns.
FULL_IMAGES_HINT = (
    "set binlog_row_image=FULL everywhere (MariaDB 11.8 logs generated columns of inserted rows"
    f" only: name them in excludeColumns), and {RELOAD_HINT}"
)
KEYED_SNAPSHOT_OF_KEYLESS_TABLE = (
    "the table has no key at this position of the binlog, but its rows were read by a key: it was"
    " altered during its snapshot, or excludeColumns excludes a key column, or its key is unknown;"
    f" {RELOAD_HINT}, or start with a new checkpoint, which reads the schema again"
)
