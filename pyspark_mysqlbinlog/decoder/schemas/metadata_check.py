"""Check that the metadata in a table map agrees with the schema that was followed.

Other than types and lengths (see `table_map_check`), metadata shows whether the schema is right:
names, signs, character sets and labels, of which a server with binlog_row_metadata=MINIMAL sends
only signs and the character sets of texts. It describes the columns at exactly its event. If the
followed schema says otherwise, a statement was not followed as the server executed it, and rows of
tables without complete metadata may be wrong as well: so the contradiction is an error, not a
reason to prefer one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_mysqlbinlog.charsets import canonical_charset
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import Metadata
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import check_fit
from pyspark_mysqlbinlog.errors import SchemaMismatchError, UnknownSchemaError
from pyspark_mysqlbinlog.names import fold
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["check_metadata"]


def check_metadata(table_map: TableMap, schema: TableSchema, *, is_mariadb: bool) -> None:
    """Raise SchemaMismatchError if a table map with metadata contradicts a schema.

    Raises MalformedEventError for metadata that does not fit its own columns.
    """
    if not table_map.optional:
        return
    check_fit(table_map, schema)
    metadata = Metadata(table_map, is_mariadb=is_mariadb)
    for index, what, expected, found in _differences(metadata, schema):
        raise SchemaMismatchError(
            f"column {index + 1} `{schema.columns[index].name}`: expected {what} {expected}, found"
            f" {found} in the table map's metadata; the schema is of another time: start from a"
            " position after the table's last ALTER, or correct the file of schemaDdl, or exclude"
            " the table",
            table=table_map.full_name,
        )


def _differences(
    metadata: Metadata, schema: TableSchema
) -> Iterator[tuple[int, str, object, object]]:
    """Yield (index, property, value in the schema, value in the metadata) of each difference."""
    columns = schema.columns
    if metadata.has_names:
        for index, name in enumerate(metadata.names()):
            if fold(name) != fold(columns[index].name):
                yield index, "the name", f"`{columns[index].name}`", f"`{name}`"
    unsigned = metadata.unsigned()
    words = ("signed", "UNSIGNED")
    for index, column in enumerate(columns):
        if unsigned is not None and column.unsigned != (index in unsigned):
            yield index, "it", words[column.unsigned], words[index in unsigned]
    try:
        charsets = metadata.charsets()
    except UnknownSchemaError:
        return  # this package does not know a collation
    for index, charset in charsets.items():
        known = columns[index].charset
        if known is not None and canonical_charset(known) != canonical_charset(charset):
            yield index, "the character set", known, charset
    for index, labels in metadata.labels(charsets).items():
        known_labels = columns[index].labels
        # information_schema shows letters beyond U+FFFF as ?.
        lost = any("?" in label for label in known_labels)
        if labels != known_labels and not (lost and len(labels) == len(known_labels)):
            yield index, "the labels", known_labels, labels
