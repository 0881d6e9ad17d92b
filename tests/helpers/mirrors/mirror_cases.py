"""Cases of what one kind of server has, each in a database of one mirror: equal to SELECT."""

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

# Statements, each on lines of its own with a semicolon: what is there when the mirror begins, and
# what changes then.
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
    """The databases by their cases, when a mirror has applied all of it.

    snapshot : the mirror reads the tables first; else it follows the log from before they are made.
    options : more of the source.
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
    """Each of so many tables has the columns, types and rows that SELECT shows."""
    schemas = schemas_of(mirrored.server, mirrored.database)
    assert len(schemas) == count, [schema.table for schema in schemas]
    for schema, rows in zip(schemas, selected(mirrored.server, *schemas), strict=True):
        settings = mirrored.delta(schema.table).metadata().configuration
        assert not settings.get("mysqlbinlog.stopped"), settings
        path = mirrored.folder / "lake" / mirrored.database / schema.table
        assert_same_rows(path, schema, rows)
