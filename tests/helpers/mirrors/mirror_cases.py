"""Cases for one kind of server, each in its own database, replicated by one mirror."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from helpers.logs.live_log import schemas_of, selected
from helpers.mirrors.delta_mirrors import MirroredDatabase, MirroredDatabases
from helpers.mirrors.mirrored_rows import assert_same_rows
from helpers.servers import Server

__all__ = ["Cases", "assert_all_equal", "mirrored_cases"]

# Statements by case, each ended by a semicolon and a newline: those before the mirror's first run,
# and those after it.
Cases = Mapping[str, tuple[str, str]]


@contextmanager
def mirrored_cases(
    spark: SparkSession,
    server: Server,
    folder: Path,
    cases: Cases,
    *,
    snapshot: bool,
    **options: str,
) -> Iterator[dict[str, MirroredDatabase]]:
    """Yield the databases by case, after a mirror has applied all statements.

    snapshot : the mirror begins with a snapshot of the tables; otherwise it follows the binlog from
    before their creation.
    options : further options of the source.
    """
    databases = MirroredDatabases(spark, server, folder, "of_a_kind", len(cases))
    mirrored = dict(zip(cases, databases, strict=True))
    try:
        for case, (there, _) in cases.items():
            mirrored[case].execute(*_statements(there))
        if snapshot:
            options = {**options, "startingOffset": "snapshot"}
        databases[0].options |= options
        databases.run()
        for case, (_, changes) in cases.items():
            mirrored[case].execute(*_statements(changes))
        databases.run()
        yield mirrored
    finally:
        databases.drop()


def _statements(text: str) -> list[str]:
    return [each.strip() for each in text.split(";\n") if each.strip()]


def assert_all_equal(mirrored: MirroredDatabase, count: int) -> None:
    """Check that all `count` tables have the columns, types and rows that SELECT shows."""
    schemas = schemas_of(mirrored.server, mirrored.database)
    assert len(schemas) == count, [schema.table for schema in schemas]
    for schema, rows in zip(schemas, selected(mirrored.server, *schemas), strict=True):
        settings = mirrored.delta(schema.table).metadata().configuration
        assert not settings.get("mysqlbinlog.stopped"), settings
        path = mirrored.folder / "lake" / mirrored.database / schema.table
        assert_same_rows(path, schema, rows)
