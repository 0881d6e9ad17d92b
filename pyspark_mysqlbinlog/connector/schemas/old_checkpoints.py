"""A checkpoint of version 0.1: what it says of character sets is compared with the server, once.

Version 0.1 took 5.6's rule for every server: behind a CONVERT TO CHARACTER SET that changed no
column it kept the table's default, where 5.7 changes it (see `idle_conversion`). Such a history
looks like any other, and a text column that was added later has the old character set in it: its
rows are read wrong, without an error. So a history that 0.1 wrote is held against
information_schema, once: the offset of the next batch is of this version.

The server's answer counts where the log has no DDL of the table since. Where it has, the default is
not known from here on (a column that needs it makes the server be asked), and the table is not
where one of its columns has another character set today than in the checkpoint.

Nor did it know which columns are virtual (see `ColumnSchema.virtual`): the server's answer counts
in the same way, and where it does not, this stays unknown.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.logs import ServerLog
from pyspark_mysqlbinlog.connector.log.retry import known_server
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts
from pyspark_mysqlbinlog.names import Table, fold
from pyspark_mysqlbinlog.protocol.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["compared_with_server"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")


def compared_with_server(
    options: Options, history: SchemaHistory, position: Position
) -> SchemaHistory:
    """A history of version 0.1, mended from `position` on."""
    settings = options.server_settings()
    tables = {name for name in history.tables() if history.at(position, *name) is not None}
    if not tables:
        return history
    with known_server(options.retry_timeout, ReplicaClient.connect, settings) as client:
        found, _ = history_of_server(
            client,
            ServerLog.seen_from(settings, position),
            position,
            lambda *name: name in tables,
            case_sensitive=ServerFacts.ask(client).case_sensitive,
        )
    for name in sorted(tables):
        history = _compared(history, found, name, position)
    return history


def _compared(
    history: SchemaHistory, found: SchemaHistory, name: Table, position: Position
) -> SchemaHistory:
    old = history.at(position, *name)
    assert old is not None
    true = found.at(position, *name)
    if true is not None:  # no DDL since
        if _without_virtual(true) == _without_virtual(old):
            return history.with_table(position, true)
        _LOG.warning(
            "%s: %s in the checkpoint, which an earlier version wrote, and the server's is used"
            " from %s on; compare the rows that were written before with the server's, and load"
            " them again where they differ",
            old.full_name,
            _difference(old, true),
            position,
        )
        return history.with_table(position, true)
    versions = found.versions(*name)
    last = versions[-1][1] if versions else None
    if isinstance(last, TableSchema) and _difference_of_columns(old, last):
        return history.without(
            position,
            *name,
            f"the checkpoint was written by an earlier version and has"
            f" {_difference_of_columns(old, last)}; the table was altered since, so nobody tells"
            " which it was",
        )
    return history.with_table(position, replace(old, charset=None))


def _without_virtual(schema: TableSchema) -> TableSchema:
    """Version 0.1 did not know which columns are virtual, and it made no difference there."""
    return replace(
        schema, columns=tuple(replace(column, virtual=False) for column in schema.columns)
    )


def _difference(old: TableSchema, true: TableSchema) -> str:
    if columns := _difference_of_columns(old, true):
        return columns
    old, true = _without_virtual(old), _without_virtual(true)
    if old.columns == true.columns and old.charset != true.charset:
        return f"default character set {old.charset} instead of {true.charset}"
    return "other columns than the server's"


def _difference_of_columns(old: TableSchema, true: TableSchema) -> str:
    """The first column of both that has another character set; empty when there is none."""
    charsets = {fold(column.name): column.charset for column in true.columns}
    for column in old.columns:
        charset = charsets.get(fold(column.name))
        if column.charset and charset and charset != column.charset:
            return f"column {column.name!r} in {column.charset} instead of {charset}"
    return ""
