"""Decides how a query continues when a table gets columns that its struct does not contain.

The struct is fixed when the query is loaded, before Spark knows the checkpoint, so it has the
server's columns of that time. The tail reaches each new version of a table at its DDL, and checks
here whether the stream may continue. With `addNewColumns` it stops if a restart would add the
column: everything before the DDL is delivered, then the query stops, and the next one begins with
the new struct. A restart can't add a column that the server no longer has; so a query that was
stopped before several DDLs needs at most one restart. Executors handle the values of other columns
according to the mode (decoder/payloads/struct_payload.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import pyarrow as pa

from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schema
from pyspark_mysqlbinlog.decoder.schemas.struct_match import columns_without_place, field_of
from pyspark_mysqlbinlog.decoder.schemas.struct_types import arrow_type
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["Evolution"]


class Evolution:
    """Decides for each version of a table whether the stream may continue.

    Parameters
    ----------
    struct : the type of `before` and `after`.
    case_sensitive : whether the server distinguishes table names by case.
    server_table : returns the server's current table (database, name); None if it does not exist.
    """

    def __init__(
        self,
        options: Options,
        struct: pa.StructType,
        *,
        case_sensitive: bool,
        server_table: Callable[[str, str], TableSchema | None],
    ) -> None:
        self._mode = options.schema_evolution_mode
        self._struct_options = options.struct_options
        self._struct = struct
        self._nested = options.table_filter(case_sensitive).nests
        self._excluded = options.column_filter(case_sensitive).excludes
        self._transforms = options.transforms(case_sensitive)
        self._server_table = server_table
        # Versions that passed, by their id; they are kept so that no id is reused.
        self._passed: dict[int, TableSchema] = {}

    @classmethod
    def of(cls, options: Options, struct: pa.StructType, *, case_sensitive: bool) -> Self:
        """Create it for a server, which is queried over a connection for each table."""
        settings = options.server_settings()

        def server_table(database: str, table: str) -> TableSchema | None:
            with ReplicaClient.connect(settings) as client:
                return read_table_schema(client, (database, table), case_sensitive=case_sensitive)

        return cls(options, struct, case_sensitive=case_sensitive, server_table=server_table)

    def check(self, schema: TableSchema) -> None:
        """Raise SchemaChangedError if the stream must stop before this version of a table."""
        if self._mode == "rescue" or id(schema) in self._passed:
            return
        struct = self._struct_of(schema)
        if struct is not None:
            self._check(self._masked(schema), struct)
        if len(self._passed) >= 1024:
            self._passed.clear()
        self._passed[id(schema)] = schema

    def _check(self, schema: TableSchema, struct: pa.StructType) -> None:
        homeless = self._without_place(schema, struct)
        if self._mode == "none":
            # A column that the struct does not have is skipped.
            homeless = [each for each in homeless if field_of(struct, each.name) is not None]
        if not homeless:
            return
        if self._mode == "none":
            raise SchemaChangedError(
                f"{_named(homeless)} in the table from here on, and the query's struct has another"
                " type for it, which can't hold its values; everything before is delivered:"
                " restart the query, so that its schema is read again, or set"
                " schemaEvolutionMode=rescue or payload=json",
                table=schema.full_name,
            )
        if self._mode == "failOnNewColumns":
            raise SchemaChangedError(
                f"{_named(homeless)} in the table from here on, and the query's struct does not"
                " contain it; restart the query, so that its schema is read again, or set one with"
                " .schema(…), or set schemaEvolutionMode=rescue or payload=json",
                table=schema.full_name,
            )
        now = self._server_table(schema.database, schema.table)
        if now is None:
            return
        fields = [
            pa.field(column.name, arrow_type(column, self._struct_options))
            for column in self._masked(now).columns
            if not self._excluded(now.database, now.table, column.name)
        ]
        left = self._without_place(schema, pa.struct(fields))
        gained = [column for column in homeless if column not in left]
        if gained:
            raise SchemaChangedError(
                f"{_named(gained)} in the table from here on, and the query's struct does not"
                " contain it yet; everything before is delivered: restart the query with the same"
                " checkpoint, which adds it to the struct (a schema set with .schema(…) must be"
                " changed manually), or set schemaEvolutionMode=rescue or payload=json",
                table=schema.full_name,
            )

    def _masked(self, schema: TableSchema) -> TableSchema:
        return schema if self._transforms is None else self._transforms.masked(schema)

    def _without_place(self, schema: TableSchema, struct: pa.StructType) -> list[ColumnSchema]:
        return list(columns_without_place(schema, struct, self._struct_options, self._excluded))

    def _struct_of(self, schema: TableSchema) -> pa.StructType | None:
        """Return this table's part of the query's struct."""
        if not self._nested:
            return self._struct
        part = self._struct
        for name in (schema.database, schema.table):
            field = field_of(part, name)
            if field is None:
                return None
            assert isinstance(field.type, pa.StructType)
            part = field.type
        return part


def _named(columns: Sequence[ColumnSchema]) -> str:
    names = ", ".join(f"`{column.name}` ({column.type})" for column in columns)
    return f"column {names} is" if len(columns) == 1 else f"columns {names} are"
